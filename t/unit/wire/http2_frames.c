/* t/unit/wire/http2_frames.c -- what frames say of each other.  Each row is fed whole, byte by byte
 * and at every split. */
#include "t/unit/test.h"
#include "wire/http2/frames.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE = 8, CONTINUATION };
#define END_STREAM 1

struct frame {
	unsigned type, flags, id, len;
	unsigned depends; /* of a PRIORITY */
};

struct row {
	struct frame f[6];
	enum http2_wrong want;
	const char *why;
};

static void
put_be(GString *s, unsigned value, unsigned bytes)
{
	while (bytes-- > 0)
		g_string_append_c(s, (char)(value >> 8 * bytes));
}

static void
put_frame(GString *s, const struct frame *f)
{
	GString *body = g_string_new(NULL);

	if (f->type == PRIORITY)
		put_be(body, f->depends, 4);
	while (body->len < f->len)
		g_string_append_c(body, '\0');
	put_be(s, f->len, 3);
	put_be(s, f->type, 1);
	put_be(s, f->flags, 1);
	put_be(s, f->id, 4);
	g_string_append_len(s, body->str, f->len);
	g_string_free(body, TRUE);
}

static GString *
bytes_of(const struct row *row)
{
	GString *s = g_string_new(PREFACE);
	unsigned i;

	for (i = 0; i < G_N_ELEMENTS(row->f) && row->f[i].type + row->f[i].id != 0; i++)
		put_frame(s, &row->f[i]);
	return (s);
}

/* In parts of n bytes, and the first one of `first`. */
static void
check_parts(const struct row *row, const GString *s, size_t first, size_t n)
{
	struct text t = { s->str, s->len };
	enum http2_wrong w = HTTP2_RIGHT;
	const char *why = NULL;
	struct http2_frames f;

	http2_frames_init(&f);
	for (; t.n != 0 && w == HTTP2_RIGHT; first = n)
		w = http2_frames_look(&f, text_take(&t, first), &why);
	g_assert_cmpint(w, ==, row->want);
	if (w != HTTP2_RIGHT)
		g_assert_cmpstr(why, ==, row->why);
}

static void
check(const struct row *row, size_t n)
{
	GString *s;
	size_t i;

	for (; n > 0; n--, row++) {
		s = bytes_of(row);
		for (i = 1; i <= s->len; i++)
			check_parts(row, s, i, s->len);
		check_parts(row, s, 1, 1);
		check_parts(row, s, 7, 7);
		g_string_free(s, TRUE);
	}
}

TEST("/http2-frames/what is right")
{
	static const struct row rows[] = {
		{ .f = { { SETTINGS, 0, 0, 0, 0 } } },
		{ .f = { { HEADERS, END_STREAM, 1, 10, 0 }, { HEADERS, END_STREAM, 3, 0, 0 } } },
		{ .f = { { HEADERS, 0, 1, 3, 0 }, { DATA, 0, 1, 300, 0 },
		      { DATA, END_STREAM, 1, 0, 0 }, { WINDOW_UPDATE, 0, 1, 4, 0 },
		      { RST_STREAM, 0, 1, 4, 0 } } },
		/* streams between them stay unused */
		{ .f = { { HEADERS, END_STREAM, 5, 3, 0 }, { HEADERS, 0, 401, 3, 0 },
		      { HEADERS, END_STREAM, 401, 3, 0 } } },
		{ .f = { { HEADERS, 0, 1, 3, 0 }, { HEADERS, 0, 3, 3, 0 }, { DATA, 0, 1, 3, 0 },
		      { HEADERS, END_STREAM, 1, 3, 0 }, { DATA, 0, 3, 3, 0 } } },
		{ .f = { { PRIORITY, 0, 7, 5, 3 }, { PRIORITY, 0, 9, 3, 9 },
		      { PRIORITY, 0, 9, 0, 9 } } }, /* its length is for the library */
		/* long ago: nothing is known of it */
		{ .f = { { HEADERS, END_STREAM, 1, 3, 0 }, { HEADERS, END_STREAM, 1001, 3, 0 },
		      { DATA, 0, 1, 3, 0 } } },
	};

	check(rows, G_N_ELEMENTS(rows));
}

TEST("/http2-frames/what is wrong")
{
	static const char ended[] = "a frame of a stream that the client has ended";
	static const char lower[] = "a stream with a lower number than the last one";
	static const char self[] = "a stream that depends on itself";
	static const struct row rows[] = {
		{ .f = { { HEADERS, END_STREAM, 1, 3, 0 }, { DATA, 0, 1, 3, 0 } },
		    .want = HTTP2_WRONG_STATE,
		    .why = ended },
		{ .f = { { HEADERS, END_STREAM, 1, 3, 0 }, { HEADERS, END_STREAM, 1, 3, 0 } },
		    .want = HTTP2_WRONG_STATE,
		    .why = ended },
		{ .f = { { HEADERS, 0, 1, 3, 0 }, { RST_STREAM, 0, 1, 4, 0 },
		      { DATA, 0, 1, 3, 0 } },
		    .want = HTTP2_WRONG_STATE,
		    .why = ended },
		{ .f = { { HEADERS, 0, 1, 3, 0 }, { HEADERS, 0, 3, 3, 0 },
		      { DATA, END_STREAM, 1, 3, 0 }, { HEADERS, 0, 127, 3, 0 },
		      { DATA, 0, 1, 3, 0 } },
		    .want = HTTP2_WRONG_STATE,
		    .why = ended },
		{ .f = { { HEADERS, END_STREAM, 5, 3, 0 }, { HEADERS, END_STREAM, 3, 3, 0 } },
		    .want = HTTP2_WRONG,
		    .why = lower },
		{ .f = { { PRIORITY, 0, 0x7fffffff, 5, 0x7fffffff } },
		    .want = HTTP2_WRONG,
		    .why = self },
		{ .f = { { SETTINGS, 0, 0, 6, 0 }, { PRIORITY, 0, 2, 5, 0x80000002u } },
		    .want = HTTP2_WRONG,
		    .why = self },
		{ .f = { { PRIORITY, 0, 0, 5, 1 } },
		    .want = HTTP2_WRONG,
		    .why = "PRIORITY of stream 0" },
	};

	check(rows, G_N_ELEMENTS(rows));
}
