/* server/stat.c -- see stat.h */
#include "server/stat.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"

enum stage { ST_LOADING, ST_READY };

struct stat_cache {
	struct io *io;
	struct counters *counters;
	struct stat_limits lim;
	uint64_t fresh_ns;
	struct stat_entry **table;
	size_t mask;
	struct list open, kept, absent; /* with a descriptor, without, no file at all; longest unused first */
	struct list busy;               /* entries with an op in flight */
	unsigned nfiles, nabsent, nfds; /* of what is in the table: nfiles counts open and kept */
	uint64_t nbytes;
	struct stat_entry *no_memory;   /* the answer when none can be made */
};

static void load_start(struct stat_entry *);
static void recheck_start(struct stat_entry *, bool trusted);

/* ---- entries and the table */

static struct stat_entry **
table_slot(struct stat_cache *sc, uint64_t hash)
{
	return (&sc->table[hash & sc->mask]);
}

static uint64_t
path_hash(const struct stat_scope *scope, struct text path)
{
	return (text_hash(path) + scope->id * 0x9e3779b97f4a7c15ull);
}

static struct stat_entry *
table_find(struct stat_cache *sc, const struct stat_scope *scope, struct text path, uint64_t hash)
{
	struct stat_entry *e;

	for (e = *table_slot(sc, hash); e != NULL; e = e->chain)
		if (e->hash == hash && e->scope == scope && text_eq(e->path, path))
			return (e);
	return (NULL);
}

static struct stat_entry *
entry_new(struct stat_cache *sc, const struct stat_scope *scope, struct text path, uint64_t hash)
{
	struct stat_entry *e;
	char *copy;

	e = calloc(1, sizeof(*e) + path.n + 1);
	if (e == NULL)
		return (NULL);
	copy = (char *)(e + 1);
	memcpy(copy, path.p, path.n);
	e->path = (struct text){copy, path.n};
	e->scope = scope;
	e->cache = sc;
	e->hash = hash;
	e->refs = 1;
	list_init(&e->lru);
	list_init(&e->waiters);
	list_init(&e->busy);
	return (e);
}

static void
entry_hash(struct stat_entry *e)
{
	struct stat_entry **slot = table_slot(e->cache, e->hash);

	e->chain = *slot;
	*slot = e;
	e->hashed = true;
}

/* Out of the table: nobody finds it any more; those who hold it go on. */
static void
entry_detach(struct stat_entry *e)
{
	struct stat_cache *sc = e->cache;
	struct stat_entry **pp;

	if (!e->hashed)
		return;
	for (pp = table_slot(sc, e->hash); *pp != e; pp = &(*pp)->chain)
		;
	*pp = e->chain;
	e->hashed = false;
	sc->nfds -= e->file != NULL;
	sc->nbytes -= e->bytes != NULL ? e->size : 0;
	if (list_linked(&e->lru)) {
		list_del(&e->lru);
		if (e->err != 0)
			sc->nabsent--;
		else
			sc->nfiles--;
	}
	stat_put(e);
}

struct stat_entry *
stat_ref(struct stat_entry *e)
{
	e->refs++;
	return (e);
}

void
stat_put(struct stat_entry *e)
{
	if (e == NULL || --e->refs != 0)
		return;
	must(!e->hashed && list_empty(&e->waiters) && !list_linked(&e->busy));
	io_file_put(e->file);
	free(e->memory);
	free(e);
}

/* ---- bounds */

static struct list *
lru_of(struct stat_entry *e)
{
	struct stat_cache *sc = e->cache;

	return (e->err != 0 ? &sc->absent : e->file != NULL ? &sc->open : &sc->kept);
}

static void
evict_first(struct stat_cache *sc, struct list *lru)
{
	entry_detach(list_entry(lru->next, struct stat_entry, lru));
	count(sc->counters, stat_evicted);
}

/* Of files with and without a descriptor, the list whose first was touched longer ago. */
static struct list *
oldest(struct stat_cache *sc)
{
	struct stat_entry *a = list_entry(sc->open.next, struct stat_entry, lru);
	struct stat_entry *b = list_entry(sc->kept.next, struct stat_entry, lru);

	if (list_empty(&sc->open))
		return (&sc->kept);
	return (list_empty(&sc->kept) || a->checked_ns <= b->checked_ns ? &sc->open : &sc->kept);
}

/* Each bound at the cost of those who use it: a walk through large files pushes no small ones out. */
static void
keep_bounds(struct stat_cache *sc)
{
	while (sc->nfds > sc->lim.fds && !list_empty(&sc->open))
		evict_first(sc, &sc->open);
	while (sc->nbytes > sc->lim.bytes && !list_empty(&sc->kept))
		evict_first(sc, &sc->kept);
	while (sc->nfiles > sc->lim.entries)
		evict_first(sc, oldest(sc));
	while (sc->nabsent > sc->lim.entries / 4 + 16)
		evict_first(sc, &sc->absent);
}

/* Descriptors are short: let go of half of ours. */
static void
shed_descriptors(struct stat_cache *sc)
{
	unsigned aim = sc->nfds / 2;

	while (sc->nfds > aim && !list_empty(&sc->open))
		evict_first(sc, &sc->open);
}

static bool
is_shortage(int err)
{
	return (err == -EMFILE || err == -ENFILE);
}

static void
entry_touch(struct stat_entry *e)
{
	struct stat_cache *sc = e->cache;

	if (!e->hashed)
		return;
	if (!list_linked(&e->lru)) {
		if (e->err != 0)
			sc->nabsent++;
		else
			sc->nfiles++;
	}
	list_del(&e->lru);
	list_add_tail(lru_of(e), &e->lru);
}

/* ---- answers */

/* A refusal that says something about the name, not about us at this moment. */
static bool
err_is_lasting(int err)
{
	switch (-err) {
	case ENOENT:
	case ENOTDIR:
	case EACCES:
	case EPERM:
	case ELOOP:
	case EXDEV:
	case ENAMETOOLONG:
		return (true);
	default:
		return (false);
	}
}

static void
add_waiter(struct stat_entry *e, struct stat_wait *w)
{
	w->entry = e;
	list_add_tail(&e->waiters, &w->link);
}

static void
move_waiters(struct stat_entry *to, struct stat_entry *from)
{
	struct list *l;

	while ((l = list_pop(&from->waiters)) != NULL)
		add_waiter(to, list_entry(l, struct stat_wait, link));
}

/* Each gets a reference to the answer: the entry it waits for, or one that stands in. */
static void
tell_waiters(struct stat_entry *e, struct stat_entry *answer)
{
	struct list waiting, *l;

	list_init(&waiting);
	list_splice_tail(&waiting, &e->waiters);
	while ((l = list_pop(&waiting)) != NULL) {
		struct stat_wait *w = list_entry(l, struct stat_wait, link);

		w->entry = NULL;
		w->done(w, stat_ref(answer));
	}
}

static void
entry_ready(struct stat_entry *e, int err)
{
	struct stat_cache *sc = e->cache;

	e->err = err;
	e->stage = ST_READY;
	if (is_shortage(err))
		shed_descriptors(sc);
	if (err == 0 || err_is_lasting(err)) {
		entry_touch(e);
		keep_bounds(sc);
	} else {
		entry_detach(e);
	}
	tell_waiters(e, e);
}

/* ---- loading: open, then the bytes of a small file */

static void
op_begin(struct stat_entry *e)
{
	list_add_tail(&e->cache->busy, &e->busy);
	stat_ref(e);
	e->op.deadline_ms = e->cache->lim.open_ms;
	e->op.client = e->client;
	io_submit(e->cache->io, &e->op);
}

/* The caller still holds the reference of the op and puts it last. */
static struct stat_entry *
op_end(struct io_op *op)
{
	struct stat_entry *e = container_of(op, struct stat_entry, op);

	list_del(&e->busy);
	return (e);
}

static void
entry_hold(struct stat_entry *e, struct io_file *f)
{
	e->file = f;
	e->cache->nfds += e->hashed;
}

static void
entry_let_go(struct stat_entry *e)
{
	io_file_put(e->file);
	e->file = NULL;
	e->cache->nfds -= e->hashed;
}

static bool
entry_memory(struct stat_entry *e, size_t bytes)
{
	char head[STAT_HEAD_MAX];
	size_t n = 0;

	if (e->scope->prepare != NULL)
		n = e->scope->prepare(e->scope, e->path, &e->stx, head);
	e->memory = malloc(n + bytes + 1);
	if (e->memory == NULL)
		return (false);
	memcpy(e->memory, head, n);
	e->head = (struct text){e->memory, n};
	return (true);
}

static void
entry_keep(struct stat_entry *e, const char *bytes)
{
	memcpy(e->memory + e->head.n, bytes, e->size);
	e->bytes = e->memory + e->head.n;
	e->cache->nbytes += e->hashed ? e->size : 0;
}

/* All there is of a small file. */
static void
entry_bytes(struct stat_entry *e, const char *bytes, uint64_t n)
{
	bool whole = n == e->size;

	if (!whole && e->tries++ < 2) {
		/* It shrank between statx and read: look again. */
		entry_let_go(e);
		load_start(e);
	} else if (!entry_memory(e, whole ? e->size : 0)) {
		entry_ready(e, -ENOMEM);
	} else {
		if (whole) {
			entry_keep(e, bytes);
			entry_let_go(e);
		}
		entry_ready(e, 0);
	}
}

static void
read_done(struct io_op *op)
{
	struct stat_entry *e = op_end(op);

	if (op->res < 0)
		entry_ready(e, (int)op->res);
	else
		entry_bytes(e, op->buf, (uint64_t)op->res);
	stat_put(e);
}

/* Files up to this size are kept with their bytes. */
static uint32_t
kept_size(const struct stat_cache *sc)
{
	uint64_t max = sc->lim.max_file < IO_WINDOW ? sc->lim.max_file : IO_WINDOW;

	return (sc->lim.cache ? (uint32_t)max : 0);
}

static void
opened_file(struct stat_entry *e, int fd)
{
	struct io_file *f;

	e->size = e->stx.stx_size;
	f = io_file_new(e->cache->io, fd, e->size);
	if (f == NULL) {
		entry_ready(e, -ENOMEM);
		return;
	}
	entry_hold(e, f);
	if (e->first.bytes != NULL) {
		entry_bytes(e, e->first.bytes, e->first.n);
		return;
	}
	io_file_proved(f, 0, e->first.n);
	if (e->size != 0 && e->size <= kept_size(e->cache)) {
		io_op_init(&e->op, IO_READ, read_done);
		e->op.file.file = e->file;
		e->op.file.off = 0;
		e->op.file.len = (uint32_t)e->size;
		op_begin(e);
		return;
	}
	entry_ready(e, entry_memory(e, 0) ? 0 : -ENOMEM);
}

static void
open_done(struct io_op *op)
{
	struct stat_entry *e = op_end(op);
	char *bytes = e->first.bytes;
	int fd = (int)op->res;

	e->open = op->at;
	e->checked_ns = op->at.start != 0 ? op->at.start : op->at.submit;
	if (op->res < 0) {
		entry_ready(e, (int)op->res);
	} else if (S_ISDIR(e->stx.stx_mode)) {
		e->is_dir = true;
		io_file_put(io_file_new(e->cache->io, fd, 0)); /* closes it off the loop */
		entry_ready(e, 0);
	} else {
		opened_file(e, fd);
	}
	free(bytes);
	stat_put(e);
}

static void
load_start(struct stat_entry *e)
{
	io_op_init(&e->op, IO_OPEN, open_done);
	e->first = (struct io_first){.keep = kept_size(e->cache), .warm = e->data};
	e->op.open.first = &e->first;
	e->op.open.root = e->scope->root;
	e->op.open.path = e->path.p;
	e->op.open.resolve = e->scope->resolve;
	e->op.open.stx = &e->stx;
	op_begin(e);
}

/* ---- re-checking */

static bool
same_time(struct statx_timestamp a, struct statx_timestamp b)
{
	return (a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec);
}

static bool
same_file(const struct statx *a, const struct statx *b)
{
	return (a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
	    a->stx_dev_minor == b->stx_dev_minor && a->stx_size == b->stx_size &&
	    (a->stx_mode & S_IFMT) == (b->stx_mode & S_IFMT) && same_time(a->stx_mtime, b->stx_mtime) &&
	    same_time(a->stx_ctime, b->stx_ctime));
}

/* What the name stands for now takes the place of e; those who wait for e wait for that. */
static void
entry_replace(struct stat_entry *e)
{
	struct stat_cache *sc = e->cache;
	struct stat_entry *now;

	if (!e->hashed && list_empty(&e->waiters))
		return;
	entry_detach(e);
	now = table_find(sc, e->scope, e->path, e->hash);
	if (now != NULL && now->stage == ST_LOADING) {
		move_waiters(now, e);
		return;
	}
	if (now != NULL)
		entry_detach(now);
	now = entry_new(sc, e->scope, e->path, e->hash);
	if (now == NULL) {
		tell_waiters(e, sc->no_memory);
		return;
	}
	entry_hash(now);
	move_waiters(now, e);
	load_start(now);
}

/* The same file with a new head: nothing is asked of the disk, so nobody waits.  False: no memory. */
static bool
entry_renew(struct stat_entry *e)
{
	struct stat_cache *sc = e->cache;
	struct stat_entry *now = entry_new(sc, e->scope, e->path, e->hash);

	if (now == NULL)
		return (false);
	now->stx = e->stx;
	now->size = e->size;
	now->open = e->open;
	now->checked_ns = e->checked_ns;
	if (!entry_memory(now, e->bytes != NULL ? e->size : 0)) {
		stat_put(now);
		return (false);
	}
	entry_detach(e);
	entry_hash(now);
	if (e->bytes != NULL)
		entry_keep(now, e->bytes);
	if (e->file != NULL)
		entry_hold(now, io_file_ref(e->file));
	move_waiters(now, e);
	entry_ready(now, 0);
	return (true);
}

/* A tag that was weak because the file was fresh may be strong now. */
static bool
head_has_aged(const struct stat_entry *e, const struct io *io)
{
	return (e->head.n != 0 && e->stx.stx_mtime.tv_sec < (int64_t)io_wall_s(io) - 2 &&
	    memmem(e->head.p, e->head.n, "ETag: W/", 8) != NULL);
}

/* The check itself failed (queue full, too slow, a broken disk): that is no news about the file. */
static void
recheck_failed(struct stat_entry *e, int err)
{
	struct stat_entry *answer;

	if (is_shortage(err))
		shed_descriptors(e->cache);
	if (e->trusted)
		e->checked_ns = io_now(e->cache->io); /* not true, but asked again as often as if it were */
	if (list_empty(&e->waiters))
		return;
	answer = entry_new(e->cache, e->scope, e->path, e->hash);
	if (answer == NULL) {
		tell_waiters(e, e->cache->no_memory);
		return;
	}
	answer->stage = ST_READY;
	answer->err = err;
	tell_waiters(e, answer);
	stat_put(answer);
}

static uint64_t
entry_age(const struct stat_entry *e)
{
	uint64_t now = io_now(e->cache->io);

	return (now > e->checked_ns ? now - e->checked_ns : 0); /* a thread may have checked it after this round began */
}

static void
recheck_done(struct io_op *op)
{
	struct stat_entry *e = op_end(op);
	bool lasting = op->res == 0 || err_is_lasting((int)op->res);
	bool same = (e->err == 0 && op->res == 0 && same_file(&e->stx, &e->again)) ||
	    (e->err != 0 && e->err == op->res);

	e->rechecking = false;
	if (same)
		e->checked_ns = op->at.start != 0 ? op->at.start : op->at.submit;
	if (same && e->hashed && head_has_aged(e, e->cache->io) && entry_renew(e)) {
		stat_put(e);
		return;
	}
	if (same) {
		entry_touch(e);
		tell_waiters(e, e);
		if (e->trusted && e->in_demand && entry_age(e) >= e->cache->fresh_ns)
			recheck_start(e, true); /* it took long: the next one has begun in time only if it begins now */
	} else if (lasting) {
		entry_replace(e);
	} else {
		recheck_failed(e, (int)op->res);
	}
	stat_put(e);
}

static void
recheck_start(struct stat_entry *e, bool trusted)
{
	e->rechecking = true;
	e->trusted = trusted;
	e->in_demand = false;
	count(e->cache->counters, stat_rechecks);
	io_op_init(&e->op, IO_STAT, recheck_done);
	e->op.urgent = true;
	e->op.open.root = e->scope->root;
	e->op.open.path = e->path.p;
	e->op.open.resolve = e->scope->resolve;
	e->op.open.stx = &e->again;
	op_begin(e);
}

/* ---- public */

static struct stat_entry *
hit(struct stat_cache *sc, struct stat_entry *e)
{
	e->in_demand = true;
	if (e->err != 0)
		count(sc->counters, stat_absent_hits);
	else
		count(sc->counters, stat_hits);
	return (stat_ref(e));
}

static struct stat_entry *
lookup_ready(struct stat_cache *sc, struct stat_entry *e, struct stat_wait *w)
{
	uint64_t age = entry_age(e);

	if (age < sc->fresh_ns) {
		if (age > STAT_RECHECK_MS * NS_PER_MS && !e->rechecking)
			recheck_start(e, true);
		return (hit(sc, e));
	}
	if (e->rechecking && e->trusted) {
		count(sc->counters, stat_overdue);
		return (hit(sc, e));
	}
	if (w == NULL)
		return (NULL);
	count(sc->counters, stat_joins);
	add_waiter(e, w);
	if (!e->rechecking)
		recheck_start(e, false);
	return (NULL);
}

struct stat_entry *
stat_lookup(struct stat_cache *sc, const struct stat_scope *scope, struct text path, struct stat_wait *w)
{
	uint64_t hash = path_hash(scope, path);
	struct stat_entry *e = table_find(sc, scope, path, hash);

	if (e != NULL && e->stage == ST_READY)
		return (lookup_ready(sc, e, w));
	if (w == NULL)
		return (NULL);
	if (e != NULL) {
		count(sc->counters, stat_joins);
		add_waiter(e, w);
		return (NULL);
	}
	e = entry_new(sc, scope, path, hash);
	if (e == NULL)
		return (stat_ref(sc->no_memory));
	count(sc->counters, stat_misses);
	entry_hash(e);
	e->client = w->client;
	e->data = w->data;
	add_waiter(e, w);
	load_start(e);
	return (NULL);
}

/* The last one has gone before its turn came: what is looked up for nobody only makes others wait.  (If a thread is at it
 * already the result is kept, for the client that asks again.) */
static void
leave_queue(struct stat_entry *e)
{
	if (e->stage == ST_LOADING && list_empty(&e->waiters))
		io_withdraw(e->cache->io, &e->op);
}

void
stat_cancel(struct stat_wait *w)
{
	struct stat_entry *e = w->entry;

	if (e == NULL)
		return;
	w->entry = NULL;
	list_del(&w->link);
	leave_queue(e);
}

unsigned
stat_cache_entries(const struct stat_cache *sc)
{
	return (sc->nfiles + sc->nabsent);
}

struct stat_cache *
stat_cache_new(struct io *io, struct counters *counters, const struct stat_limits *lim)
{
	struct stat_cache *sc;
	size_t n = 1024;

	while (n < lim->entries && n < (1u << 20))
		n *= 2;
	sc = calloc(1, sizeof(*sc));
	if (sc == NULL)
		return (NULL);
	sc->table = calloc(n, sizeof(struct stat_entry *));
	sc->no_memory = entry_new(sc, NULL, TEXT(""), 0);
	if (sc->table == NULL || sc->no_memory == NULL) {
		free(sc->no_memory);
		free(sc->table);
		free(sc);
		return (NULL);
	}
	sc->no_memory->stage = ST_READY;
	sc->no_memory->err = -ENOMEM;
	sc->mask = n - 1;
	sc->io = io;
	sc->counters = counters;
	sc->lim = *lim;
	sc->fresh_ns = lim->cache ? STAT_FRESH_MS * NS_PER_MS : 0;
	list_init(&sc->open);
	list_init(&sc->kept);
	list_init(&sc->absent);
	list_init(&sc->busy);
	return (sc);
}

void
stat_cache_free(struct stat_cache *sc)
{
	struct list *l, *tmp;
	size_t i;

	while (!list_empty(&sc->busy)) {
		/* Again each round: what came back in spite of it may have started the next step. */
		list_foreach_safe(l, tmp, &sc->busy)
			io_cancel(sc->io, &list_entry(l, struct stat_entry, busy)->op);
		io_run(sc->io);
	}
	for (i = 0; i <= sc->mask; i++)
		while (sc->table[i] != NULL)
			entry_detach(sc->table[i]);
	stat_put(sc->no_memory);
	free(sc->table);
	free(sc);
}
