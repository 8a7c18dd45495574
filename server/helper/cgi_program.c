/* server/helper/cgi_program.c -- which program runs, with which variables; see cgi.h */
#include "server/helper/cgi.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/start/become.h"
#include "server/helper/impl.h"
#include "wire/codec/cgi_request.h"
#include "wire/urlpath.h"

/* ---------------------------------------------------------------- the user */

bool
cgi_become(const GPtrArray *names)
{
	const struct helper_name *n;
	guint i;

	for (i = names->len; i-- > 0;) {
		n = g_ptr_array_index(names, i);
		if (n->kind == HELPER_CGI_USER && n->set_owner)
			return (become(n->uid != BECOME_SAME_USER ? n->name : NULL, n->uid,
				    n->gid) == 0);
	}
	return (true);
}

/* ---------------------------------------------------------------- the request */

static char *
copy(struct text t)
{
	return (g_strndup(t.p != NULL ? t.p : "", t.n));
}

static uint64_t
number(struct text t)
{
	uint64_t n = 0;

	return (text_u64(t, &n) == 0 ? n : 0);
}

/* False: a variable for the program. */
static bool
is_for_runner(struct cgi_job *job, struct text name, struct text value)
{
	if (text_eq(name, TEXT(CGI_PROGRAM)))
		job->program = copy(value);
	else if (text_eq(name, TEXT(CGI_X_ONLY)))
		job->x_only = value.n != 0;
	else if (text_eq(name, TEXT(CGI_RUN_MS)))
		job->run_ms = number(value);
	else if (text_eq(name, TEXT(CGI_WRITE_MS)))
		job->write_ms = number(value);
	else if (text_eq(name, TEXT(CGI_SIGNAL)))
		job->signal = (int)(number(value) % NSIG);
	else
		return (false);
	return (true);
}

/* An interpreter also obeys variables that no request has. */
static bool
may_have(const GPtrArray *names, struct text variable)
{
	const struct helper_name *n;
	guint i;

	if (cgi_variable_is_usual(variable))
		return (true);
	for (i = 0; i < names->len; i++) {
		n = g_ptr_array_index(names, i);
		if (n->kind == HELPER_CGI_VARIABLE && text_eq(text_of(n->name), variable))
			return (true);
	}
	return (false);
}

int
cgi_job_read(struct text params, const GPtrArray *names, struct cgi_job *job)
{
	GPtrArray *env = g_ptr_array_new();
	struct text name, value;
	bool ok = true;

	*job = (struct cgi_job){ .signal = SIGTERM };
	while (ok && fcgi_take_pair(&params, &name, &value)) {
		ok = cgi_variable_ok(name, value);
		if (!ok || is_for_runner(job, name, value) || !may_have(names, name))
			continue;
		if (text_eq(name, TEXT("SCRIPT_FILENAME")) && job->script == NULL)
			job->script = copy(value);
		g_ptr_array_add(env, g_strdup_printf("%.*s=%.*s", (int)name.n, name.p, (int)value.n,
					 value.n != 0 ? value.p : ""));
	}
	g_ptr_array_add(env, NULL);
	job->env = (char **)g_ptr_array_free(env, FALSE);
	ok = ok && job->program != NULL && job->script != NULL && job->script[0] == '/' &&
	     job->signal != 0;
	return (ok ? 0 : -EINVAL);
}

/* ---------------------------------------------------------------- is it allowed */

/* The configuration gives an ending of this script to this interpreter. */
static bool
has_rule(const GPtrArray *names, const struct cgi_job *job)
{
	const struct helper_name *n;
	const char *mark;
	guint i;

	for (i = 0; i < names->len; i++) {
		n = g_ptr_array_index(names, i);
		if (n->kind != HELPER_CGI_PROGRAM ||
		    (mark = strrchr(n->name, CGI_RULE_MARK)) == NULL)
			continue;
		if (text_eq(text_of(job->program),
			(struct text){ n->name, (size_t)(mark - n->name) }) &&
		    text_ends(text_of(job->script), text_of(mark + 1)))
			return (true);
	}
	return (false);
}

/* True if the name lies below the directory, both without steps and links, or is it. */
static bool
is_below(const char *name, const char *dir)
{
	size_t len = strlen(dir);

	while (len > 1 && dir[len - 1] == '/')
		len--;
	return (
	    strncmp(name, dir, len) == 0 && (name[len] == '/' || name[len] == '\0' || len == 1));
}

/* Links lead to a file below the directory, or the configuration lets them lead anywhere.  Only a
 * process that may write there can change the file between this check and exec(2), and such a
 * process could write a script, too. */
static bool
is_of_root(const struct helper_name *root, const struct cgi_job *job, const char *real)
{
	char dir[PATH_MAX];

	if (root->set_mode && is_below(job->script, root->name) &&
	    !urlpath_has_steps(text_of(job->script)))
		return (true);
	return (realpath(root->name, dir) != NULL && is_below(real, dir));
}

static bool
is_below_root(const GPtrArray *names, const struct cgi_job *job, const char *real)
{
	const struct helper_name *n;
	guint i;

	for (i = 0; i < names->len; i++) {
		n = g_ptr_array_index(names, i);
		if (n->kind == HELPER_CGI_ROOT && is_of_root(n, job, real))
			return (true);
	}
	return (false);
}

static int
check_script(const struct cgi_job *job, const GPtrArray *names, const char **why)
{
	char real[PATH_MAX];
	struct stat st;

	if (realpath(job->script, real) == NULL || stat(real, &st) != 0) {
		*why = errno == EACCES ? "the user of the server may not enter a directory of it; "
					 "correct the modes"
				       : "there is no such file";
		return (errno == EACCES ? 403 : 404);
	}
	*why = "it is not below a document root of the configuration";
	if (!is_below_root(names, job, real))
		return (403);
	*why = "it is not a regular file";
	if (!S_ISREG(st.st_mode))
		return (403);
	*why = "it is not executable; chmod +x it, or name an interpreter in cgi.assign";
	if (job->program[0] == '\0' && access(real, X_OK) != 0)
		return (403);
	*why = "it has no x bit, as cgi.execute-x-only demands; chmod +x it";
	if (job->x_only && (st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
		return (403);
	return (0);
}

int
cgi_job_check(const struct cgi_job *job, const GPtrArray *names, const char **why)
{
	*why = "cgi.assign does not give its ending to this interpreter";
	if (!has_rule(names, job))
		return (403);
	return (check_script(job, names, why));
}

/* ---------------------------------------------------------------- running it */

/* Relative names in a script start at its directory (RFC 3875, 7.2). */
static int
enter_directory(const char *script)
{
	char *dir = g_path_get_dirname(script);
	int rc = chdir(dir);

	g_free(dir);
	return (rc);
}

static int
cannot(int report)
{
	int err = errno;

	(void)!write(report, &err, sizeof(err));
	_exit(127);
}

_Noreturn void
cgi_job_exec(const struct cgi_job *job, const int fds[3], int report)
{
	const struct rlimit no_core = { 0, 0 };
	const char *file = job->program[0] != '\0' ? job->program : job->script;
	char *argv[3] = { (char *)(uintptr_t)file, NULL, NULL };
	sigset_t none;
	int i;

	if (file != job->script)
		argv[1] = (char *)(uintptr_t)job->script;
	for (i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	for (i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			cannot(report);
	if (dup2(report, 3) < 0 || fcntl(3, F_SETFD, FD_CLOEXEC) != 0)
		cannot(report);
	(void)syscall(SYS_close_range, 4u, ~0u, 0u);
	if (enter_directory(job->script) == 0)
		execve(file, argv, job->env);
	cannot(3);
	_exit(127);
}

int
cgi_exec_failed(const struct cgi_job *job, int err, const char **why)
{
	switch (err) {
	case EACCES:
		*why =
		    "the user of the server may not execute it; correct the modes of the file, of "
		    "its directories and of the interpreter in its first line";
		return (403);
	case ENOENT:
		*why =
		    job->program[0] != '\0'
			? "its interpreter does not exist; correct cgi.assign"
			: "the interpreter in its first line does not exist; look for a carriage "
			  "return at the end of that line";
		return (500);
	case ENOEXEC:
		*why = "it is not a program and has no #! line; add one, or name an interpreter in "
		       "cgi.assign";
		return (500);
	case E2BIG: *why = "a header of the request is too long for a program"; return (431);
	default: *why = "the program cannot be executed"; return (500);
	}
}
