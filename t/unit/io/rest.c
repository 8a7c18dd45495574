/* t/unit/io/rest.c -- when a loop gives memory back, and that it has no timer when it is quiet. */
#include "io/rest.h"
#include "io/loop/sim.h"
#include "t/unit/io/io_test.h"

static struct rest rest;
static unsigned drops;

static void
dropped(struct rest *r)
{
	g_assert_true(r == &rest);
	drops++;
}

static void
up(void)
{
	io = sim_new();
	drops = 0;
	rest_init(&rest, io, dropped);
}

static void
down(void)
{
	while (rest_stop(&rest))
		sim_run(io);
	g_assert_false(io_busy(io));
	io_free(io);
}

static void
second(void)
{
	sim_advance_ms(io, 1001);
	if (sim_count(io, IO_WORK) != 0) {
		sim_finish(io, sim_find(io, IO_WORK, NULL), 0);
		sim_run(io);
	}
}

UP_TEST("/rest/quiet")
{
	rest_note(&rest, 99, 0);
	g_assert_false(io_busy(io)); /* a few requests cost no timer */
	rest_note(&rest, 5000, 0);
	g_assert_true(io_busy(io));
	second();
	g_assert_cmpuint(drops, ==, 0); /* the first second was busy */
	second();
	g_assert_cmpuint(drops, ==, 1);
	g_assert_false(io_busy(io));
	rest_note(&rest, 5000, 0);
	g_assert_false(io_busy(io));
}

UP_TEST("/rest/busy-and-fallen")
{
	uint64_t done = 0;
	unsigned i;

	rest_note(&rest, done += 1000, 100 << 20);
	for (i = 0; i < 5; i++) {
		second();
		rest_note(&rest, done += 1000, 80 << 20);
	}
	g_assert_cmpuint(drops, ==, 0); /* a fifth less is not worth it */
	rest_note(&rest, done += 1000, 10 << 20);
	second();
	g_assert_cmpuint(drops, ==, 1);
	for (i = 0; i < 5; i++) {
		rest_note(&rest, done += 1000, 10 << 20);
		second();
	}
	g_assert_cmpuint(drops, ==, 1); /* once for each fall */
}

UP_TEST("/rest/fall-without-requests")
{
	rest_note(&rest, 0, 100 << 20);
	g_assert_false(io_busy(io));
	rest_note(&rest, 0, 0);
	second();
	g_assert_cmpuint(drops, ==, 1);
	g_assert_false(io_busy(io));
}

/* Names are forgotten a while after the last request, and after the trim that followed it. */
UP_TEST("/rest/small-fall")
{
	rest_note(&rest, 5000, 5 << 20);
	second();
	second();
	g_assert_cmpuint(drops, ==, 1);
	rest_note(&rest, 5000, (5 << 20) - (400 << 10));
	g_assert_false(io_busy(io));
	rest_note(&rest, 5000, 1 << 20);
	second();
	g_assert_cmpuint(drops, ==, 2);
	g_assert_false(io_busy(io));
}

UP_TEST("/rest/stopped-at-work")
{
	rest_note(&rest, 0, 100 << 20);
	rest_note(&rest, 0, 0);
	sim_advance_ms(io, 1001);
	g_assert_cmpuint(sim_count(io, IO_WORK), ==, 1);
}

/* The real thing: a thread trims. */
LOOP_TEST("/rest/trims", NULL, 1, 64)
{
	rest_init(&rest, io, NULL);
	io_give_back(io, io_window_get(io));
	rest_note(&rest, 0, 100 << 20);
	rest_note(&rest, 0, 0);
	while (rest.trims == 0 || io_busy(io))
		io_run(io);
	g_assert_cmpuint(rest.trims, ==, 1);
	g_assert_false(rest_stop(&rest));
}
