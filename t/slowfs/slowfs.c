/* slowfs -- a view of a directory that behaves like disks with nothing in memory.
 *
 *   slowfs [options] SOURCE MOUNTPOINT		doc/slowfs.md explains its use
 *
 * Each look-up of a name and each read of up to 128 KiB is one request to a disk.  Requests wait in
 * one queue, oldest first; SPINDLES threads take them from there, and each sleeps for the time its
 * request costs:
 *
 *     kernel --> receiver --> [ queue ] --> spindle 1 .. N --> sleep --> rules --> answer
 *                   `--> what is in memory on a real system too is answered at once
 *
 * The kernel keeps names, attributes (absences too) and pages, so that what was touched
 * once is fast from then on, until it is forgotten under memory pressure, as on a real disk, or on
 * order. The receiver never sleeps: any number of requests may wait without needing a thread each.
 *
 *   slowfs.c   start, loop, stop                     rule.c     what was ordered: hang, fail
 *   ops.c      answers, from the source              control.c  the socket that takes orders
 *   job.c      queue, spindles, hung requests        node.c     names the kernel knows
 *   caller.c   was the waiting program killed?       guard.c    removes what a killed slowfs leaves
 *   options.c  command line, manual
 */
#include "slowfs.h"
#include "caller.h"
#include "control.h"
#include "guard.h"
#include "job.h"
#include "ops.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS  500   /* how long a killed starter may wait for its end */
#define DRAIN_MS 3000  /* at the end, for orders that are being carried out */
#define FDS_SOON 16384 /* room for this many descriptors */

int source_fd;

/* libfuse 3.14 forgets FUSE_PARALLEL_DIROPS in its first answer, and without it the kernel sends
 * one look-up per directory at a time, with any number of spindles.  So it is added here. */
static ssize_t
dev_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	static bool first_sent;
	struct fuse_init_out *out;
	bool first = !__atomic_exchange_n(&first_sent, true, __ATOMIC_RELAXED);

	if (first && count == 2 &&
	    iov[1].iov_len >= offsetof(struct fuse_init_out, max_background)) {
		out = iov[1].iov_base;
		out->flags |= FUSE_PARALLEL_DIROPS;
	}
	return (writev(fd, iov, count));
}

static ssize_t
dev_read(int fd, void *buf, size_t len, void *userdata)
{
	return (read(fd, buf, len));
}

static const struct fuse_custom_io dev_io = { .writev = dev_writev, .read = dev_read };

static struct fuse_session *
session_open(const char *mountpoint)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se;

	fuse_opt_add_arg(&args, "slowfs");
	fuse_opt_add_arg(&args, opt.write_ms < 0 ? "-oro" : "-orw");
	fuse_opt_add_arg(&args,
	    "-ofsname=slowfs,subtype=slowfs,default_permissions,max_read=131072");
	/* Servers that give up root must still see it; others may allow that in fuse.conf only. */
	if (geteuid() == 0)
		fuse_opt_add_arg(&args, "-oallow_other");
	se = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	fuse_opt_free_args(&args);
	if (se == NULL)
		return (NULL);
	if (fuse_session_mount(se, mountpoint) != 0 ||
	    fuse_session_custom_io(se, &dev_io, fuse_session_fd(se)) != 0) {
		fuse_session_destroy(se);
		return (NULL);
	}
	return (se);
}

static void
counters_print(const char *word)
{
	char line[256];

	jobs_counters(line, sizeof(line), false);
	printf("%s %s\n", word, line);
	fflush(stdout);
}

static bool
told_to_stop(int sigfd)
{
	struct signalfd_siginfo si;

	if (read(sigfd, &si, sizeof(si)) != sizeof(si))
		return (false);
	if (si.ssi_signo != SIGUSR1)
		return (true);
	counters_print("so-far");
	return (false);
}

static bool
input_ended(void)
{
	char buf[256];
	ssize_t n;

	n = read(STDIN_FILENO, buf, sizeof(buf));
	return (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR));
}

/* A starter that is killed while it waits for this disk cannot end, so its end of the pipe stays
 * open.  A request through a loop device does not name it as the caller. */
static bool
starter_killed(pid_t starter)
{
	return (opt.until_eof && starter > 1 && caller_killed(starter, 0));
}

/* Handles one request, if there is one.  False after an unmount by another process. */
static bool
serve_one(struct fuse_session *se, struct fuse_buf *buf)
{
	int n;

	n = fuse_session_receive_buf(se, buf);
	if (n == -EINTR || n == -EAGAIN)
		return (true);
	if (n <= 0)
		return (false);
	fuse_session_process_buf(se, buf);
	return (true);
}

/* Each waiting request gets EIO.  `forget` waits for locks of the kernel that callers of ours may
 * hold, and it holds the device open: so requests are received, and refused, until it is
 * through. */
static void
drain(struct fuse_session *se, struct fuse_buf *buf)
{
	struct pollfd p = { .fd = fuse_session_fd(se), .events = POLLIN };
	int ms;

	jobs_stop();
	for (ms = 0; ms < DRAIN_MS && control_forgetting(); ms += 10) {
		if (poll(&p, 1, 10) > 0 && !serve_one(se, buf))
			break;
	}
}

static void
serve(struct fuse_session *se, int sigfd)
{
	struct fuse_buf buf = { .mem = NULL };
	struct pollfd p[3] = {
		{ .fd = fuse_session_fd(se), .events = POLLIN },
		{ .fd = sigfd, .events = POLLIN },
		{ .fd = opt.until_eof ? STDIN_FILENO : -1, .events = POLLIN },
	};
	pid_t starter = getppid();
	bool announced = false;
	int n;

	while (!fuse_session_exited(se)) {
		n = poll(p, 3, opt.until_eof ? LOOK_MS : -1);
		if ((n < 0 && errno != EINTR) || (n == 0 && starter_killed(starter)))
			break;
		if (p[1].revents != 0 && told_to_stop(sigfd))
			break;
		if (p[2].revents != 0 && input_ended())
			break;
		if (p[0].revents == 0)
			continue;
		if (!serve_one(se, &buf))
			break;
		if (!announced) {
			puts("ready");
			fflush(stdout);
			announced = true;
		}
	}
	drain(se, &buf);
	free(buf.mem);
}

/* Below the source, the mount would be asked for names in itself, and wait for itself. */
static bool
is_inside(const char *mountpoint, const char *source)
{
	char outer[PATH_MAX], inner[PATH_MAX];
	size_t len;

	if (realpath(source, outer) == NULL || realpath(mountpoint, inner) == NULL)
		return (false);
	len = strcmp(outer, "/") == 0 ? 0 : strlen(outer);
	return (strncmp(inner, outer, len) == 0 && inner[len] == '/' && inner[len + 1] != '\0');
}

static int
signals(void)
{
	sigset_t sigs;

	signal(SIGPIPE, SIG_IGN); /* unmounts even if the last line has no reader */
	sigemptyset(&sigs);
	sigaddset(&sigs, SIGTERM);
	sigaddset(&sigs, SIGINT);
	sigaddset(&sigs, SIGHUP);
	sigaddset(&sigs, SIGUSR1);
	sigprocmask(SIG_BLOCK, &sigs, NULL);
	return (signalfd(-1, &sigs, SFD_CLOEXEC | SFD_NONBLOCK));
}

/* The table gets its size before there are threads: if it grows later, it waits for a grace period
 * of RCU, 13 ms in which the disk answers no request. */
static void
descriptors(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
		close(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC,
		    (int)(rl.rlim_cur < FDS_SOON ? rl.rlim_cur : FDS_SOON) - 1));
	}
}

static int
complain(const char *what, int err, int status)
{
	fprintf(stderr, "slowfs: %s: %s\n", what, strerror(err));
	return (status);
}

int
main(int argc, char **argv)
{
	struct fuse_session *se;
	const char *source, *mountpoint;
	int sigfd, err;

	if ((err = options_read(argv, &source, &mountpoint)) != OPTIONS_RUN)
		return (err);
	if (is_inside(mountpoint, source)) {
		fprintf(stderr, "slowfs: %s is inside of %s\n", mountpoint, source);
		return (64);
	}
	if ((source_fd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return (complain(source, errno, 66));
	if ((err = guard_start()) != 0)
		return (complain("cannot start the guard", -err, 71));
	if (opt.control != NULL && (err = control_open(opt.control)) != 0)
		return (complain(opt.control, -err, 73));
	descriptors();
	sigfd = signals();
	if ((se = session_open(mountpoint)) == NULL) {
		control_close();
		return (71);
	}
	guard_mount(mountpoint);
	/* A request may be taken back between poll and read. */
	fcntl(fuse_session_fd(se), F_SETFL, O_NONBLOCK);
	if ((err = spindles_start((int)opt.spindles)) != 0 || (err = control_start(se)) != 0) {
		fuse_session_unmount(se);
		control_close();
		return (complain("cannot start a thread", -err, 71));
	}
	serve(se, sigfd);
	guard_clear();
	fuse_session_unmount(se); /* in case the guard could not do it */
	control_close();
	counters_print("done");
	_exit(0); /* sleeping spindles have no request left to answer */
}
