#include "accel-warm/crew.h"

#include <errno.h>
#include <glib.h>

#include "base/clock.h"
#include "accel-warm/met.h"
#include "accel-warm/walker.h"

#define CREW_TIMES 4
#define STACK	   (256 * 1024)

struct member {
	struct walker walker;
	pthread_t     thread;
	bool	      started;		/* and not joined */
	unsigned      ended;		/* atomic: its own last words */
};

struct walk_crew {
	struct walk_shared shared;
	unsigned       wanted, places;
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

/* Starts up to n in free places; how many were. */
static unsigned
start_some(struct walk_crew *c, unsigned n, int *err)
{
	unsigned started = 0;

	for (unsigned i = 0; i < c->places && started < n; i++) {
		struct member *m = &c->members[i];

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
shared_init(struct walk_shared *s, const struct walk_conf *conf, struct walk_queue *queue, struct walk_state *state)
{
	s->conf = conf;
	s->filter = (struct walk_filter){ conf->include, conf->exclude };
	s->queue = queue;
	s->state = state;
	s->files.per_s = conf->files_per_s;
	s->bytes.per_s = conf->bytes_per_s;
	s->met = conf->follow ? walk_met_new() : NULL;
	pthread_mutex_init(&s->lock, NULL);
}

int
walk_crew_start(const struct walk_conf *conf, struct walk_queue *queue, struct walk_state *state, struct walk_crew **cp)
{
	struct walk_crew *c = g_new0(struct walk_crew, 1);
	int err = 0;

	shared_init(&c->shared, conf, queue, state);
	c->wanted = conf->threads;
	c->places = CREW_TIMES * conf->threads;
	c->members = g_new0(struct member, c->places);
	for (unsigned i = 0; i < c->places; i++)
		walker_init(&c->members[i].walker, &c->shared);
	*cp = c;
	if (start_some(c, c->wanted, &err) > 0)
		return (0);		/* fewer than were wanted do it as well */
	walk_crew_join(cp);
	return (err);
}

void
walk_crew_join(struct walk_crew **cp)
{
	struct walk_crew *c = *cp;

	for (unsigned i = 0; i < c->places; i++) {
		if (c->members[i].started)
			join(&c->members[i]);
		walker_fini(&c->members[i].walker);
	}
	if (c->shared.met != NULL)
		g_hash_table_destroy(c->shared.met);
	pthread_mutex_destroy(&c->shared.lock);
	g_free(c->members);
	g_free(c);
	*cp = NULL;
}

void
walk_crew_tally(const struct walk_crew *c, struct walk_tally *sum)
{
	for (unsigned i = 0; i < c->places; i++)
		walk_tally_add(sum, &c->members[i].walker.tally);
}

/* ---------------------------------------------------------------- who hangs */

struct census {
	unsigned alive, stuck;
	GArray	*devs;			/* dev_t of each that is stuck */
};

static void
count_member(struct member *m, uint64_t before, struct census *n)
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

/* Keeps each that stands there often enough, once. */
static void
keep_frequent(GArray *devs, unsigned limit)
{
	guint kept = 0;

	for (guint i = 0; i < devs->len; i++) {
		dev_t dev = g_array_index(devs, dev_t, i);

		if (times(devs, dev) >= limit) {
			bool there = false;

			for (guint k = 0; k < kept; k++)
				there |= g_array_index(devs, dev_t, k) == dev;
			if (!there)
				g_array_index(devs, dev_t, kept++) = dev;
		}
	}
	g_array_set_size(devs, kept);
}

unsigned
walk_crew_tick(struct walk_crew *c)
{
	struct census n = { .devs = g_array_new(FALSE, FALSE, sizeof(dev_t)) };
	uint64_t before = clock_mono_ns() - WALK_STUCK_MS * NS_PER_MS;
	unsigned busy;
	int err;

	for (unsigned i = 0; i < c->places; i++)
		count_member(&c->members[i], before, &n);
	keep_frequent(n.devs, MAX(2, c->wanted / 2));
	busy = n.alive - n.stuck;
	walk_queue_steer(c->shared.queue, (const dev_t *)n.devs->data, n.devs->len, busy > c->wanted ? busy - c->wanted : 0);
	if (n.stuck > 0 && busy < c->wanted)
		start_some(c, c->wanted - busy, &err);
	g_array_free(n.devs, TRUE);
	return (n.stuck);
}
