/* io/loop/epoll_ops.c -- each kind of op: begin, attempt, park until its socket is ready.  See
 * epoll.c.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "io/disk/job.h"
#include "io/loop/epoll.h"
#include "io/loop/virtual.h"

#define RECV_SIZE (64u << 10)
/* With a head before it, it is not yet a long send (IO_LONG_SEND), which waits for other sends.
 * CPU of 1 MiB through HTTP: 64 KiB 418 us, 96 322, 112 279, 128 300, 160 543. */
#define RECV_LARGE (112u << 10)
/* Holds most heads. */
#define RECV_LITTLE (4u << 10)
#define DROP_MAX    (1u << 30)

/* ---------------------------------------------------------------- parking */

static int
sock_register(struct epoll_loop *lp, struct io_op *op)
{
	struct io_sock *s = op->sock;
	struct epoll_event ev;
	int err;

	if (s->hints & SOCK_REGISTERED)
		return (0);
	s->slot = slot_take(&lp->slots, s, false);
	if (s->slot == 0)
		return (-ENOMEM);
	ev.data.u64 = slot_key(&lp->slots, s->slot);
	/* Listeners are shared by the loops: level-triggered, one loop is woken per connection. */
	ev.events = op->kind == IO_ACCEPT ? EPOLLIN | EPOLLEXCLUSIVE
					  : EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	if (epoll_ctl(lp->epfd, EPOLL_CTL_ADD, s->fd, &ev) < 0) {
		err = -errno;
		slot_give_back(&lp->slots, s->slot);
		return (err);
	}
	s->hints |= op->kind == IO_ACCEPT ? SOCK_REGISTERED | SOCK_LISTENS : SOCK_REGISTERED;
	return (0);
}

/* close(2) removes a socket from the epoll set unless a copy of it exists.  A listener is
 * level-triggered and would report in each round, and a socket that a thread has a copy of would
 * stay: these are removed explicitly. */
void
sock_unregister(struct epoll_loop *lp, struct io_sock *s)
{
	if ((s->hints & SOCK_REGISTERED) == 0)
		return;
	if (s->hints & (SOCK_SHARED | SOCK_LISTENS))
		epoll_ctl(lp->epfd, EPOLL_CTL_DEL, s->fd, NULL);
	slot_give_back(&lp->slots, s->slot);
	s->hints &= (uint8_t) ~(SOCK_REGISTERED | SOCK_LISTENS);
}

/* The kernel wakes one loop for a connection (EPOLLEXCLUSIVE).  It must not be a loop that does not
 * accept. */
void
epoll_ignore(struct io *io, struct io_sock *s)
{
	must(s->rd == NULL);
	sock_unregister(loop_of(io), s);
}

static struct io_op **
park_place(struct io_op *op)
{
	bool reads = op->kind == IO_RECV || op->kind == IO_ACCEPT || op->kind == IO_HANDSHAKE;

	return (reads ? &op->sock->rd : &op->sock->wr);
}

void
epoll_park(struct io *io, struct io_op *op)
{
	int err;

	err = sock_register(loop_of(io), op);
	if (err != 0) {
		io_complete(op, err);
		return;
	}
	must(*park_place(op) == NULL);
	*park_place(op) = op;
	if (op->kind == IO_ACCEPT) {
		/* level-triggered: the rest is reported in the next round */
		op->sock->hints &= (uint8_t)~SOCK_READABLE;
		list_add_tail(&loop_of(io)->listening, &op->link);
	}
	op->state = OP_PARKED;
	io_arm(op);
}

static int
accept_one(struct io_op *op)
{
	socklen_t len = sizeof(*op->accept.peer);
	int fd;

	if (op->accept.peer != NULL)
		memset(op->accept.peer, 0, len);
	fd = accept4(op->sock->fd, (struct sockaddr *)op->accept.peer,
	    op->accept.peer != NULL ? &len : NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	return (fd >= 0 ? fd : -errno);
}

/* A registered listener without an accept would spin.  The kernel may have woken only this loop for
 * a connection, and wakes another loop only for the next one, so the connection is accepted here.
 */
int64_t
epoll_unpark(struct io *io, struct io_op *op, int64_t res)
{
	int fd;

	*park_place(op) = NULL;
	list_del(&op->link);
	if ((op->sock->hints & SOCK_LISTENS) == 0)
		return (res);
	sock_unregister(loop_of(io), op->sock);
	fd = accept_one(op);
	return (fd >= 0 ? fd : res);
}

/* ---------------------------------------------------------------- one attempt per kind */

static bool
done_with(struct io_op *op, int64_t res)
{
	op->res = res;
	return (true);
}

static bool
parked(struct io *io, struct io_op *op)
{
	epoll_park(io, op);
	return (false);
}

/* An error of accept(2) for a connection that died in the queue does not concern the next one.  All
 * others go to the caller, who pauses.  EPERM and EACCES among them: a security module answers
 * before the connection leaves the queue, so the level-triggered listener would be ready in each
 * round.  EOPNOTSUPP, which the manual page lists with the dead ones, is also that of a socket that
 * cannot listen. */
static bool
accept_again(int err)
{
	return (err == EINTR || err == ECONNABORTED || err == EPROTO || err == ENETDOWN ||
		err == ENOPROTOOPT || err == EHOSTDOWN || err == ENONET || err == EHOSTUNREACH ||
		err == ENETUNREACH || err == ETIMEDOUT);
}

static bool
try_accept(struct io *io, struct io_op *op)
{
	struct epoll_loop *lp = loop_of(io);
	int fd;

	while (lp->accepts > 0) {
		lp->accepts--;
		fd = accept_one(op);
		if (fd == -EAGAIN)
			break;
		if (accept_again(-fd))
			continue;
		lp->newcomer = fd >= 0 && lp->rest;
		return (done_with(op, fd));
	}
	return (parked(io, op));
}

/* 1: the peer sends no more. */
static bool
try_hangup(struct io_op *op)
{
	return (done_with(op, (op->sock->hints & SOCK_BROKEN) != 0 ? 0 : 1));
}

static size_t
recv_most(const struct io_op *op)
{
	if (op->drops)
		return (op->recv.drop < DROP_MAX ? (size_t)op->recv.drop : DROP_MAX);
	return (op->little ? RECV_LITTLE : op->large ? RECV_LARGE : RECV_SIZE);
}

/* Bytes, or -errno. */
static int64_t
recv_plain(struct io_op *op, char *buf, size_t most)
{
	struct io_sock *s = op->sock;
	ssize_t n;

	do
		n = recv(s->fd, buf, most, MSG_DONTWAIT | (op->drops ? MSG_TRUNC : 0));
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return (-errno);
	/* Fewer bytes than requested: drained, and the next bytes are a new edge.  (Not if the end
	 * of the stream has been announced: that edge has passed.)
	 */
	if (n != 0 && n < (ssize_t)most && (n < 0 || (s->hints & SOCK_HUNG) == 0))
		s->hints &= (uint8_t)~SOCK_READABLE;
	return (n < 0 ? -EAGAIN : n);
}

static bool
try_recv(struct io *io, struct io_op *op)
{
	struct io_sock *s = op->sock;
	char *buf = NULL;
	size_t most;
	int64_t n;

	if (op->only_hangup)
		return (try_hangup(op));
	most = recv_most(op);
	if (!op->drops && (buf = io_window_get(io)) == NULL)
		return (done_with(op, -ENOMEM));
	n = s->transport != NULL ? s->transport->calls->receive(io, s, buf, most)
				 : recv_plain(op, buf, most);
	io_received(io, op, buf, n);
	return (n == -EAGAIN ? parked(io, op) : done_with(op, n));
}

union fd_message {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void
put_fd(struct msghdr *msg, union fd_message *m, int fd)
{
	memset(m, 0, sizeof(*m));
	m->head.cmsg_level = SOL_SOCKET;
	m->head.cmsg_type = SCM_RIGHTS;
	m->head.cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(&m->head), &fd, sizeof(fd));
	msg->msg_control = m;
	msg->msg_controllen = sizeof(*m);
}

/* Bytes, or -errno. */
static int64_t
send_copies(struct io_op *op, const struct iovec *iov, int parts, bool more)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)parts };
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0);
	union fd_message m;
	ssize_t n;

	if (op->gives)
		put_fd(&msg, &m, op->send.fd);
	do
		n = parts == 1 && !op->gives
			? send(op->sock->fd, iov->iov_base, iov->iov_len, flags)
			: sendmsg(op->sock->fd, &msg, flags);
	while (n < 0 && errno == EINTR);
	return (n < 0 ? -errno : n);
}

/* The bytes before the pages are copied. */
static int64_t
send_pages(struct io *io, struct io_op *op, bool *full)
{
	const struct iovec *pages = op->send.iov + op->send.first;
	int parts = op->send.n - op->send.first;
	int64_t front = (int64_t)iov_total(op->send.iov, op->send.first), n = 0, k;

	*full = true;
	if (front > 0)
		n = send_copies(op, op->send.iov, op->send.first, true);
	if (n < front)
		return (n);
	k = by_ref_send(&loop_of(io)->by_ref, op->sock->fd, pages, parts, op->more, full);
	if (k == -ENOSYS) {
		k = send_copies(op, pages, parts, op->more);
		*full = k < (int64_t)iov_total(pages, parts);
	}
	return (k >= 0 ? n + k : n > 0 ? n : k);
}

static bool
try_send(struct io *io, struct io_op *op)
{
	size_t total = iov_total(op->send.iov, op->send.n);
	const struct io_transport *t = op->sock->transport;
	bool full = t == NULL;
	int64_t n;

	if (t != NULL)
		n = t->calls->send(op->sock, op->send.iov, op->send.n, op->more);
	else if (op->pages && total >= BY_REF_MIN)
		n = send_pages(io, op, &full);
	else
		n = send_copies(op, op->send.iov, op->send.n, op->more);

	if (n < 0 && n != -EAGAIN)
		return (done_with(op, (int)n));
	/* a short count means that the socket is full; an edge comes when there is room */
	if (t == NULL && (n < 0 || (full && (size_t)n < total)))
		op->sock->hints &= (uint8_t)~SOCK_WRITABLE;
	if (n < 0 && op->pages)
		return (done_with(op, -EAGAIN));
	if (n < 0)
		return (parked(io, op));
	io_moved(io, total, (uint64_t)n);
	return (done_with(op, n));
}

static bool
is_long(const struct io_op *op)
{
	return (op->kind == IO_SEND_FILE
		    ? op->file.len > IO_LONG_SEND
		    : op->kind == IO_SEND && iov_total(op->send.iov, op->send.n) > IO_LONG_SEND);
}

/* Long sends wait for the next round when this round has sent their share, so that a request for
 * a small file goes first.  Without this, rounds beside 100 slow readers of a large file took 4
 * to 6 ms. */
static bool
put_off(struct io *io, struct io_op *op)
{
	if (io->long_budget > 0 || !is_long(op))
		return (false);
	op->state = OP_TRY;
	list_add_tail(&loop_of(io)->bulk, &op->link);
	return (true);
}

static bool
try_connected(struct io_op *op)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(op->sock->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	return (done_with(op, -err));
}

bool
epoll_try(struct io *io, struct io_op *op)
{
	loop_of(io)->newcomer = false;
	if (io_sock_is_virtual(op->sock))
		return (virtual_try(io, op));
	if (put_off(io, op))
		return (false);
	switch ((int)op->kind) {
	case IO_ACCEPT: return (try_accept(io, op));
	case IO_RECV: return (try_recv(io, op));
	case IO_SEND: return (try_send(io, op));
	case IO_CONNECT: return (try_connected(op));
	case IO_HANDSHAKE: return (op->handshake.with->try(io, op));
	case IO_PAUSE:
	case IO_WRITABLE: return (done_with(op, 0));
	default:
		must(op->kind == IO_SEND_FILE);
		io->backend->send(op);
		return (false);
	}
}

/* ---------------------------------------------------------------- start */

/* The kernel chooses the port at connect(2), when the peer is known: one local address has all its
 * ports for each peer. */
static int
bind_from(int fd, const struct io_op *op)
{
	int on = 1;

	if (op->connect.from == NULL)
		return (0);
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	return (bind(fd, op->connect.from, op->connect.len));
}

/* To an address of this host the handshake ends as the call returns, which the next call sees: the
 * request goes out at once, and the socket need not be registered first. */
static int
connect_now(int fd, const struct io_op *op)
{
	int rc = connect(fd, op->connect.addr, op->connect.len);

	if (rc == 0 || errno != EINPROGRESS)
		return (rc);
	rc = connect(fd, op->connect.addr, op->connect.len);
	if (rc < 0 && errno == EALREADY)
		errno = EINPROGRESS;
	return (rc);
}

static void
start_connect(struct io *io, struct io_op *op)
{
	struct io_sock *s = op->sock;
	int on = 1;

	must(s->fd < 0);
	s->fd = socket(op->connect.addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0 || bind_from(s->fd, op) < 0) {
		io_complete(op, -errno);
		return;
	}
	s->hints = 0; /* nothing to read before bytes were sent: the first RECV parks */
	if (op->connect.addr->sa_family != AF_UNIX)
		setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect_now(s->fd, op) == 0) {
		s->hints = SOCK_WRITABLE;
		io_complete_next(op, 0);
	} else if (errno == EINPROGRESS)
		epoll_park(io, op);
	else
		io_complete(op, -errno); /* EAGAIN: the backlog of a unix socket is full */
}

static void
start_close(struct io *io, struct io_op *op)
{
	struct io_sock *s = op->sock;

	must(s->rd == NULL && s->wr == NULL);
	if (s->kept != NULL)
		io->backend->drop(s);
	if (s->transport != NULL && !op->cuts)
		s->transport->calls->say_end(s);
	io_transport_free(io_sock_unplug(s));
	sock_unregister(loop_of(io), s);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->hints = 0;
	io_complete(op, 0);
}

static void
start_timer(struct io_op *op)
{
	op->state = OP_TIMER;
	if (op->deadline_ms == 0)
		io_complete(op, -ETIMEDOUT);
	else
		io_arm(op);
}

static void
start_send(struct io *io, struct io_op *op)
{
	if ((op->sock->hints & SOCK_WRITABLE) == 0)
		epoll_park(io, op);
	else if (!put_off(io, op) && try_send(io, op))
		io_follow(io, op);
}

static void
start_accept(struct io *io, struct io_op *op)
{
	if ((op->sock->hints & SOCK_READABLE) == 0 || loop_of(io)->rest)
		epoll_park(io, op);
	else
		io_ready(io, op, OP_TRY);
}

static void
start_recv(struct io *io, struct io_op *op)
{
	struct epoll_loop *lp = loop_of(io);

	if ((op->sock->hints & recv_wants(op)) == 0)
		epoll_park(io, op);
	else if (lp->newcomer)
		io_ready_first(io, op, OP_TRY);
	else
		io_ready(io, op, OP_TRY);
	lp->newcomer = false;
}

static void
start_handshake(struct io *io, struct io_op *op)
{
	int err = op->handshake.with->begin(io, op);

	if (err != 0)
		io_complete(op, err);
	else
		start_recv(io, op);
}

void
epoll_start(struct io *io, struct io_op *op)
{
	if (io_sock_is_virtual(op->sock)) {
		virtual_start(io, op);
		return;
	}
	switch ((int)op->kind) {
	case IO_ACCEPT: start_accept(io, op); break;
	case IO_RECV: start_recv(io, op); break;
	case IO_HANDSHAKE: start_handshake(io, op); break;
	case IO_PAUSE:
	case IO_WRITABLE:
		if (op->sock->hints & send_wants(op))
			io_complete(op, 0);
		else
			epoll_park(io, op);
		break;
	case IO_SEND: start_send(io, op); break;
	case IO_SEND_FILE:
		if (io->backend->send == NULL)
			io_complete(op, -ENOSYS);
		else if (!put_off(io, op))
			io->backend->send(op);
		break;
	case IO_READ:
		if (op->only_warm)
			io_start_warm(op);
		else
			io->backend->read(op);
		break;
	case IO_WRITE: io_start_write(op); break;
	case IO_WORK: io_start_work(op); break;
	case IO_OPEN:
		if (op->open.path == NULL)
			io_start_temp(op);
		else if (op->removes)
			io_start_take(op);
		else
			io_start_open(op);
		break;
	case IO_CONNECT: start_connect(io, op); break;
	case IO_CLOSE: start_close(io, op); break;
	case IO_TIMER: start_timer(op); break;
	}
}
