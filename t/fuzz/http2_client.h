/* t/fuzz/http2_client.h -- the first client of connection.h speaks HTTP/2: these events are frames.
 *
 *   "\xfe" H s f G/a     HEADERS of stream 2s + 1 with flags f: GET /a, and lines "name value"
 *                        P: POST; A: HEAD; C: CONNECT of a websocket; else only the lines
 *   "\xfe" B s f bytes   DATA; Z s n: n * 256 bytes of it
 *   "\xfe" R s           RST_STREAM          "\xfe" W s n   WINDOW_UPDATE by 2^n
 *   "\xfe" S i n         SETTINGS: i is 2^n  "\xfe" P f     PING, or with f 1 its answer
 *   "\xfe" G             GOAWAY              "\xfe" Y s u   PRIORITY_UPDATE: u
 *   "\xfe" V t f s bytes any frame
 *
 * s 255 is stream 0.  The preface and SETTINGS come by themselves, unless the first event is c: any
 * bytes.  HPACK is that of the library, with one table for the connection.
 */
#ifndef T_FUZZ_HTTP2_CLIENT_H
#define T_FUZZ_HTTP2_CLIENT_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#include "base/text.h"

static bool http2_event(char kind, struct text t);
#define OTHER_EVENT(kind, t) http2_event(kind, t)
#include "t/fuzz/connection.h"

#define PREFACE   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define LINES     16
#define PSEUDO    5
#define BLOCK_MAX 4096
#define FRAME_MAX 16384u
#define WIDE      32 /* bit of the third byte of an input: large windows */

static nghttp2_hd_deflater *deflater;
static bool has_begun;
static const struct io_sock *client_sock;

static void
put_frame(unsigned type, unsigned flags, unsigned id, const void *p, size_t n)
{
	const char head[9] = { (char)(n >> 16), (char)(n >> 8), (char)n, (char)type, (char)flags,
		(char)(id >> 24), (char)(id >> 16), (char)(id >> 8), (char)id };

	buf_add(&v.to_say[0], head, sizeof(head));
	buf_add(&v.to_say[0], p, n);
}

static unsigned
take_byte(struct text *t)
{
	struct text b = text_take(t, 1);

	return (b.n != 0 ? (unsigned char)b.p[0] : 0);
}

static unsigned
take_stream(struct text *t)
{
	unsigned s = take_byte(t);

	return (s == 255 ? 0 : 2 * s + 1);
}

/* ---- HEADERS */

static nghttp2_nv
field(struct text name, struct text value)
{
	return ((nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name.p,
	    .namelen = name.n,
	    .value = (uint8_t *)(uintptr_t)value.p,
	    .valuelen = value.n });
}

static size_t
pseudo_fields(char method, struct text path, nghttp2_nv nv[PSEUDO])
{
	struct text name = method == 'P'   ? TEXT("POST")
			   : method == 'A' ? TEXT("HEAD")
			   : method == 'C' ? TEXT("CONNECT")
					   : TEXT("GET");

	nv[0] = field(TEXT(":method"), name);
	nv[1] = field(TEXT(":path"), path);
	nv[2] = field(TEXT(":scheme"), TEXT("http"));
	nv[3] = field(TEXT(":authority"), TEXT("a"));
	nv[4] = field(TEXT(":protocol"), TEXT("websocket"));
	return (method == 'C' ? 5 : 4);
}

static nghttp2_nv
line_field(struct text line)
{
	struct text name = line;
	const char *space = line.n > 1 ? memchr(line.p + 1, ' ', line.n - 1) : NULL;

	if (space == NULL)
		return (field(line, TEXT("")));
	name.n = (size_t)(space - line.p);
	text_take(&line, name.n + 1);
	return (field(name, line));
}

static void
put_block(unsigned id, unsigned flags, const nghttp2_nv *nv, size_t n)
{
	static uint8_t block[BLOCK_MAX];
	ssize_t k = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), nv, n);

	if (k >= 0)
		put_frame(NGHTTP2_HEADERS, flags, id, block, (size_t)k);
}

static void
put_headers(unsigned id, unsigned flags, struct text t)
{
	nghttp2_nv nv[PSEUDO + LINES];
	struct text line;
	size_t n = 0;

	if (t.n != 0 && memchr("GPAC", t.p[0], 4) != NULL) {
		line = cut_line(&t);
		n = pseudo_fields(line.p[0], (struct text){ line.p + 1, line.n - 1 }, nv);
	}
	while (n < PSEUDO + LINES && (line = cut_line(&t)).n != 0)
		nv[n++] = line_field(line);
	put_block(id, flags, nv, n);
}

/* ---- the others */

static void
put_number(unsigned type, unsigned id, uint32_t value)
{
	const char p[4] = { (char)(value >> 24), (char)(value >> 16), (char)(value >> 8),
		(char)value };

	put_frame(type, 0, id, p, sizeof(p));
}

static void
put_setting(unsigned id, unsigned shift)
{
	uint32_t value = 1u << (shift & 31);
	const char p[6] = { 0, (char)id, (char)(value >> 24), (char)(value >> 16),
		(char)(value >> 8), (char)value };

	put_frame(NGHTTP2_SETTINGS, 0, 0, p, sizeof(p));
}

static void
put_update(unsigned id, struct text value)
{
	struct buf b;

	buf_init(&b, 0);
	buf_add(&b, (const char[]){ 0, 0, (char)(id >> 8), (char)id }, 4);
	buf_text(&b, value);
	put_frame(NGHTTP2_PRIORITY_UPDATE, 0, 0, b.p, b.n);
	buf_free(&b);
}

static void
put_preface(void)
{
	has_begun = true;
	buf_text(&v.to_say[0], TEXT(PREFACE));
	put_frame(NGHTTP2_SETTINGS, 0, 0, NULL, 0);
	put_frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
	if ((v.by_hand & WIDE) == 0)
		return;
	put_setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 30);
	put_number(NGHTTP2_WINDOW_UPDATE, 0, 1u << 30);
}

/* Kinds whose first byte is a stream. */
static bool
stream_event(char kind, struct text t)
{
	static const char zeros[FRAME_MAX];
	unsigned id = take_stream(&t), n = take_byte(&t);

	switch (kind) {
	case 'H': put_headers(id, n, t); break;
	case 'B': put_frame(NGHTTP2_DATA, n, id, t.p, t.n); break;
	case 'Z': put_frame(NGHTTP2_DATA, 0, id, zeros, 256 * n % FRAME_MAX); break;
	case 'R': put_number(NGHTTP2_RST_STREAM, id, NGHTTP2_CANCEL); break;
	case 'W': put_number(NGHTTP2_WINDOW_UPDATE, id, 1u << (n & 31)); break;
	case 'Y': put_update(id, t); break;
	default: return (false);
	}
	return (true);
}

static bool
other_event(char kind, struct text t)
{
	unsigned a = take_byte(&t), b = take_byte(&t);

	switch (kind) {
	case 'S': put_setting(a, b); break;
	case 'P': put_frame(NGHTTP2_PING, a & NGHTTP2_FLAG_ACK, 0, "\0\0\0\0\0\0\0\0", 8); break;
	case 'G': put_frame(NGHTTP2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8); break;
	case 'V': put_frame(a, b, take_stream(&t), t.p, t.n); break;
	default: return (false);
	}
	return (true);
}

static bool
http2_event(char kind, struct text t)
{
	if (!has_begun && kind != 'c')
		put_preface();
	has_begun = true;
	if (client_sock == NULL && recv_of(0) != NULL)
		client_sock = recv_of(0)->sock;
	if (v.to_say[0].n > IO_WINDOW / 2) /* more than the server reads at a time */
		return (true);
	return (stream_event(kind, t) || other_event(kind, t));
}

/* ---- what the client has received */

struct seen {
	bool ended;
	int status;
	int64_t length; /* -1: none was announced */
	int64_t bytes;
};

static struct seen seen[256]; /* of streams 1, 3, ... */
static nghttp2_hd_inflater *inflater;

static void
field_came(struct seen *s, const nghttp2_nv *nv)
{
	struct text name = { (const char *)nv->name, nv->namelen };
	struct text value = { (const char *)nv->value, nv->valuelen };
	uint64_t n;

	if (text_eq(name, TEXT(":status")) && text_u64(value, &n) == 0)
		s->status = (int)n;
	if (text_eq(name, TEXT("content-length")) && text_u64(value, &n) == 0)
		s->length = (int64_t)n;
	must(!text_eq(name, TEXT("connection")) && !text_eq(name, TEXT("transfer-encoding")));
}

static void
block_came(struct seen *s, const uint8_t *p, size_t n, bool ends)
{
	int flags = NGHTTP2_HD_INFLATE_EMIT;
	nghttp2_nv nv;
	ssize_t k;

	s->length = -1;
	while ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
		flags = 0;
		k = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, p, n, ends);
		must(k >= 0);
		p += k;
		n -= (size_t)k;
		if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
			field_came(s, &nv);
	}
	if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0)
		nghttp2_hd_inflate_end_headers(inflater);
}

/* A reply has the bytes that its head announces, or its stream is reset. */
static void
frame_came(unsigned type, unsigned flags, unsigned id, const uint8_t *p, size_t n)
{
	struct seen *s = &seen[id / 2 % 256];

	if (type > NGHTTP2_HEADERS)
		return;
	must(id % 2 == 1 && !s->ended);
	if (type == NGHTTP2_HEADERS) {
		must(s->status < 200 && (flags & NGHTTP2_FLAG_END_HEADERS) != 0);
		block_came(s, p, n, true);
	} else {
		must(s->status >= 200);
		s->bytes += (int64_t)n;
		must(s->length < 0 || s->bytes <= s->length);
	}
	s->ended = (flags & NGHTTP2_FLAG_END_STREAM) != 0;
	if (s->ended && type == NGHTTP2_DATA)
		must(s->length < 0 || s->bytes == s->length);
}

static void
check_frames(struct text t)
{
	const uint8_t *p = (const uint8_t *)t.p, *end = p + t.n;
	size_t n;

	must(nghttp2_hd_inflate_new(&inflater) == 0);
	memset(seen, 0, sizeof(seen));
	for (; end - p >= 9; p += 9 + n) {
		n = (size_t)(p[0] << 16 | p[1] << 8 | p[2]);
		if (n > (size_t)(end - p) - 9)
			break; /* the rest was not sent */
		frame_came(p[3], p[4], (unsigned)(p[5] << 24 | p[6] << 16 | p[7] << 8 | p[8]),
		    p + 9, n);
	}
	nghttp2_hd_inflate_del(inflater);
}

/* Also of HTTP/1, if the preface was none. */
static void
check_sent(void)
{
	struct text t = client_sock != NULL ? sim_sent(io, client_sock) : TEXT_NONE;

	if (t.n >= 9 && memcmp(t.p, "HTTP/", 5) != 0)
		check_frames(t);
}

static void
http2_up(unsigned config, unsigned by_hand)
{
	has_begun = false;
	must(nghttp2_hd_deflate_new(&deflater, 4096) == 0);
	up(config, by_hand);
	client_sock = NULL;
}

static void
http2_down(void)
{
	check_sent();
	must(w->nstreams == 0);
	down();
	nghttp2_hd_deflate_del(deflater);
}

#endif
