/* t/fuzz/fuzz_record.c -- any bytes from a web server: cut anywhere, they mean the same; and what
 * libfcgi gets to read is a whole, sound request, says a reader that shares nothing with
 * wire/codec/fcgi_record.c. */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include "base/must.h"
#include "base/text.h"
#include "wire/codec/fcgi_record.h"
#include "t/fuzz/fuzz.h"

#define BEGIN "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0"
#define PATH  "\17\4SCRIPT_FILENAME/a/b"
#define END   "\1\4\0\1\0\0\0\0"

const struct fuzz_seed fuzz_seeds[] = {
	SEED(BEGIN "\1\4\0\1\0\25\0\0" PATH END "\1\5\0\1\0\0\0\0" BEGIN "\1\4\0\1\0\25\3\0" PATH
		   "pad" END),
	SEED(BEGIN "\1\4\0\1\0\5\0\0\17\4SCR\1\4\0\1\0\20\0\0IPT_FILENAME/a/b" END
		   "\1\5\0\1\0\3\1\0abcd\1\2\0\1\0\0\0\0"),
	SEED("\1\11\0\0\0\20\0\0\16\0FCGI_MAX_CONNS\1\11\0\0\0\21\0\0\17\0FCGI_MPXS_"
	     "CONNS\1\173\0\0\0\4\4\0whatpadd"),
	SEED("\1\1\0\1\0\10\0\0\0\2\0\0\0\0\0\0"
	     "\1\4\0\1\0\31\0\0\200\0\0\17\4SCRIPT_FILENAME/a\0b\0\0" END),
	SEED(BEGIN "\1\1\0\2\0\10\0\0\0\1\1\0\0\0\0\0"
		   "\1\4\0\2\0\2\0\0\0\0"
		   "\1\2\0\1\0\0\0\0" BEGIN "\1\1\0\3\0\10\0\0\0\11\1\0\0\0\0\0"),
	SEED(BEGIN "\1\4\0\1\0\10\0\0\377\377\377\377\377\377\377\377" END),
	{ NULL, 0 },
};

static const struct text names[] = { { "SCRIPT_FILENAME", 15 }, { "REQUEST_METHOD", 14 },
	{ "A", 1 } };
static const struct record_conf conf = {
	.names = names, .n_names = NELEM(names), .max_conns = 12345, .max_reqs = 7
};

/* The results that a connection would see. */
struct seen {
	/* results in order, with requests, and how long reply was */
	GString *log;
	GString *reply;
	bool over; /* closed */
};

static unsigned
u16(const uint8_t *p)
{
	return (p[0] << 8 | p[1]);
}

/* ---------------------------------------------------------------- the independent reader */

static const uint8_t *
skip_len(const uint8_t *p, const uint8_t *end, size_t *len)
{
	must(p < end);
	*len = *p;
	if (*p < 128)
		return (p + 1);
	must(end - p >= 4);
	*len = (size_t)(p[0] & 127) << 24 | p[1] << 16 | u16(p + 2);
	return (p + 4);
}

static bool
is_known(const uint8_t *name, size_t len)
{
	size_t i;

	for (i = 0; i < NELEM(names); i++)
		if (names[i].n == len && memcmp(names[i].p, name, len) == 0)
			return (true);
	return (false);
}

static void
check_pairs(const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	size_t name, value;

	while (p < end) {
		p = skip_len(p, end, &name);
		p = skip_len(p, end, &value);
		must(name <= (size_t)(end - p) && value <= (size_t)(end - p) - name);
		must(is_known(p, name));
		must(memchr(p + name, '\0', value) == NULL);
		p += name + value;
	}
}

/* BEGIN_REQUEST with KEEP_CONN, at most one record of PARAMS, the empty one; all of one id. */
static void
check_request(const GString *s)
{
	const uint8_t *p = (const uint8_t *)s->str, *end = p + s->len;
	unsigned id, len;

	must(end - p >= 24 && p[0] == 1 && p[1] == 1 && u16(p + 4) == 8 && p[6] == 0);
	id = u16(p + 2);
	must(id != 0 && u16(p + 8) >= 1 && u16(p + 8) <= 3 && p[10] == 1);
	p += 16;
	for (;;) {
		must(end - p >= 8 && p[0] == 1 && p[1] == 4 && u16(p + 2) == id && p[6] == 0);
		len = u16(p + 4);
		p += 8;
		if (len == 0)
			break;
		must((size_t)(end - p) == len + 8);
		check_pairs(p, len);
		p += len;
	}
	must(p == end);
}

/* Whole records: END_REQUEST, GET_VALUES_RESULT, UNKNOWN_TYPE. */
static void
check_reply(const GString *s)
{
	const uint8_t *p = (const uint8_t *)s->str, *end = p + s->len;

	while (p < end) {
		must(end - p >= 8 && p[0] == 1 && p[6] == 0);
		must((p[1] == 3 && u16(p + 4) == 8 && u16(p + 2) != 0) ||
		     ((p[1] == 10 || p[1] == 11) && u16(p + 2) == 0));
		must(end - p >= 8 + (int)u16(p + 4));
		p += 8 + u16(p + 4);
	}
}

/* ---------------------------------------------------------------- a connection */

static void
take(struct record *r, struct seen *s)
{
	GString *request;

	must(r->params->len <= RECORD_PARAMS_MAX);
	request = record_take(r);
	check_request(request);
	g_string_append_len(s->log, request->str, (gssize)request->len);
	g_string_free(request, TRUE);
}

static void
answer(struct record *r, struct seen *s)
{
	record_answered(r);
	s->over = !r->keep;
}

/* late: the answer is not ready before the next request comes. */
static void
see(struct record *r, struct seen *s, enum record_result result, bool late)
{
	g_string_append_printf(s->log, "[%d %zu]", result, s->reply->len);
	switch (result) {
	case RECORD_MORE: break;
	case RECORD_REQUEST:
		take(r, s);
		if (!late)
			answer(r, s);
		break;
	case RECORD_HOLD:
		must(late);
		answer(r, s);
		break;
	case RECORD_ABORT: s->over = !r->keep; break;
	case RECORD_CLOSE:
	case RECORD_BAD: s->over = true; break;
	}
}

static void
feed(struct record *r, struct seen *s, const uint8_t *p, size_t n, bool late)
{
	enum record_result result = RECORD_HOLD;
	unsigned stuck = 0;
	struct text in = { (const char *)p, n };
	size_t before;

	while (!s->over && (in.n > 0 || result == RECORD_HOLD)) {
		before = in.n;
		result = record_feed(r, &in, s->reply);
		must(in.n <= before && in.p + in.n == (const char *)p + n);
		must(result != RECORD_MORE || in.n == 0);
		stuck = in.n < before ? 0 : stuck + 1;
		must(stuck < 3);
		if (result != RECORD_MORE)
			see(r, s, result, late);
	}
}

/* Feeds the bytes in pieces of step.  Each piece has memory of its own, so that the sanitizer sees
 * reads past it. */
static void
run(struct seen *s, const uint8_t *p, size_t n, size_t step, bool late)
{
	struct record r;
	uint8_t *piece;
	size_t i, k;

	s->log = g_string_new(NULL);
	s->reply = g_string_new(NULL);
	s->over = false;
	record_init(&r, &conf);
	must(record_idle(&r));
	for (i = 0; i < n && !s->over; i += k) {
		k = step < n - i ? step : n - i;
		piece = malloc(k);
		must(piece != NULL);
		memcpy(piece, p + i, k);
		feed(&r, s, piece, k, late);
		free(piece);
	}
	g_string_append_printf(s->log, "[end %d %zu]", s->over || record_idle(&r), s->reply->len);
	must(s->reply->len <= 2 * n);
	check_reply(s->reply);
	record_free(&r);
}

static void
seen_free(struct seen *s)
{
	g_string_free(s->log, TRUE);
	g_string_free(s->reply, TRUE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const size_t steps[] = { 1, 3, 11 };
	struct seen whole, cut;
	size_t i;
	int late;

	for (late = 0; late < 2; late++) {
		run(&whole, p, n, n > 0 ? n : 1, late);
		for (i = 0; i < NELEM(steps); i++) {
			run(&cut, p, n, steps[i], late);
			must(g_string_equal(whole.log, cut.log) &&
			     g_string_equal(whole.reply, cut.reply));
			seen_free(&cut);
		}
		seen_free(&whole);
	}
	return (0);
}
