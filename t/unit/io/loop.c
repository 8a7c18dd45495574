/* t/unit/io/loop.c -- every op of the epoll loop against real sockets, pipes and files. */
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "io/listen.h"
#include "t/unit/io/io_test.h"

extern const struct file_backend file_gthread_aio;

static char *dir;

static void
pair(struct io_sock *a, int *peer)
{
	int p[2];

	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p), ==, 0);
	io_sock_init(a, p[0]);
	*peer = p[1];
}

static void
put(int fd, const char *s)
{
	g_assert_cmpint(write(fd, s, strlen(s)), ==, (ssize_t)strlen(s));
}

/* ---------------------------------------------------------------- sockets */

static char got[64];

static void
copy_done(struct io_op *op)
{
	if (op->res > 0)
		memcpy(got, op->recv.buf, (size_t)op->res);
	waiter_done(op);
}

static void
test_recv(void)
{
	struct io_sock s;
	struct waiter w;
	int peer;

	loop_up(file_backends[0], 1, 8);
	pair(&s, &peer);
	wait_init(&w, IO_RECV, &s);
	w.op.done = copy_done;
	put(peer, "one");
	g_assert_cmpint(wait_op(&w), ==, 3); /* there already: not even registered */
	g_assert_cmpint(s.hints & SOCK_REGISTERED, ==, 0);
	wait_submit(&w);
	op_cancel(io, &w.op); /* parked */
	g_assert_false(w.done);
	g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	wait_submit(&w);
	put(peer, "two");
	g_assert_cmpint(wait_for(&w), ==, 3);
	g_assert_cmpmem(got, 3, "two", 3);
	w.op.deadline_ms = 20;
	g_assert_cmpint(wait_op(&w), ==, -ETIMEDOUT);
	g_assert_cmpuint(io_now(io) - w.op.at.submit, >=, 20 * NS_PER_MS);
	put(peer, "bye");
	close(peer);
	g_assert_cmpint(wait_op(&w), ==, 3);
	g_assert_cmpint(wait_op(&w), ==, 0);
	g_assert_cmpint(wait_op(&w), ==, 0);
	sock_close(&s);
	loop_down();
}

static void
test_recv_cancel_ready(void)
{
	struct io_sock s;
	struct waiter w;
	int peer;

	loop_up(file_backends[0], 1, 8);
	pair(&s, &peer);
	wait_init(&w, IO_RECV, &s);
	put(peer, "x");
	wait_submit(&w);
	op_cancel(io, &w.op); /* waiting for its turn */
	op_cancel(io, &w.op);
	g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	g_assert_cmpint(wait_op(&w), ==, 1); /* the byte was not lost */
	close(peer);
	sock_close(&s);
	loop_down();
}

/* The end of the stream and data in one event: both are seen, in order. */
static void
test_recv_half_closed(void)
{
	struct io_sock s;
	struct waiter w;
	int peer;

	loop_up(file_backends[0], 1, 8);
	pair(&s, &peer);
	wait_init(&w, IO_RECV, &s);
	wait_submit(&w);
	io_wake(io);
	io_run(io);
	put(peer, "last");
	shutdown(peer, SHUT_WR);
	g_assert_cmpint(wait_for(&w), ==, 4);
	w.op.deadline_ms = 1000;
	g_assert_cmpint(wait_op(&w), ==, 0);
	close(peer);
	sock_close(&s);
	loop_down();
}

static void
test_send_until_full(void)
{
	static char big[1 << 20];
	struct iovec iov[2] = {{big, 1000}, {big + 1000, sizeof(big) - 1000}};
	struct io_sock s;
	struct waiter w;
	size_t total = 0, drained = 0;
	ssize_t n;
	int peer;

	loop_up(file_backends[0], 1, 8);
	pair(&s, &peer);
	wait_init(&w, IO_SEND, &s);
	w.op.send.iov = iov;
	w.op.send.n = 2;
	total += (size_t)wait_op(&w);
	g_assert_cmpuint(total, <, sizeof(big));
	w.op.deadline_ms = 30;
	g_assert_cmpint(wait_op(&w), ==, -ETIMEDOUT);
	w.op.deadline_ms = 2000;
	wait_submit(&w);
	io_wake(io);
	io_run(io);
	g_assert_false(w.done);
	while ((n = read(peer, big, sizeof(big))) > 0)
		drained += (size_t)n;
	g_assert_cmpuint(drained, ==, total);
	g_assert_cmpint(wait_for(&w), >, 0);
	close(peer);
	g_assert_cmpint(wait_op(&w), ==, -EPIPE);
	sock_close(&s);
	loop_down();
}

static void
test_accept_connect(void)
{
	struct listen_conf lc = {.name = "127.0.0.1:0", .backlog = 100};
	const char *why;
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	struct io_sock ls, cs, as;
	union io_addr peer;
	struct waiter acc, con, t;
	char name[LISTEN_NAME_MAX];
	int fd, on = 0, i;

	loop_up(file_backends[0], 1, 8);
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	g_assert_cmpint(listen_name(fd, name), ==, 0);
	g_assert_true(g_str_has_prefix(name, "127.0.0.1:"));
	g_assert_cmpint(getsockname(fd, (struct sockaddr *)&in, &len), ==, 0);
	io_sock_init(&ls, fd);
	wait_init(&acc, IO_ACCEPT, &ls);
	acc.op.accept.peer = &peer;
	for (i = 0; i < 3; i++) {
		wait_submit(&acc);
		io_sock_init(&cs, -1);
		wait_init(&con, IO_CONNECT, &cs);
		con.op.connect.addr = (struct sockaddr *)&in;
		con.op.connect.len = len;
		wait_submit(&con);
		g_assert_cmpint(cs.fd, >=, 0);
		g_assert_cmpint(wait_for(&con), ==, 0);
		io_sock_init(&as, (int)wait_for(&acc));
		g_assert_cmpint(as.fd, >=, 0);
		g_assert_cmpint(peer.family, ==, AF_INET);
		len = sizeof(on);
		g_assert_cmpint(getsockopt(as.fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), ==, 0);
		g_assert_cmpint(on, !=, 0); /* inherited: no call per connection */
		len = sizeof(in);
		g_assert_true(io_sock_alive(&cs));
		sock_close(&as);
		run_ms(10);
		g_assert_false(io_sock_alive(&cs));
		sock_close(&cs);
	}
	wait_submit(&acc);
	op_cancel(io, &acc.op);
	g_assert_cmpint(wait_for(&acc), ==, -ECANCELED);
	/* Connections that nobody accepts must not make the loop spin. */
	io_sock_init(&cs, -1);
	g_assert_cmpint(wait_op(&con), ==, 0);
	wait_init(&t, IO_TIMER, NULL);
	t.op.deadline_ms = 100;
	wait_submit(&t);
	for (i = 0; !t.done; i++)
		io_run(io);
	g_assert_cmpint(i, <, 10);
	g_assert_cmpint(wait_op(&acc), >=, 0);
	close((int)acc.res);
	sock_close(&cs);
	listen_close(fd);
	io_sock_init(&cs, -1);
	g_assert_cmpint(wait_op(&con), ==, -ECONNREFUSED);
	g_assert_cmpint(cs.fd, >=, 0);
	sock_close(&cs);
	loop_down();
}

static void
test_listen_unix_and_names(void)
{
	char *path = g_build_filename(dir, "s.sock", NULL), *name = g_strconcat("unix:", path, NULL);
	struct listen_conf lc = {.name = name, .backlog = 10};
	const char *why;
	char out[LISTEN_NAME_MAX];
	int fd, fd2;

	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	g_assert_cmpint(listen_name(fd, out), ==, 0);
	g_assert_cmpstr(out, ==, name);
	g_assert_cmpint(listen_open(&lc, &fd2, &why), ==, -EADDRINUSE);
	listen_close(fd);
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0); /* what a dead server left behind */
	listen_close(fd);
	g_assert_null(why);
	lc.name = "noport";
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, -EINVAL);
	g_assert_cmpstr(why, ==, "expected a port after the host");
	lc.name = "::1:80";
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, -EINVAL);
	g_assert_cmpstr(why, ==, "expected an IPv6 address in brackets, as in [::1]:80");
	lc.name = "[fe80::1%nosuchlink]:0"; /* fails without a question to a server */
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, -EADDRNOTAVAIL);
	g_assert_nonnull(why);
	g_assert_cmpint(listen_name(0, out), <, 0);
	g_free(path);
	g_free(name);
}

static int
option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	g_assert_cmpint(getsockopt(fd, level, name, &value, &len), ==, 0);
	return (value);
}

static void
test_listen_v6(void)
{
	struct listen_conf lc = {.name = "[::]:0", .backlog = 10};
	const char *why;
	int fd, err = listen_open(&lc, &fd, &why);

	if (err != 0) {
		g_assert_cmpint(access("/proc/net/if_inet6", F_OK), !=, 0);
		g_test_skip("no IPv6 here");
		return;
	}
	g_assert_cmpint(option(fd, IPPROTO_IPV6, IPV6_V6ONLY), ==, 1);
	g_assert_cmpint(option(fd, IPPROTO_TCP, TCP_NODELAY), ==, 1);
	listen_close(fd);
	lc.both = true;
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	g_assert_cmpint(option(fd, IPPROTO_IPV6, IPV6_V6ONLY), ==, 0);
	listen_close(fd);
}

/* Any address is IPv4, however it is written. */
static void
test_listen_any(void)
{
	static const char *const any[] = {":0", "*:0", "0.0.0.0:0"};
	struct listen_conf lc = {.backlog = 10};
	char out[LISTEN_NAME_MAX];
	const char *why;
	size_t i;
	int fd;

	for (i = 0; i < G_N_ELEMENTS(any); i++) {
		lc.name = any[i];
		g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
		g_assert_cmpint(listen_name(fd, out), ==, 0);
		g_assert_true(g_str_has_prefix(out, "0.0.0.0:"));
		listen_close(fd);
	}
}

/* Mode and owner are as asked for, whatever the umask; the file of a living socket stays. */
static void
test_listen_unix_mode(void)
{
	char *path = g_build_filename(dir, "m.sock", NULL);
	struct listen_conf lc = {.name = path, .backlog = 10, .set_mode = true, .mode = 0620, .set_owner = true, .uid = getuid(), .gid = (gid_t)-1};
	mode_t mask = umask(0777);
	const char *why;
	struct stat st;
	int fd;

	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	umask(mask);
	g_assert_cmpint(stat(path, &st), ==, 0);
	g_assert_cmpint(st.st_mode & 07777, ==, 0620);
	listen_close(fd);
	g_free(path);
}

/* Run in a child, whose descriptor 3 is a listening socket. */
static void
test_listen_inherited(void)
{
	char pid[32], name[LISTEN_NAME_MAX];
	struct listen_conf lc = {.name = "127.0.0.1:0", .backlog = 10};
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
	g_assert_cmpint(listen_inherited(), ==, 0); /* meant for somebody else */
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

/* ---------------------------------------------------------------- time */

static uint64_t order;

static void
order_done(struct io_op *op)
{
	order = order * 10 + op->deadline_ms / 20;
	waiter_done(op);
}

static void
test_timers(void)
{
	struct waiter t[5];
	uint64_t begin;
	int i;

	loop_up(file_backends[0], 1, 8);
	order = 0;
	begin = clock_mono_ns();
	for (i = 4; i >= 0; i--) {
		wait_init(&t[i], IO_TIMER, NULL);
		t[i].op.deadline_ms = 20 * ((unsigned)i + 1);
		t[i].op.done = order_done;
		wait_submit(&t[i]);
	}
	op_cancel(io, &t[2].op);
	for (i = 0; i < 5; i++)
		wait_for(&t[i]);
	g_assert_cmpuint(order, ==, 31245);
	g_assert_cmpint(t[2].res, ==, -ECANCELED);
	g_assert_cmpuint(clock_mono_ns() - begin, >=, 100 * NS_PER_MS);
	wait_init(&t[0], IO_TIMER, NULL);
	g_assert_cmpint(wait_op(&t[0]), ==, -ETIMEDOUT); /* at once, but not from inside submit */
	t[0].op.deadline_ms = 100000; /* more than one turn of the wheel */
	wait_submit(&t[0]);
	run_ms(30);
	g_assert_false(t[0].done);
	op_cancel(io, &t[0].op);
	wait_for(&t[0]);
	loop_down();
}

static void *
waker(void *arg)
{
	g_usleep(20000);
	io_wake(arg);
	return (NULL);
}

static void
test_wake(void)
{
	uint64_t begin = clock_mono_ns();
	pthread_t t;

	loop_up(file_backends[0], 1, 8);
	pthread_create(&t, NULL, waker, io);
	io_run(io);
	io_wake(io);
	io_wake(io);
	io_run(io);
	g_assert_cmpuint(clock_mono_ns() - begin, <, 5 * NS_PER_S);
	pthread_join(t, NULL);
	loop_down();
}

/* ---------------------------------------------------------------- open, stat, read */

static struct statx stx;

static int64_t
open_path(int root, const char *path, uint64_t resolve, enum io_kind kind)
{
	struct waiter w;
	char *copy = g_strdup(path);

	wait_init(&w, kind, NULL);
	w.op.open.root = root;
	w.op.open.path = copy;
	w.op.open.resolve = resolve;
	w.op.open.stx = &stx;
	w.op.deadline_ms = 5000;
	wait_op(&w);
	g_free(copy);
	return (w.res);
}

static void
refused(int root, const char *path, uint64_t resolve, int err)
{
	g_assert_cmpint(open_path(root, path, resolve, IO_OPEN), ==, -err);
}

static void
test_open(void)
{
	char *file = file_make(dir, "f", 5000), *fifo = g_build_filename(dir, "fifo", NULL),
	     *link = g_build_filename(dir, "link", NULL), *out = g_build_filename(dir, "out", NULL);
	int64_t fd;
	int root;

	loop_up(file_backends[0], 2, 8);
	g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
	g_assert_cmpint(symlink("f", link), ==, 0);
	g_assert_cmpint(symlink("/etc/passwd", out), ==, 0);
	g_assert_cmpint(io_root_open(dir, &root), ==, 0);
	fd = open_path(root, "f", IO_BENEATH, IO_OPEN);
	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpuint(stx.stx_size, ==, 5000);
	g_assert_cmpint(fcntl((int)fd, F_GETFD) & FD_CLOEXEC, !=, 0);
	io_file_put(io_file_new(io, (int)fd, 5000));
	fd = open_path(root, "", IO_BENEATH, IO_OPEN);
	g_assert_cmpint(fd, >=, 0);
	g_assert_true(S_ISDIR(stx.stx_mode));
	close((int)fd);
	fd = open_path(root, "link", IO_BENEATH, IO_OPEN);
	g_assert_cmpint(fd, >=, 0);
	close((int)fd);
	g_assert_cmpint(open_path(root, "f", IO_BENEATH, IO_STAT), ==, 0);
	g_assert_cmpuint(stx.stx_size, ==, 5000);
	refused(root, "link", IO_BENEATH | IO_NO_SYMLINKS, ELOOP);
	refused(root, "out", IO_BENEATH, EXDEV);
	refused(root, "../x", IO_BENEATH, EXDEV);
	refused(root, "/etc/passwd", IO_BENEATH, EXDEV);
	refused(root, "fifo", IO_BENEATH, EACCES);
	refused(root, "s.sock", IO_BENEATH, EACCES);
	refused(root, "absent", IO_BENEATH, ENOENT);
	refused(root, "f/x", IO_BENEATH, ENOTDIR);
	refused(AT_FDCWD, "/dev/null", 0, EACCES);
	io_root_close(root);
	loop_down();
	g_free(file);
	g_free(fifo);
	g_free(link);
	g_free(out);
}

static void
open_op(struct waiter *w, const char *path)
{
	wait_init(w, IO_OPEN, NULL);
	w->op.open.root = AT_FDCWD;
	w->op.open.path = path;
	w->op.open.stx = &stx;
}

/* A look-up that waits behind a stuck thread: deadline, cancel and the limit of the queue. */
static void
test_open_queued(void)
{
	char *file = file_make(dir, "f", 10);
	struct waiter w[4], late;
	int i;

	loop_up(file_backends[0], 1, 3);
	gate_enter(LANE_STAT);
	for (i = 0; i < 4; i++)
		open_op(&w[i], file);
	w[0].op.deadline_ms = 20;
	for (i = 0; i < 3; i++)
		wait_submit(&w[i]);
	g_assert_cmpint(wait_op(&w[3]), ==, -EAGAIN);
	g_assert_cmpint(wait_for(&w[0]), ==, -ETIMEDOUT);
	op_cancel(io, &w[1].op);
	g_assert_cmpint(wait_for(&w[1]), ==, -ECANCELED);
	open_op(&late, file); /* those two gave their places back */
	wait_submit(&late);
	g_assert_false(w[2].done);
	gate_leave();
	g_assert_cmpint(wait_for(&w[2]), >=, 0);
	close((int)w[2].res);
	g_assert_cmpint(wait_for(&late), >=, 0);
	close((int)late.res);
	g_assert_cmpuint(w[2].op.at.start, >=, w[2].op.at.submit);
	g_assert_cmpuint(w[2].op.at.end, >=, w[2].op.at.start);
	loop_down();
	g_free(file);
}

/* The lane for re-checks has a thread of its own. */
static void
test_open_urgent(void)
{
	char *file = file_make(dir, "f", 10);
	struct waiter w;

	loop_up(file_backends[0], 1, 8);
	gate_enter(LANE_STAT);
	open_op(&w, file);
	w.op.urgent = 1;
	w.op.deadline_ms = 5000;
	g_assert_cmpint(wait_op(&w), >=, 0);
	close((int)w.res);
	gate_leave();
	loop_down();
	g_free(file);
}

/* A running job whose op was cancelled: its late result is put away, the descriptor closed. */
static void
test_open_cancel_running(void)
{
	char *file = file_make(dir, "f", 10);
	struct waiter w;
	int i, before;

	loop_up(file_backends[0], 2, 100);
	before = fd_count();
	for (i = 0; i < 200; i++) {
		open_op(&w, file);
		wait_submit(&w);
		if (i % 2 != 0)
			g_usleep((unsigned)(i % 40));
		op_cancel(io, &w.op);
		wait_for(&w);
		if (w.res >= 0)
			close((int)w.res);
		else
			g_assert_cmpint(w.res, ==, -ECANCELED);
	}
	for (i = 0; i < 100 && fd_count() > before; i++)
		run_ms(10);
	g_assert_cmpint(fd_count(), ==, before);
	loop_down();
	g_free(file);
}

/* io_free() while a thread still works: the job puts its things away by itself. */
static void
test_free_while_running(void)
{
	char *file = file_make(dir, "f", 10);
	struct io_file *f;
	struct waiter w;
	int i, before = fd_count();

	for (i = 0; i < 50; i++) {
		loop_up(&file_gthread_aio, 2, 100);
		f = io_file_new(io, open(file, O_RDONLY | O_CLOEXEC), 10);
		open_op(&w, file);
		wait_submit(&w);
		op_cancel(io, &w.op);
		wait_for(&w);
		if (w.res >= 0)
			close((int)w.res);
		wait_init(&w, IO_READ, NULL);
		w.op.file.file = f;
		w.op.file.len = 10;
		wait_submit(&w);
		op_cancel(io, &w.op);
		wait_for(&w);
		io_file_put(f);
		loop_down();
	}
	g_assert_cmpint(fd_count(), ==, before);
	g_free(file);
}

static char *kept;

static void
keep_done(struct io_op *op)
{
	kept = op->res > 0 ? io_keep(op) : NULL;
	waiter_done(op);
}

static void
read_with(const struct file_backend *b)
{
	char *file = file_make(dir, "r", 300000);
	struct io_file *f;
	struct waiter w;
	int i;

	loop_up(b, 1, 8);
	f = io_file_new(io, open(file, O_RDONLY | O_CLOEXEC), 300000);
	wait_init(&w, IO_READ, NULL);
	w.op.done = keep_done;
	w.op.file.file = f;
	w.op.file.off = 50001;
	w.op.file.len = IO_WINDOW;
	g_assert_cmpint(wait_op(&w), ==, 300000 - 50001);
	for (i = 0; i < w.res; i++)
		g_assert_true(kept[i] == pattern(50001 + (uint64_t)i));
	io_give_back(io, kept);
	w.op.file.off = 300000;
	g_assert_cmpint(wait_op(&w), ==, 0);
	io_file_put(f);
	f = io_file_new(io, open(dir, O_RDONLY | O_CLOEXEC), 1);
	w.op.file.file = f;
	g_assert_cmpint(wait_op(&w), ==, -EISDIR);
	io_file_put(f);
	loop_down();
	g_free(file);
}

static void
test_read(void)
{
	int i;

	for (i = 0; file_backends[i] != NULL; i++)
		read_with(file_backends[i]);
}

static void
test_read_cancel(void)
{
	char *file = file_make(dir, "r", 3000);
	struct io_file *f;
	struct waiter w;

	loop_up(&file_gthread_aio, 1, 8);
	f = io_file_new(io, open(file, O_RDONLY | O_CLOEXEC), 3000);
	gate_enter(LANE_READ);
	wait_init(&w, IO_READ, NULL);
	w.op.file.file = f;
	w.op.file.len = 3000;
	wait_submit(&w);
	g_assert_cmpuint(f->refs, ==, 2); /* the engine's own */
	op_cancel(io, &w.op);
	g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	g_assert_cmpuint(f->refs, ==, 1);
	gate_leave();
	io_file_put(f);
	loop_down();
	g_free(file);
}

static void
test_backend_names(void)
{
	const char *note;

	g_assert_cmpstr(file_backend_by_name("gthread-aio", &note)->name, ==, "gthread-aio");
	g_assert_null(note);
	g_assert_cmpstr(file_backend_by_name("write", &note)->name, ==, "writev");
	g_assert_nonnull(note);
	g_assert_cmpstr(file_backend_by_name("gthread-sendfile", &note)->name, ==, "gthread-sendfile");
	g_assert_cmpstr(file_backend_by_name("linux-aio", &note)->name, ==, "linux-aio-sendfile");
	g_assert_null(file_backend_by_name("win32-send", &note));
	g_assert_cmpstr(file_backends[0]->name, ==, "adaptive");
	g_assert_cmpstr(file_backend_by_name("gthread-aio", &note)->tag, ==, "network_gthread_aio.c.78:");
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	dir = g_dir_make_tmp("io-loop-XXXXXX", NULL);
	g_test_add_func("/loop/recv", test_recv);
	g_test_add_func("/loop/recv-cancel-ready", test_recv_cancel_ready);
	g_test_add_func("/loop/recv-half-closed", test_recv_half_closed);
	g_test_add_func("/loop/send-until-full", test_send_until_full);
	g_test_add_func("/loop/accept-connect", test_accept_connect);
	g_test_add_func("/loop/timers", test_timers);
	g_test_add_func("/loop/wake", test_wake);
	g_test_add_func("/listen/unix-and-names", test_listen_unix_and_names);
	g_test_add_func("/listen/v6", test_listen_v6);
	g_test_add_func("/listen/any-address", test_listen_any);
	g_test_add_func("/listen/unix-mode", test_listen_unix_mode);
	g_test_add_func("/listen/inherited", test_listen_inherited);
	g_test_add_func("/open/kinds-and-containment", test_open);
	g_test_add_func("/open/queued-deadline-cancel-limit", test_open_queued);
	g_test_add_func("/open/urgent-lane", test_open_urgent);
	g_test_add_func("/open/cancel-running", test_open_cancel_running);
	g_test_add_func("/open/free-while-running", test_free_while_running);
	g_test_add_func("/read/each-backend", test_read);
	g_test_add_func("/read/cancel-queued", test_read_cancel);
	g_test_add_func("/backend/names", test_backend_names);
	return (run_in(dir));
}
