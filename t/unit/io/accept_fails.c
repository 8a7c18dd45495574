/* t/unit/io/accept_fails.c -- the answer of the loop to each errno of accept(2), which a filter of
 * system calls gives. */
#include <seccomp.h>
#include <sys/wait.h>
#include "io/start/listen.h"
#include "t/unit/io/io_test.h"

#define ROUNDS 3

static int fd, client;
static struct io_sock listener;
static struct waiter accepting;

static void
connect_one(void)
{
	struct listen_conf lc = { .name = "127.0.0.1:0", .backlog = 1 };
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	const char *why;

	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	g_assert_cmpint(getsockname(fd, (struct sockaddr *)&in, &len), ==, 0);
	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	g_assert_cmpint(connect(client, (struct sockaddr *)&in, len), ==, 0);
}

static void
forbid_accept(int err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	g_assert_cmpint(seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint16_t)err), SCMP_SYS(accept4), 0),
	    ==, 0);
	g_assert_cmpint(seccomp_load(ctx), ==, 0);
	seccomp_release(ctx);
}

/* What the caller gets; 0: the loop tries again. */
static int
accept_with(int err)
{
	unsigned i;

	loop_up(file_backends[0], 1, 8);
	connect_one();
	forbid_accept(err);
	io_sock_init(&listener, fd);
	wait_init(&accepting, IO_ACCEPT, &listener);
	wait_submit(&accepting);
	for (i = 0; i < ROUNDS && !accepting.done; i++) {
		io_wake(io);
		io_run(io);
	}
	return (accepting.done ? (int)-accepting.res : 0);
}

static void
each_gives(const int *errs, size_t n, bool to_caller)
{
	size_t i;
	int status;
	pid_t pid;

	for (i = 0; i < n; i++) {
		pid = fork();
		g_assert_cmpint(pid, >=, 0);
		if (pid == 0)
			_exit(accept_with(errs[i]));
		g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
		g_assert_true(WIFEXITED(status));
		g_assert_cmpint(WEXITSTATUS(status), ==, to_caller ? errs[i] : 0);
	}
}

/* The connection is still in the queue, or the next accept fails, too. */
TEST("/accept-fails/the caller pauses")
{
	static const int errs[] = { EPERM, EACCES, EMFILE, ENFILE, ENOBUFS, ENOMEM, EINVAL, EBADF,
		ENOTSOCK, EOPNOTSUPP, EFAULT, ENOSR, ENOSYS, ESOCKTNOSUPPORT, EPROTONOSUPPORT };

	each_gives(errs, NELEM(errs), true);
}

/* It has left the queue. */
TEST("/accept-fails/the next connection is tried")
{
	static const int errs[] = { EINTR, ECONNABORTED, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN,
		ENONET, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT, EAGAIN };

	each_gives(errs, NELEM(errs), false);
}
