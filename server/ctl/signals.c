/* server/ctl/signals.c -- a server without a control socket: signals by its number. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "server/ctl/impl.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static bool
read_file(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n = f != NULL ? fread(text, 1, size - 1, f) : 0;

	text[n] = '\0';
	if (f != NULL)
		fclose(f);
	return (n != 0);
}

static bool
read_proc(unsigned pid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return (read_file(path, text, size));
}

int
ctl_read_pid(const char *pid_file, unsigned *pid)
{
	char text[32];

	errno = 0; /* the control socket may have set it */
	*pid = read_file(pid_file, text, sizeof(text)) ? (unsigned)strtoul(text, NULL, 10) : 0;
	if (*pid > 1)
		return (0);
	fprintf(stderr, "accel-server ctl: no server runs: %s: %s\n", pid_file,
	    errno != 0 ? strerror(errno) : "it has no process number");
	return (EX_UNAVAILABLE);
}

/* The pid file may be old, or written by an intruder: no process of another program gets a signal.
 */
static bool
is_server(unsigned pid)
{
	char comm[32];

	return (read_proc(pid, "comm", comm, sizeof(comm)) && strcmp(comm, "accel-server\n") == 0);
}

/* USR2 ends a server that does not know it. */
static bool
knows(unsigned pid, int sig)
{
	char status[4096];
	const char *blocked;

	if (!read_proc(pid, "status", status, sizeof(status)) ||
	    (blocked = strstr(status, "\nSigBlk:")) == NULL)
		return (false);
	return ((strtoull(blocked + strlen("\nSigBlk:"), NULL, 16) >> (sig - 1)) & 1);
}

static void
wait_for_end(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	while (pidfd >= 0 && poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

static int
send_to(unsigned pid, int sig, bool ends)
{
	int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u), err;

	err = kill((pid_t)pid, sig) == 0 ? 0 : errno;
	if (err != 0)
		fprintf(stderr, "accel-server ctl: process %u: %s\n", pid, strerror(err));
	else if (!ends)
		printf("signal %d was sent to process %u; the error log has the outcome\n", sig,
		    pid);
	else {
		wait_for_end(pidfd);
		printf(pidfd >= 0 ? "stopped\n" : "signal sent\n");
	}
	if (pidfd >= 0)
		close(pidfd);
	return (err == 0 ? 0 : err == EPERM ? EX_NOPERM : EX_UNAVAILABLE);
}

int
ctl_signal(unsigned pid, enum ctl_verb verb)
{
	static const int signals[CTL_VERBS] = {
		[CTL_RELOAD] = SIGUSR1,
		[CTL_UPGRADE] = SIGUSR2,
		[CTL_STOP] = SIGTERM,
		[CTL_QUIT] = SIGINT,
	};

	if (!is_server(pid)) {
		fprintf(stderr, "accel-server ctl: process %u is no accel-server\n", pid);
		return (EX_UNAVAILABLE);
	}
	if (verb == CTL_STATUS) {
		fprintf(stderr,
		    "accel-server ctl: process %u runs; status needs its control socket "
		    "(server.control-socket)\n",
		    pid);
		return (EX_UNAVAILABLE);
	}
	if (!knows(pid, signals[verb])) {
		fprintf(stderr,
		    "accel-server ctl: process %u does not take signal %d: it starts, or "
		    "this version cannot do it; restart it\n",
		    pid, signals[verb]);
		return (EX_UNAVAILABLE);
	}
	return (send_to(pid, signals[verb], verb == CTL_STOP || verb == CTL_QUIT));
}
