/* files/hold/load.c -- loads an entry: open, then the bytes of a small file. */
#include "files/hold/impl.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

void
entry_submit(struct file_entry *e, uint32_t deadline_ms)
{
	list_add_tail(&e->cache->busy, &e->busy);
	file_entry_ref(e);
	e->op.deadline_ms = deadline_ms;
	e->op.client = e->lk.client;
	op_submit(e->cache->io, &e->op);
}

/* The caller still holds the op's reference and releases it last. */
struct file_entry *
entry_of_op(struct io_op *op)
{
	struct file_entry *e = container_of(op, struct file_entry, op);

	list_del(&e->busy);
	return (e);
}

static void
let_go(struct file_entry *e)
{
	io_file_put(e->file);
	e->file = NULL;
}

/* Allocates head and bytes; false: no memory. */
static bool
entry_memory(struct file_entry *e, size_t bytes)
{
	char head[FILE_HEAD_MAX];
	size_t n = 0;

	if (e->lk.scope->prepare != NULL)
		n = e->lk.scope->prepare(e, head);
	e->memory = malloc(n + bytes + 1);
	if (e->memory == NULL)
		return (false);
	memcpy(e->memory, head, n);
	e->head = (struct text){ e->memory, n };
	return (true);
}

static void
entry_keep(struct file_entry *e, const char *bytes)
{
	memcpy(e->memory + e->head.n, bytes, e->size);
	e->bytes = e->memory + e->head.n;
}

/* The bytes of a small file have come, n of them. */
static void
entry_bytes(struct file_entry *e, const char *bytes, uint64_t n)
{
	bool whole = n == e->size && !e->first.changing;

	if (!whole && e->unsettled == 0)
		e->unsettled = io_wall_ns(e->cache->io);
	if (!whole && e->tries++ < 2) {
		/* it changed between statx and read: check again */
		let_go(e);
		entry_load(e);
	} else if (!entry_memory(e, whole ? e->size : 0)) {
		entry_ready(e, -ENOMEM);
	} else {
		if (whole) {
			entry_keep(e, bytes);
			let_go(e);
		}
		entry_ready(e, 0);
	}
}

static void
read_done(struct io_op *op)
{
	struct file_entry *e = entry_of_op(op);

	if (op->res < 0)
		entry_ready(e, (int)op->res);
	else {
		e->first.changing = io_file_look(e->file) != 0;
		entry_bytes(e, op->buf, (uint64_t)op->res);
	}
	file_entry_put(e);
}

/* Largest file that is kept with its bytes. */
static uint32_t
kept_size(const struct file_cache *fc)
{
	uint64_t max = fc->lim.max_file < IO_WINDOW ? fc->lim.max_file : IO_WINDOW;

	return (fc->lim.cache ? (uint32_t)max : 0);
}

/* For how long its times have been the same, by both clocks.  The clock of files stands still while
 * the processor that advances it stands still. */
static uint64_t
watched_ns(struct file_entry *e)
{
	struct io *io = e->cache->io;
	uint64_t mono, wall;

	if (e->seen_ns == 0 || !entry_same_file(&e->again, &e->stx)) {
		e->seen_ns = e->open.end != 0 ? e->open.end : io_now(io);
		e->seen_wall = io_wall_ns(io);
		return (0);
	}
	mono = clock_between(e->seen_ns, e->lk.checked_ns);
	wall = clock_between(e->seen_wall, e->asked_wall);
	return (mono < wall ? mono : wall);
}

/* Notes whether other contents would have other times. */
static void
note_version(struct file_entry *e)
{
	struct file_cache *fc = e->cache;
	struct io_version v = io_version_of(&e->stx);
	uint64_t watched = watched_ns(e);

	if (e->lk.scope->by_date)
		v.mtime_ns = v.ctime_ns = 0;
	e->unsettled = 0;
	e->recheck_ms = FILE_RECHECK_MS;
	if (io_version_settled(&v, e->asked_wall, watched,
		io_version_is_old(&v, e->asked_wall) || io_facts_are_local(&e->stx)))
		return;
	e->unsettled = io_wall_ns(fc->io) - clock_between(e->lk.checked_ns, io_now(fc->io));
	e->recheck_ms = v.mtime_ns != 0 && v.ctime_ns != 0 ? FILE_SETTLE_MS : FILE_RECHECK_MS;
	count(fc->counters, stat_unsettled);
}

static void
opened_file(struct file_entry *e, int fd)
{
	struct io_file *f;

	f = io_file_new(e->cache->io, fd, e->size);
	if (f == NULL) {
		entry_ready(e, -ENOMEM);
		return;
	}
	e->file = f;
	if (e->lk.scope->watched)
		io_file_watch(f, &e->stx);
	note_version(e);
	if (e->first.changing || e->first.bytes != NULL) {
		entry_bytes(e, e->first.bytes, e->first.n);
		return;
	}
	io_file_proved(f, 0, e->first.n);
	if (e->first.unmarked)
		io_file_marked(f);
	if (e->size != 0 && e->size <= kept_size(e->cache)) {
		op_init(&e->op, IO_READ, read_done);
		e->op.file.file = e->file;
		e->op.file.off = 0;
		e->op.file.len = (uint32_t)e->size;
		entry_submit(e, e->cache->lim.open_ms);
		return;
	}
	entry_ready(e, entry_memory(e, 0) ? 0 : -ENOMEM);
}

/* The whole file was read when it was opened, so it was closed at once. */
static void
closed_file(struct file_entry *e)
{
	note_version(e);
	entry_bytes(e, e->first.bytes, e->first.n);
}

static void
open_done(struct io_op *op)
{
	struct file_entry *e = entry_of_op(op);
	char *bytes = e->first.bytes;
	int fd = (int)op->res;

	free(e->real);
	e->real = e->first.real;
	e->first.real = NULL;
	e->open = op->at;
	e->lk.checked_ns = op->at.start != 0 ? op->at.start : op->at.submit;
	if (op->res < 0) {
		entry_ready(e, (int)op->res);
	} else if (S_ISDIR(e->stx.stx_mode)) {
		e->is_dir = true;
		if (!e->first.closed)
			io_close_later(e->cache->io, fd);
		entry_ready(e, 0);
	} else {
		e->size = e->stx.stx_size;
		if (e->first.closed)
			closed_file(e);
		else
			opened_file(e, fd);
	}
	free(bytes);
	file_entry_put(e);
}

void
entry_load(struct file_entry *e)
{
	op_init(&e->op, IO_OPEN, open_done);
	e->asked_wall = io_wall_ns(e->cache->io);
	e->first = (struct io_first){
		.keep = kept_size(e->cache),
		.warm = e->data,
		.shut = kept_size(e->cache),
	};
	e->op.open.first = &e->first;
	e->op.open.root = e->lk.scope->root;
	e->op.open.path = e->lk.path.p;
	e->op.open.resolve = e->lk.scope->resolve;
	e->op.open.stx = &e->stx;
	entry_submit(e, e->cache->lim.open_ms);
}
