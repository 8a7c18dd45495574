/* lookup.c -- what an entry needs: a file and its siblings, or the index file of a directory.
 *
 *   /d/x.css   [ /d/x.css | /d/x.css.gz | /d/x.css.br ]  all at a time
 *   /d/        [ /d/ ] is a directory --> entry of /d/index.html, and if that is none, of the next
 */

#include "fcgi-stat-accel/warm/impl.h"

#include <errno.h>
#include <string.h>

struct lookup {
	struct warm_entry *entry;
	guint		   left;	/* files on their way */
	guint		   index;	/* number of the index file that is asked for */
	struct warm_wait   inner;	/* for its entry */
	bool		   asking;
	guint		   n;
	struct warm_file   file[];	/* the file itself, then its siblings */
};

static void
lookup_end(struct lookup *l)
{
	struct warm_entry *e = l->entry;

	for (guint i = 1; i < l->n; i++)
		g_free((char *)(uintptr_t)l->file[i].path);
	g_free(l);
	e->lookup = NULL;
	entry_answer(e);
}

/* ---------------------------------------------------------------- directories */

static bool
is_no_index(int err)
{
	return (err == -ENOENT || err == -ENOTDIR || err == -EISDIR || err == -EPERM);
}

/* True: what was found is the answer. */
static bool
index_seen(struct lookup *l)
{
	struct warm_found *found = &l->entry->found, dir = *found;

	if (is_no_index(l->inner.found.err))
		return (false);
	*found = l->inner.found;
	found->index = l->entry->warm->conf->index[l->index];
	found->hot &= dir.hot;
	found->queue_ns += dir.queue_ns;
	found->stat_ns += dir.stat_ns;
	return (true);
}

static void index_done(struct warm_wait *);

/* True: the entry of the index file has its answer, else it is waited for. */
static bool
index_ask(struct lookup *l)
{
	struct warm_entry *e = l->entry;
	const char *slash = g_str_has_suffix(e->key.path, "/") ? "" : "/";
	char *path = g_strconcat(e->key.path, slash, e->warm->conf->index[l->index], NULL);

	l->inner = (struct warm_wait){ .done = index_done, .client = e->client, .want = e->key.want };
	l->asking = !entry_ask(e->warm, path, true, &l->inner);
	g_free(path);
	return (!l->asking);
}

static void
index_next(struct lookup *l)
{
	for (; l->entry->warm->conf->index[l->index] != NULL; l->index++) {
		if (!index_ask(l))
			return;
		if (index_seen(l))
			break;
	}
	lookup_end(l);
}

static void
index_done(struct warm_wait *w)
{
	struct lookup *l = container_of(w, struct lookup, inner);

	l->asking = false;
	if (index_seen(l)) {
		lookup_end(l);
		return;
	}
	l->index++;
	index_next(l);
}

/* ---------------------------------------------------------------- files */

static void
count_found(struct lookup *l)
{
	const struct warm_file *f = &l->file[0];
	struct stats *s = l->entry->warm->stats;

	if (f->hot) {
		STATS_COUNT(s, hot);
		return;
	}
	STATS_COUNT(s, cold);
	histogram_add(&s->queue, f->queue_ns);
	histogram_add(&s->stat, f->stat_ns);
	if (f->read_ns != 0)
		histogram_add(&s->read, f->read_ns);
}

static bool
is_settled(const struct warm_file *f)
{
	struct io_version v = io_version_of(&f->stx);

	return (io_version_settled(&v, f->asked_wall, 0, f->own_clock));
}

static void
files_over(struct lookup *l)
{
	struct warm_entry *e = l->entry;
	const struct warm_file *f = &l->file[0];

	e->found = (struct warm_found){ .err = f->err, .hot = true, .stx = f->stx, .settled = f->err == 0 && is_settled(f),
	    .queue_ns = f->queue_ns, .stat_ns = f->stat_ns, .read_ns = f->read_ns };
	for (guint i = 0; i < l->n; i++) {
		e->found.hot &= l->file[i].hot;
		e->cut |= l->file[i].cut;
	}
	e->cut |= f->err == -EISDIR && !e->held && list_empty(&e->waiters);	/* which file is meant, nobody wants to know now */
	if (f->err == -EISDIR && !e->cut && !e->key.leaf && e->warm->conf->index != NULL) {
		index_next(l);
		return;
	}
	if (!e->cut)
		count_found(l);
	lookup_end(l);
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

	return (s != NULL && !g_str_has_suffix(e->key.path, "/") ? g_strv_length((char **)(uintptr_t)s) : 0);
}

static bool
begin_file(struct lookup *l, guint i)
{
	const struct warm_entry *e = l->entry;

	l->file[i] = (struct warm_file){
		.warm = e->warm, .owner = l, .want = &e->key.want, .client = e->client, .done = file_done,
		.path = i == 0 ? e->key.path : g_strconcat(e->key.path, e->warm->conf->siblings[i - 1], NULL),
	};
	return (file_begin(&l->file[i]));
}

void
lookup_begin(struct warm_entry *e)
{
	guint n = 1 + count_siblings(e);
	struct lookup *l = g_malloc0(sizeof(*l) + n * sizeof(l->file[0]));

	l->entry = e;
	l->n = n;
	e->lookup = l;
	for (guint i = 0; i < n; i++)
		l->left += !begin_file(l, i);
	if (l->left == 0)
		files_over(l);
}

/* ---------------------------------------------------------------- giving up */

static void
stop_asking(struct lookup *l)
{
	entry_unask(&l->inner);
	l->entry->cut = true;
	lookup_end(l);
}

void
lookup_leave(struct lookup *l, bool late)
{
	for (guint i = 0; i < l->n && !l->asking; i++)
		file_leave(&l->file[i], late);
	if (l->asking)
		stop_asking(l);
}

void
lookup_cancel(struct lookup *l)
{
	for (guint i = 0; i < l->n && !l->asking; i++)
		file_cancel(&l->file[i]);
	if (l->asking)
		stop_asking(l);
}

const char *
lookup_stage(const struct lookup *l)
{
	const char *stage = NULL;

	if (l->asking)
		return (lookup_stage(((struct warm_entry *)l->inner.entry)->lookup));
	for (guint i = 0; i < l->n && stage == NULL; i++)
		stage = file_stage(&l->file[i]);
	return (stage);
}
