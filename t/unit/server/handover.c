/* t/unit/server/handover.c -- which worker gets a connection, and how many each may have. */
#include <limits.h>
#include <stdlib.h>
#include "base/clock.h"
#include "io/loop/sim.h"
#include "server/conn/clients.h"
#include "server/conn/handover.h"
#include "server/worker/worker.h"
#include "t/unit/test.h"

#define N 4u

static const struct listener listeners[1] = { { 400, "127.0.0.1:80" } };
static struct worker worker[N];
static struct worker *all[N];
static struct handover *h;
static struct clients *clients;

static void
up(unsigned n, const unsigned *conns)
{
	unsigned i;

	clients = clients_new();
	h = handover_new(clients);
	g_assert_nonnull(h);
	for (i = 0; i < N; i++) {
		worker[i] = (struct worker){ .base.io = sim_new(),
			.nconns = conns[i],
			.base.conf.max_conns = 1000 };
		all[i] = &worker[i];
	}
	handover_open(h, all, n, listeners, 1);
}

static void
down(void)
{
	unsigned i;

	handover_free(h);
	clients_free(clients);
	for (i = 0; i < N; i++)
		io_free(worker[i].base.io);
}

static bool
give(const struct worker *giver)
{
	struct moved m = { .fd = -1, .listener = listeners[0].name };

	return (handover_give(h, giver, &m));
}

/* The number of connections that wait for this worker. */
static unsigned
taken(unsigned i)
{
	struct moved *m;
	unsigned n;

	for (n = 0; (m = handover_take(h, &worker[i])) != NULL; n++)
		free(m);
	return (n);
}

UP_TEST("/handover/fewest", N, (const unsigned[N]){ 10, 0, 4, 7 })
{
	const struct worker old = { .nconns = 1000 };
	unsigned i;

	for (i = 0; i < 19; i++)
		g_assert_true(give(&old));
	g_assert_cmpuint(taken(0), ==, 0);
	g_assert_cmpuint(taken(1), ==, 10);
	g_assert_cmpuint(taken(2), ==, 6);
	g_assert_cmpuint(taken(3), ==, 3);
}

/* Those that are about to close do not count. */
UP_TEST("/handover/leaving", 2, (const unsigned[N]){ 10, 8 })
{
	const struct worker old = { .nconns = 1 };

	worker[0].nleaving = 3;
	g_assert_true(give(&old));
	g_assert_cmpuint(taken(0), ==, 1);
}

UP_TEST("/handover/taker-gives", N, (const unsigned[N]){ 9, 8, 8, 8 })
{
	g_assert_false(give(&worker[0])); /* nothing would be gained */
	worker[2].nconns = 7;
	g_assert_true(give(&worker[0]));
	g_assert_false(give(&worker[0]));
	g_assert_cmpuint(taken(2), ==, 1);
}

UP_TEST("/handover/full", 2, (const unsigned[N]){ 1000, 874 })
{
	const struct worker old = { .nconns = 1 };

	g_assert_false(give(&worker[0])); /* the last eighth of 1000 is not given */
	g_assert_true(give(&old));        /* its generation ends */
	worker[1].nconns = 872;
	g_assert_true(give(&worker[0]));
	g_assert_false(give(&worker[0]));
	g_assert_cmpuint(taken(1), ==, 2);
}

/* A worker that stands still takes nothing, so the giver and the others serve. */
UP_TEST("/handover/still", 3, (const unsigned[N]){ 500, 0, 400 })
{
	const struct worker old = { .nconns = 1 };
	unsigned i, n;

	for (n = 0; give(&worker[0]); n++)
		;
	g_assert_cmpuint(taken(2), ==, 32);
	g_assert_cmpuint(n, ==, 32 + 32);
	g_assert_true(give(&worker[0])); /* 2 has gone round, 1 has not */
	g_assert_cmpuint(taken(2), ==, 1);
	for (i = 0; i < 40; i++)
		g_assert_true(give(&old));
	g_assert_cmpuint(taken(1), ==, 32 + 40);
}

TEST("/handover/share")
{
	const struct worker old = { .nconns = 1 };

	up(N, (const unsigned[N]){ 400, 0, 0, 0 });
	g_assert_cmpuint(handover_share(h, &worker[0]), ==, 112 + 4);
	g_assert_cmpuint(handover_share(h, &worker[3]), ==, 112 + 4);
	g_assert_cmpuint(handover_share(h, &old), ==, 0);
	down();
	up(1, (const unsigned[N]){ 400, 0, 0, 0 });
	g_assert_cmpuint(handover_share(h, &worker[0]), ==, UINT_MAX);
	handover_close(h);
	g_assert_cmpuint(handover_share(h, &worker[0]), ==, 0);
	down();
}

#define LOOK (100 * NS_PER_MS)

UP_TEST("/handover/spread", N, (const unsigned[N]){ 100, 116, 100, 100 })
{
	g_assert_false(handover_look(h, LOOK));
	g_assert_false(worker[1].spread.asked);
	worker[1].nconns = 130;
	g_assert_false(handover_look(h, LOOK + 1));
	g_assert_true(worker[1].spread.asked);
	g_assert_false(worker[0].spread.asked);
	handover_close(h);
	g_assert_false(handover_look(h, 2 * LOOK));
}

/* Those that wait for a loop that stands still go to the others, and it gets no more. */
UP_TEST("/handover/late", N, (const unsigned[N]){ 10, 0, 10, 10 })
{
	const struct worker old = { .nconns = 1 };
	unsigned i;

	for (i = 0; i < 6; i++)
		g_assert_true(give(&old));
	g_assert_true(handover_look(h, LOOK));
	g_assert_true(handover_look(h, 2 * LOOK - 1));
	g_assert_cmpuint(worker[1].spread.coming, ==, 6); /* too early to say */
	g_assert_true(handover_look(h, 2 * LOOK));
	g_assert_cmpuint(taken(1), ==, 0);
	g_assert_cmpuint(worker[1].spread.coming, ==, 0);
	g_assert_cmpuint(handover_share(h, &worker[0]), ==, 12 * 9 / 8 + 4);
	for (i = 0; i < 3; i++)
		g_assert_true(give(&old));
	worker[0].nconns = 20;
	g_assert_true(give(&worker[0]));
	g_assert_cmpuint(taken(0) + taken(2) + taken(3), ==, 10);
	worker[1].rounds++; /* it goes on */
	g_assert_true(give(&old));
	g_assert_cmpuint(taken(1), ==, 1);
	g_assert_false(handover_look(h, 3 * LOOK));
	g_assert_false(handover_look(h, 4 * LOOK));
	g_assert_true(give(&old));
	g_assert_cmpuint(taken(1), ==, 1); /* nothing waited for it, so it was not late */
}

/* All loops stand still: the connections stay where they are. */
UP_TEST("/handover/all-late", 2, (const unsigned[N]){ 0 })
{
	const struct worker old = { .nconns = 1 };
	unsigned i;

	for (i = 0; i < 4; i++)
		g_assert_true(give(&old));
	for (i = 1; i < 4; i++)
		g_assert_true(handover_look(h, i * LOOK));
	g_assert_true(give(&old));
	g_assert_false(give(&worker[0]));
	g_assert_cmpuint(handover_share(h, &worker[0]), ==, UINT_MAX);
	g_assert_cmpuint(taken(0), ==, 3);
	g_assert_cmpuint(taken(1), ==, 2);
}

/* Workers of a retired server are freed before the handover. */
UP_TEST("/handover/forget", 2, (const unsigned[N]){ 0 })
{
	const struct worker old = { .nconns = 1 };
	struct worker *w = calloc(2, sizeof(*w));

	w[0] = worker[0];
	w[1] = worker[1];
	handover_open(h, (struct worker *const[]){ &w[0], &w[1] }, 2, listeners, 1);
	g_assert_true(give(&old));
	handover_forget(h, &old);
	g_assert_true(handover_is_open(h));
	handover_retire(h);
	handover_forget(h, &w[0]);
	handover_forget(h, &w[1]);
	g_assert_cmpuint(w[0].spread.coming + w[1].spread.coming, ==, 0);
	g_assert_true(handover_is_retired(h));
	free(w);
}

/* Connections that no worker has taken go to the takers of the next generation. */
UP_TEST("/handover/next-takers", 2, (const unsigned[N]){ 0, 0, 5, 9 })
{
	const struct worker old = { .nconns = 1 };
	unsigned i;

	for (i = 0; i < 6; i++)
		g_assert_true(give(&old));
	handover_open(h, all + 2, 2, listeners, 1);
	g_assert_cmpuint(taken(0) + taken(1), ==, 0);
	g_assert_cmpuint(taken(2), ==, 5);
	g_assert_cmpuint(taken(3), ==, 1);
}
