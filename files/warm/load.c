/* files/warm/load.c -- the files of an entry: a file and its siblings, or the index file of a
 * directory.
 *
 *   /d/x.css   [ /d/x.css | /d/x.css.gz | /d/x.css.br ]  all at the same time
 *   /d/        [ /d/ ] is a directory --> entry of /d/index.html; if it is missing, of the next
 */

#include "files/warm/impl.h"

#include <errno.h>

struct warm_load {
	struct warm_entry *entry;
	guint left; /* files on their way */
	struct range_set want;
	bool leaf;
	guint index;            /* number of the index file that is looked up */
	struct warm_wait inner; /* for its entry */
	bool asking;
	guint n;
	struct warm_file file[]; /* the file itself, then its siblings */
};

static void
load_end(struct warm_load *l)
{
	struct warm_entry *e = l->entry;

	for (guint i = 1; i < l->n; i++)
		g_free((char *)(uintptr_t)l->file[i].path);
	g_free(l);
	e->load = NULL;
	entry_answer(e);
}

/* ---------------------------------------------------------------- directories */

static bool
is_no_index(int err)
{
	return (err == -ENOENT || err == -ENOTDIR || err == -EISDIR || err == -EPERM);
}

/* True: the index file was found, or failed, and is the answer. */
static bool
index_seen(struct warm_load *l)
{
	struct warm_found *found = &l->entry->found, dir = *found;

	if (is_no_index(l->inner.found.err))
		return (false);
	*found = l->inner.found;
	found->index = l->entry->warm->conf->index[l->index];
	found->hot &= dir.hot;
	found->queue_ns += dir.queue_ns;
	found->stat_ns += dir.stat_ns;
	found->awake &= dir.awake || dir.hot;
	return (true);
}

static void index_done(struct warm_wait *);

/* True: the entry of the index file has its answer.  False: this look-up waits for it. */
static bool
index_ask(struct warm_load *l)
{
	struct warm_entry *e = l->entry;
	const char *slash = g_str_has_suffix(e->lk.path.p, "/") ? "" : "/";
	char *path = g_strconcat(e->lk.path.p, slash, e->warm->conf->index[l->index], NULL);

	l->inner =
	    (struct warm_wait){ .wait.client = e->lk.client, .done = index_done, .want = l->want };
	l->asking = !entry_ask(e->warm, path, true, &l->inner);
	g_free(path);
	return (!l->asking);
}

static void
index_next(struct warm_load *l)
{
	for (; l->entry->warm->conf->index[l->index] != NULL; l->index++) {
		if (!index_ask(l))
			return;
		if (index_seen(l))
			break;
	}
	load_end(l);
}

static void
index_done(struct warm_wait *w)
{
	struct warm_load *l = container_of(w, struct warm_load, inner);

	l->asking = false;
	if (index_seen(l)) {
		load_end(l);
		return;
	}
	l->index++;
	index_next(l);
}

/* ---------------------------------------------------------------- files */

static void
count_found(struct warm *wm, const struct warm_found *f)
{
	struct warm_stages *s = wm->stages;

	if (f->hot) {
		count(wm->counters, hot);
		return;
	}
	count(wm->counters, cold);
	pin_cold(wm);
	histogram_add(&s->queue, f->queue_ns);
	histogram_add(&s->stat, f->stat_ns);
	if (f->read_ns != 0)
		histogram_add(&s->read, f->read_ns);
}

static bool
is_settled(const struct warm_file *f)
{
	struct io_version v = io_version_of(&f->found.stx);

	return (io_version_settled(&v, f->asked_wall, 0, f->own_clock));
}

/* A cold file was pinned by the threads that read it. */
static void
file_answered(const struct warm_file *f)
{
	if (f->found.err == 0)
		pin_answered(f->warm, &f->found.stx, f->found.hot ? f->path : NULL, f->want,
		    f->client);
}

static void
files_over(struct warm_load *l)
{
	struct warm_entry *e = l->entry;
	const struct warm_file *f = &l->file[0];

	e->found = f->found;
	e->found.settled = f->found.err == 0 && is_settled(f);
	for (guint i = 0; i < l->n; i++) {
		e->found.hot &= l->file[i].found.hot;
		e->cut |= l->file[i].cut;
	}
	/* if no request waits for the index file */
	e->cut |= f->found.err == -EISDIR && !e->held && list_empty(&e->lk.waiters);
	if (f->found.err == -EISDIR && !e->cut && !l->leaf && e->warm->conf->index != NULL) {
		index_next(l);
		return;
	}
	if (!e->cut)
		count_found(e->warm, &f->found);
	for (guint i = 0; i < l->n; i++)
		file_answered(&l->file[i]);
	load_end(l);
}

static void
file_done(struct warm_file *f)
{
	if (--f->owner->left == 0)
		files_over(f->owner);
}

static guint
count_siblings(const struct warm_entry *e)
{
	const char *const *s = e->warm->conf->siblings;

	return (s != NULL && !g_str_has_suffix(e->lk.path.p, "/") && !key_is_cached(e)
		    ? g_strv_length((char **)(uintptr_t)s)
		    : 0);
}

static bool
begin_file(struct warm_load *l, guint i)
{
	const struct warm_entry *e = l->entry;

	l->file[i] = (struct warm_file){
		.warm = e->warm,
		.owner = l,
		.want = &l->want,
		.client = e->lk.client,
		.done = file_done,
		.path = i == 0 ? e->lk.path.p
			       : g_strconcat(e->lk.path.p, e->warm->conf->siblings[i - 1], NULL),
	};
	return (file_begin(&l->file[i]));
}

void
load_begin(struct warm_entry *e)
{
	guint n = 1 + count_siblings(e);
	struct warm_load *l = g_malloc0(sizeof(*l) + n * sizeof(l->file[0]));

	l->entry = e;
	l->leaf = key_read(e, &l->want);
	l->n = n;
	e->load = l;
	for (guint i = 0; i < n; i++)
		l->left += !begin_file(l, i);
	if (l->left == 0)
		files_over(l);
}

/* ---------------------------------------------------------------- giving up */

void
load_stop(struct warm_load *l, void (*stop)(struct io *, struct io_op *), bool late)
{
	for (guint i = 0; i < l->n && !l->asking; i++)
		file_stop(&l->file[i], stop, late);
	if (!l->asking)
		return;
	warm_cancel(&l->inner);
	l->entry->cut = true;
	load_end(l);
}

const char *
load_stage(const struct warm_load *l)
{
	const char *stage = NULL;

	if (l->asking)
		return (load_stage(entry_of(l->inner.wait.lookup)->load));
	for (guint i = 0; i < l->n && stage == NULL; i++)
		stage = file_stage(&l->file[i]);
	return (stage);
}
