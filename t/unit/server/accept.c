/* t/unit/server/accept.c -- accepting: a full worker, no descriptors, too many from one address,
 * too much in unfinished heads. */
#include <arpa/inet.h>
#include "server/conn/clients.h"
#include "t/unit/server/simworker.h"

static union io_addr from = { .in = { .sin_family = AF_INET } };

static void
accept_says(int fd_or_err)
{
	struct io_op *op = sim_find(io, IO_ACCEPT, NULL);

	g_assert_nonnull(op);
	*op->accept.peer = from;
	sim_finish(io, op, fd_or_err);
	sim_run(io);
}

/* A new connection from 127.0.0.HOST; returns its socket. */
static struct io_sock *
accept_from(unsigned host)
{
	struct io_op *op;
	unsigned n;

	from.in.sin_addr.s_addr = htonl(0x7f000000u | host);
	accept_says(FIRST_CLIENT + (int)clients++);
	for (n = 0; (op = sim_nth(io, n)) != NULL; n++)
		if (op->kind == IO_RECV && op->sock->fd == FIRST_CLIENT + (int)clients - 1) {
			sim_sent_clear(io, op->sock);
			return (op->sock);
		}
	return (NULL);
}

static struct io_sock *
accept_busy(void)
{
	struct io_sock *s = accept_from(1);

	g_assert_nonnull(s);
	say(s, GET("/a"));
	return (s);
}

static struct io_sock *
accept_kept(unsigned host)
{
	struct io_sock *s = accept_from(host);

	say(s, GET("/a"));
	disk();
	take(s, SIZE_MAX);
	g_assert_true(listens(s));
	return (s);
}

/* "0 1 3": the numbers of the accepted connections that are closed. */
static void
closed_are(const char *want)
{
	g_autoptr(GString) got = g_string_new(NULL);
	unsigned i;

	for (i = 0; i < clients; i++)
		if (is_closed(i))
			g_string_append_printf(got, "%s%u", got->len ? " " : "", i);
	g_assert_cmpstr(got->str, ==, want);
}

/* ---- no descriptors */

TEST("/accept/shortage")
{
	static const int errs[] = { -EMFILE, -ENFILE, -ENOBUFS, -ENOMEM, -EPERM, -EACCES, -EINVAL };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(errs); i++) {
		up_with("", 1, 1000);
		accept_busy();
		accept_says(errs[i]);
		g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 0);
		g_assert_nonnull(strstr(logged->str, "ev=accept.paused"));
		sim_advance_ms(io, 499);
		g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 0);
		sim_advance_ms(io, 1);
		g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 1);
		accept_says(errs[i]);
		stop_last();
		/* A descriptor is free again, which helps only against a lack of descriptors. */
		g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, i < 2 ? 1 : 0);
		sim_advance_ms(io, 500);
		g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 1);
		g_assert_cmpuint(w->base.counts.conn->accept_pauses, ==, 2);
		disk();
		down();
	}
}

/* A silent connection gives its descriptor, and accepting goes on without a pause. */
TEST("/accept/shortage-makes-room")
{
	static const int errs[] = { -EMFILE, -ENFILE };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(errs); i++) {
		up_with("", 1, 1000);
		accept_busy();
		accept_from(2);
		accept_from(2);
		accept_says(errs[i]);
		closed_are("1");
		g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 1);
		g_assert_cmpuint(w->base.counts.conn->accept_pauses, ==, 0);
		g_assert_cmpuint(w->base.counts.conn->room_silent, ==, 1);
		g_assert_nonnull(strstr(logged->str, "ev=connection.made-room"));
		g_assert_nonnull(strstr(logged->str, "address=127.0.0.2"));
		disk();
		down();
	}
}

/* ---- server.max-connections */

TEST_IN("/accept/limit-of-busy", up_with("", 2, 3), down())
{
	unsigned i;

	g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 2);
	for (i = 0; i < 3; i++)
		accept_busy();
	for (i = 0; i < 100; i++) {
		if (sim_count(io, IO_ACCEPT) != 0)
			/* each listener's was in flight when the third became busy */
			accept_busy();
		sim_advance_ms(io, 50);
	}
	g_assert_cmpuint(w->nconns, ==, 5); /* however long it takes */
	for (i = 0; i < 2; i++) {
		stop_last();
		g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 0);
	}
	stop_last();
	g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 2);
	disk();
}

/* Paused while all are busy: the first that becomes idle ends the pause, and makes room when
 * another comes. */
TEST_IN("/accept/idle-ends-pause", up_with("", 1, 2), down())
{
	struct io_sock *s[3];
	unsigned i;

	for (i = 0; i < 3; i++)
		s[i] = accept_busy();
	g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 0);
	g_assert_cmpuint(w->base.counts.conn->accept_pauses, ==, 1);
	disk();
	take(s[0], SIZE_MAX);
	take(s[1], SIZE_MAX);
	g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 1);
	closed_are("");
	accept_from(2);
	closed_are("0 1"); /* one was above the limit */
	g_assert_cmpuint(w->base.counts.conn->room_idle, ==, 2);
}

TEST_IN("/accept/idle-goes-first", up_with("", 1, 4), down())
{
	accept_from(2); /* 0: silent */
	accept_kept(1); /* 1 */
	accept_from(2); /* 2: silent */
	accept_kept(1); /* 3 */
	accept_from(3);
	closed_are("1");
	accept_from(3);
	closed_are("1 3");
	accept_from(3); /* 2 and 3 have two each; 2 has had them for longer */
	closed_are("0 1 3");
	g_assert_cmpuint(w->base.counts.conn->room_idle, ==, 2);
	g_assert_cmpuint(w->base.counts.conn->room_silent, ==, 1);
	g_assert_cmpuint(w->nconns, ==, 4);
}

/* The next request of the oldest one has come, and the loop has not read it yet. */
TEST_IN("/accept/idle-that-wakes-stays", up_with("", 1, 2), down())
{
	sim_hang_up(accept_kept(1));
	accept_kept(2);
	accept_from(3);
	closed_are("1");
}

/* Of the address with most: those that said nothing, then those that said something; each the
 * oldest first. */
TEST_IN("/accept/most-goes-first", up_with("", 1, 6), down())
{
	struct io_sock *s;
	unsigned i;

	accept_from(1); /* 0: the oldest of all, but alone */
	s = accept_from(2);
	say(s, "GET /a HT");
	for (i = 0; i < 4; i++)
		accept_from(2);
	for (i = 0; i < 2; i++)
		accept_from(3);
	closed_are("2 3");
	s = accept_from(4);
	say(s, GET("/a"));
	disk();
	take(s, SIZE_MAX);
	heard_statuses(s, "200"); /* there was time to speak */
	closed_are("2 3 4");
}

/* All are busy: the address with more than half loses its oldest to another address, and none to
 * itself. */
TEST_IN("/accept/majority-makes-room", up_with("", 1, 20), down())
{
	unsigned i;

	for (i = 0; i < 8; i++)
		say(accept_from(3), GET("/a"));
	for (i = 0; i < 12; i++)
		say(accept_from(2), GET("/a"));
	g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 1);
	say(accept_from(3), GET("/a"));
	closed_are("8");
	say(accept_from(4), GET("/a"));
	closed_are("8 9");              /* now it has half */
	say(accept_from(5), GET("/a")); /* its accept was in flight */
	closed_are("8 9");
	g_assert_cmpuint(w->base.counts.conn->room_busy, ==, 2);
	g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 0);
	g_assert_cmpuint(w->nconns, ==, 21);
	disk();
}

/* New connections of the address with the majority wait while it may be a proxy; they are refused
 * once clients of four addresses came. */
TEST_IN("/accept/majority-is-no-proxy", up_with("", 1, 20), down())
{
	unsigned i;

	for (i = 0; i < 20; i++)
		say(accept_from(2), GET("/a"));
	say(accept_from(2), GET("/a"));
	g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 0); /* waits: one is above the limit */
	stop_last();
	for (i = 3; i < 6; i++)
		say(accept_from(i), GET("/a"));
	closed_are("0 1 2 20");
	g_assert_null(accept_from(2));
	clients--; /* closed without a connection */
	g_assert_cmpuint(w->base.counts.conn->room_refused, ==, 1);
	g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 1);
	disk();
}

/* The address with the majority may be a proxy for all clients, so only clients that do not read
 * make room: for new connections of this address, and so for the client of another address that
 * waits after them. */
TEST_IN("/accept/slow-makes-room", up_with("", 1, 20), down())
{
	unsigned i;

	for (i = 0; i < 20; i++)
		say(accept_from(2), GET("/a"));
	disk();
	say(accept_from(2), GET("/a"));
	g_assert_cmpuint(sim_count(io, IO_ACCEPT), ==, 0);
	for (i = 0; i < 9; i++) {
		closed_are("");
		sim_advance_ms(io, 500);
	}
	g_assert_cmpuint(w->base.counts.conn->room_slow, ==, 0);
	sim_advance_ms(io, 1000);
	g_assert_cmpuint(w->base.counts.conn->room_slow, ==, 1);
	closed_are("0");
	say(accept_from(2), GET("/a"));
	say(accept_from(3), GET("/a"));
	g_assert_false(is_closed(22));
	g_assert_cmpuint(w->base.counts.conn->room_refused, ==, 0);
	disk();
}

/* A connection that lingers has had its reply. */
TEST_IN("/accept/lingering-goes", up_with("", 1, 2), down())
{
	struct io_sock *s;

	accept_busy();
	s = accept_from(2);
	say(s, "NONSENSE\r\n\r\n");
	take(s, SIZE_MAX);
	accept_from(3);
	closed_are("1");
	disk();
}

/* ---- addresses */

static void
with_clients(unsigned max)
{
	char line[80];

	g_snprintf(line, sizeof(line), "server.max-connections-per-address = %u\n", max);
	up_with(line, 1, 1000);
	w->base.conf.clients = clients_new();
}

TEST("/accept/per-address")
{
	struct client_addr one = client_addr_written("127.0.0.1");
	struct clients *cs;
	struct client *more;

	with_clients(2);
	cs = w->base.conf.clients;
	accept_from(1);
	accept_from(1);
	g_assert_null(accept_from(1));
	clients--; /* closed without a connection */
	g_assert_cmpuint(w->nconns, ==, 2);
	g_assert_cmpuint(w->base.counts.conn->address_full, ==, 1);
	g_assert_cmpuint(w->base.counts.conn->accepts, ==, 2);
	g_assert_nonnull(
	    strstr(logged->str, "ev=connection.refused address=127.0.0.1 connections=2"));
	g_assert_nonnull(accept_from(2));
	g_assert_cmpint(clients_take(cs, one, 2, &more), ==, -EUSERS);
	conn_stop(conn_of_link(w->conns.next));
	sim_run(io);
	g_assert_cmpint(clients_take(cs, one, 1, &more), ==, -EUSERS);
	g_assert_nonnull(accept_from(1));
	down();
	clients_free(cs); /* asserts that all were given back */
}

TEST_IN("/accept/heads-are-bounded", up_with("", 1, 1000), down())
{
	struct io_sock *s;
	unsigned i;

	w->base.conf.max_head_bytes = 5 * 256;
	s = accept_from(1);
	say(s, "GET /a HT"); /* 0 */
	for (i = 0; i < 6; i++)
		say(accept_from(2), "GET /a HTTP/1.1\r\nX: ");
	closed_are("1 2");
	g_assert_cmpuint(w->base.counts.conn->room_heads, ==, 2);
	g_assert_cmpuint(w->eviction.bytes, ==, 5 * 256);
	asks(s, "TP/1.1\r\n" HOST "\r\n", "200");
	g_assert_cmpuint(w->eviction.bytes, ==, 4 * 256);
}

/* Memory follows the bytes that came, and a head in pieces of any size is read as one that came
 * whole. */
UP_TEST("/accept/head-grows", "")
{
	char line[64];
	struct io_sock *s = client();
	unsigned i;

	say(s, "GET /a HTTP/1.1\r\n" HOST);
	for (i = 0; i < 40; i++) {
		g_snprintf(line, sizeof(line), "X-%u: %040u\r\n", i, i);
		say(s, line);
	}
	g_assert_cmpuint(w->eviction.bytes, <=, 2 * 40 * 50);
	for (i = 0; i < 3000; i++)
		say(s, i == 0 ? "Y: " : "y");
	g_assert_cmpuint(w->eviction.bytes, <=, 16384);
	say(s, "\r\n\r");
	g_assert_cmpuint(w->nrequests, ==, 1);
	asks(s, "\n", "200");
	s = client();
	say(s, "GET /a HTTP/1.1\r\n" HOST "X: ");
	for (i = 0;
	     i < 8200 && listens(s) && sim_sent(io, s).n == 0 && sim_find(io, IO_SEND, s) == NULL;
	     i++)
		say(s, "x");
	g_assert_cmpuint(i, <, 8192);
	takes(s, "431");
}
