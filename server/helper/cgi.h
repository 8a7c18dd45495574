/* server/helper/cgi.h -- CGI programs: a process of the helper's that runs one program for one
 * request.
 *
 *   worker --connect(2)--> socket of the helper --fork--> runner --fork, exec--> program
 *   FastCGI 1.0, as to any application                    as server.username  a session of its own
 *
 *   proxy-core <-- STDOUT, STDERR records -- runner <-- two pipes --- program
 *              --- PARAMS, STDIN records --> runner --- a pipe -----> program
 *
 * The runner checks the request against names that the helper's child has read from the
 * configuration: the ending of the script has this interpreter, the script lies below a directory,
 * and each variable is a usual one or one of setenv.  So an intruder in the server can run only
 * what the configuration runs.
 *
 * The end  The program's process group gets SIGTERM and, CGI_GRACE_MS later, SIGKILL: when the
 *          client or the server has left, when the program ran for its time, and when its first
 *          process has ended.
 * Thread   none: each is a process.
 */
#ifndef SERVER_HELPER_CGI_H
#define SERVER_HELPER_CGI_H

#include <glib.h>
#include <sys/types.h>
#include "base/text.h"

#define CGI_RULE_MARK   '\t'  /* in a HELPER_CGI_PROGRAM: INTERPRETER mark ENDING */
#define CGI_GRACE_MS    2000  /* from SIGTERM to SIGKILL */
#define CGI_REQUEST_MS  10000 /* for the variables of a request */
#define CGI_RUNNING_MAX 1024  /* limit of cgi.max-programs */

/* What the worker says to the runner; programs do not get it.  No variable of a request has such a
 * name. */
#define CGI_PROGRAM "accel.program" /* "" or the interpreter */
#define CGI_X_ONLY  "accel.x-only"  /* the script must be executable */
#define CGI_RUN_MS  "accel.run-ms"  /* longest time */
/* longest time in which the program takes no byte of the body */
#define CGI_WRITE_MS "accel.write-ms"
#define CGI_SIGNAL   "accel.signal" /* number of the first signal */

struct cgi_allowed {
	const GPtrArray *names; /* struct helper_name */
	pid_t server;
};

/* What is to be executed. */
struct cgi_job {
	const char *program; /* "": the script */
	const char *script;
	bool x_only;
	uint64_t run_ms, write_ms;
	int signal;
	char **env; /* NULL at the end */
};

/* The process of one request; never returns. */
_Noreturn void cgi_run(const struct cgi_allowed *, int sock, pid_t helper);

/* ---- cgi_program.c */

/* Changes to server.username, if the helper may. */
bool cgi_become(const GPtrArray *names);
/* Fills *job from whole pairs, without the variables that the names do not allow.  0 or -errno. */
int cgi_job_read(struct text params, const GPtrArray *names, struct cgi_job *job);
/* 0: it may run.  Otherwise the status for the client, and *why, a line for the log. */
int cgi_job_check(const struct cgi_job *, const GPtrArray *names, const char **why);
/* In the program's process: the three descriptors become 0, 1 and 2.  Never returns; writes errno
 * to report if the program cannot be executed. */
_Noreturn void cgi_job_exec(const struct cgi_job *, const int fds[3], int report);
/* The status for the client, and *why, after exec failed with this errno. */
int cgi_exec_failed(const struct cgi_job *, int err, const char **why);

#endif
