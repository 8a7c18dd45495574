/* server/ctl/signals.c -- a server without a control socket: signals by its number. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/start/pid.h"
#include "server/ctl/impl.h"

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

/* USR2 ends a server that does not know it. */
static bool
knows(unsigned pid, int sig)
{
	char path[64], status[4096];
	const char *blocked;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	if (!read_file(path, status, sizeof(status)) ||
	    (blocked = strstr(status, "\nSigBlk:")) == NULL)
		return (false);
	return ((strtoull(blocked + strlen("\nSigBlk:"), NULL, 16) >> (sig - 1)) & 1);
}

static void
wait_for_end(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

static int
failed(unsigned pid, int err)
{
	if (err == -ESRCH)
		fprintf(stderr, "accel-server ctl: process %u is not an accel-server\n", pid);
	else
		fprintf(stderr, "accel-server ctl: process %u: %s\n", pid, strerror(-err));
	return (err == -EPERM ? EX_NOPERM : EX_UNAVAILABLE);
}

static int
send_to(unsigned pid, int pidfd, enum ctl_verb verb)
{
	static const int signals[CTL_VERBS] = {
		[CTL_RELOAD] = SIGUSR1,
		[CTL_UPGRADE] = SIGUSR2,
		[CTL_REOPEN] = SIGHUP,
		[CTL_STOP] = SIGTERM,
		[CTL_QUIT] = SIGINT,
	};
	int err;

	if (signals[verb] == 0) {
		fprintf(stderr,
		    "accel-server ctl: process %u runs; status, drain and undrain need its control "
		    "socket (server.control-socket)\n",
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
	err = pid_signal(pidfd, signals[verb]);
	if (err != 0)
		return (failed(pid, err));
	if (verb == CTL_STOP || verb == CTL_QUIT) {
		wait_for_end(pidfd);
		printf("stopped\n");
	} else
		printf("signal %d was sent to process %u; the error log has the outcome\n",
		    signals[verb], pid);
	return (0);
}

/* The pid file may be old, or written by an intruder: no process of another program gets a signal.
 */
int
ctl_signal(unsigned pid, enum ctl_verb verb)
{
	int pidfd = pid_open((pid_t)pid, "accel-server"), rc;

	if (pidfd < 0)
		return (failed(pid, pidfd));
	rc = send_to(pid, pidfd, verb);
	close(pidfd);
	return (rc);
}
