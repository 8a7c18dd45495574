/* t/unit/server/conn_proxy_slow.c -- proxied clients that leave or read slowly, and stops in each
 * state. */
#include "t/unit/server/simapp.h"

enum moment { CONNECTING, ASKING, WAITING, BODY, STREAMING, PLACES };

static struct io_sock *
client_at(enum moment place, struct io_sock **b)
{
	struct io_sock *s = client();

	say(s, place == BODY ? POST("100000") "abc" : GET("/app"));
	*b = NULL;
	if (place == CONNECTING || place == BODY)
		return (s);
	*b = app();
	if (place == ASKING)
		return (s);
	take(*b, SIZE_MAX);
	if (place == STREAMING)
		app_says(*b, "A: b\r\n\r\nhello");
	return (s);
}

UP_TEST("/proxy/client-leaves", APP)
{
	struct io_sock *s, *b;
	int fd;

	s = client_at(STREAMING, &b);
	fd = b->fd;
	sim_finish(io, sim_find(io, IO_SEND, s), -EPIPE);
	sim_run(io);
	g_assert_true(is_closed(0));
	g_assert_cmpuint(sim_closed(io, fd), ==, 1); /* its late bytes have no reader */
	s = client_at(BODY, &b);
	leave(s, 0);
	g_assert_true(is_closed(1));
	s = client_at(BODY, &b);
	sim_advance_ms(io, 60000); /* says nothing for a minute */
	takes(s, "408");
	sim_advance_ms(io, 4000);
	g_assert_true(is_closed(2));
	g_assert_null(sim_find(io, IO_CONNECT, NULL)); /* the application has not heard of them */
}

TEST("/proxy/stop-in-every-state")
{
	struct io_sock *b;
	int place;

	for (place = 0; place < PLACES; place++) {
		up(APP);
		client_at((enum moment)place, &b);
		stop_last();
		g_assert_true(is_closed(0));
		down();
		up(APP);
		client_at((enum moment)place, &b);
		down();
	}
}

/* The application sends its whole reply, and its socket is free before the client has read
 * anything. */
UP_TEST("/proxy/slow-client/kept", APP)
{
	struct io_sock *s = client(), *b = asked(s, GET("/app"));
	size_t n = 0;
	int i;

	app_says(b, "Content-Length: 2000000\r\n\r\n");
	for (i = 0; i < 20; i++) {
		disk();
		sim_advance_ms(io, 2);
		g_assert_true(listens(b));
		app_sends(b, 100000);
	}
	disk();
	sim_advance_ms(io, 2);
	put_end(&said, 0);
	app_flush(b);
	say(client(), GET("/app"));
	/* the same socket gets the next request */
	g_assert_nonnull(sim_find(io, IO_SEND, b));
	do
		n += take_temp(s);
	while (take(s, SIZE_MAX) + disk() != 0 || sim_find(io, IO_SEND_FILE, s) != NULL);
	n += sim_sent(io, s).n;
	g_assert_cmpuint(n, >, 2000000);
	g_assert_cmpuint(n, <, 2000400);
	g_assert_cmpuint(sim_closed(io, FIRST_TEMP), ==, 1);
	sim_sent_clear(io, s);
	asks(s, GET("/none"), "404");
}

/* Beyond proxy-core.max-reply-spool the application waits for the client. */
UP_TEST("/proxy/slow-client/pauses", "proxy-core.max-reply-spool = 0\n" APP)
{
	struct io_sock *s = client(), *b = asked(s, GET("/app"));
	int i;

	app_says(b, "Content-Length: 2000000\r\n\r\n");
	for (i = 0; i < 20 && listens(b); i++)
		app_sends(b, 100000);
	g_assert_cmpint(i, <, 6); /* the client takes nothing, so nothing is received */
	for (; i < 20; i++) {
		take(s, SIZE_MAX);
		sim_advance_ms(io, 2);
		take(s, SIZE_MAX);
		g_assert_true(listens(b));
		app_sends(b, 100000);
	}
	take(s, SIZE_MAX);
	sim_advance_ms(io, 2);
	put_end(&said, 0);
	app_flush(b);
	take(s, SIZE_MAX);
	g_assert_cmpuint(sim_sent(io, s).n, >, 2000000);
	g_assert_cmpuint(sim_sent(io, s).n, <, 2000400);
	g_assert_cmpuint(temps, ==, 0);
}

/* A chunked reply that is cut anywhere between what is sent, kept in memory and written. */
UP_TEST("/proxy/slow-client/chunked", APP)
{
	struct io_sock *s = client(), *b = asked(s, GET("/app"));
	struct text got;
	int i;

	app_says(b, "A: b\r\n\r\n");
	for (i = 0; i < 30; i++) {
		disk();
		sim_advance_ms(io, 2);
		app_sends(b, 10007);
	}
	disk();
	sim_advance_ms(io, 2);
	put_end(&said, 0);
	app_flush(b);
	while (take(s, SIZE_MAX) + take_temp(s) + disk() != 0)
		;
	got = sim_sent(io, s);
	g_assert_cmpmem(got.p + got.n - 5, 5, "0\r\n\r\n", 5);
}

/* The client leaves while a piece of its reply is being written. */
TEST("/proxy/slow-client/stopped")
{
	static const int at[] = { SIM_TEMP, IO_WRITE };
	struct io_sock *s, *b;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(at); i++) {
		up(APP);
		s = client();
		b = asked(s, GET("/app"));
		app_says(b, "A: b\r\n\r\n");
		while (sim_find(io, at[i], NULL) == NULL)
			if (listens(b))
				app_sends(b, 60000);
			else
				disk();
		stop_last();
		g_assert_true(is_closed(0));
		down();
	}
}
