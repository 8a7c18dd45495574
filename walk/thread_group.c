#include "walk/thread_group.h"

#include <glib.h>

#include "base/clock.h"
#include "walk/walker.h"

#define STUCK_FACTOR 4
#define STACK        (256 * 1024)

struct member {
	struct walker walker;
	pthread_t thread;
	bool started;   /* and not joined yet */
	unsigned ended; /* atomic; the thread sets it last */
};

struct thread_group {
	struct walk_shared shared;
	unsigned wanted, max;
	struct member *members;
};

static void *
member_main(void *arg)
{
	struct member *m = arg;

	walker_run(&m->walker);
	__atomic_store_n(&m->ended, 1, __ATOMIC_RELEASE);
	return (NULL);
}

static void
join(struct member *m)
{
	pthread_join(m->thread, NULL);
	m->started = false;
}

static int
start(struct member *m)
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	m->ended = 0;
	err = pthread_create(&m->thread, &attr, member_main, m);
	m->started = err == 0;
	pthread_attr_destroy(&attr);
	return (-err);
}

/* Starts up to n threads; returns how many. */
static unsigned
start_some(struct thread_group *g, unsigned n, int *err)
{
	unsigned started = 0;

	for (unsigned i = 0; i < g->max && started < n; i++) {
		struct member *m = &g->members[i];

		if (m->started && __atomic_load_n(&m->ended, __ATOMIC_ACQUIRE))
			join(m);
		if (m->started)
			continue;
		if ((*err = start(m)) != 0)
			break;
		started++;
	}
	return (started);
}

/* ---------------------------------------------------------------- start and end */

static void
shared_init(struct walk_shared *s, const struct walk_conf *conf, struct walk_queue *queue,
    struct walk_state *state)
{
	s->conf = conf;
	s->filter = (struct walk_filter){ conf->include, conf->exclude, conf->shard };
	s->queue = queue;
	s->state = state;
	s->files.per_s = conf->files_per_s;
	s->bytes.per_s = conf->bytes_per_s;
	if (conf->follow)
		s->seen_inodes = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
		    (GDestroyNotify)g_bytes_unref, NULL);
	pthread_mutex_init(&s->lock, NULL);
}

int
thread_group_start(const struct walk_conf *conf, struct walk_queue *queue, struct walk_state *state,
    struct thread_group **gp)
{
	struct thread_group *g = g_new0(struct thread_group, 1);
	int err = 0;

	shared_init(&g->shared, conf, queue, state);
	g->wanted = conf->threads;
	g->max = STUCK_FACTOR * conf->threads;
	g->members = g_new0(struct member, g->max);
	for (unsigned i = 0; i < g->max; i++)
		walker_init(&g->members[i].walker, &g->shared);
	*gp = g;
	if (start_some(g, g->wanted, &err) > 0)
		return (0); /* fewer threads do the same work */
	thread_group_join(gp);
	return (err);
}

void
thread_group_join(struct thread_group **gp)
{
	struct thread_group *g = *gp;

	for (unsigned i = 0; i < g->max; i++) {
		if (g->members[i].started)
			join(&g->members[i]);
		walker_fini(&g->members[i].walker);
	}
	if (g->shared.seen_inodes != NULL)
		g_hash_table_destroy(g->shared.seen_inodes);
	pthread_mutex_destroy(&g->shared.lock);
	g_free(g->members);
	g_free(g);
	*gp = NULL;
}

void
thread_group_counters(const struct thread_group *g, struct walk_counters *sum)
{
	for (unsigned i = 0; i < g->max; i++)
		walk_counters_add(sum, &g->members[i].walker.counters);
}

/* ---------------------------------------------------------------- threads that hang */

struct thread_counts {
	unsigned alive, stuck;
	GArray *devs; /* dev_t of each stuck thread */
};

static void
count_member(struct member *m, uint64_t before, struct thread_counts *n)
{
	dev_t dev;

	if (!m->started || __atomic_load_n(&m->ended, __ATOMIC_ACQUIRE))
		return;
	n->alive++;
	if (!walker_hangs(&m->walker, before, &dev))
		return;
	n->stuck++;
	if (dev != 0)
		g_array_append_val(n->devs, dev);
}

static unsigned
times(const GArray *devs, dev_t dev)
{
	unsigned n = 0;

	for (guint i = 0; i < devs->len; i++)
		n += g_array_index(devs, dev_t, i) == dev;
	return (n);
}

/* Keeps the devices that occur at least limit times. */
static void
keep_frequent(GArray *devs, unsigned limit)
{
	guint kept = 0;

	for (guint i = 0; i < devs->len; i++) {
		dev_t dev = g_array_index(devs, dev_t, i);

		if (times(devs, dev) >= limit)
			g_array_index(devs, dev_t, kept++) = dev;
	}
	g_array_set_size(devs, kept);
}

unsigned
thread_group_tick(struct thread_group *g)
{
	struct thread_counts n = { .devs = g_array_new(FALSE, FALSE, sizeof(dev_t)) };
	uint64_t before = clock_mono_ns() - WALK_STUCK_MS * NS_PER_MS;
	unsigned busy;
	int err;

	for (unsigned i = 0; i < g->max; i++)
		count_member(&g->members[i], before, &n);
	keep_frequent(n.devs, MAX(2, g->wanted / 2));
	busy = n.alive - n.stuck;
	walk_queue_steer(g->shared.queue, (const dev_t *)n.devs->data, n.devs->len,
	    busy > g->wanted ? busy - g->wanted : 0);
	if (n.stuck > 0 && busy < g->wanted)
		start_some(g, g->wanted - busy, &err);
	g_array_free(n.devs, TRUE);
	return (n.stuck);
}
