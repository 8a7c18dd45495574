/* io/loop/sim.c -- the loop for tests: events happen only when the test causes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "io/engine.h"
#include "io/loop/sim.h"
#include "io/loop/virtual.h"

#define SIM_START_NS   (1000 * NS_PER_S) /* CLOCK_MONOTONIC at the start */
#define SIM_START_WALL 1173101341ull     /* wall clock at the start */
#define SIM_FIRST_FD   10000             /* for IO_CONNECT: no real descriptor is so high */

struct sim_record { /* bytes sent on one socket */
	const struct io_sock *sock;
	struct buf sent;
};

struct sim {
	struct io io;
	struct list flight; /* oldest first */
	struct sim_record *record;
	size_t nrecord;
	int *closed;
	size_t nclosed;
	int next_fd;
	bool auto_close;
};

static struct sim *
sim_of(const struct io *io)
{
	return (container_of((struct io *)(uintptr_t)io, struct sim, io));
}

/* ---------------------------------------------------------------- the engine's side */

static void
sim_close_fd(struct io *io, int fd, uint64_t dev)
{
	struct sim *sim = sim_of(io);

	/* not realloc(), which a test may let fail */
	sim->closed = reallocarray(sim->closed, sim->nclosed + 1, sizeof(int));
	must(sim->closed != NULL);
	sim->closed[sim->nclosed++] = fd;
}

static void
sim_start(struct io *io, struct io_op *op)
{
	struct sim *sim = sim_of(io);

	if (io_sock_is_virtual(op->sock)) {
		virtual_start(io, op);
		return;
	}
	if (op->sock != NULL)
		op->sock->hints |= SOCK_SIM;
	if (op->kind == IO_CONNECT) {
		must(op->sock->fd < 0);
		op->sock->fd = sim->next_fd++;
	}
	op->state = OP_PARKED;
	list_add_tail(&sim->flight, &op->link);
	if (op->kind == IO_CLOSE) {
		if (op->sock->fd >= 0)
			sim_close_fd(io, op->sock->fd, 0);
		op->sock->fd = -1;
		if (sim->auto_close)
			io_complete(op, 0);
	} else if (op->kind == IO_TIMER && op->deadline_ms == 0) {
		io_complete(op, -ETIMEDOUT);
	}
}

static int64_t
sim_unpark(struct io *io, struct io_op *op, int64_t res)
{
	if (io_sock_is_virtual(op->sock))
		return (virtual_unpark(op, res));
	list_del(&op->link);
	return (res);
}

static bool
sim_try(struct io *io, struct io_op *op)
{
	must(io_sock_is_virtual(op->sock)); /* no other simulated op is ever tried */
	return (virtual_try(io, op));
}

static void
sim_round(struct io *io)
{
	io_dispatch(io, 1000 * IO_CALLBACK);
}

static void
sim_wake(struct io *io)
{
}

static void
sim_free(struct io *io)
{
	struct sim *sim = sim_of(io);
	size_t i;

	io_fini(io);
	for (i = 0; i < sim->nrecord; i++)
		buf_free(&sim->record[i].sent);
	free(sim->record);
	free(sim->closed);
	free(sim);
}

static const struct io_calls sim_calls = {
	.start = sim_start,
	.try = sim_try,
	.unpark = sim_unpark,
	.close_file = sim_close_fd,
	.run = sim_round,
	.wake = sim_wake,
	.free = sim_free,
};

static const struct file_backend sim_backend = {
	.name = "sim",
	.doc = "ends when the test says so",
	.tag = "network_sim.c.78:",
	.send_file = true,
};

static const struct file_backend sim_reader = {
	.name = "sim-read",
	.doc = "the same, reading windows",
	.tag = "network_sim_read.c.78:",
};

static struct io *
sim_create(const struct file_backend *backend)
{
	const struct io_conf conf = { .backend = backend };
	struct sim *sim = calloc(1, sizeof(*sim));

	must(sim != NULL);
	io_init(&sim->io, &sim_calls, &conf);
	must(io_backend_open(&sim->io, &conf) == 0);
	sim->io.now = SIM_START_NS;
	sim->io.wall = SIM_START_WALL * NS_PER_S;
	sim->io.wheel.tick = SIM_START_NS >> WHEEL_SHIFT; /* the clock may be ahead of it */
	list_init(&sim->flight);
	sim->next_fd = SIM_FIRST_FD;
	return (&sim->io);
}

struct io *
sim_new(void)
{
	return (sim_create(&sim_backend));
}

struct io *
sim_new_reading(void)
{
	return (sim_create(&sim_reader));
}

void
sim_auto_close(struct io *io, bool on)
{
	sim_of(io)->auto_close = on;
}

void
sim_hang_up(struct io_sock *s)
{
	s->hints |= SOCK_SIM | SOCK_HUNG;
}

void
sim_was_read(struct io_sock *s)
{
	s->hints |= SOCK_SIM | SOCK_READ;
}

/* ---------------------------------------------------------------- looking */

int
sim_kind(const struct io_op *op)
{
	if (op->kind == IO_OPEN && op->only_stat)
		return (SIM_STAT);
	if (op->kind == IO_OPEN && op->open.path == NULL)
		return (SIM_TEMP);
	if (op->kind == IO_RECV && op->only_hangup)
		return (SIM_HANGUP);
	return (op->kind == IO_READ && op->only_warm ? SIM_WARM : (int)op->kind);
}

struct io_op *
sim_nth(struct io *io, unsigned n)
{
	struct sim *sim = sim_of(io);
	struct io_op *op;

	list_each(op, &sim->flight, link)
		if (n-- == 0)
			return (op);
	return (NULL);
}

struct io_op *
sim_find(struct io *io, int kind, const struct io_sock *sock)
{
	struct io_op *op;
	unsigned i;

	for (i = 0; (op = sim_nth(io, i)) != NULL; i++) {
		if (sim_kind(op) == kind && (sock == NULL || op->sock == sock))
			return (op);
	}
	return (NULL);
}

unsigned
sim_count(struct io *io, int kind)
{
	struct io_op *op;
	unsigned i, n = 0;

	for (i = 0; (op = sim_nth(io, i)) != NULL; i++)
		n += sim_kind(op) == kind;
	return (n);
}

static struct buf *
sim_record(struct io *io, const struct io_sock *sock)
{
	struct sim *sim = sim_of(io);
	size_t i;

	for (i = 0; i < sim->nrecord; i++) {
		if (sim->record[i].sock == sock)
			return (&sim->record[i].sent);
	}
	sim->record = realloc(sim->record, (i + 1) * sizeof(*sim->record));
	must(sim->record != NULL);
	sim->nrecord = i + 1;
	sim->record[i].sock = sock;
	buf_init(&sim->record[i].sent, 0);
	return (&sim->record[i].sent);
}

struct text
sim_sent(struct io *io, const struct io_sock *sock)
{
	return (buf_as_text(sim_record(io, sock)));
}

void
sim_sent_clear(struct io *io, const struct io_sock *sock)
{
	buf_drop(sim_record(io, sock), sim_sent(io, sock).n);
}

unsigned
sim_closed(struct io *io, int fd)
{
	struct sim *sim = sim_of(io);
	unsigned n = 0;
	size_t i;

	for (i = 0; i < sim->nclosed; i++)
		n += sim->closed[i] == fd;
	return (n);
}

/* ---------------------------------------------------------------- events of the test */

void
sim_finish(struct io *io, struct io_op *op, int64_t res)
{
	must(op != NULL && op->io == io && op->state == OP_PARKED);
	if (op->kind == IO_CONNECT && res > 0) {
		op->sock->fd = (int)res;
		res = 0;
	}
	list_del(&op->link);
	io_complete(op, res);
}

static void
finish_with(struct io *io, struct io_op *op, enum io_kind kind, struct text bytes)
{
	must(op != NULL && op->kind == kind && bytes.n <= IO_WINDOW);
	if (bytes.n != 0) {
		op->buf = io_window_get(io);
		must(op->buf != NULL);
		memcpy(op->buf, bytes.p, bytes.n);
	}
	sim_finish(io, op, (int64_t)bytes.n);
}

void
sim_recv(struct io *io, struct io_op *op, struct text bytes)
{
	finish_with(io, op, IO_RECV, bytes);
}

void
sim_read(struct io *io, struct io_op *op, struct text bytes)
{
	finish_with(io, op, IO_READ, bytes);
}

void
sim_open(struct io *io, struct io_op *op, int fd, uint64_t size, int64_t mtime, mode_t mode)
{
	struct statx *stx;

	must(op != NULL && op->kind == IO_OPEN);
	stx = op->open.stx;
	memset(stx, 0, sizeof(*stx));
	stx->stx_mask = STATX_BASIC_STATS;
	stx->stx_size = size;
	stx->stx_mtime.tv_sec = mtime;
	stx->stx_mode = (uint16_t)((mode & S_IFMT) != 0 ? mode : mode | S_IFREG);
	stx->stx_nlink = 1;
	sim_finish(io, op, op->only_stat ? 0 : fd);
}

size_t
sim_send(struct io *io, struct io_op *op, size_t max)
{
	struct buf *b;
	size_t n, took = 0;
	int i;

	must(op != NULL && op->kind == IO_SEND);
	b = sim_record(io, op->sock);
	for (i = 0; i < op->send.n && took < max; i++) {
		n = op->send.iov[i].iov_len < max - took ? op->send.iov[i].iov_len : max - took;
		buf_add(b, op->send.iov[i].iov_base, n);
		took += n;
	}
	sim_finish(io, op, (int64_t)took);
	return (took);
}

void
sim_send_file(struct io *io, struct io_op *op, struct text bytes)
{
	must(op != NULL && op->kind == IO_SEND_FILE && bytes.n <= op->file.len);
	buf_text(sim_record(io, op->sock), bytes);
	sim_finish(io, op, (int64_t)bytes.n);
}

void
sim_run(struct io *io)
{
	while (!list_empty(&io->ready))
		io_dispatch(io, 1);
}

void
sim_advance_ms(struct io *io, uint64_t ms)
{
	struct sim *sim = sim_of(io);
	struct io_op *op;

	io->now += ms * NS_PER_MS;
	io->wall = SIM_START_WALL * NS_PER_S + (io->now - SIM_START_NS);
	list_each(op, &sim->flight, link)
		if (op->expires_ns != 0 && op->expires_ns <= io->now)
			io_finish_early(op, -ETIMEDOUT);
	io_expire(io);
	sim_run(io);
}
