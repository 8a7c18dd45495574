/* files/warm/warm.c -- entries, waiting requests and their deadlines. */

#include "files/warm/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"

/* bytes of answers: some 20,000, fewer with names of 64 KiB */
#define KEPT_MAX (12u << 20)
#define NAMES    16384u
/* A timer drops expired names: this many at a time, which takes 0.3 ms; the rest later. */
#define SWEEP    1024u
#define SWEEP_MS 10u
#define STALE_MS 1000u
#define FEW      4u /* that a new one drops */

/* ---------------------------------------------------------------- entries */

/* False: all requests for a file are equal, whichever bytes they want. */
static bool
reads_bytes(const struct warm_conf *conf)
{
	return ((conf->how == WARM_READ && (conf->before != 0 || conf->soon != 0)) ||
		(conf->how != WARM_STAT && conf->behind != 0));
}

enum key_kind { KEY_LEAF = 1, KEY_CACHED = 2 };

static unsigned char
kind_of(const struct warm_entry *e)
{
	return ((unsigned char)e->lk.path.p[strlen(e->lk.path.p) + 1]);
}

bool
key_is_cached(const struct warm_entry *e)
{
	return ((kind_of(e) & KEY_CACHED) != 0);
}

/* The path, NUL, and the rest that distinguishes two requests. */
static struct text
key_of(struct warm *wm, const char *path, unsigned char kind, const struct range_set *want)
{
	GString *k = g_string_assign(wm->key, path);

	g_string_append_c(k, '\0');
	g_string_append_c(k, (char)kind);
	g_string_append_len(k, (const char *)want->part, (gssize)(want->n * sizeof(want->part[0])));
	return ((struct text){ k->str, k->len });
}

bool
key_read(const struct warm_entry *e, struct range_set *want)
{
	const char *part = e->lk.path.p + strlen(e->lk.path.p) + 2;
	size_t n = (size_t)(e->lk.path.p + e->lk.path.n - part);

	memcpy(want->part, part, n);
	want->n = (unsigned)(n / sizeof(want->part[0]));
	return ((kind_of(e) & KEY_LEAF) != 0);
}

static struct warm_entry *
entry_new(struct warm *wm, struct text key, uint64_t hash)
{
	struct lookup *l = lookup_new(&wm->table, sizeof(struct warm_entry), NULL, key, hash);
	struct warm_entry *e;

	must(l != NULL);
	lookup_add(l);
	e = entry_of(l);
	e->warm = wm;
	e->begun_ns = io_now(wm->io);
	list_init(&e->loading);
	return (e);
}

static void
entry_free(struct lookup *l)
{
	free(entry_of(l));
}

static bool
is_fresh(const struct lookup *l, const struct warm *wm)
{
	return (lookup_age(l) < wm->conf->remember_ms * NS_PER_MS);
}

static bool
is_worth_keeping(const struct warm_entry *e)
{
	if (e->cut || e->warm->conf->remember_ms == 0 || !lookup_is_permanent(e->found.err))
		return (false);
	return (e->found.err == 0 || !key_is_cached(e));
}

/* Removes at most SWEEP entries that answer no request any more; true: there may be more. */
static bool
drop_stale(struct warm *wm)
{
	struct lookup *oldest;
	unsigned n = 0;

	while (n < SWEEP && (oldest = lookup_oldest(&wm->kept)) != NULL && !is_fresh(oldest, wm)) {
		lookup_remove(oldest);
		n++;
	}
	return (n == SWEEP);
}

static void time_stale(struct warm *, uint32_t ms);

static void
stale_due(struct io_op *op)
{
	struct warm *wm = container_of(op, struct warm, stale);
	bool more;

	wm->staling = false;
	if (op->res == -ECANCELED)
		return;
	more = drop_stale(wm);
	if (wm->kept.n != 0)
		time_stale(wm, more ? SWEEP_MS : MAX(wm->conf->remember_ms, STALE_MS));
}

/* Without requests, only this timer drops stale entries. */
static void
time_stale(struct warm *wm, uint32_t ms)
{
	if (wm->staling)
		return;
	wm->staling = true;
	op_init(&wm->stale, IO_TIMER, stale_due);
	wm->stale.deadline_ms = ms;
	op_submit(wm->io, &wm->stale);
}

/* All waiters have their answer.  The entry is kept for later requests, or freed.  Each new entry
 * drops a few stale ones, so that a burst of names is not dropped in one round. */
static void
entry_settle(struct warm_entry *e)
{
	struct warm *wm = e->warm;
	struct lookup *oldest;
	unsigned n = 0;

	if (!is_worth_keeping(e)) {
		lookup_remove(&e->lk);
		return;
	}
	lookup_keep(&e->lk, &wm->kept, sizeof(*e) + e->lk.path.n);
	while ((oldest = lookup_oldest(&wm->kept)) != &e->lk &&
	       (wm->kept.bytes > KEPT_MAX || (!is_fresh(oldest, wm) && n++ < FEW)))
		lookup_remove(oldest);
	time_stale(wm, MAX(wm->conf->remember_ms, STALE_MS));
}

/* ---------------------------------------------------------------- the log */

static uint64_t
took_ns(const struct warm_entry *e)
{
	return (io_now(e->warm->io) - e->begun_ns);
}

static const char *
longest_stage(const struct warm_found *f)
{
	if (f->queue_ns > f->stat_ns && f->queue_ns > f->read_ns)
		return ("queue");
	return (f->stat_ns > f->read_ns ? "stat" : "read");
}

static void
note_slow(struct warm_entry *e, const char *stage, int err)
{
	struct warm *wm = e->warm;
	uint64_t ns = took_ns(e);

	if (wm->conf->slow_ms == 0 || ns < wm->conf->slow_ms * NS_PER_MS || e->told)
		return;
	e->told = true;
	count(wm->counters, slow);
	log_limited(1, LOG_WARN, NULL, "file.slow", LF_STR("path", e->lk.path.p),
	    LF_STR("stage", stage), LF_U64("ms", ns / NS_PER_MS), LF_ERR("error", err));
}

/* ---------------------------------------------------------------- waiting */

static void
leave_waiting(struct warm *wm, struct warm_wait *w)
{
	if (!list_linked(&w->arrived))
		return;
	list_del(&w->arrived);
	wm->stages->waiting--;
}

static void
answered(struct lookup_wait *lw, struct lookup *l)
{
	struct warm_wait *w = container_of(lw, struct warm_wait, wait);
	struct warm_entry *e = entry_of(l);

	leave_waiting(e->warm, w);
	w->found = e->found;
	lookup_put(l);
	w->done(w);
}

static void
wait_add(struct warm_entry *e, struct warm_wait *w)
{
	w->wait.done = answered;
	list_init(&w->arrived);
	lookup_join(&e->lk, &w->wait);
}

static void
wait_leave(struct warm_wait *w, bool late)
{
	struct warm_entry *e = entry_of(w->wait.lookup);

	leave_waiting(e->warm, w);
	if (lookup_leave(&w->wait) && e->load != NULL)
		load_stop(e->load, op_withdraw, late);
}

void
entry_answer(struct warm_entry *e)
{
	list_del(&e->loading);
	pin_watch(e->warm);
	if (e->cut && !list_empty(&e->lk.waiters)) { /* they joined after it was given up */
		e->cut = false;
		list_add_tail(&e->warm->loading, &e->loading);
		load_begin(e);
		return;
	}
	e->lk.checked_ns = io_now(e->warm->io);
	if (!e->cut)
		note_slow(e, longest_stage(&e->found), e->found.err);
	if (e->held)
		return; /* entry_load() is running, and settles the entry itself */
	e->held = true;
	lookup_tell(&e->lk, &e->lk);
	e->held = false;
	entry_settle(e);
}

/* ---------------------------------------------------------------- asking */

static void
recall(const struct warm_entry *e, struct warm_found *found)
{
	*found = e->found;
	found->hot = found->remembered = true;
	found->queue_ns = found->stat_ns = found->read_ns = 0;
}

static struct warm_entry *
entry_find(struct warm *wm, struct text key, uint64_t hash)
{
	struct lookup *l = lookup_find(&wm->table, NULL, key, hash);
	struct warm_entry *e = l != NULL ? entry_of(l) : NULL;

	if (e == NULL || e->load != NULL || e->held || (is_fresh(l, wm) && pin_holds(e)))
		return (e);
	lookup_remove(l);
	return (NULL);
}

static bool
entry_load(struct warm_entry *e, struct warm_wait *w)
{
	e->held = true;
	list_add_tail(&e->warm->loading, &e->loading);
	load_begin(e);
	e->held = false;
	if (e->load != NULL) {
		wait_add(e, w);
		return (false);
	}
	w->found = e->found;
	entry_settle(e);
	return (true);
}

bool
entry_ask(struct warm *wm, const char *path, bool leaf, struct warm_wait *w)
{
	static const struct range_set nothing;
	const struct range_set *want = reads_bytes(wm->conf) ? &w->want : &nothing;
	unsigned char kind = (unsigned char)((leaf ? KEY_LEAF : 0) | (w->cached ? KEY_CACHED : 0));
	struct text key = key_of(wm, path, kind, want);
	uint64_t hash = text_hash(key);
	struct warm_entry *e = entry_find(wm, key, hash);

	if (e == NULL) {
		e = entry_new(wm, key, hash);
		e->lk.client = w->wait.client;
		return (entry_load(e, w));
	}
	if (e->load != NULL) {
		count(wm->counters, joined);
		wait_add(e, w);
		return (false);
	}
	count(wm->counters, remembered);
	recall(e, &w->found);
	return (true);
}

/* ---------------------------------------------------------------- deadlines */

static void timer_set(struct warm *);

static uint64_t
deadline_ns(const struct warm *wm, const struct warm_wait *w)
{
	return (w->since_ns + wm->conf->deadline_ms * NS_PER_MS);
}

static void
wait_late(struct warm *wm, struct warm_wait *w)
{
	struct warm_entry *e = entry_of(w->wait.lookup);

	count(wm->counters, late);
	note_slow(e, load_stage(e->load), -ETIMEDOUT);
	wait_leave(w, true);
	w->found = (struct warm_found){ .err = -ETIMEDOUT };
	w->done(w);
}

static void
timer_done(struct io_op *op)
{
	struct warm *wm = container_of(op, struct warm, timer);

	while (op->res != -ECANCELED && !list_empty(&wm->waiting)) {
		struct warm_wait *w = list_entry(wm->waiting.next, struct warm_wait, arrived);

		if (deadline_ns(wm, w) > io_now(wm->io))
			break;
		/* done() may ask again.  timing is still set, so that only this function sets the
		 * timer. */
		wait_late(wm, w);
	}
	wm->timing = false;
	if (op->res != -ECANCELED)
		timer_set(wm);
}

static void
timer_set(struct warm *wm)
{
	const struct warm_wait *w = list_entry(wm->waiting.next, struct warm_wait, arrived);
	uint64_t left;

	if (wm->timing || wm->conf->deadline_ms == 0 || list_empty(&wm->waiting))
		return;
	left = deadline_ns(wm, w) - io_now(wm->io);
	wm->timing = true;
	op_init(&wm->timer, IO_TIMER, timer_done);
	wm->timer.deadline_ms = (uint32_t)((left + NS_PER_MS - 1) / NS_PER_MS);
	op_submit(wm->io, &wm->timer);
}

/* ---------------------------------------------------------------- public */

uint64_t
warm_memory(const struct warm *wm)
{
	return (wm->kept.bytes);
}

bool
warm_file(struct warm *wm, const char *path, struct warm_wait *w)
{
	w->wait.lookup = NULL;
	if (entry_ask(wm, path, false, w))
		return (true);
	w->since_ns = io_now(wm->io);
	list_add_tail(&wm->waiting, &w->arrived);
	wm->stages->waiting++;
	timer_set(wm);
	return (false);
}

void
warm_cancel(struct warm_wait *w)
{
	if (w->wait.lookup != NULL)
		wait_leave(w, false);
}

int
warm_new(const struct warm_conf *conf, struct io *io, struct warm_counters *counters,
    struct warm_stages *stages, struct warm **out, const char **bad)
{
	struct warm *wm = g_new0(struct warm, 1);
	int err;

	*bad = NULL;
	err = roots_open(&wm->roots, conf->roots, bad);
	if (err != 0) {
		g_free(wm);
		return (err);
	}
	wm->conf = conf;
	wm->io = io;
	wm->counters = counters;
	wm->stages = stages;
	must(lookup_init(&wm->table, io, NAMES, entry_free) == 0);
	lookup_list_init(&wm->kept);
	wm->key = g_string_new("");
	list_init(&wm->loading);
	list_init(&wm->opens);
	list_init(&wm->waiting);
	order_init(&wm->order);
	pins_init(&wm->pins);
	*out = wm;
	return (0);
}

static void
cancel_all(struct warm *wm)
{
	struct warm_entry *e;

	list_each(e, &wm->loading, loading)
		load_stop(e->load, op_cancel, false);
	opens_cancel(wm);
	order_cancel(wm);
	pins_cancel(wm);
	if (wm->forget.busy)
		op_cancel(wm->io, &wm->forget.op);
	if (wm->timing)
		op_cancel(wm->io, &wm->timer);
	if (wm->staling)
		op_cancel(wm->io, &wm->stale);
}

void
warm_free(struct warm **wmp)
{
	struct warm *wm = *wmp;

	if (wm == NULL)
		return;
	must(list_empty(&wm->waiting));
	while (!list_empty(&wm->loading) || !list_empty(&wm->opens) || order_busy(&wm->order) ||
	       pins_busy(&wm->pins) || wm->forget.busy || wm->timing || wm->staling) {
		cancel_all(wm);
		io_run(wm->io);
	}
	lookup_fini(&wm->table);
	order_fini(&wm->order);
	pins_fini(&wm->pins);
	g_string_free(wm->key, TRUE);
	roots_close(&wm->roots);
	g_free(wm);
	*wmp = NULL;
}
