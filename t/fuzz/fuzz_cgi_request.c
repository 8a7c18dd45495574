/* t/fuzz/fuzz_cgi_request.c -- any bytes as a request that a worker sends to the runner of a CGI
 * program.
 *
 * What has to hold: each split of the bytes gives the same events; the pairs are whole and bounded;
 * a body has no more bytes than the input; after the end and after a mistake nothing is taken. */
#include <stdlib.h>
#include "base/must.h"
#include "wire/codec/cgi_request.h"
#include "wire/codec/codec.h"
#include "t/fuzz/fuzz.h"

#define BEGIN_16 "\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0"
#define ALL_CUTS 300 /* shorter inputs are cut at every byte */

const struct fuzz_seed fuzz_seeds[] = {
	SEED(BEGIN_16 "\1\4\0\1\0\5\0\0\1\2A12"
		      "\1\4\0\1\0\0\0\0"
		      "\1\5\0\1\0\4\0\0body"
		      "\1\5\0\1\0\0\0\0"),
	SEED(BEGIN_16 "\1\4\0\1\0\2\3\0\1\2xxx"
		      "\1\4\0\1\0\3\1\0A12y"
		      "\1\4\0\1\0\0\2\0zz"
		      "\1\5\0\1\0\0\0\0"),
	SEED(BEGIN_16 "\1\4\0\1\0\2\0\0\1\5"
		      "\1\4\0\1\0\0\0\0"),
	SEED(BEGIN_16 "\1\4\0\1\0\5\0\0\200\0\1\0\0"
		      "\1\4\0\1\0\0\0\0"),
	SEED("\1\1\0\1\0\10\0\0\0\2\0\0\0\0\0\0"),
	SEED(BEGIN_16 "\1\2\0\1\0\0\0\0"),
	{ NULL, 0 },
};

struct outcome {
	struct cgi_request q;
	struct buf events, body;
	bool over;
};

static void
check_params(const struct cgi_request *q)
{
	struct text in = buf_as_text(&q->params), name, value;

	must(in.n <= PROTO_REQUEST_MAX);
	while (in.n > 0) {
		must(fcgi_take_pair(&in, &name, &value));
		if (cgi_variable_ok(name, value))
			must(name.n > 0 && memchr(name.p, '=', name.n) == NULL);
	}
}

/* One piece, in memory of its own: the sanitizer sees what is read past it. */
static void
feed(struct outcome *o, const uint8_t *p, size_t n)
{
	char *piece = malloc(n + 1);
	struct text in = { piece, n }, body = TEXT_NONE;
	enum cgi_event ev = CGI_MORE;

	must(piece != NULL);
	memcpy(piece, p, n);
	do {
		ev = cgi_request_feed(&o->q, &in, &body);
		if (ev == CGI_PARAMS)
			check_params(&o->q);
		if (ev == CGI_BODY)
			buf_text(&o->body, body);
		else if (ev != CGI_MORE)
			buf_char(&o->events, (char)('0' + ev));
	} while (ev != CGI_MORE && ev != CGI_BAD);
	must(ev == CGI_BAD || in.n == 0);
	o->over = ev == CGI_BAD;
	free(piece);
}

/* The first piece has `first` bytes, the others `step`. */
static void
run(struct outcome *o, const uint8_t *p, size_t n, size_t first, size_t step)
{
	size_t at = 0, len;

	memset(o, 0, sizeof(*o));
	cgi_request_init(&o->q);
	while (at < n && !o->over) {
		len = at == 0 ? first : step;
		len = len < n - at ? len : n - at;
		feed(o, p + at, len);
		at += len;
	}
}

static void
end(struct outcome *o)
{
	cgi_request_free(&o->q);
	buf_free(&o->events);
	buf_free(&o->body);
}

static void
same(const struct outcome *a, const struct outcome *b)
{
	must(a->over == b->over && a->q.stage == b->q.stage);
	must(text_eq(buf_as_text(&a->events), buf_as_text(&b->events)));
	must(text_eq(buf_as_text(&a->body), buf_as_text(&b->body)));
	must(text_eq(buf_as_text(&a->q.params), buf_as_text(&b->q.params)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	size_t at, step = n <= ALL_CUTS ? 1 : n / 16;
	struct outcome whole, cut;

	if (n == 0)
		return (0);
	run(&whole, p, n, n, n);
	must(whole.body.n <= n);
	for (at = 1; at < n; at += step) {
		run(&cut, p, n, at, n);
		same(&whole, &cut);
		end(&cut);
	}
	run(&cut, p, n, 1, 1);
	same(&whole, &cut);
	end(&cut);
	end(&whole);
	return (0);
}
