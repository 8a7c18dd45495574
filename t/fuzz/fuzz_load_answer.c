/* t/fuzz/fuzz_load_answer.c -- any bytes from a server: cut anywhere, accel-load sees the same
 * answer, and never a body where the codec of proxy-core sees a fault. */
#include <stdlib.h>
#include "accel-load/answer.h"
#include "base/must.h"
#include "t/fuzz/fuzz.h"
#include "wire/codec/codec.h"

#define OK "HTTP/1.1 200 OK\r\n"

const struct fuzz_seed fuzz_seeds[] = {
	SEED(OK "Content-Length: 2\r\n\r\nokHTTP/1.1 204 x\r\n\r\n"),
	SEED(OK "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nA: b\r\n\r\n"),
	SEED("HTTP/1.0 404\nConnection: keep-alive\nContent-Length: 2\n\nno"),
	SEED("HTTP/1.1 206 x\r\nContent-Range: bytes 5-6/99\r\nContent-Length: 2\r\n\r\nok"),
	SEED("HTTP/1.1 103 x\r\nLink: a\r\n\r\n" OK "Connection: close\r\n\r\nto the end"),
	SEED(OK "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	SEED("HTTP/1.0 200 x\r\nTransfer-Encoding: chunked\r\n\r\n"),
	SEED("ICY 200 OK\r\n\r\n"),
	{ NULL, 0 },
};

struct outcome {
	enum answer_event end;
	int status;
	bool keep, head;
	struct buf body;
};

/* The result of these bytes, fed in pieces as a connection does. */
static void
feed(struct text all, size_t first, size_t step, struct outcome *o)
{
	struct answer a = { .state = NULL };
	struct text in, body;
	size_t end = first, used = 0;

	*o = (struct outcome){ .end = ANSWER_MORE };
	buf_init(&o->body, 0);
	answer_begin(&a, &load_http, false);
	for (;; end = end + step < all.n ? end + step : all.n) {
		in = (struct text){ all.p + used, end - used };
		while ((o->end = load_http.take(&a, &in, &body)) != ANSWER_MORE) {
			if (o->end == ANSWER_HEAD) {
				o->head = true;
				o->status = a.status;
			}
			if (o->end == ANSWER_END || o->end == ANSWER_BAD)
				break;
			if (o->end == ANSWER_BODY)
				buf_text(&o->body, body);
		}
		used = (size_t)(in.p - all.p);
		if (o->end != ANSWER_MORE || end == all.n)
			break;
	}
	if (o->end == ANSWER_MORE)
		o->end = load_http.eof(&a);
	o->keep = a.keep;
}

static void
same(struct text all, size_t first, size_t step, const struct outcome *whole)
{
	struct outcome o;

	feed(all, first, step, &o);
	must(o.end == whole->end && o.status == whole->status && o.head == whole->head);
	must(text_eq(buf_as_text(&o.body), buf_as_text(&whole->body)));
	must(o.end != ANSWER_END || o.keep == whole->keep);
	buf_free(&o.body);
}

/* The codec that passes replies on sees the same status and body, or refuses more. */
static void
compare(struct text all, const struct outcome *o)
{
	extern const struct proto proto_http;
	struct proxy_request r = { .method = TEXT("GET"),
		.target = TEXT("/"),
		.content_length = -1 };
	void *state = calloc(1, proto_http.size);
	struct reply_head h;
	struct proto_event ev;
	struct buf out, body;
	int status = 0;

	must(state != NULL);
	buf_init(&out, 0);
	buf_init(&body, 0);
	reply_head_init(&h);
	must(proto_http.request(state, &r, true, &out) == 0);
	for (;;) {
		proto_http.reply(state, &h, &all, NULL, &ev);
		if (ev.kind == PROTO_INTERIM)
			reply_head_free(&h);
		else if (ev.kind == PROTO_HEAD)
			status = h.reply.status;
		else if (ev.kind == PROTO_BODY)
			buf_text(&body, ev.bytes);
		else
			break;
	}
	if (ev.kind == PROTO_END) {
		must(o->end == ANSWER_END && o->status == status && o->keep == ev.reuse);
		must(text_eq(buf_as_text(&body), buf_as_text(&o->body)));
	}
	reply_head_free(&h);
	buf_free(&body);
	buf_free(&out);
	free(state);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text all = { (const char *)p, n };
	struct outcome whole;
	size_t step = n <= 300 ? 1 : n / 32;

	if (n == 0 || n > ANSWER_HEAD_MAX)
		return (0);
	feed(all, n, 1, &whole);
	same(all, 1, 1, &whole);
	same(all, 1, 3, &whole);
	for (size_t cut = 1; cut < n; cut += step)
		same(all, cut, n, &whole);
	compare(all, &whole);
	buf_free(&whole.body);
	return (0);
}
