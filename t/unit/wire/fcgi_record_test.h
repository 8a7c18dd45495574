/* t/unit/wire/fcgi_record_test.h -- FastCGI records in, a transcript of the requests out: whole,
 * byte by byte, at every split. */
#ifndef FCGI_RECORD_TEST_H
#define FCGI_RECORD_TEST_H

#include "wire/codec/fcgi_record.h"

#include <string.h>

#define BEGUN              \
	"0101000100080000" \
	"0001010000000000"
#define PATH_A   "\x0f\x02SCRIPT_FILENAME/a"
#define PATH_A_X "0f025343524950545f46494c454e414d452f61"
#define EMPTY_X  "0104000100000000"
#define WHOLE_X  "R1k[" BEGUN "0104000100130000" PATH_A_X EMPTY_X "]"
#define NONE_X   "R1k[" BEGUN EMPTY_X "]"

static const struct text names[] = {
	{ "SCRIPT_FILENAME", 15 },
	{ "WARM_PATH", 9 },
};

static const struct record_conf conf = {
	.names = names,
	.n_names = G_N_ELEMENTS(names),
	.max_conns = 1000,
	.max_reqs = 20,
};

static bool answer_at_once = true; /* else when the next request begins */

/* A transcript of what record_feed() says: R request (id, k for keep, bytes), H the next one is
 * held back, A abort, C close, B bad, ? when the peer owes us more; then | and the reply in hex. */
static void G_GNUC_UNUSED
note_request(GString *log, struct record *r)
{
	unsigned id = r->id, keep = r->keep;
	g_autoptr(GString) bytes = record_take(r);

	g_string_append_printf(log, "R%u%s[", id, keep ? "k" : "");
	for (gsize i = 0; i < bytes->len; i++)
		g_string_append_printf(log, "%02x", (uint8_t)bytes->str[i]);
	g_string_append(log, "]");
	if (answer_at_once)
		record_answered(r);
}

/* False: the connection would be closed. */
static bool G_GNUC_UNUSED
feed(struct record *r, const uint8_t *p, size_t n, GString *log, GString *reply)
{
	struct text in = { (const char *)p, n };

	while (in.n > 0) {
		switch (record_feed(r, &in, reply)) {
		case RECORD_MORE: g_assert_cmpuint(in.n, ==, 0); break;
		case RECORD_REQUEST: note_request(log, r); break;
		case RECORD_HOLD:
			g_string_append_c(log, 'H');
			record_answered(r);
			break;
		case RECORD_ABORT: g_string_append_c(log, 'A'); break;
		case RECORD_CLOSE: g_string_append_c(log, 'C'); return (false);
		case RECORD_BAD: g_string_append_c(log, 'B'); return (false);
		}
		g_assert_true(in.p + in.n == (const char *)p + n);
	}
	return (true);
}

static void G_GNUC_UNUSED
finish_log(struct record *r, bool open, GString *log, GString *reply)
{
	g_string_append_printf(log, "%s|", open && !record_idle(r) ? "?" : "");
	for (gsize i = 0; i < reply->len; i++)
		g_string_append_printf(log, "%02x", (uint8_t)reply->str[i]);
	g_string_free(reply, TRUE);
	record_free(r);
}

/* Pieces of step bytes, or two pieces when step is 0. */
static G_GNUC_UNUSED char *
transcript(const GString *in, size_t step, size_t split)
{
	GString *log = g_string_new(NULL), *reply = g_string_new(NULL);
	const uint8_t *p = (const uint8_t *)in->str;
	struct record r;
	bool open = true;

	record_init(&r, &conf);
	if (step == 0)
		open = feed(&r, p, split, log, reply) &&
		       feed(&r, p + split, in->len - split, log, reply);
	for (size_t at = 0; step > 0 && open && at < in->len; at += step) {
		/* on the heap and exactly as long: a read too far is seen */
		uint8_t *piece = g_memdup2(p + at, MIN(step, in->len - at));

		open = feed(&r, piece, MIN(step, in->len - at), log, reply);
		g_free(piece);
	}
	finish_log(&r, open, log, reply);
	return (g_string_free(log, FALSE));
}

static void G_GNUC_UNUSED
check_splits(const GString *in, const char *whole)
{
	for (size_t split = 0; split <= in->len; split++) {
		g_autofree char *got = transcript(in, 0, split);

		g_assert_cmpstr(got, ==, whole);
	}
}

static void G_GNUC_UNUSED
check(GString *in, const char *want)
{
	g_autofree char *whole = transcript(in, in->len, 0), *bytes = transcript(in, 1, 0);

	g_assert_cmpstr(whole, ==, want);
	g_assert_cmpstr(bytes, ==, want);
	if (in->len < 1000)
		check_splits(in, want);
	g_string_free(in, TRUE);
}

static void G_GNUC_UNUSED
rec_padded(GString *s, int type, int id, const char *content, size_t n, uint8_t padding)
{
	const uint8_t h[8] = { 1, type, id >> 8, id, n >> 8, n, padding, 0 };

	g_string_append_len(s, (const char *)h, 8);
	g_string_append_len(s, content, n);
	for (int i = 0; i < padding; i++)
		g_string_append_c(s, 0x55);
}

static void G_GNUC_UNUSED
rec(GString *s, int type, int id, const char *content, size_t n)
{
	rec_padded(s, type, id, content, n, 0);
}

#define REC(s, type, id, literal) rec(s, type, id, literal, sizeof(literal) - 1)

static void G_GNUC_UNUSED
begin(GString *s, int id, int role, int flags)
{
	const char body[8] = { 0, role, flags };

	rec(s, 1, id, body, 8);
}

static G_GNUC_UNUSED GString *
new_begun(void)
{
	GString *s = g_string_new(NULL);

	begin(s, 1, 1, 1);
	return (s);
}

#endif
