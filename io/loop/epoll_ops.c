/* io/loop/epoll_ops.c -- what each kind of op does: begin, attempt, park until its socket has something.  See epoll.c. */
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "io/disk/job.h"
#include "io/loop/epoll.h"

#define ROUND_BYTES (1u << 20) /* of long sends before events are looked at again: 0.25 to 0.5 ms */
#define RECV_SIZE (64u << 10)

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
	/* Listeners are shared between loops: level-triggered, one loop woken per connection. */
	ev.events = op->kind == IO_ACCEPT ? EPOLLIN | EPOLLEXCLUSIVE :
	    EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	if (epoll_ctl(lp->epfd, EPOLL_CTL_ADD, s->fd, &ev) < 0) {
		err = -errno;
		slot_give_back(&lp->slots, s->slot);
		return (err);
	}
	s->hints |= op->kind == IO_ACCEPT ? SOCK_REGISTERED | SOCK_LISTENS : SOCK_REGISTERED;
	return (0);
}

/* close(2) takes a socket out of the epoll set unless a copy of it exists.  One that listens is level-triggered and would
 * report in each round, and one that a thread has a copy of is known to stay: these are taken out explicitly. */
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

/* The kernel wakes one loop for a connection (EPOLLEXCLUSIVE).  A loop that would not accept it must not be the one. */
void
epoll_ignore(struct io *io, struct io_sock *s)
{
	must(s->rd == NULL);
	sock_unregister(loop_of(io), s);
}

static struct io_op **
park_place(struct io_op *op)
{
	return (op->kind == IO_RECV || op->kind == IO_ACCEPT || op->kind == IO_HANGUP ? &op->sock->rd :
	    &op->sock->wr);
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
		op->sock->hints &= (uint8_t)~SOCK_READABLE; /* level-triggered: what is left is reported in the next round */
		list_add_tail(&loop_of(io)->listening, &op->link);
	}
	op->state = OP_PARKED;
	io_arm(op);
}

void
epoll_unpark(struct io *io, struct io_op *op)
{
	*park_place(op) = NULL;
	list_del(&op->link);
	if (op->kind == IO_ACCEPT) /* a listener that stays registered without an accept would spin */
		sock_unregister(loop_of(io), op->sock);
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

/* What accept(2) passes on from a connection that died in the queue says nothing about the next one. */
static bool
accept_again(int err)
{
	return (err == EINTR || err == ECONNABORTED || err == EPROTO || err == ENETDOWN || err == ENOPROTOOPT ||
	    err == EHOSTDOWN || err == ENONET || err == EHOSTUNREACH || err == ENETUNREACH);
}

static bool
try_accept(struct io *io, struct io_op *op)
{
	struct epoll_loop *lp = loop_of(io);
	socklen_t len;
	int fd;

	while (lp->accepts > 0) {
		lp->accepts--;
		len = sizeof(*op->accept.peer);
		if (op->accept.peer != NULL)
			memset(op->accept.peer, 0, len);
		fd = accept4(op->sock->fd, (struct sockaddr *)op->accept.peer, op->accept.peer != NULL ? &len : NULL,
		    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			lp->newcomer = lp->rest;
			return (done_with(op, fd));
		}
		if (errno == EAGAIN)
			break;
		if (!accept_again(errno))
			return (done_with(op, -errno));
	}
	return (parked(io, op));
}

static bool
try_recv(struct io *io, struct io_op *op)
{
	struct io_sock *s = op->sock;
	char *buf;
	ssize_t n;
	int err;

	op->recv.buf = NULL;
	buf = io_window_get(io);
	if (buf == NULL)
		return (done_with(op, -ENOMEM));
	do
		n = recv(s->fd, buf, RECV_SIZE, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	err = errno;
	if (n <= 0)
		io_give_back(io, buf);
	if (n < 0 && err != EAGAIN)
		return (done_with(op, -err));
	if (n == 0)
		return (done_with(op, 0));
	/* Less than asked for: drained, and what comes next is a new edge.  (Not if the end of the
	 * stream has been announced: that edge is past.) */
	if (n < (ssize_t)RECV_SIZE && (n < 0 || (s->hints & SOCK_HUNG) == 0))
		s->hints &= (uint8_t)~SOCK_READABLE;
	if (n < 0)
		return (parked(io, op));
	op->recv.buf = buf;
	return (done_with(op, n));
}

static size_t
iov_total(const struct iovec *iov, int n)
{
	size_t total = 0;
	int i;

	for (i = 0; i < n; i++)
		total += iov[i].iov_len;
	return (total);
}

static bool
try_send(struct io *io, struct io_op *op)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)op->send.iov, .msg_iovlen = (size_t)op->send.n};
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (op->more ? MSG_MORE : 0);
	size_t total = iov_total(op->send.iov, op->send.n);
	ssize_t n;

	do
		n = op->send.n == 1 ?
		    send(op->sock->fd, op->send.iov->iov_base, op->send.iov->iov_len, flags) :
		    sendmsg(op->sock->fd, &msg, flags);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return (done_with(op, -errno));
	/* A short count means the socket is full; its edge comes when there is room. */
	if (n < 0 || (size_t)n < total)
		op->sock->hints &= (uint8_t)~SOCK_WRITABLE;
	if (n < 0)
		return (parked(io, op));
	if (total > IO_LONG_SEND)
		io->moved += (uint64_t)n;
	return (done_with(op, n));
}

static bool
is_long(const struct io_op *op)
{
	return (op->kind == IO_SEND_FILE ? op->file.len > IO_LONG_SEND :
	    op->kind == IO_SEND && iov_total(op->send.iov, op->send.n) > IO_LONG_SEND);
}

/* Long sends wait for the next round when this one has moved its share: a request for a small file that came meanwhile goes first.
 * Beside 100 slow readers of a large file rounds took 4 to 6 ms without this. */
static bool
put_off(struct io *io, struct io_op *op)
{
	if (io->moved < ROUND_BYTES || !is_long(op))
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
	if (put_off(io, op))
		return (false);
	switch (op->kind) {
	case IO_ACCEPT:
		return (try_accept(io, op));
	case IO_RECV:
		return (try_recv(io, op));
	case IO_SEND:
		return (try_send(io, op));
	case IO_CONNECT:
		return (try_connected(op));
	case IO_HANGUP:
	case IO_WRITABLE:
		return (done_with(op, 0));
	default:
		must(op->kind == IO_SEND_FILE);
		io->backend->send(io, io->backend_state, op);
		return (false);
	}
}

/* ---------------------------------------------------------------- start */

static void
start_connect(struct io *io, struct io_op *op)
{
	struct io_sock *s = op->sock;
	int on = 1;

	must(s->fd < 0);
	s->fd = socket(op->connect.addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		io_complete(op, -errno);
		return;
	}
	s->hints = 0; /* nothing to read before something was sent: the first RECV parks */
	if (op->connect.addr->sa_family != AF_UNIX)
		setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(s->fd, op->connect.addr, op->connect.len) == 0) {
		s->hints = SOCK_WRITABLE;
		io_complete(op, 0);
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
		io->backend->drop(io, io->backend_state, s);
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

	if ((op->sock->hints & SOCK_READABLE) == 0)
		epoll_park(io, op);
	else if (lp->newcomer)
		io_ready_first(io, op, OP_TRY);
	else
		io_ready(io, op, OP_TRY);
	lp->newcomer = false;
}

void
epoll_start(struct io *io, struct io_op *op)
{
	switch (op->kind) {
	case IO_ACCEPT:
		start_accept(io, op);
		break;
	case IO_RECV:
		start_recv(io, op);
		break;
	case IO_HANGUP:
		if (op->sock->hints & SOCK_BROKEN)
			io_complete(op, 0);
		else
			epoll_park(io, op);
		break;
	case IO_WRITABLE:
		if (op->sock->hints & SOCK_WRITABLE)
			io_complete(op, 0);
		else
			epoll_park(io, op);
		break;
	case IO_SEND:
		start_send(io, op);
		break;
	case IO_SEND_FILE:
		if (io->backend->send == NULL)
			io_complete(op, -ENOSYS);
		else if (!put_off(io, op))
			io->backend->send(io, io->backend_state, op);
		break;
	case IO_READ:
		io->backend->read(io, io->backend_state, op);
		break;
	case IO_WARM:
		io_start_warm(op);
		break;
	case IO_TEMP:
		io_start_temp(op);
		break;
	case IO_WRITE:
		io_start_write(op);
		break;
	case IO_OPEN:
	case IO_STAT:
		if (io->backend != NULL && io->backend->look != NULL)
			io->backend->look(io, io->backend_state, op);
		else
			io_start_open(op);
		break;
	case IO_CONNECT:
		start_connect(io, op);
		break;
	case IO_CLOSE:
		start_close(io, op);
		break;
	case IO_TIMER:
		start_timer(op);
		break;
	}
}
