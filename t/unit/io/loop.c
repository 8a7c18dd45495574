/* t/unit/io/loop.c -- sockets, timers and wakes of the epoll loop. */
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include "io/start/listen.h"
#include "t/unit/io/io_test.h"

static void
put(int fd, const char *s)
{
	g_assert_cmpint(write(fd, s, strlen(s)), ==, (ssize_t)strlen(s));
}

static char got[64];

static void
copy_done(struct io_op *op)
{
	if (op->res > 0 && op->buf != NULL)
		memcpy(got, op->buf, (size_t)op->res);
	waiter_done(op);
}

LOOP_TEST("/loop/a receive returns bytes, the end, a cancel or a deadline", file_backends[0], 1, 8)
{
	struct io_sock s;
	struct waiter w;
	int peer;

	unix_pair(&s, &peer, 0);
	wait_init(&w, IO_RECV, &s);
	w.op.done = copy_done;
	put(peer, "one");
	g_assert_cmpint(wait_op(&w), ==, 3); /* ready at once: not registered */
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
}

LOOP_TEST("/loop/a cancelled receive loses no byte", file_backends[0], 1, 8)
{
	struct io_sock s;
	struct waiter w;
	int peer;

	unix_pair(&s, &peer, 0);
	wait_init(&w, IO_RECV, &s);
	put(peer, "x");
	wait_submit(&w);
	op_cancel(io, &w.op); /* waiting for its turn */
	op_cancel(io, &w.op);
	g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	g_assert_cmpint(wait_op(&w), ==, 1); /* the byte was not lost */
	close(peer);
	sock_close(&s);
}

/* One event carries data and the end of the stream. */
LOOP_TEST("/loop/data and end of one event arrive in order", file_backends[0], 1, 8)
{
	struct io_sock s;
	struct waiter w;
	int peer;

	unix_pair(&s, &peer, 0);
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
}

#define GOES_ON -1

/* or_end: the end of the stream counts (1), even before bytes are read; a reset always counts (0).
 */
static void
test_hangup(bool unread, bool or_end, bool closes, int res)
{
	struct io_sock s;
	struct waiter w;
	int peer;

	loop_up(file_backends[0], 1, 8);
	unix_pair(&s, &peer, 0);
	wait_init(&w, IO_RECV, &s);
	w.op.only_hangup = true;
	w.op.or_end = or_end;
	wait_submit(&w);
	if (unread)
		put(peer, "GET");
	g_assert_cmpint(shutdown(peer, SHUT_WR), ==, 0);
	run_ms(1);
	if (closes)
		close(peer);
	if (res != GOES_ON) {
		g_assert_cmpint(wait_for(&w), ==, res);
	} else {
		run_ms(5);
		g_assert_false(w.done);
		op_cancel(io, &w.op);
		g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	}
	if (!closes)
		close(peer);
	sock_close(&s);
	loop_down();
}

TEST("/loop/a reset ends a wait for it, an end only if asked for")
{
	test_hangup(false, false, false, GOES_ON);
	test_hangup(false, true, false, 1);
	test_hangup(true, true, false, 1);
	test_hangup(true, false, true, 0);
	test_hangup(false, false, true, 0);
}

LOOP_TEST("/loop/a send waits for room in the socket", file_backends[0], 1, 8)
{
	static char big[1 << 20];
	struct iovec iov[2] = { { big, 1000 }, { big + 1000, sizeof(big) - 1000 } };
	struct io_sock s;
	struct waiter w;
	size_t total = 0, drained = 0;
	ssize_t n;
	int peer;

	unix_pair(&s, &peer, 0);
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
	while ((n = recv(peer, big, sizeof(big), MSG_DONTWAIT)) > 0)
		drained += (size_t)n;
	g_assert_cmpuint(drained, ==, total);
	g_assert_cmpint(wait_for(&w), >, 0);
	close(peer);
	g_assert_cmpint(wait_op(&w), ==, -EPIPE);
	sock_close(&s);
}

/* Receives up to n bytes, and the descriptor that came with them; -1: none. */
static ssize_t
take_fd(int sock, char *bytes, size_t n, int *fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} m;
	struct iovec iov = { bytes, n };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &m,
		.msg_controllen = sizeof(m) };
	ssize_t got_n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*fd = -1;
	if (got_n > 0 && msg.msg_controllen != 0)
		memcpy(fd, CMSG_DATA(&m.head), sizeof(*fd));
	return (got_n);
}

static ino_t
inode_of(int fd)
{
	struct stat st;

	g_assert_cmpint(fstat(fd, &st), ==, 0);
	return (st.st_ino);
}

LOOP_TEST("/loop/a descriptor goes with the first byte of a send, once", file_backends[0], 1, 8)
{
	static char big[1 << 20];
	struct iovec before = { big, sizeof(big) }, iov[2] = { { "f", 1 }, { "d", 1 } };
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC), peer, fd;
	struct io_sock s;
	struct waiter w;
	char bytes[8];

	unix_pair(&s, &peer, 0);
	wait_init(&w, IO_SEND, &s);
	w.op.send.iov = &before;
	w.op.send.n = 1;
	g_assert_cmpint(wait_op(&w), <, sizeof(big));
	w.op.send.iov = iov;
	w.op.send.n = 2;
	w.op.gives = true;
	w.op.send.fd = file;
	wait_submit(&w); /* the socket is full */
	while (take_fd(peer, big, sizeof(big), &fd) > 0)
		g_assert_cmpint(fd, ==, -1);
	g_assert_cmpint(wait_for(&w), ==, 2);
	g_assert_cmpint(take_fd(peer, bytes, 1, &fd), ==, 1);
	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(inode_of(fd), ==, inode_of(file));
	close(fd);
	g_assert_cmpint(take_fd(peer, bytes, sizeof(bytes), &fd), ==, 1);
	g_assert_cmpint(fd, ==, -1);
	w.op.send.iov = iov + 1;
	w.op.send.n = 1;
	g_assert_cmpint(wait_op(&w), ==, 1);
	g_assert_cmpint(take_fd(peer, bytes, sizeof(bytes), &fd), ==, 1);
	g_assert_cmpint(inode_of(fd), ==, inode_of(file));
	close(fd);
	close(file);
	close(peer);
	sock_close(&s);
}

/* Both ends meet.  Then the accepted one closes, and the other one notices. */
static void
connect_once(struct waiter *con, struct waiter *acc)
{
	struct io_sock *cs = con->op.sock, as;
	socklen_t len;
	int on = 0;

	wait_submit(con);
	g_assert_cmpint(cs->fd, >=, 0);
	g_assert_cmpint(wait_for(con), ==, 0);
	io_sock_init(&as, (int)wait_for(acc));
	g_assert_cmpint(as.fd, >=, 0);
	len = sizeof(on);
	g_assert_cmpint(getsockopt(as.fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), ==, 0);
	g_assert_cmpint(on, !=, 0); /* inherited from the listener */
	g_assert_cmpint(io_sock_was_read(cs), !=, 0);
	g_assert_true(io_sock_alive(cs));
	sock_close(&as);
	run_ms(10);
	g_assert_false(io_sock_alive(cs));
}

LOOP_TEST("/loop/accept and connect return sockets without delay", file_backends[0], 1, 8)
{
	struct listen_conf lc = { .name = "127.0.0.1:0", .backlog = 100 };
	const char *why;
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	struct io_sock ls, cs;
	union io_addr peer;
	struct waiter acc, con, t;
	char name[LISTEN_NAME_MAX];
	int fd, i;

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
		connect_once(&con, &acc);
		g_assert_cmpint(peer.family, ==, AF_INET);
		sock_close(&cs);
	}
	wait_submit(&acc);
	op_cancel(io, &acc.op);
	g_assert_cmpint(wait_for(&acc), ==, -ECANCELED);
	/* The loop does not spin while a connection waits for an accept. */
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
	io_close_fd(fd);
	io_sock_init(&cs, -1);
	g_assert_cmpint(wait_op(&con), ==, -ECONNREFUSED);
	g_assert_cmpint(cs.fd, >=, 0);
	sock_close(&cs);
}

static int fails[2]; /* of the next calls, the last one first */
static size_t nfails;

int
accept4(int fd, __SOCKADDR_ARG addr, socklen_t *restrict len, int flags)
{
	if (nfails != 0) {
		errno = fails[--nfails];
		return (-1);
	}
	return ((int)syscall(SYS_accept4, fd, addr.__sockaddr__, len, flags));
}

/* The connection has left the queue. */
static const int passed_over[] = { EINTR, ECONNABORTED, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN,
	ENONET, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT };
/* The connection is still in the queue, or the next accept fails, too. */
static const int reported[] = { EPERM, EACCES, EMFILE, ENFILE, ENOBUFS, ENOMEM, EINVAL, EOPNOTSUPP,
	ENOSR, ENOSYS, ESOCKTNOSUPPORT, EPROTONOSUPPORT };

LOOP_TEST("/loop/an accept passes over a failure of one client, and reports others",
    file_backends[0], 1, 8)
{
	struct listen_conf lc = { .name = "127.0.0.1:0" };
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	const char *why;
	struct io_sock ls, cs;
	struct waiter acc, con;
	size_t i;
	int fd;

	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	g_assert_cmpint(getsockname(fd, (struct sockaddr *)&in, &len), ==, 0);
	io_sock_init(&ls, fd);
	io_sock_init(&cs, -1);
	wait_init(&acc, IO_ACCEPT, &ls);
	wait_init(&con, IO_CONNECT, &cs);
	con.op.connect.addr = (struct sockaddr *)&in;
	con.op.connect.len = len;
	g_assert_cmpint(wait_op(&con), ==, 0);
	for (i = 0; i < NELEM(reported); i++) {
		fails[0] = reported[i];
		fails[1] = passed_over[i % NELEM(passed_over)];
		nfails = 2;
		g_assert_cmpint(wait_op(&acc), ==, -reported[i]);
		g_assert_cmpuint(nfails, ==, 0);
	}
	g_assert_cmpint(wait_op(&acc), >=, 0);
	close((int)acc.res);
	sock_close(&cs);
	io_close_fd(fd);
}

static uint64_t order;

static void
order_done(struct io_op *op)
{
	order = order * 10 + op->deadline_ms / 20;
	waiter_done(op);
}

LOOP_TEST("/loop/timers end in the order of their deadlines", file_backends[0], 1, 8)
{
	struct waiter t[5];
	uint64_t begin;
	int i;

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
	t[0].op.deadline_ms = 100000;                    /* more than one turn of the wheel */
	wait_submit(&t[0]);
	run_ms(30);
	g_assert_false(t[0].done);
	op_cancel(io, &t[0].op);
	wait_for(&t[0]);
}

static void *
waker(void *arg)
{
	g_usleep(20000);
	io_wake(arg);
	return (NULL);
}

LOOP_TEST("/loop/a wake from another thread ends a wait", file_backends[0], 1, 8)
{
	uint64_t begin = clock_mono_ns();
	pthread_t t;

	pthread_create(&t, NULL, waker, io);
	io_run(io);
	io_wake(io);
	io_wake(io);
	io_run(io);
	g_assert_cmpuint(clock_mono_ns() - begin, <, 5 * NS_PER_S);
	pthread_join(t, NULL);
}

/* A TCP connection to ourselves. */
static int
tcp_pair(struct io_sock *s, const struct sockaddr *from, socklen_t from_len)
{
	struct listen_conf lc = { .name = "127.0.0.1:0", .backlog = 4 };
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	struct waiter con;
	const char *why;
	int fd, peer;

	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	g_assert_cmpint(getsockname(fd, (struct sockaddr *)&in, &len), ==, 0);
	io_sock_init(s, -1);
	wait_init(&con, IO_CONNECT, s);
	con.op.connect.addr = (struct sockaddr *)&in;
	con.op.connect.len = len;
	con.op.connect.from = from;
	g_assert_true(from == NULL || from_len == len);
	g_assert_cmpint(wait_op(&con), ==, 0);
	while ((peer = accept(fd, NULL, NULL)) < 0)
		g_assert_cmpint(errno, ==, EAGAIN);
	close(fd);
	return (peer);
}

/* The kernel drops this many bytes of the stream; those after them are received. */
LOOP_TEST("/loop/bytes are dropped in the kernel", file_backends[0], 1, 8)
{
	struct io_sock s;
	struct waiter w;
	int peer, dropped = 0;

	peer = tcp_pair(&s, NULL, 0);
	wait_init(&w, IO_RECV, &s);
	w.op.done = copy_done;
	put(peer, "0123456789abcdef");
	for (w.op.drops = true; dropped < 10; dropped += (int)w.res) {
		w.op.recv.drop = (uint64_t)(10 - dropped);
		g_assert_cmpint(wait_op(&w), >, 0);
		g_assert_null(w.op.buf);
	}
	g_assert_cmpint(dropped, ==, 10);
	w.op.drops = false;
	g_assert_cmpint(wait_op(&w), ==, 6);
	g_assert_cmpmem(got, 6, "abcdef", 6);
	w.op.drops = true;
	w.op.recv.drop = UINT64_MAX;
	wait_submit(&w);
	put(peer, "more");
	g_assert_cmpint(wait_for(&w), ==, 4);
	close(peer);
	g_assert_cmpint(wait_op(&w), ==, 0);
	sock_close(&s);
}

LOOP_TEST("/loop/a little receive leaves the rest in the socket", file_backends[0], 1, 8)
{
	static char many[20000];
	struct io_sock s;
	struct waiter w;
	int peer;

	unix_pair(&s, &peer, 0);
	g_assert_cmpint(write(peer, many, sizeof(many)), ==, sizeof(many));
	wait_init(&w, IO_RECV, &s);
	w.op.little = true;
	g_assert_cmpint(wait_op(&w), ==, 4096);
	w.op.little = false;
	g_assert_cmpint(wait_op(&w), ==, sizeof(many) - 4096);
	close(peer);
	sock_close(&s);
}

LOOP_TEST("/loop/a connection comes from the given address", file_backends[0], 1, 8)
{
	struct sockaddr_in from = { .sin_family = AF_INET }, seen;
	socklen_t len = sizeof(seen);
	struct io_sock s;
	int peer;

	from.sin_addr.s_addr = htonl(0x7f000009);
	peer = tcp_pair(&s, (struct sockaddr *)&from, sizeof(from));
	g_assert_cmpint(getpeername(peer, (struct sockaddr *)&seen, &len), ==, 0);
	g_assert_cmpuint(ntohl(seen.sin_addr.s_addr), ==, 0x7f000009);
	close(peer);
	sock_close(&s);
}

/* Finer than a tick of the deadlines (8.4 ms), and for one wait only. */
LOOP_TEST("/loop/a round ends at the given time", file_backends[0], 1, 8)
{
	uint64_t at;
	struct waiter t;
	int i;

	for (i = 0; i < 20; i++) {
		at = clock_mono_ns() + NS_PER_MS / 5;
		io_wake_at(io, at);
		io_run(io);
		g_assert_cmpuint(io_now(io), >=, at);
	}
	wait_init(&t, IO_TIMER, NULL);
	t.op.deadline_ms = 20;
	wait_submit(&t);
	io_wake_at(io, clock_mono_ns() + 3600 * NS_PER_S);
	wait_for(&t); /* an earlier deadline goes first */
}
