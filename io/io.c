/* io/io.c -- shared by all engines: the life of an op, deadlines, lent buffers. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/sockios.h>
#include "io/engine.h"
#include "io/disk/job.h"
#include "io/memory/memory.h"
#include "io/transport.h"

void
io_init(struct io *io, const struct io_calls *calls, const struct io_conf *conf)
{
	unsigned i;

	io->calls = calls;
	io->pools = conf->pools;
	io->chunk = io->window = IO_WINDOW;
	io->counters = &io->own_counters;
	list_init(&io->ready);
	for (i = 0; i < WHEEL_SLOTS; i++)
		list_init(&io->wheel.slot[i]);
	io->held_max = io_memory_limit() / IO_HELD_PART;
	if (io->held_max > IO_HELD_MAX)
		io->held_max = IO_HELD_MAX;
	io_tick(io);
	io->wheel.tick = io->now >> WHEEL_SHIFT;
}

int
io_backend_open(struct io *io, const struct io_conf *conf)
{
	const struct file_backend *b = conf->backend;
	int err = 0;

	while (b != NULL && b->open != NULL && (err = b->open(io, conf, &io->fallback_why)) != 0)
		b = b->instead;
	if (b == NULL)
		return (err);
	io->backend = b;
	if (conf->chunk != 0)
		io->chunk = conf->chunk > IO_CHUNK_MIN ? conf->chunk : IO_CHUNK_MIN;
	else if (b->chunk != 0)
		io->chunk = b->chunk;
	io->window = io->chunk > IO_WINDOW ? (io->chunk + PAGE - 1) / PAGE * PAGE : IO_WINDOW;
	return (0);
}

static void
spare_free(struct io_spare *s)
{
	struct io_spare *next;

	for (; s != NULL; s = next) {
		next = s->next;
		free(s);
	}
}

void
io_fini(struct io *io)
{
	if (io->backend != NULL && io->backend->close != NULL)
		io->backend->close(io);
	spare_free(io->windows);
	spare_free(io->chunks);
	blocks_end(&io->streams, 0);
}

void
io_free(struct io *io)
{
	if (io == NULL)
		return;
	must(io->inflight == 0);
	io->calls->free(io);
}

void
io_run(struct io *io)
{
	io->calls->run(io);
}

bool
io_leave(struct io *io)
{
	return (io->backend == NULL || io->backend->leave == NULL || io->backend->leave(io));
}

void
io_wake(struct io *io)
{
	io->calls->wake(io);
}

void
io_wake_at(struct io *io, uint64_t mono_ns)
{
	io->wake_at = mono_ns;
}

bool
io_busy(const struct io *io)
{
	return (io->inflight != 0);
}

uint64_t
io_now(const struct io *io)
{
	return (io->now);
}

uint64_t
io_wall_s(const struct io *io)
{
	return (io->wall / NS_PER_S);
}

uint64_t
io_wall_ns(const struct io *io)
{
	return (io->wall);
}

void
io_count_into(struct io *io, struct io_counters *c)
{
	io->counters = c;
}

const struct file_backend *
io_backend(const struct io *io)
{
	return (io->backend);
}

const char *
io_fallback_why(const struct io *io)
{
	return (io->fallback_why);
}

uint32_t
io_chunk(const struct io *io)
{
	return (io->chunk);
}

void
io_flush(struct io *io)
{
	if (io->backend != NULL && io->backend->flush != NULL)
		io->backend->flush(io);
}

void
io_count_read(struct io *io, bool async)
{
	if (async) {
		count(io->counters, file_reads);
		count_at(io->counters, io->backend->counts.async);
	} else {
		count(io->counters, file_inline);
		count_at(io->counters, io->backend->counts.sync);
	}
}

/* ---------------------------------------------------------------- the life of an op */

void
op_submit(struct io *io, struct io_op *op)
{
	must(op->state == OP_IDLE && op->done != NULL);
	op->io = io;
	op->job = NULL;
	op->res = 0;
	op->threaded = 0;
	op->buf = NULL; /* a reused op must not lend its old buffer */
	list_init(&op->link);
	list_init(&op->timer);
	op->at = (struct io_stamps){ .submit = io->now };
	op->expires_ns = op->deadline_ms != 0 ? io->now + op->deadline_ms * NS_PER_MS : 0;
	io->inflight++;
	io->calls->start(io, op);
}

void
op_soon(struct io *io, struct io_op *op, void (*done)(struct io_op *))
{
	op_init(op, IO_TIMER, done);
	op_submit(io, op);
}

void
op_cancel(struct io *io, struct io_op *op)
{
	io->follows = 0; /* ops submitted after this call are called back after *op */
	io_finish_early(op, -ECANCELED);
}

void
op_withdraw(struct io *io, struct io_op *op)
{
	if (op->state == OP_JOB && io_job_withdraw(op))
		io_complete(op, -ECANCELED);
}

void
io_finish_early(struct io_op *op, int64_t res)
{
	switch (op->state) {
	case OP_IDLE:
	case OP_READY: return; /* too late: the result stays */
	case OP_TRY:
	case OP_PARKED: res = op->io->calls->unpark(op->io, op, res); break;
	case OP_JOB: io_job_abandon(op); break;
	}
	io_complete(op, res);
}

void
io_complete(struct io_op *op, int64_t res)
{
	op->res = res;
	list_del(&op->timer);
	list_del(&op->link);
	io_ready(op->io, op, OP_READY);
}

void
io_complete_next(struct io_op *op, int64_t res)
{
	op->res = res;
	list_del(&op->timer);
	list_del(&op->link);
	io_follow(op->io, op);
}

void
io_complete_first(struct io_op *op, int64_t res)
{
	op->res = res;
	list_del(&op->timer);
	list_del(&op->link);
	op->state = OP_READY;
	list_add_head(op->io->early != NULL ? op->io->early : &op->io->ready, &op->link);
	op->io->early = &op->link;
}

/* A connection has had its turn if it only continues its own send. */
static void
begin_turn(struct io *io, const struct io_op *op)
{
	if (io->following != op)
		io->follows = op->kind == IO_SEND || op->kind == IO_SEND_FILE ? 0 : IO_FOLLOWS;
	io->following = NULL;
}

/* The only place that runs callbacks. */
static void
op_done(struct io *io, struct io_op *op)
{
	list_del(&op->timer);
	op->state = OP_IDLE;
	io->early = NULL;
	begin_turn(io, op);
	if (op->at.start == 0)
		op->at.start = op->at.end = io->now;
	io->lent = op->buf;
	io->inflight--;
	op->done(op); /* it may free *op */
	if (io->lent != NULL)
		io_give_back(io, io->lent);
	io->lent = NULL;
}

void
io_dispatch(struct io *io, int64_t budget)
{
	struct io_op *op;
	struct list *l;

	io->budget = budget;
	while (io->budget > 0 && (l = list_pop(&io->ready)) != NULL) {
		io->budget -= IO_CALLBACK;
		op = list_entry(l, struct io_op, link);
		if (op->state == OP_READY || io->calls->try(io, op))
			op_done(io, op);
	}
}

void
io_events(struct io *io, unsigned n)
{
	io->budget -= (int64_t)n * IO_EVENT;
}

void
io_tick(struct io *io)
{
	io->now = clock_mono_ns();
	io->wall = clock_coarse_ns();
}

/* ---------------------------------------------------------------- buffers */

static void *
spare_pop(struct io_spare **list, unsigned *n)
{
	struct io_spare *s = *list;

	if (s != NULL) {
		*list = s->next;
		(*n)--;
	}
	return (s);
}

static void
spare_push(struct io_spare **list, unsigned *n, unsigned max, void *p)
{
	struct io_spare *s = p;

	if (*n >= max) {
		free(p);
		return;
	}
	s->next = *list;
	*list = s;
	(*n)++;
}

char *
io_window_get(struct io *io)
{
	char *p = spare_pop(&io->windows, &io->nwindows);

	return (p != NULL ? p : aligned_alloc(PAGE, io->window));
}

void
io_give_back(struct io *io, char *buf)
{
	if (buf != NULL)
		spare_push(&io->windows, &io->nwindows, IO_SPARE_WINDOWS, buf);
}

static void
spare_drop(struct io_spare **list, unsigned *n, unsigned keep)
{
	while (*n > keep)
		free(spare_pop(list, n));
}

void
io_drop_spares(struct io *io)
{
	spare_drop(&io->windows, &io->nwindows, IO_IDLE_WINDOWS);
	spare_drop(&io->chunks, &io->nchunks, 0);
	blocks_end(&io->streams, 0);
}

char *
io_keep(struct io_op *op)
{
	char *buf = op->io->lent;

	must(buf != NULL && buf == op->buf);
	op->io->lent = NULL;
	return (buf);
}

void *
io_chunk_get(struct io *io, size_t size)
{
	void *p = spare_pop(&io->chunks, &io->nchunks);

	return (p != NULL ? p : malloc(size));
}

void
io_chunk_put(struct io *io, void *p)
{
	spare_push(&io->chunks, &io->nchunks, IO_SPARE_CHUNKS, p);
}

/* ---------------------------------------------------------------- sockets */

void
io_sock_init(struct io_sock *s, int fd)
{
	/* A new socket is tried before it is registered: often its request has arrived. */
	*s = (struct io_sock){ .fd = fd, .hints = SOCK_READABLE | SOCK_WRITABLE };
}

void
io_sock_reset(int fd)
{
	struct linger now = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

void
io_close_fd(int fd)
{
	close(fd);
}

void
io_close_later(struct io *io, int fd)
{
	io->calls->close_file(io, fd, io_dev_of(fd));
}

void
io_sock_cut(struct io_sock *s)
{
	if (s->fd >= 0 && (s->hints & SOCK_SIM) == 0)
		shutdown(s->fd, SHUT_WR);
}

void
io_sock_shutdown(struct io_sock *s)
{
	if (s->transport != NULL)
		s->transport->calls->say_end(s);
	io_sock_cut(s);
}

bool
io_sock_says_end(const struct io_sock *s)
{
	return (s->transport != NULL);
}

bool
io_sock_is_http2(const struct io_sock *s)
{
	return (s->transport != NULL && s->transport->http2);
}

void
io_sock_ignore(struct io *io, struct io_sock *s)
{
	if (io->calls->ignore != NULL)
		io->calls->ignore(io, s);
}

int
io_fd_dup(int fd)
{
	int other = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return (other < 0 ? -errno : other);
}

int
io_sock_dup(struct io_sock *s)
{
	int fd;

	if (s->fd < 0 || (s->hints & SOCK_SIM))
		return (-EBADF);
	if (s->transport != NULL && !s->transport->calls->may_move(s))
		return (-EBUSY);
	fd = io_fd_dup(s->fd);
	if (fd >= 0)
		s->hints |= SOCK_SHARED;
	return (fd);
}

struct io_transport *
io_sock_unplug(struct io_sock *s)
{
	struct io_transport *t = s->transport;

	s->transport = NULL;
	return (t);
}

void
io_sock_plug(struct io_sock *s, struct io_transport *t)
{
	s->transport = t;
	if (t != NULL)
		t->calls->moved(s);
}

void
io_transport_free(struct io_transport *t)
{
	if (t != NULL)
		t->calls->free(t);
}

bool
io_sock_local(const struct io_sock *s, union io_addr *a)
{
	socklen_t n = sizeof(*a);

	return (s->fd >= 0 && (s->hints & SOCK_SIM) == 0 && getsockname(s->fd, &a->sa, &n) == 0);
}

int
io_sock_was_read(const struct io_sock *s)
{
	int domain, left;
	socklen_t n = sizeof(domain);

	if (s->hints & SOCK_SIM)
		return ((s->hints & SOCK_READ) != 0 ? 1 : -1);
	if (s->fd < 0 || getsockopt(s->fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 ||
	    domain != AF_UNIX || ioctl(s->fd, SIOCOUTQ, &left) < 0)
		return (-1);
	return (left == 0);
}

bool
io_sock_alive(const struct io_sock *s)
{
	char c;

	if (s->hints & SOCK_SIM)
		return ((s->hints & SOCK_HUNG) == 0);
	if (s->transport != NULL && s->transport->calls->has_bytes(s))
		return (false);
	return (s->fd >= 0 && recv(s->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN);
}
