/* server/helper/upgrade.c -- executes the program file anew, in place of the running server.
 *
 *   helper --fork--> supervisor --fork, exec--> new server
 *                    waits for the outcome      has the rights, the environment, the limits and
 *                    and answers                the directory of the one who started the old one
 *
 * The helper is not confined, and the supervisor has none of the server's descriptors.  The new
 * server gets one socket, the one for the answer: what the old server hands over waits there
 * (server/process/upgrade.c).  The supervisor reads nothing from it.
 *
 * The program is the file that was started, by its name: a package replaces it, or an
 * administrator changes a link on the way to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "server/helper/impl.h"
#include "server/helper/starter.h"

#define CONFIRM_MS 2000u

static char *program; /* absolute */
static char **arguments;

/* ---------------------------------------------------------------- the program file */

static bool
is_this_program(const char *path)
{
	struct stat a, b;

	return (stat(path, &a) == 0 && stat("/proc/self/exe", &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino);
}

/* argv[0] as a shell finds it, without following links: a link may lead to the next version. */
static char *
find_program(const char *name)
{
	char *found = strchr(name, '/') != NULL ? g_strdup(name) : g_find_program_in_path(name);
	char *path = found != NULL ? g_canonicalize_filename(found, NULL) : NULL;

	g_free(found);
	if (path != NULL && is_this_program(path))
		return (path);
	g_free(path);
	return (g_file_read_link("/proc/self/exe", NULL));
}

void
helper_program(char **argv)
{
	program = find_program(argv[0]);
	arguments = argv;
}

/* ---------------------------------------------------------------- the new server */

static void
set_number(const char *name, int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	setenv(name, text, 1);
}

static _Noreturn void
run(int reply, int pipe_end)
{
	int sock = fcntl(reply, F_DUPFD, STDERR_FILENO + 1);
	int err = fcntl(STDERR_FILENO, F_DUPFD, STDERR_FILENO + 1);
	struct starter_chain chain = starter_chain();
	char text[64];

	if (sock < 0 || err < 0 || dup2(pipe_end, STDERR_FILENO) < 0)
		_exit(126);
	snprintf(text, sizeof(text), "%d:%d:%u:%" PRIu64, sock, err, chain.upgrades + 1,
	    chain.first_s);
	setenv(STARTER_UPGRADE, text, 1);
	if (getenv("WATCHDOG_PID") != NULL)
		set_number("WATCHDOG_PID", (int)getpid());
	execv(program, arguments);
	fprintf(stderr, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

/* ---------------------------------------------------------------- the supervisor */

static volatile sig_atomic_t started; /* number of the new server */
static volatile sig_atomic_t given_up;

/* The helper or the old server has died: an upgrade that is not complete is undone. */
static void
give_up(int sig)
{
	(void)sig;
	given_up = 1;
	kill((pid_t)started, SIGKILL);
}

/* The processes that the new server has started become its children. */
static void
watch(pid_t pid)
{
	struct sigaction sa = { .sa_handler = give_up };

	started = pid;
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* A server that has ended since it was ready is not ready.  A guardian removes the pid file before
 * the old server writes it anew. */
static int
outcome(int status, pid_t pid)
{
	int how;

	if (status == 0 && waitpid(pid, &how, given_up ? 0 : WNOHANG) == pid)
		status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : EX_SOFTWARE;
	while (status != 0 && waitpid(0, NULL, 0) > 0)
		;
	return (status);
}

static void
keep(void *cause, struct text said)
{
	buf_text(cause, said);
}

/* What the new server has said, or how it ended. */
static void
put_cause(struct buf *out, struct text said, int status)
{
	if (said.n != 0 || status == 0)
		buf_text(out, said);
	else if (status > 128)
		buf_printf(out, "the new server was ended by signal %d", status - 128);
	else
		buf_printf(out, "the new server ended with status %d and said nothing", status);
}

/* The old server confirms each answer: the new server's, and this one.  If the old server has been
 * stopped meanwhile, the new one ends, too: no other process would stop it.  Older versions confirm
 * nothing. */
static bool
is_confirmed(int reply)
{
	uint64_t until = clock_mono_ns() + CONFIRM_MS * NS_PER_MS, now;
	struct pollfd p = { .fd = reply, .events = POLLIN };
	uint8_t heard = 0;
	ssize_t n;

	while (heard < 2 && (now = clock_mono_ns()) < until) {
		(void)poll(&p, 1, (int)((until - now) / NS_PER_MS) + 1);
		n = recv(reply, &heard, 1, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return (false);
	}
	return (true);
}

int
helper_work_upgrade(int reply, uint32_t load_ms)
{
	uint64_t until = clock_mono_ns() + (load_ms + HELPER_UPGRADE_MS) * NS_PER_MS;
	struct buf said, answer;
	int end[2], status;
	int32_t head[2];
	pid_t pid;

	if (program == NULL || pipe2(end, O_CLOEXEC) != 0 || (pid = fork()) < 0)
		return (1);
	if (pid == 0)
		run(reply, end[1]);
	watch(pid);
	close(end[1]);
	buf_init(&said, HELPER_CAUSE_MAX);
	buf_init(&answer, 0);
	status = outcome(starter_follow(end[0], pid, until, keep, &said), pid);
	head[0] = status;
	head[1] = (int32_t)pid;
	buf_add(&answer, head, sizeof(head));
	put_cause(&answer, buf_as_text(&said), status);
	if (helper_send(reply, answer.p, answer.n, -1) == 0 && (status != 0 || is_confirmed(reply)))
		return (0);
	if (status == 0) {
		(void)kill(pid, SIGTERM);
		(void)waitpid(pid, NULL, 0);
	}
	return (2);
}
