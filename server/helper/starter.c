/* server/helper/starter.c -- see starter.h */
#include "server/helper/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"

static int pipe_end = -1; /* nobody waits */
static int upgrade_socket = -1;
static struct starter_chain chain;

/* ---------------------------------------------------------------- the server's end */

void
starter_say(struct text said)
{
	if (pipe_end >= 0)
		(void)!write(pipe_end, said.p, said.n);
}

static ssize_t
both(void *cookie, const char *p, size_t n)
{
	(void)cookie;
	(void)!write(STDERR_FILENO, p, n);
	starter_say((struct text){ p, n });
	return ((ssize_t)n);
}

/* What the program prints with fprintf(stderr) goes to descriptor 2 and to the pipe. */
static void
talk_to(int fd)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = both });

	signal(SIGPIPE, SIG_IGN);
	pipe_end = fd;
	if (f == NULL)
		return;
	(void)setvbuf(f, NULL, _IONBF, 0);
	stderr = f;
}

/* The dynamic linker has written to the pipe until now: its messages name a missing library. */
void
starter_open(void)
{
	const char *s = getenv(STARTER_UPGRADE);
	struct starter_chain from = { 0 };
	int sock, err, fd;
	bool ours =
	    s != NULL &&
	    sscanf(s, "%d:%d:%u:%" SCNu64, &sock, &err, &from.upgrades, &from.first_s) >= 2 &&
	    sock > STDERR_FILENO && err > STDERR_FILENO;

	chain = ours ? from : (struct starter_chain){ 0 };
	if (chain.first_s == 0)
		chain.first_s = clock_wall_ns() / NS_PER_S;
	unsetenv(STARTER_UPGRADE);
	if (!ours || fcntl(sock, F_SETFD, FD_CLOEXEC) != 0)
		return;
	fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (fd < 0 || dup2(err, STDERR_FILENO) < 0)
		return;
	close(err);
	upgrade_socket = sock;
	talk_to(fd);
}

struct starter_chain
starter_chain(void)
{
	return (chain);
}

int
starter_socket(void)
{
	return (upgrade_socket);
}

void
starter_leave(void)
{
	if (upgrade_socket >= 0)
		close(upgrade_socket);
	upgrade_socket = -1;
}

bool
starter_waits(void)
{
	struct pollfd p = { .fd = pipe_end };

	return (pipe_end < 0 || poll(&p, 1, 0) == 0); /* POLLERR: nobody reads */
}

bool
starter_ready(void)
{
	bool heard = pipe_end < 0 || write(pipe_end, "", 1) == 1;

	if (pipe_end >= 0)
		close(pipe_end);
	starter_forget();
	return (heard);
}

void
starter_forget(void)
{
	pipe_end = -1;
}

/* ---------------------------------------------------------------- the other end */

static int
ended(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return (EX_OSERR);
	if (WIFSIGNALED(status))
		return (128 + WTERMSIG(status));
	return (WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : EX_SOFTWARE);
}

/* Waits until fd is readable; kills the process when its time is over. */
static void
wait_for(int fd, pid_t pid, uint64_t *until_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t now = clock_mono_ns();

	if (*until_ns != 0 && now >= *until_ns) {
		*until_ns = 0;
		kill(pid, SIGKILL);
	}
	(void)poll(&p, 1, *until_ns != 0 ? (int)((*until_ns - now) / NS_PER_MS) + 1 : -1);
}

int
starter_follow(int fd, pid_t pid, uint64_t until_ns, void (*said)(void *arg, struct text),
    void *arg)
{
	char bytes[1024];
	ssize_t n;

	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		wait_for(fd, pid, &until_ns);
		n = read(fd, bytes, sizeof(bytes));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			break;
		if (bytes[n - 1] != '\0') {
			said(arg, (struct text){ bytes, (size_t)n });
			continue;
		}
		said(arg, (struct text){ bytes, (size_t)n - 1 });
		close(fd);
		return (0);
	}
	close(fd);
	return (ended(pid));
}

/* ---------------------------------------------------------------- --daemon */

static void
print(void *arg, struct text said)
{
	(void)arg;
	(void)!write(STDERR_FILENO, said.p, said.n);
}

/* The sockets of the service manager are for this process number. */
static void
inherit_sockets(pid_t parent)
{
	const char *pid = getenv("LISTEN_PID");
	char number[16];

	if (pid == NULL || strtol(pid, NULL, 10) != (long)parent)
		return;
	snprintf(number, sizeof(number), "%d", (int)getpid());
	setenv("LISTEN_PID", number, 1);
}

/* The working directory stays: names in the configuration may be relative to it. */
static bool
leave_terminal(pid_t parent)
{
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || setsid() < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
		return (false);
	if (null > STDERR_FILENO)
		close(null);
	inherit_sockets(parent);
	return (true);
}

int
starter_daemonize(void)
{
	pid_t parent = getpid(), pid;
	int end[2];

	if (pipe2(end, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
		fprintf(stderr, "accel-server: --daemon: %s\n", strerror(errno));
		return (EX_OSERR);
	}
	if (pid != 0) {
		close(end[1]);
		return (starter_follow(end[0], pid, 0, print, NULL));
	}
	close(end[0]);
	if (!leave_terminal(parent))
		_exit(EX_OSERR);
	talk_to(end[1]);
	return (-1);
}
