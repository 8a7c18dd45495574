/* warm.c -- entries: what is known, who waits for it, who has waited too long.  See warm.h. */

#include "fcgi-stat-accel/warm/impl.h"

#include <errno.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"

#define KEPT_MAX (12u << 20)		/* bytes of answers: some 20,000, fewer with names of 64 KiB */

/* ---------------------------------------------------------------- the table */

static guint
key_hash(gconstpointer p)
{
	const struct warm_key *k = p;

	guint h = (guint)text_hash(text_of(k->path)) ^ k->leaf;

	for (guint i = 0; i < k->want.n; i++)
		h = (h ^ (guint)(k->want.part[i].from >> 12) ^ (guint)(k->want.part[i].to >> 12)) * 2654435761u;
	return (h);
}

static gboolean
key_equal(gconstpointer pa, gconstpointer pb)
{
	const struct warm_key *a = pa, *b = pb;

	return (range_set_equal(&a->want, &b->want) && a->leaf == b->leaf && strcmp(a->path, b->path) == 0);
}

static struct warm_entry *
entry_new(struct warm *wm, const struct warm_key *key, uint32_t client)
{
	size_t n = strlen(key->path) + 1;
	struct warm_entry *e = g_malloc(sizeof(*e) + n);

	memset(e, 0, sizeof(*e));
	memcpy(e->path, key->path, n);
	e->key = *key;
	e->key.path = e->path;
	e->warm = wm;
	e->client = client;
	e->begun_ns = io_now(wm->io);
	list_init(&e->waiters);
	list_init(&e->link);
	g_hash_table_insert(wm->entries, &e->key, e);
	return (e);
}

static void
entry_free(struct warm_entry *e)
{
	g_hash_table_remove(e->warm->entries, &e->key);
	list_del(&e->link);
	g_free(e);
}

static size_t
kept_bytes(const struct warm_entry *e)
{
	return (sizeof(*e) + strlen(e->key.path));
}

static void
kept_free(struct warm_entry *e)
{
	e->warm->kept_bytes -= kept_bytes(e);
	entry_free(e);
}

static bool
is_fresh(const struct warm_entry *e)
{
	return (io_now(e->warm->io) - e->answered_ns < e->warm->conf->remember_ms * NS_PER_MS);
}

/* What another try might find otherwise is not kept. */
static bool
is_lasting(int err)
{
	return (err == 0 || err == -EISDIR || io_error_lasts(err));
}

/* It has its answer, and all that waited have it, too: kept for others, or gone. */
static void
entry_settle(struct warm_entry *e)
{
	struct warm *wm = e->warm;
	struct warm_entry *oldest;

	if (e->cut || wm->conf->remember_ms == 0 || !is_lasting(e->found.err)) {
		entry_free(e);
		return;
	}
	list_add_tail(&wm->kept, &e->link);
	wm->kept_bytes += kept_bytes(e);
	for (;;) {
		oldest = list_entry(wm->kept.next, struct warm_entry, link);
		if (oldest == e || (wm->kept_bytes <= KEPT_MAX && is_fresh(oldest)))
			break;
		kept_free(oldest);
	}
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
	STATS_COUNT(wm->stats, slow);
	log_limited(1, LOG_WARN, NULL, "file.slow", LF_STR("path", e->key.path), LF_STR("stage", stage),
	    LF_U64("ms", ns / NS_PER_MS), LF_ERR("error", err));
}

/* ---------------------------------------------------------------- waiting */

static void
wait_add(struct warm_entry *e, struct warm_wait *w)
{
	w->entry = e;
	list_init(&w->arrived);
	list_add_tail(&e->waiters, &w->link);
}

static void
wait_leave(struct warm *wm, struct warm_wait *w)
{
	w->entry = NULL;
	list_del(&w->link);
	if (!list_linked(&w->arrived))
		return;
	list_del(&w->arrived);
	wm->stats->waiting--;
}

static void
entry_tell(struct warm_entry *e)
{
	struct warm *wm = e->warm;
	struct list told, *l;

	list_init(&told);
	list_splice_tail(&told, &e->waiters);
	while (!list_empty(&told)) {
		struct warm_wait *w = list_entry(l = told.next, struct warm_wait, link);

		wait_leave(wm, w);
		w->found = e->found;
		w->done(w);
	}
}

void
entry_answer(struct warm_entry *e)
{
	list_del(&e->link);
	if (e->cut && !list_empty(&e->waiters)) {	/* they came after it was given up */
		e->cut = false;
		list_add_tail(&e->warm->loading, &e->link);
		lookup_begin(e);
		return;
	}
	e->answered_ns = io_now(e->warm->io);
	if (!e->cut)
		note_slow(e, longest_stage(&e->found), e->found.err);
	if (e->held)
		return;				/* by entry_ask(), which settles it */
	e->held = true;
	entry_tell(e);
	e->held = false;
	entry_settle(e);
}

static void
entry_left(struct warm_entry *e, bool late)
{
	if (e->lookup != NULL && list_empty(&e->waiters))
		lookup_leave(e->lookup, late);
}

void
entry_unask(struct warm_wait *w)
{
	struct warm_entry *e = w->entry;

	if (e == NULL)
		return;
	wait_leave(e->warm, w);
	entry_left(e, false);
}

/* ---------------------------------------------------------------- asking */

static void
recall(const struct warm_entry *e, struct warm_found *found)
{
	*found = e->found;
	found->hot = true;
	found->queue_ns = found->stat_ns = found->read_ns = 0;
}

static struct warm_entry *
entry_find(struct warm *wm, const struct warm_key *key)
{
	struct warm_entry *e = g_hash_table_lookup(wm->entries, key);

	if (e == NULL || e->lookup != NULL || e->held || is_fresh(e))
		return (e);
	kept_free(e);
	return (NULL);
}

static bool
entry_load(struct warm_entry *e, struct warm_wait *w)
{
	bool answered;

	e->held = true;
	list_add_tail(&e->warm->loading, &e->link);
	lookup_begin(e);
	e->held = false;
	answered = e->lookup == NULL;
	if (answered) {
		w->found = e->found;
		entry_settle(e);
	} else {
		wait_add(e, w);
	}
	return (answered);
}

/* Else all requests for a file are equal. */
static bool
reads_bytes(const struct warm_conf *conf)
{
	return ((conf->how == WARM_READ && conf->before != 0) || (conf->how != WARM_STAT && conf->behind != 0));
}

bool
entry_ask(struct warm *wm, const char *path, bool leaf, struct warm_wait *w)
{
	struct warm_key key = { .path = path, .leaf = leaf };
	struct warm_entry *e;

	if (reads_bytes(wm->conf))
		key.want = w->want;
	e = entry_find(wm, &key);
	if (e == NULL)
		return (entry_load(entry_new(wm, &key, w->client), w));
	if (e->lookup != NULL) {
		STATS_COUNT(wm->stats, joined);
		wait_add(e, w);
		return (false);
	}
	STATS_COUNT(wm->stats, remembered);
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
	struct warm_entry *e = w->entry;

	STATS_COUNT(wm->stats, late);
	note_slow(e, lookup_stage(e->lookup), -ETIMEDOUT);
	wait_leave(wm, w);
	entry_left(e, true);
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
		wait_late(wm, w);	/* who may ask again at once: it is still our turn to set the timer */
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

/* ---------------------------------------------------------------- for others */

bool
warm_file(struct warm *wm, const char *path, struct warm_wait *w)
{
	w->entry = NULL;
	if (entry_ask(wm, path, false, w))
		return (true);
	w->since_ns = io_now(wm->io);
	list_add_tail(&wm->waiting, &w->arrived);
	wm->stats->waiting++;
	timer_set(wm);
	return (false);
}

void
warm_cancel(struct warm_wait *w)
{
	entry_unask(w);
}

int
warm_new(const struct warm_conf *conf, struct io *io, struct stats *stats, struct warm **out, const char **bad)
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
	wm->stats = stats;
	wm->entries = g_hash_table_new(key_hash, key_equal);
	list_init(&wm->kept);
	list_init(&wm->loading);
	list_init(&wm->waiting);
	behind_init(&wm->behind, io, stats);
	*out = wm;
	return (0);
}

static void
cancel_all(struct warm *wm)
{
	struct list *l, *tmp;

	list_foreach_safe(l, tmp, &wm->loading)
		lookup_cancel(list_entry(l, struct warm_entry, link)->lookup);
	behind_cancel(&wm->behind);
	if (wm->timing)
		op_cancel(wm->io, &wm->timer);
}

void
warm_free(struct warm **wmp)
{
	struct warm *wm = *wmp;

	if (wm == NULL)
		return;
	must(list_empty(&wm->waiting));
	while (!list_empty(&wm->loading) || behind_busy(&wm->behind) || wm->timing) {
		cancel_all(wm);
		io_run(wm->io);
	}
	while (!list_empty(&wm->kept))
		kept_free(list_entry(wm->kept.next, struct warm_entry, link));
	g_hash_table_destroy(wm->entries);
	roots_close(&wm->roots);
	g_free(wm);
	*wmp = NULL;
}
