/* t/unit/server/running.c -- running requests of several workers: one that does not answer is
 * named, one that ends answers nothing, a late answer is freed. */

#include "io/loop/sim.h"
#include "server/status/running.h"
#include "server/status/worker_counters.h"
#include "t/unit/test.h"

static struct counters_list all;
static struct worker_counters *w[3];
static struct io *io;

static void
set_up(void)
{
	size_t i;

	counters_list_init(&all);
	io = sim_new();
	for (i = 0; i < G_N_ELEMENTS(w); i++) {
		w[i] = worker_counters_take(&all);
		running_desk_open(&w[i]->desk, io);
	}
}

static void
tear_down(void)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(w); i++) {
		running_desk_close(&w[i]->desk);
		worker_counters_return(w[i]);
	}
	counters_list_free(&all);
	io_free(io);
}

/* As many rows as allowed, and 50 more; since the id of its worker and on. */
static size_t
fill(struct worker *id, struct running_row *row, size_t max)
{
	size_t i;

	for (i = 0; i < max; i++)
		row[i] = (struct running_row){ .since_ns = (uint64_t)(uintptr_t)id + 3 * i,
			.state = "x",
			.backend = "" };
	return (max + 50);
}

static void
answer(size_t i)
{
	g_assert_true(w[i]->desk.asked);
	running_answer(&w[i]->desk, (struct worker *)(uintptr_t)(i + 1), fill);
	g_assert_false(w[i]->desk.asked);
}

TEST("/running/all_answer")
{
	struct running_query *q, *other;
	struct running r;
	size_t i;

	set_up();
	q = running_ask(&all);
	other = running_ask(&all);
	for (i = 0; i < 3; i++) {
		g_assert_false(running_ready(q));
		answer(i);
	}
	g_assert_true(running_ready(q) && running_ready(other));
	running_drop(other);
	g_assert_true(running_take(q, 1000, &r));
	g_assert_cmpuint(r.n, ==, RUNNING_ROWS);
	g_assert_cmpuint(r.all, ==, 3 * (RUNNING_ROWS + 50));
	for (i = 0; i < r.n; i++)
		g_assert_cmpuint(r.row[i].since_ns, ==, i + 1); /* of all three, the oldest first */
	g_assert_cmpuint(r.silent, ==, 0);
	running_free(&r);
	tear_down();
}

TEST("/running/silent")
{
	struct running_query *q;
	struct running r;
	struct buf out;

	set_up();
	q = running_ask(&all);
	answer(0);
	running_desk_close(&w[1]->desk);
	g_assert_false(running_ready(q));
	g_assert_true(running_take(q, 1000, &r));
	g_assert_cmpuint(r.workers, ==, 3);
	g_assert_cmpuint(r.silent, ==, 1);
	g_assert_cmpuint((unsigned)__builtin_popcountll(r.silent_bits), ==, 1);
	buf_init(&out, 0);
	running_html(&out, &r);
	buf_char(&out, '\0');
	g_assert_nonnull(strstr(out.p, "did not answer:"));
	buf_free(&out);
	running_free(&r);
	answer(2); /* too late: frees the query */
	tear_down();
}
