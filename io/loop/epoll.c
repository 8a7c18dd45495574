/* io/loop/epoll.c -- the loop on epoll(7): try first, park on EAGAIN.
 *
 * A keep-alive request costs one recv and one send.  A socket is registered once, edge-triggered in
 * both directions, when it first has to wait.  After that the hints in io_sock tell whether a call
 * can succeed, so a drained socket parks without a system call.
 *
 * A round: wait; turn all events into hints and ready ops; take finished jobs; deadlines;
 * callbacks; listeners.  No callback runs while events are being read.  The data of an event is the
 * key of a slot (io/loop/slots.h), never a pointer: a copy of a closed socket, in a child or a
 * thread, reports events as long as it exists.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "io/disk/job.h"
#include "io/loop/epoll.h"

/* Before events are checked again: a receive and a reply of up to 10 kB for each event, or 8 MiB,
 * which take 2 to 3 ms.  Long sends get 1 MiB of it: 0.25 to 0.5 ms. */
#define BUDGET      (8 << 20)
#define LONG_BUDGET (1 << 20)
#define ACCEPTS     64 /* per round: a flood of connections must not delay the existing ones */
/* One accept, and one more for this many events: a connection that is accepted alone is answered
 * while its structures are in the cache.  Measured, a connection per request: 20.8 us of CPU with
 * one accept per round, 23.9 with up to 64. */
#define ACCEPT_SHARE 4

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
	uint8_t wants = s->rd != NULL ? recv_wants(s->rd) : SOCK_READABLE;
	uint8_t sends = s->wr != NULL ? send_wants(s->wr) : SOCK_WRITABLE;

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
	if (s->hints & sends)
		unparked(&lp->io, &s->wr);
}

static void
loop_events(struct epoll_loop *lp, int n)
{
	const struct slot *slot;
	struct io_watch *watch;
	struct io_sock *s;
	int i;

	for (i = 0; i < n; i++) {
		slot = slot_find(&lp->slots, lp->ev[i].data.u64);
		if (slot == NULL)
			continue; /* of a copy of a closed socket */
		if (slot->watch) {
			watch = slot->what;
			watch->ready(watch);
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

/* A new connection must not wait several times as long as a request of a busy one takes.  The
 * kernel reports listeners in turn with sockets, so after a full batch each listener is tried.
 * They come last, so that each new connection is handled before the next is accepted (a full server
 * closes connections that have sent nothing), but do not wait behind the callbacks left for the
 * next round.  That round begins with one new connection only, because its request may be large.
 * Measured, new connections beside 4000 busy ones of 1 kB: p99 of 68 ms before, 18 to 24 ms since
 * (lighttpd 52 to 116 ms); beside 2000 of 100 kB: 182 ms before, 24 ms since. */
static void
wake_listeners(struct epoll_loop *lp, bool full_batch)
{
	struct io_op *op;

	list_each(op, &lp->listening, link) {
		if (full_batch)
			op->sock->hints |= SOCK_READABLE;
		if ((op->sock->hints & SOCK_READABLE) == 0)
			continue;
		list_del(&op->link);
		op->sock->rd = NULL;
		if (lp->rest) {
			lp->accepts = 1;
			io_ready_first(&lp->io, op, OP_TRY);
			break; /* it is parked after the others next time */
		}
		io_ready(&lp->io, op, OP_TRY);
	}
}

/* Waits until the next deadline or the time of io_wake_at(), which ends with this wait. */
static int
wait_exactly(struct epoll_loop *lp, int ms)
{
	uint64_t now = clock_mono_ns(), at = lp->io.wake_at;
	uint64_t left = at > now ? at - now : 0;
	struct timespec ts;
	int n;

	lp->io.wake_at = 0;
	if (ms >= 0 && left > (uint64_t)ms * NS_PER_MS)
		left = (uint64_t)ms * NS_PER_MS;
	ts.tv_sec = (time_t)(left / NS_PER_S);
	ts.tv_nsec = (long)(left % NS_PER_S);
	n = epoll_pwait2(lp->epfd, lp->ev, EVENTS, &ts, NULL);
	if (n >= 0 || errno != ENOSYS)
		return (n);
	left = (left + NS_PER_MS - 1) / NS_PER_MS;
	return (epoll_wait(lp->epfd, lp->ev, EVENTS, left < INT_MAX ? (int)left : INT_MAX));
}

static int
timeout_ms(struct epoll_loop *lp)
{
	int ms;

	if (!list_empty(&lp->io.ready) || !list_empty(&lp->bulk))
		return (0);
	ms = io_timeout_ms(&lp->io);
	return (lp->io.held_jobs != 0 && (ms < 0 || ms > IO_LOOK_MS) ? IO_LOOK_MS : ms);
}

static void
epoll_run(struct io *io)
{
	struct epoll_loop *lp = loop_of(io);
	int n, ms;

	lp->rest = !list_empty(&io->ready);
	io_flush(io);
	ms = timeout_ms(lp);
	n = io->wake_at != 0 ? wait_exactly(lp, ms) : epoll_wait(lp->epfd, lp->ev, EVENTS, ms);
	io_tick(io);
	lp->accepts = accepts_of(n);
	io->crowded = n >= IO_CROWD;
	loop_events(lp, n);
	if (io->held_jobs != 0)
		io_port_drain(io->port);
	io_expire(io);
	list_splice_tail(&io->ready, &lp->bulk);
	io->long_budget = LONG_BUDGET;
	if (lp->rest)
		wake_listeners(lp, n == EVENTS);
	io_dispatch(io, BUDGET);
	if (lp->rest || !list_empty(&io->ready))
		return;
	wake_listeners(lp, n == EVENTS);
	io_dispatch(io, BUDGET);
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

	if (io->port != NULL) {
		io_port_close(io->port);
		lp->wakefd = -1;
	}
	io->port = NULL;
	io_fini(io);
	by_ref_fini(&lp->by_ref);
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

/* Edge-triggered: each write to an eventfd is an event, and the count need not be read. */
static int
epoll_watch(struct io *io, int fd, struct io_watch *w)
{
	struct epoll_loop *lp = loop_of(io);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
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
	.start = epoll_start,
	.try = epoll_try,
	.park = epoll_park,
	.unpark = epoll_unpark,
	.ignore = epoll_ignore,
	.close_file = io_file_close_job,
	.watch = epoll_watch,
	.unwatch = epoll_unwatch,
	.run = epoll_run,
	.wake = epoll_wake,
	.free = epoll_free,
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

struct io *
io_new(const struct io_conf *conf, int *err)
{
	struct epoll_loop *lp = calloc(1, sizeof(*lp));

	if (lp == NULL) {
		*err = -ENOMEM;
		return (NULL);
	}
	signal(SIGPIPE, SIG_IGN); /* sendfile(2) has no MSG_NOSIGNAL */
	lp->epfd = lp->wakefd = -1;
	by_ref_none(&lp->by_ref);
	list_init(&lp->listening);
	list_init(&lp->bulk);
	io_init(&lp->io, &epoll_calls, conf);
	*err = loop_open(lp);
	if (*err == 0)
		*err = io_backend_open(&lp->io, conf);
	if (*err == 0 && lp->io.backend != NULL && lp->io.backend->holds)
		by_ref_init(&lp->by_ref);
	if (*err != 0) {
		epoll_free(&lp->io);
		return (NULL);
	}
	return (&lp->io);
}
