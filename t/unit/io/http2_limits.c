/* t/unit/io/http2_limits.c -- floods of frames that cost the server more than the client: each ends
 * its connection, and is counted.
 *
 * The frames are made by hand, because a session of nghttp2 sends no such thing. */
#include "t/unit/io/http2_test.h"

#define ONCE 10 /* rounds that no limit sees */

static void
frame(unsigned type, unsigned flags, unsigned id, const char *p, size_t n)
{
	const char head[9] = { (char)(n >> 16), (char)(n >> 8), (char)n, (char)type, (char)flags,
		(char)(id >> 24), (char)(id >> 16), (char)(id >> 8), (char)id };

	g_string_append_len(raw, head, sizeof(head));
	g_string_append_len(raw, p, (gssize)n);
}

/* GET http://h/ with an index of the static table for each field but the last. */
static void
request(unsigned id, unsigned flags)
{
	frame(NGHTTP2_HEADERS, flags, id, "\x82\x84\x86\x01\x01h", 6);
}

#define WHOLE  (NGHTTP2_FLAG_END_STREAM | NGHTTP2_FLAG_END_HEADERS)
#define OPEN   NGHTTP2_FLAG_END_HEADERS
#define CANCEL "\0\0\0\x08"

static unsigned next_id;

static void
raw_up_when(bool early)
{
	up_with(early);
	now.by_hand = true;
	next_id = 1;
}

static void
raw_up(void)
{
	raw_up_when(false);
}

/* ---- the floods: each call is one round */

static void
reset_one(void)
{
	request(next_id, WHOLE);
	frame(NGHTTP2_RST_STREAM, 0, next_id, CANCEL, 4);
	next_id += 2;
}

/* What a stream too many is answered with must not end it before the answer is sent. */
static void
open_one(void)
{
	request(next_id, OPEN);
	next_id += 2;
}

static void
ping(void)
{
	frame(NGHTTP2_PING, 0, 0, "12345678", 8);
}

static void
settings(void)
{
	frame(NGHTTP2_SETTINGS, 0, 0, "", 0);
}

static void
empty_data(void)
{
	frame(NGHTTP2_DATA, 0, 1, "", 0);
}

static void
padding(void)
{
	frame(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, "\x03\0\0\0", 4);
}

static void
small_window(void)
{
	frame(NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\xff", 4); /* HTTP2_WINDOW_SMALL - 1 */
}

static void
window(void)
{
	frame(NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\0\x01\0", 4);
}

static void
priority(void)
{
	frame(NGHTTP2_PRIORITY, 0, 99, "\0\0\0\0\x10", 5);
}

static void
unknown(void)
{
	frame(0x55, 0, 0, "any", 3);
}

static void
pong(void)
{
	frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "12345678", 8);
}

static void
priority_update(void)
{
	frame(NGHTTP2_PRIORITY_UPDATE, 0, 0, "\0\0\0\1u=1", 7);
}

/* A request whose fields are malformed. */
static void
malformed(void)
{
	frame(NGHTTP2_HEADERS, WHOLE, next_id, "\x82\x82\x84\x86", 4);
	next_id += 2;
}

struct flood {
	void (*round)(void);
	unsigned most; /* the round that is one too many */
	size_t counter;
	const char *why, *shown;
	enum { ANY, HAS_STREAM, EARLY } when; /* stream 1 is open; before SETTINGS are known */
};

static void
flood(const struct flood *f)
{
	const uint64_t *n;
	unsigned i;

	raw_up_when(f->when == EARLY);
	n = (const uint64_t *)((const char *)&counters + f->counter);
	if (f->when == HAS_STREAM) {
		open_one();
		exchange();
	}
	for (i = 0; i <= f->most && now.received == 0; i++) {
		f->round();
		exchange();
		if (i < ONCE)
			g_assert_cmpint(now.received, ==, 0);
	}
	g_assert_cmpint(now.received, ==, -EPROTO);
	g_assert_cmpuint(i, ==, f->most);
	g_assert_cmpuint(*n, ==, 1);
	g_assert_cmpstr(http2_why(h2), ==, f->why);
	http2_end(h2);
	exchange();
	g_assert_cmpuint(now.ended, ==, 1);
	g_assert_cmpint(now.err, ==, 0);
	g_assert_cmpuint(now.goaways, ==, 1);
	g_assert_cmpuint(now.code, ==, NGHTTP2_ENHANCE_YOUR_CALM);
	down();
}

#define COUNTER(name) offsetof(struct io_counters, http2_flood_##name)

/* The client's own SETTINGS count, a malformed request is refused and reset, and a request earns
 * two changes of priorities and two frames that change nothing. */
static const struct flood floods[] = {
	{ reset_one, 201, COUNTER(resets), "too many streams were reset", "http2.flood-resets",
	    ANY },
	{ malformed, 101, COUNTER(resets), "too many streams were reset", "http2.flood-resets",
	    ANY },
	{ open_one, 201, COUNTER(streams), "too many streams at once, again and again",
	    "http2.flood-streams", EARLY },
	{ ping, 100, COUNTER(control), "too many PING or SETTINGS frames", "http2.flood-control",
	    ANY },
	{ settings, 100, COUNTER(control), "too many PING or SETTINGS frames",
	    "http2.flood-control", ANY },
	{ empty_data, 103, COUNTER(empty), "too many frames that change nothing",
	    "http2.flood-empty", HAS_STREAM },
	{ padding, 103, COUNTER(empty), "too many frames that change nothing", "http2.flood-empty",
	    HAS_STREAM },
	{ unknown, 101, COUNTER(empty), "too many frames that change nothing", "http2.flood-empty",
	    ANY },
	{ pong, 101, COUNTER(empty), "too many frames that change nothing", "http2.flood-empty",
	    ANY },
	{ small_window, 101, COUNTER(windows), "too many WINDOW_UPDATE frames",
	    "http2.flood-windows", ANY },
	{ window, 1001, COUNTER(windows), "too many WINDOW_UPDATE frames", "http2.flood-windows",
	    HAS_STREAM },
	{ priority, 201, COUNTER(priority), "too many changes of priorities",
	    "http2.flood-priority", ANY },
	{ priority_update, 203, COUNTER(priority), "too many changes of priorities",
	    "http2.flood-priority", HAS_STREAM },
};

TEST("/http2-limits/floods")
{
	unsigned i;

	for (i = 0; i < G_N_ELEMENTS(floods); i++) {
		g_test_message("%s", floods[i].shown);
		flood(&floods[i]);
	}
}

/* The last one. */
static void
forget_owner(void)
{
	struct owner *o = &owner[--nowners];

	stop_owner(o);
	g_free(o->head);
	g_string_free(o->got, TRUE);
}

/* The same frames at a rate that a browser may have.  (The library has a limit for resets, of 1000
 * at once, and a clock of its own.) */
TEST("/http2-limits/over a long time they are not a flood")
{
	unsigned i, k;

	for (k = 0; k < G_N_ELEMENTS(floods); k++) {
		if (floods[k].round == open_one)
			continue;
		g_test_message("%s", floods[k].shown);
		raw_up();
		if (floods[k].when == HAS_STREAM) {
			open_one();
			exchange();
		}
		for (i = 0; i < 900; i++) {
			floods[k].round();
			exchange();
			while (nowners > 1)
				forget_owner();
			sim_advance_ms(io, 200);
		}
		g_assert_cmpstr(http2_why(h2), ==, NULL);
		g_assert_cmpint(now.received, ==, 0);
		down();
	}
}

/* Many frames in one read, which nothing comes between. */
TEST("/http2-limits/a flood at once")
{
	unsigned i;

	raw_up();
	for (i = 0; i < 100000; i++)
		reset_one();
	exchange();
	g_assert_cmpint(now.received, ==, -EPROTO);
	g_assert_cmpuint(counters.http2_flood_resets, ==, 1);
	g_assert_cmpuint(nowners, <=, 300);
	http2_end(h2);
	exchange();
	g_assert_cmpuint(now.code, ==, NGHTTP2_ENHANCE_YOUR_CALM);
	down();
}

static void
open_many(void)
{
	unsigned i;

	for (i = 0; i < 150; i++)
		open_one();
	exchange();
	g_assert_cmpuint(nowners, ==, 100);
	g_assert_cmpuint(http2_streams(h2), ==, 100);
}

/* A client that does not know the limit yet gets an answer for each stream. */
TEST("/http2-limits/streams at once")
{
	raw_up_when(true);
	open_many();
	g_assert_cmpint(now.received, ==, 0);
	down();
	raw_up();
	open_many();
	g_assert_cmpint(now.received, ==, -EPROTO);
	g_assert_nonnull(http2_why(h2));
	down();
}

/* The head as an endless row of frames (CVE-2024-27316), with bytes or without. */
static void
endless_head(const char *p, size_t n)
{
	unsigned i;

	raw_up();
	request(1, 0);
	for (i = 0; i < 10000 && now.received == 0; i++) {
		frame(NGHTTP2_CONTINUATION, 0, 1, p, n);
		exchange();
	}
	g_assert_cmpint(now.received, ==, -EPROTO);
	g_assert_nonnull(http2_why(h2));
	g_assert_cmpuint(http2_head_bytes(h2), <=, 64u << 10);
	g_assert_cmpuint(nowners, ==, 0);
	http2_end(h2);
	exchange();
	g_assert_cmpuint(now.goaways, ==, 1);
	g_assert_cmpuint(now.code, !=, NGHTTP2_NO_ERROR);
	down();
}

TEST("/http2-limits/a head without an end")
{
	g_autofree char *field = g_strnfill(2 + 100, 'x');

	memcpy(field, "\x00\x01x\x62", 4); /* "x", and 98 bytes of value */
	endless_head(field, 102);
	endless_head("", 0);
}

/* One that is far too long, in the frames that the library takes: http2.flood-heads. */
TEST("/http2-limits/a head that is far too long")
{
	g_autofree char *field = g_strnfill(4 + 16000, 'x');
	unsigned i;

	raw_up();
	memcpy(field, "\x00\x01x\x7f\x81\x7c", 6); /* 127 + 1 + 124 * 128 = 16000 */
	field = g_realloc(field, 6 + 16000);
	memset(field + 6, 'v', 16000);
	request(1, 0);
	for (i = 0; i < 7; i++)
		frame(NGHTTP2_CONTINUATION, 0, 1, field, 6 + 16000);
	exchange();
	g_assert_cmpint(now.received, ==, -EPROTO);
	g_assert_cmpuint(counters.http2_flood_heads, ==, 1);
	g_assert_cmpuint(nowners, ==, 0);
	http2_end(h2);
	exchange();
	g_assert_cmpuint(now.goaways, ==, 1);
	down();
}

/* Each frame of a reply may have an update of the windows. */
TEST("/http2-limits/windows of a long reply")
{
	unsigned i;

	up();
	now.by_hand = true;
	request(1, WHOLE);
	exchange();
	say_head(&owner[0], OK "\r\n");
	for (i = 0; i < 5000; i++) {
		say_bytes(&owner[0], many, 500);
		exchange();
		frame(NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\x04\0", 4);
		frame(NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\0\x04\0", 4);
		exchange();
		g_assert_cmpint(now.received, ==, 0);
	}
	down();
}

/* ... and each request a priority. */
TEST("/http2-limits/priorities of many requests")
{
	unsigned i;

	raw_up();
	for (i = 0; i < 500; i++) {
		open_one();
		frame(NGHTTP2_PRIORITY, 0, next_id - 2, "\0\0\0\0\x10", 5);
		exchange();
		say(&owner[0], OK "Content-Length: 0\r\n\r\n");
		exchange();
		forget_owner();
		frame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, next_id - 2, "", 0);
		exchange();
		g_assert_cmpint(now.received, ==, 0);
	}
	down();
}

/* The server resets streams of applications that fail; the client has done nothing. */
TEST("/http2-limits/applications that fail")
{
	unsigned i;

	raw_up();
	for (i = 0; i < 500; i++) {
		request(next_id, WHOLE);
		next_id += 2;
		exchange();
		close_owner(&owner[0], true);
		exchange();
		forget_owner();
		g_assert_cmpint(now.received, ==, 0);
	}
	g_assert_cmpuint(counters.http2_flood_resets, ==, 0);
	down();
}
