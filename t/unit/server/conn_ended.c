/* t/unit/server/conn_ended.c -- clients that send no more while an application works for them: they
 * are served, and make room first. */
#include "t/unit/server/simapp.h"
#include "server/conn/accept.h"

#define ABORTS  APP "$HTTP[\"url\"] =~ \"^/app\" { proxy-core.abort-on-close = \"enable\" }\n"
#define STREAMS "server.stream-request-body = 1\n" APP

/* The watch of the client finds the end of its bytes. */
static void
ends(struct io_sock *s)
{
	g_assert_true(sim_find(io, SIM_HANGUP, s)->or_end);
	finish(SIM_HANGUP, s, 1);
}

UP_TEST("/conn/ended/answer", APP)
{
	struct io_sock *s = client(), *b = asked(s, GET("/app"));

	ends(s);
	g_assert_false(is_closed(0));
	g_assert_false(sim_find(io, SIM_HANGUP, s)->or_end); /* now only a reset counts */
	g_assert_cmpuint(w->base.counts.conn->client_ended, ==, 1);
	app_ends(b, "\n\nwhole");
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "whole"));
	leave(s, 0);
	g_assert_true(is_closed(0));
	g_assert_cmpuint(w->base.counts.conn->client_gone, ==, 0);
}

UP_TEST("/conn/ended/reset", APP)
{
	struct io_sock *s = client(), *b = asked(s, GET("/app"));

	ends(s);
	hangs_up(s);
	g_assert_true(is_closed(0));
	g_assert_null(sim_find(io, IO_RECV, b));
	g_assert_cmpuint(w->base.counts.conn->client_gone, ==, 1);
}

/* The first send finds it. */
UP_TEST("/conn/ended/failed-send", APP)
{
	struct io_sock *s = client(), *b = asked(s, GET("/app"));

	ends(s);
	app_says(b, "\n\npart");
	sim_finish(io, sim_find(io, IO_SEND, s), -EPIPE);
	sim_run(io);
	g_assert_true(is_closed(0));
	g_assert_null(sim_find(io, IO_RECV, b));
	g_assert_cmpuint(w->base.counts.conn->client_gone, ==, 1);
}

UP_TEST("/conn/ended/pipelined", APP)
{
	struct io_sock *s = client(), *b = asked(s, GET("/app") GET("/a") GET("/app"));

	ends(s);
	app_ends(b, "\n\none");
	take(s, SIZE_MAX);
	disk();
	take(s, SIZE_MAX);
	b = app();
	take(b, SIZE_MAX);
	app_ends(b, "\n\nthree");
	takes(s, "200 200 200");
}

/* The end may come while the body waits for room, or after a body that was collected. */
static void
test_bodies(bool streams)
{
	static char much[200000];
	struct io_sock *s, *b;
	size_t left = sizeof(much);

	up(streams ? STREAMS : APP);
	s = client();
	say(s, POST("200000"));
	for (; left > 0 && !streams; left -= 50000) {
		say_n(s, much, 50000);
		disk();
	}
	b = app();
	take(b, SIZE_MAX);
	for (; left > 65536; left -= 65536) {
		say_n(s, much, 65536);
		if (sim_find(io, SIM_HANGUP, s) != NULL)
			ends(s);
		settle(b);
	}
	if (left > 0)
		say_n(s, much, left);
	while (disk() + take(b, SIZE_MAX) + (take_temp(b) != 0) != 0)
		;
	if (sim_find(io, SIM_HANGUP, s)->or_end)
		ends(s);
	app_ends(b, "\n\nwhole");
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "whole"));
	down();
}

TEST("/conn/ended/bodies")
{
	test_bodies(false);
	test_bodies(true);
}

/* An upload that ends within its body is none. */
UP_TEST("/conn/ended/half-a-body", APP)
{
	struct io_sock *s = client();

	say(s, POST("10") "five.");
	leave(s, 0);
	g_assert_true(is_closed(0));
}

UP_TEST("/conn/ended/setting", ABORTS)
{
	struct io_sock *s = client(), *b = asked(s, GET("/app"));

	ends(s);
	g_assert_true(is_closed(0));
	g_assert_null(sim_find(io, IO_RECV, b));
	g_assert_cmpuint(w->base.counts.conn->client_gone, ==, 1);
}

/* Both sockets of the pool work for clients that may be gone, and the third request is of the same
 * address. */
UP_TEST("/conn/ended/gives-way", APP)
{
	struct io_sock *s[3], *b;
	unsigned i;

	for (i = 0; i < 2; i++) {
		s[i] = client();
		b = asked(s[i], GET("/app"));
	}
	s[2] = client();
	say(s[2], GET("/app"));
	for (i = 0; i < 8 * 20; i++)
		/* unless its client sends no more, no request of this address gives way */
		sim_advance_ms(io, 50);
	g_assert_cmpuint(w->base.counts.proxy->proxy_gave_way, ==, 0);
	ends(s[1]);
	for (i = 0; i < 20; i++)
		sim_advance_ms(io, 50);
	takes(s[1], "503");
	g_assert_cmpuint(w->base.counts.proxy->proxy_gave_way, ==, 1);
	g_assert_false(is_closed(0));
	b = app();
	take(b, SIZE_MAX);
	app_ends(b, "\n\nwhole");
	take(s[2], SIZE_MAX);
	g_assert_true(heard_has(s[2], "whole"));
	g_assert_nonnull(strstr(logged->str, "holder=\"its client sends no more"));
}

/* Every place is taken: it goes after idle connections, before new and busy ones. */
TEST_IN("/conn/ended/makes-room", up_with(APP, 0, 3), down())
{
	const struct client_addr other = { 7, 7 };
	struct io_sock *s;
	unsigned i;

	for (i = 0; i < 2; i++) {
		s = client();
		say(s, GET("/app"));
		take(app(), SIZE_MAX);
	}
	ends(s);
	s = client(); /* silent */
	g_assert_true(accept_make_room(w, other));
	sim_run(io);
	g_assert_false(is_closed(0));
	g_assert_true(is_closed(1));
	g_assert_false(is_closed(2));
	g_assert_cmpuint(w->base.counts.conn->room_ended, ==, 1);
}
