/* t/unit/proxy-core/own_5xx.c -- what clients got in place of a reply is counted by its cause, at
 * the backend that failed. */
#include "proxy-core/backend.h"
#include "t/unit/proxy-core/exchange_test.h"

/* The counts live as long as the process, so each test looks at what was added. */
static uint64_t before[OWN_5XX_CAUSES], replies_before, cut_before;

static const struct backend *
at(const char *name)
{
	const struct backend *b = backend_first();

	while (b != NULL && (strcmp(b->name, name) != 0 || backend_read(b, users) == 0))
		b = b->next;
	g_assert_nonnull(b);
	return (b);
}

static void
begin(void)
{
	const struct backend *b;

	set_up();
	b = at(one[0]);
	memcpy(before, b->own_5xx, sizeof(before));
	replies_before = b->replies;
	cut_before = b->cut;
}

#define OWN_TEST(path, reply_within) \
	TEST_IN(path, (conf = a_conf(one, 1), own.reply_ms = reply_within, begin()), tear_down())

/* This cause alone, n times. */
static void
counted(enum own_5xx cause, uint64_t n)
{
	const struct backend *b = at(one[0]);
	unsigned i;

	for (i = 0; i < OWN_5XX_CAUSES; i++)
		g_assert_cmpuint(b->own_5xx[i] - before[i], ==, i == cause ? n : 0);
	memcpy(before, b->own_5xx, sizeof(before));
}

TEST("/own-5xx/no socket: refused, late, paused, a full queue, no room in time")
{
	struct client many[6] = { 0 };
	size_t i;

	conf = a_conf(one, 1);
	begin();
	ask(&c, "GET");
	run_connect(-ECONNREFUSED);
	ENDED(&c, 503);
	counted(OWN_5XX_connect, 1);
	ask(&c, "GET"); /* it is paused */
	ENDED(&c, 503);
	counted(OWN_5XX_no_backend, 1);
	tear_down();

	begin();
	ask(&c, "GET");
	sim_advance_ms(io, 5100);
	ENDED(&c, 504);
	counted(OWN_5XX_connect_late, 1);
	tear_down();

	begin(); /* two sockets, three places to wait */
	for (i = 0; i < NELEM(many); i++)
		asked(&many[i], "GET");
	ENDED(&many[5], 503);
	counted(OWN_5XX_queue_full, 1);
	sim_advance_ms(io, 10100);
	ENDED(&many[4], 503);
	counted(OWN_5XX_no_socket, 3);
	for (i = 0; i < NELEM(many); i++) {
		exchange_forget(&many[i].x, false);
		client_free(&many[i]);
	}
	counted(OWN_5XX_no_socket, 0); /* nobody waits for these two any more */
	tear_down();
}

OWN_TEST("/own-5xx/a socket: hang-up, reset, malformed, late, refused", 2000)
{
	asked(&c, "GET");
	run_lost(0);
	ENDED(&c, 502);
	counted(OWN_5XX_hang_up, 1);
	asked(&c, "GET");
	run_lost(-ECONNRESET);
	ENDED(&c, 502);
	counted(OWN_5XX_hang_up, 1);
	asked(&c, "GET");
	run_recv(TEXT("no record of FastCGI"));
	ENDED(&c, 502);
	counted(OWN_5XX_bad_reply, 1);
	asked(&c, "GET");
	sim_advance_ms(io, 2100);
	ENDED(&c, 504);
	counted(OWN_5XX_reply_late, 1);
	asked(&c, "GET");
	refuse(2);
	ENDED(&c, 503);
	counted(OWN_5XX_refused, 1);
}

/* Replies of 500 from the application are not errors of the server, and neither is a reply that
 * breaks off. */
OWN_TEST("/own-5xx/replies of the application are its own", 0)
{
	const struct backend *b = at(one[0]);

	asked(&c, "GET");
	reply("\nx");
	ENDED(&c, 0);
	asked(&c, "GET");
	reply("Status: 500\n\nx");
	ENDED(&c, 0);
	g_assert_cmpuint(b->replies - replies_before, ==, 2);
	g_assert_cmpuint(b->cut - cut_before, ==, 0);
	asked(&c, "GET");
	reply_part("Content-Length: 9\n\nx");
	run_lost(-ECONNRESET);
	g_assert_cmpint(c.end, <, 0);
	g_assert_cmpuint(b->replies - replies_before, ==, 3);
	g_assert_cmpuint(b->cut - cut_before, ==, 1);
	counted(OWN_5XX_hang_up, 0);
}
