/* t/fuzz/fuzz_chunked.c -- any bytes as a chunked body: however they are cut, the same body, the
 * same end. */
#include "base/buf.h"
#include "base/must.h"
#include "wire/http1/http1.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("5\r\nhello\r\n0\r\n\r\n"),
	SEED("5\r\nhello\r\n00006;a=\"b\"\r\n world\r\n0\r\nA: b\r\nC:\r\n\r\nGET / HTTP/1.1\r\n"),
	SEED("A ;x\r\n0123456789\r\n1\r\n\r\r\n0;\r\n\r\n"),
	SEED("7fffffffffffffff\r\nabc"),
	{ NULL, 0 },
};

struct outcome {
	enum parse s;
	size_t used;
	struct buf body;
};

/* Feeds in pieces of `step` bytes, the first of `first`. */
static void
decode(struct text in, size_t first, size_t step, struct outcome *o)
{
	struct http1_chunked c = { 0 };
	struct text piece, data;
	size_t at = 0, n;

	buf_init(&o->body, 0);
	o->s = PARSE_MORE;
	for (n = first; at < in.n && o->s == PARSE_MORE; n = step) {
		piece = (struct text){ in.p + at, n < in.n - at ? n : in.n - at };
		do {
			o->s = http1_chunked(&c, &piece, &data);
			buf_text(&o->body, data);
			must(data.n == 0 || o->s == PARSE_MORE);
			must(o->s != PARSE_MORE || data.n > 0 || piece.n == 0);
		} while (o->s == PARSE_MORE && piece.n > 0);
		at = (size_t)(piece.p - in.p);
	}
	o->used = at;
}

static void
same(const struct outcome *a, const struct outcome *b)
{
	must(a->s == b->s && a->used == b->used && !a->body.failed);
	must(text_eq(buf_as_text(&a->body), buf_as_text(&b->body)));
}

static void
compare(struct text in, size_t first, size_t step, const struct outcome *whole)
{
	struct outcome o;

	decode(in, first, step, &o);
	same(&o, whole);
	buf_free(&o.body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n };
	struct outcome whole;
	size_t cut, step = n <= 300 ? 1 : n / 32;

	if (n == 0)
		return (0);
	decode(in, n, 1, &whole);
	must(whole.body.n <= n);
	compare(in, 1, 1, &whole);
	compare(in, 1, 3, &whole);
	for (cut = 1; cut < n; cut += step)
		compare(in, cut, n, &whole);
	buf_free(&whole.body);
	return (0);
}
