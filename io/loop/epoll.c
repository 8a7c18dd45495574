/* io/loop/epoll.c -- linux-sysepoll: try first, park on EAGAIN.
 *
 * A keep-alive request costs one recv and one send.  A socket is registered once, edge-triggered for
 * both directions, when it first has to wait; after that the hints in io_sock say whether a call is
 * worth making, so a drained socket parks without asking the kernel again.
 *
 * A round: wait; turn all events into hints and ready ops; take finished jobs; deadlines; callbacks; listeners.
 * No callback runs while events are being read.  The data of an event is the key of a slot (io/loop/slots.h), never a
 * pointer: a copy of a closed socket, in a child or a thread, may report for as long as it exists.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "io/engine.h"
#include "io/disk/job.h"
#include "io/loop/slots.h"

#define EVENTS 512
#define CALLBACKS 2048 /* before events are looked at again: a receive and a reply of up to 10 kB for each event */
#define ROUND_BYTES (1u << 20) /* of long sends before events are looked at again: 0.25 to 0.5 ms */
#define ACCEPTS 64     /* per round: a flood of connections must not hold up the served ones */
#define ACCEPT_SHARE 4 /* one accept, and one more for so many events: a connection that is accepted alone is
                        * answered while its structures are in the cache.  Measured, a connection per request:
                        * 20.8 us of CPU with one per round, 23.9 with up to 64 */
#define RECV_SIZE (64u << 10)

struct epoll_loop {
	struct io io;
	int epfd, wakefd;
	struct io_watch wake;
	unsigned accepts; /* left in this round */
	bool rest;        /* the round before left callbacks for this one */
	bool newcomer;    /* accepted in such a round: it is looked at next */
	struct list listening; /* accepts that are parked */
	struct slots slots;
	struct list bulk; /* long sends whose turn is in the next round */
	struct epoll_event ev[EVENTS];
};

static struct epoll_loop *
loop_of(struct io *io)
{
	return (container_of(io, struct epoll_loop, io));
}

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
static void
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
static void
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

static void
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

static void
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

static bool
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

static void
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

/* ---------------------------------------------------------------- a round */

static void
unparked(struct io *io, struct io_op **place)
{
	if (*place == NULL)
		return;
	io_ready(io, *place, OP_TRY);
	*place = NULL;
}

static void
sock_event(struct epoll_loop *lp, struct io_sock *s, uint32_t ev)
{
	uint8_t wants = s->rd != NULL && s->rd->kind == IO_HANGUP ? SOCK_BROKEN : SOCK_READABLE;

	if (ev & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		s->hints |= SOCK_HUNG | SOCK_READABLE;
	if (ev & (EPOLLHUP | EPOLLERR))
		s->hints |= SOCK_BROKEN;
	if (ev & EPOLLIN)
		s->hints |= SOCK_READABLE;
	if (ev & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		s->hints |= SOCK_WRITABLE;
	if (s->hints & wants)
		unparked(&lp->io, &s->rd);
	if (s->hints & SOCK_WRITABLE)
		unparked(&lp->io, &s->wr);
}

static void
watch_event(struct io_watch *w)
{
	w->ready(w);
}

static void
loop_events(struct epoll_loop *lp, int n)
{
	const struct slot *slot;
	struct io_sock *s;
	int i;

	for (i = 0; i < n; i++) {
		slot = slot_find(&lp->slots, lp->ev[i].data.u64);
		if (slot == NULL)
			continue; /* of a copy of a socket that is closed */
		if (slot->watch) {
			watch_event(slot->what);
			continue;
		}
		s = slot->what;
		if ((s->hints & SOCK_LISTENS) && s->rd == NULL)
			sock_unregister(lp, s);
		else if (s->hints & SOCK_LISTENS)
			s->hints |= SOCK_READABLE; /* see wake_listeners() */
		else
			sock_event(lp, s, lp->ev[i].events);
	}
}

static unsigned
accepts_of(int events)
{
	unsigned n = events > 0 ? 1 + (unsigned)events / ACCEPT_SHARE : 1;

	return (n < ACCEPTS ? n : ACCEPTS);
}

/* A new connection must not wait for several times as long as all that are busy take.  The kernel reports listeners in turn with
 * sockets, so after a full batch each is asked.  They come last, so that each newcomer is looked at before the next is accepted
 * (a full house closes connections that have said nothing), but do not wait behind what is left for the next round: that one
 * begins with one newcomer, and no more, for what it asks for may be large.  Measured, new connections beside 4000 busy ones of
 * 1 kB: p99 of 68 ms before, 18 to 24 ms since (lighttpd 52 to 116 ms); beside 2000 of 100 kB: 182 ms before, 24 ms since. */
static void
wake_listeners(struct epoll_loop *lp, bool full_batch)
{
	struct list *l, *next;
	struct io_op *op;

	list_foreach_safe (l, next, &lp->listening) {
		op = list_entry(l, struct io_op, link);
		if (full_batch)
			op->sock->hints |= SOCK_READABLE;
		if ((op->sock->hints & SOCK_READABLE) == 0)
			continue;
		list_del(l);
		op->sock->rd = NULL;
		if (lp->rest) {
			lp->accepts = 1;
			io_ready_first(&lp->io, op, OP_TRY);
			break; /* it is parked behind the others next time */
		}
		io_ready(&lp->io, op, OP_TRY);
	}
}

static void
epoll_run(struct io *io)
{
	struct epoll_loop *lp = loop_of(io);
	int n;

	lp->rest = !list_empty(&io->ready);
	io_flush(io);
	n = epoll_wait(lp->epfd, lp->ev, EVENTS, list_empty(&io->ready) && list_empty(&lp->bulk) ? io_timeout_ms(io) : 0);
	io_tick(io);
	lp->accepts = accepts_of(n);
	io->crowded = n >= IO_CROWD;
	loop_events(lp, n);
	io_expire(io);
	list_splice_tail(&io->ready, &lp->bulk);
	io->moved = 0;
	if (lp->rest)
		wake_listeners(lp, n == EVENTS);
	io_dispatch(io, CALLBACKS);
	if (lp->rest || !list_empty(&io->ready))
		return;
	wake_listeners(lp, n == EVENTS);
	io_dispatch(io, CALLBACKS);
}

static void
epoll_wake(struct io *io)
{
	io_port_wake(io->port);
}

static void
epoll_free(struct io *io)
{
	struct epoll_loop *lp = loop_of(io);

	if (io->port != NULL)
		io_port_close(io->port);
	io->port = NULL;
	io_fini(io);
	if (lp->wakefd >= 0)
		close(lp->wakefd);
	if (lp->epfd >= 0)
		close(lp->epfd);
	slots_free(&lp->slots);
	free(lp);
}

static void
epoll_unwatch(struct io *io, struct io_watch *w)
{
	if (w->slot != 0)
		slot_give_back(&loop_of(io)->slots, w->slot);
	w->slot = 0;
}

/* Edge-triggered: each write to an eventfd is an event of its own, the count need not be read. */
static int
epoll_watch(struct io *io, int fd, struct io_watch *w)
{
	struct epoll_loop *lp = loop_of(io);
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int err;

	w->slot = slot_take(&lp->slots, w, true);
	if (w->slot == 0)
		return (-ENOMEM);
	ev.data.u64 = slot_key(&lp->slots, w->slot);
	if (epoll_ctl(lp->epfd, EPOLL_CTL_ADD, fd, &ev) == 0)
		return (0);
	err = -errno;
	epoll_unwatch(io, w);
	return (err);
}

static const struct io_calls epoll_calls = {
	.start = epoll_start, .try = epoll_try, .park = epoll_park, .unpark = epoll_unpark, .ignore = epoll_ignore,
	.close_file = io_file_close_job, .watch = epoll_watch, .unwatch = epoll_unwatch,
	.run = epoll_run, .wake = epoll_wake, .free = epoll_free,
};

static void
jobs_came_back(struct io_watch *w)
{
	io_port_drain(container_of(w, struct epoll_loop, wake)->io.port);
}

static int
loop_open(struct epoll_loop *lp)
{
	lp->epfd = epoll_create1(EPOLL_CLOEXEC);
	lp->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lp->epfd < 0 || lp->wakefd < 0)
		return (-errno);
	lp->wake.ready = jobs_came_back;
	lp->io.port = io_port_new(&lp->io, lp->wakefd);
	return (lp->io.port != NULL ? epoll_watch(&lp->io, lp->wakefd, &lp->wake) : -ENOMEM);
}

static struct io *
epoll_create_loop(const struct io_conf *conf, int *err)
{
	struct epoll_loop *lp = calloc(1, sizeof(*lp));

	if (lp == NULL) {
		*err = -ENOMEM;
		return (NULL);
	}
	signal(SIGPIPE, SIG_IGN); /* sendfile(2) knows no MSG_NOSIGNAL */
	lp->epfd = lp->wakefd = -1;
	list_init(&lp->listening);
	list_init(&lp->bulk);
	io_init(&lp->io, &epoll_calls, conf);
	*err = loop_open(lp);
	if (*err == 0)
		*err = io_backend_open(&lp->io, conf);
	if (*err != 0) {
		epoll_free(&lp->io);
		return (NULL);
	}
	return (&lp->io);
}

const struct io_engine io_engine_epoll = {
	.name = "linux-sysepoll",
	.doc = "epoll(7), edge-triggered; files through the file backend",
	.create = epoll_create_loop,
};
