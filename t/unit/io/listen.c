/* t/unit/io/listen.c -- listening sockets: names, options, modes and inheritance. */
#include <netinet/tcp.h>
#include <sys/file.h>
#include "io/start/listen.h"
#include "t/unit/io/in_dir.h"

static int
option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	g_assert_cmpint(getsockopt(fd, level, name, &value, &len), ==, 0);
	return (value);
}

TEST("/listen/a unix socket replaces a stale one only")
{
	g_autofree char *path = g_build_filename(dir, "s.sock", NULL),
			*name = g_strconcat("unix:", path, NULL);
	struct listen_conf lc = { .name = name, .backlog = 10 };
	const char *why;
	char out[LISTEN_NAME_MAX];
	int fd, fd2;

	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	g_assert_cmpint(listen_name(fd, out), ==, 0);
	g_assert_cmpstr(out, ==, name);
	g_assert_cmpint(listen_open(&lc, &fd2, &why), ==, -EADDRINUSE);
	io_close_fd(fd);
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0); /* replaces a stale socket */
	io_close_fd(fd);
	g_assert_null(why);
	lc.name = "noport";
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, -EINVAL);
	g_assert_cmpstr(why, ==, "expected a port after the host");
	lc.name = "::1:80";
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, -EINVAL);
	g_assert_cmpstr(why, ==, "expected an IPv6 address in brackets, as in [::1]:80");
	lc.name = "[fe80::1%nosuchlink]:0"; /* fails without a DNS query */
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, -EADDRNOTAVAIL);
	g_assert_nonnull(why);
	g_assert_cmpint(listen_name(0, out), <, 0);
}

/* The lock of another program; it gives the lock back after some waits, and removes the file. */
static int other = -1;
static char *lock_name;
static unsigned waits, waits_held;
static bool removes;

int
usleep(useconds_t us)
{
	if (++waits != waits_held)
		return (0);
	if (removes)
		g_assert_cmpint(unlink(lock_name), ==, 0);
	io_close_fd(other);
	return (0);
}

/* The number of waits before the socket is there; UINT_MAX: it is refused with -EBUSY. */
static unsigned
waits_for(const char *path)
{
	struct listen_conf lc = { .name = path, .backlog = 10 };
	const char *why;
	int fd, err;

	waits = 0;
	err = listen_open(&lc, &fd, &why);
	if (err == -EBUSY)
		return (UINT_MAX);
	g_assert_cmpint(err, ==, 0);
	g_assert_cmpint(unlink(path), ==, 0);
	io_close_fd(fd);
	return (waits);
}

static int
lock_of(int flags, mode_t mode)
{
	int fd = open(lock_name, flags | O_CREAT | O_CLOEXEC, 0600);

	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(fchmod(fd, mode), ==, 0);
	g_assert_cmpint(flock(fd, LOCK_EX), ==, 0);
	return (fd);
}

TEST("/listen/a lock is waited for, but not for ever")
{
	g_autofree char *path = g_build_filename(dir, "l.sock", NULL);

	lock_name = g_strconcat(path, ".lock", NULL);
	g_assert_cmpuint(waits_for(path), ==, 0);
	g_assert_cmpint(access(lock_name, F_OK), !=, 0); /* nothing is left */
	other = lock_of(O_RDWR, 0600);
	waits_held = 0;
	g_assert_cmpuint(waits_for(path), ==, UINT_MAX);
	g_assert_cmpuint(waits, ==, 201);
	for (waits_held = 3; waits_held < 5; waits_held++) {
		removes = waits_held == 4;
		g_assert_cmpuint(waits_for(path), ==, waits_held);
		g_assert_cmpint(access(lock_name, F_OK), !=, 0);
		other = lock_of(O_RDWR, 0600);
	}
	io_close_fd(other); /* its program has crashed: the file is left */
	g_assert_cmpuint(waits_for(path), ==, 0);
	g_assert_cmpint(access(lock_name, F_OK), !=, 0);
	waits_held = 0;
	g_free(lock_name);
}

/* Locks that another user can hold: on the directory, on a file that others can open, on a file
 * with a second name, on a fifo.  None of them delays a start. */
TEST("/listen/no other user can hold the lock of a socket")
{
	g_autofree char *path = g_build_filename(dir, "q.sock", NULL),
			*second = g_build_filename(dir, "second", NULL);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	lock_name = g_strconcat(path, ".lock", NULL);
	g_assert_cmpint(flock(fd, LOCK_EX), ==, 0);
	g_assert_cmpuint(waits_for(path), ==, 0);
	close(fd);
	fd = lock_of(O_RDWR, 0644);
	g_assert_cmpuint(waits_for(path), ==, 0);
	g_assert_cmpint(access(lock_name, F_OK), ==, 0); /* it is not ours to remove */
	g_assert_cmpint(fchmod(fd, 0600), ==, 0);
	g_assert_cmpint(link(lock_name, second), ==, 0);
	g_assert_cmpuint(waits_for(path), ==, 0);
	close(fd);
	unlink(second);
	unlink(lock_name);
	g_assert_cmpint(symlink(second, lock_name), ==, 0);
	g_assert_cmpuint(waits_for(path), ==, 0);
	g_assert_cmpint(access(second, F_OK), !=, 0); /* no file is made elsewhere */
	unlink(lock_name);
	g_assert_cmpint(mkfifo(lock_name, 0600), ==, 0);
	g_assert_cmpuint(waits_for(path), ==, 0);
	unlink(lock_name);
	g_free(lock_name);
}

TEST("/listen/an IPv6 socket takes IPv4 only on request")
{
	struct listen_conf lc = { .name = "[::]:0", .backlog = 10 };
	const char *why;
	int fd, err = listen_open(&lc, &fd, &why);

	if (err != 0) {
		g_assert_cmpint(access("/proc/net/if_inet6", F_OK), !=, 0);
		g_test_skip("no IPv6 here");
		return;
	}
	g_assert_cmpint(option(fd, IPPROTO_IPV6, IPV6_V6ONLY), ==, 1);
	g_assert_cmpint(option(fd, IPPROTO_TCP, TCP_NODELAY), ==, 1);
	io_close_fd(fd);
	lc.both = true;
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	g_assert_cmpint(option(fd, IPPROTO_IPV6, IPV6_V6ONLY), ==, 0);
	io_close_fd(fd);
}

/* Every spelling of "any address" means IPv4. */
TEST("/listen/each spelling of any address means IPv4")
{
	static const char *const any[] = { ":0", "*:0", "0.0.0.0:0" };
	struct listen_conf lc = { .backlog = 10 };
	char out[LISTEN_NAME_MAX];
	const char *why;
	size_t i;
	int fd;

	for (i = 0; i < G_N_ELEMENTS(any); i++) {
		lc.name = any[i];
		g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
		g_assert_cmpint(listen_name(fd, out), ==, 0);
		g_assert_true(g_str_has_prefix(out, "0.0.0.0:"));
		io_close_fd(fd);
	}
}

/* The umask does not change mode and owner. */
TEST("/listen/a unix socket has the mode of its settings")
{
	g_autofree char *path = g_build_filename(dir, "m.sock", NULL);
	struct listen_conf lc = { .name = path,
		.backlog = 10,
		.set_mode = true,
		.mode = 0620,
		.set_owner = true,
		.uid = getuid(),
		.gid = (gid_t)-1 };
	mode_t mask = umask(0777);
	const char *why;
	struct stat st;
	int fd;

	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	umask(mask);
	g_assert_cmpint(stat(path, &st), ==, 0);
	g_assert_cmpint(st.st_mode & 07777, ==, 0620);
	io_close_fd(fd);
}

/* Run in a child, whose descriptor 3 is a listening socket. */
TEST("/listen/inherited sockets need LISTEN_PID of this process")
{
	char pid[32], name[LISTEN_NAME_MAX];
	struct listen_conf lc = { .name = "127.0.0.1:0", .backlog = 10 };
	const char *why;
	int fd;

	if (!g_test_subprocess()) {
		g_test_trap_subprocess(NULL, 0, 0);
		g_test_trap_assert_passed();
		return;
	}
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	if (fd != 3) {
		dup2(fd, 3);
		close(fd);
	}
	g_setenv("LISTEN_FDS", "1", true);
	g_setenv("LISTEN_PID", "1", true);
	g_assert_cmpint(listen_inherited(), ==, 0); /* another process */
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	g_setenv("LISTEN_FDS", "1", true);
	g_setenv("LISTEN_PID", pid, true);
	g_assert_cmpint(listen_inherited(), ==, 1);
	g_assert_null(g_getenv("LISTEN_FDS"));
	g_assert_cmpint(listen_name(3, name), ==, 0);
	g_assert_cmpint(fcntl(3, F_GETFL) & O_NONBLOCK, !=, 0);
	g_assert_cmpint(fcntl(3, F_GETFD) & FD_CLOEXEC, !=, 0);
	g_assert_cmpint(option(3, IPPROTO_TCP, TCP_NODELAY), ==, 1);
	g_assert_cmpint(listen_adopt(-1), ==, -EBADF);
}
