#include "walk/queue.h"

#include <glib.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "base/must.h"

/* Names that are read ahead.  In most trees the number of files is then known early.  About 40
 * bytes each. */
#define NAMES_AHEAD (256 * 1024)
#define NAMES_FULL  (2 * NAMES_AHEAD)

struct walk_queue {
	pthread_mutex_t lock;
	pthread_cond_t more, room;
	struct list dirs, batches;
	size_t names;          /* names in the batches that are not exhausted */
	size_t jobs, sources;  /* unfinished jobs; those of them that may find more names */
	size_t open, max_open; /* open directories, atomic; about this many at most */
	unsigned surplus;
	GArray *hanging;    /* dev_t */
	unsigned any_hangs; /* length of hangs; atomic, read without the lock */
	int over_fd;
};

struct walk_queue *
walk_queue_new(size_t max_open, int over_fd)
{
	struct walk_queue *q = g_new0(struct walk_queue, 1);

	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->more, NULL);
	pthread_cond_init(&q->room, NULL);
	list_init(&q->dirs);
	list_init(&q->batches);
	q->max_open = max_open;
	q->hanging = g_array_new(FALSE, FALSE, sizeof(dev_t));
	q->over_fd = over_fd;
	return (q);
}

void
walk_queue_free(struct walk_queue **qp)
{
	struct walk_queue *q = *qp;
	struct list *l;

	must(list_empty(&q->dirs));
	while ((l = list_pop(&q->batches)) != NULL) { /* exhausted batches */
		struct walk_batch *b = list_entry(l, struct walk_batch, link);

		walk_batch_unref(&b);
	}
	g_array_free(q->hanging, TRUE);
	pthread_cond_destroy(&q->more);
	pthread_cond_destroy(&q->room);
	pthread_mutex_destroy(&q->lock);
	g_free(q);
	*qp = NULL;
}

/* ---------------------------------------------------------------- jobs */

void
walk_queue_add_dir(struct walk_queue *q, struct walk_dir *d)
{
	pthread_mutex_lock(&q->lock);
	list_add_head(&q->dirs, &d->link);
	q->jobs++;
	q->sources++;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
}

/* Many threads can work on it. */
void
walk_queue_add_batch(struct walk_queue *q, struct walk_batch *b)
{
	pthread_mutex_lock(&q->lock);
	list_add_tail(&q->batches, &b->link);
	q->names += b->n;
	q->jobs++;
	pthread_cond_broadcast(&q->more);
	pthread_mutex_unlock(&q->lock);
}

void
walk_queue_hold(struct walk_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->jobs++;
	q->sources++;
	pthread_mutex_unlock(&q->lock);
}

void
walk_queue_done(struct walk_queue *q, bool is_source)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&q->lock);
	must(q->jobs > 0);
	q->sources -= is_source;
	if (--q->jobs == 0) {
		pthread_cond_broadcast(&q->more);
		(void)!write(q->over_fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&q->lock);
}

/* ---------------------------------------------------------------- what to do next; the lock is
 * held */

static bool
hangs(const struct walk_queue *q, dev_t dev)
{
	for (guint i = 0; i < q->hanging->len; i++)
		if (g_array_index(q->hanging, dev_t, i) == dev)
			return (true);
	return (false);
}

static void
drop_exhausted(struct walk_queue *q, struct walk_batch *b)
{
	list_del(&b->link);
	q->names -= b->n;
	if (q->names <= NAMES_FULL)
		pthread_cond_broadcast(&q->room);
	walk_batch_unref(&b);
}

static struct walk_batch *
first_batch(struct walk_queue *q)
{
	struct walk_batch *b;

	list_each(b, &q->batches, link) {
		if (walk_batch_all_taken(b))
			drop_exhausted(q, b);
		else if (!hangs(q, b->dir->dev))
			return (walk_batch_ref(b));
	}
	return (NULL);
}

/* Returns a directory whose parent's device does not hang. */
static struct walk_dir *
first_dir(struct walk_queue *q)
{
	struct walk_dir *d;

	list_each(d, &q->dirs, link) {
		if (d->parent == NULL || !hangs(q, d->parent->dev)) {
			list_del(&d->link);
			return (d);
		}
	}
	return (NULL);
}

static bool
choose(struct walk_queue *q, struct walk_dir **d, struct walk_batch **b)
{
	bool read_on =
	    q->names < NAMES_AHEAD && __atomic_load_n(&q->open, __ATOMIC_RELAXED) < q->max_open;

	*d = read_on ? first_dir(q) : NULL;
	*b = *d == NULL ? first_batch(q) : NULL;
	if (*d == NULL && *b == NULL)
		*d = first_dir(q);
	return (*d != NULL || *b != NULL);
}

bool
walk_queue_take(struct walk_queue *q, struct walk_dir **d, struct walk_batch **b)
{
	bool found = false;

	pthread_mutex_lock(&q->lock);
	while (q->jobs > 0 && q->surplus == 0 && !(found = choose(q, d, b)))
		pthread_cond_wait(&q->more, &q->lock);
	if (!found && q->surplus > 0)
		q->surplus--;
	pthread_mutex_unlock(&q->lock);
	return (found);
}

struct walk_batch *
walk_queue_take_batch(struct walk_queue *q)
{
	struct walk_batch *b;

	pthread_mutex_lock(&q->lock);
	b = first_batch(q);
	pthread_mutex_unlock(&q->lock);
	return (b);
}

/* ---------------------------------------------------------------- bounds */

void
walk_queue_opened(struct walk_queue *q)
{
	__atomic_add_fetch(&q->open, 1, __ATOMIC_RELAXED);
}

void
walk_queue_unuse(struct walk_queue *q, struct walk_dir *d)
{
	if (walk_dir_unuse(d))
		__atomic_sub_fetch(&q->open, 1, __ATOMIC_RELAXED);
}

bool
walk_queue_full(struct walk_queue *q)
{
	bool full;

	pthread_mutex_lock(&q->lock);
	full = q->names > NAMES_FULL;
	pthread_mutex_unlock(&q->lock);
	return (full);
}

void
walk_queue_wait_room(struct walk_queue *q)
{
	pthread_mutex_lock(&q->lock);
	while (q->names > NAMES_FULL)
		pthread_cond_wait(&q->room, &q->lock);
	pthread_mutex_unlock(&q->lock);
}

bool
walk_queue_all_read(struct walk_queue *q)
{
	bool all;

	pthread_mutex_lock(&q->lock);
	all = q->sources == 0;
	pthread_mutex_unlock(&q->lock);
	return (all);
}

/* ---------------------------------------------------------------- devices that hang */

void
walk_queue_steer(struct walk_queue *q, const dev_t *hanging, size_t n, unsigned surplus)
{
	pthread_mutex_lock(&q->lock);
	if (surplus > 0 || q->hanging->len > 0)
		pthread_cond_broadcast(&q->more);
	g_array_set_size(q->hanging, 0);
	g_array_append_vals(q->hanging, hanging, (guint)n);
	__atomic_store_n(&q->any_hangs, (unsigned)n, __ATOMIC_RELAXED);
	q->surplus = surplus;
	pthread_mutex_unlock(&q->lock);
}

bool
walk_queue_hangs(struct walk_queue *q, dev_t dev)
{
	bool it_does;

	if (__atomic_load_n(&q->any_hangs, __ATOMIC_RELAXED) == 0)
		return (false);
	pthread_mutex_lock(&q->lock);
	it_does = hangs(q, dev);
	pthread_mutex_unlock(&q->lock);
	return (it_does);
}
