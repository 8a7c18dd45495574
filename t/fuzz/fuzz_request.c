/* t/fuzz/fuzz_request.c -- any bytes as a request head.
 *
 * What has to hold: a prefix says "more" or says what the whole says; every slice lies in the
 * input; an accepted head obeys the rules that keep two readers from disagreeing; and written out
 * again from its parts it is read as the same request. */
#include <stdlib.h>
#include "base/buf.h"
#include "base/must.h"
#include "wire/http1/http1.h"
#include "t/fuzz/fuzz.h"

#define MAX_HEAD   2048
#define SMALL_HEAD 64
#define ALL_CUTS   300 /* shorter inputs are cut at every byte */

const struct fuzz_seed fuzz_seeds[] = {
	SEED("GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"),
	SEED("GET /a/b.jpg?x=1 HTTP/1.1\r\nHost: [::1]:80\r\nUser-Agent: wrk\r\n"
	     "Accept-Encoding: gzip\r\n\r\nGET / HTTP/1.1\r\n"),
	SEED("\r\nPOST http://h:1/p?q HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: "
	     "100-continue\r\n\r\nhello"),
	SEED("POST /f HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close, "
	     "TE\r\n\r\n0\r\n\r\n"),
	SEED("OPTIONS * HTTP/1.0\r\nConnection: keep-alive\r\nIf-None-Match: \"a\", "
	     "W/\"b\"\r\n\r\n"),
	SEED("HEAD /x HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\nRange: bytes=2-\r\n"
	     "If-Range: \"a\"\r\nX:\ty \xe4 \r\n\r\n"),
	SEED("GET http://WWW.Example.ORG.:080/x HTTP/1.1\r\nHost: [2001:DB8::0:1]:81\r\n\r\n"),
	SEED("GET / HTTP/1.1\r\nHost: A.b-C.:443\r\nCookie: a\r\nCookie: b\r\n\r\n"),
	SEED("CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n"),
	{ NULL, 0 },
};

struct outcome {
	enum parse s;
	int status;
	size_t used;
	struct http_request r;
};

static void
parse(struct text in, size_t max_head, struct outcome *o)
{
	const char *why = NULL;

	o->status = 0;
	o->used = 0;
	o->s = http1_head(in, max_head, &o->r, &o->used, &o->status, &why);
	if (o->s == PARSE_BAD)
		must(why != NULL && o->status >= 400 && o->status < 600);
	if (o->s == PARSE_DONE)
		must(o->used <= in.n && o->used <= max_head);
	if (o->s == PARSE_MORE)
		must(in.n < max_head);
}

static void
same_request(const struct http_request *a, const struct http_request *b)
{
	unsigned i;

	must(a->verb == b->verb && a->minor == b->minor && a->keep_alive == b->keep_alive);
	must(a->chunked == b->chunked && a->content_length == b->content_length);
	must(a->expect_continue == b->expect_continue && a->nheaders == b->nheaders);
	must(text_eq(a->line, b->line) && text_eq(a->target, b->target) &&
	     text_eq(a->path, b->path));
	must(text_eq(a->query, b->query) && text_eq(a->host, b->host));
	for (i = 0; i < HH_N; i++)
		must((a->known[i].p == NULL) == (b->known[i].p == NULL) &&
		     text_eq(a->known[i], b->known[i]));
	for (i = 0; i < a->nheaders; i++)
		must(text_eq(a->headers[i].name, b->headers[i].name) &&
		     text_eq(a->headers[i].value, b->headers[i].value));
}

static void
inside(struct text t, struct text in)
{
	if (t.p != NULL && t.n > 0)
		must(t.p >= in.p && t.p + t.n <= in.p + in.n);
}

static void
check_bytes(struct text t, bool blank_too)
{
	unsigned char c;
	size_t i;

	for (i = 0; i < t.n; i++) {
		c = (unsigned char)t.p[i];
		must((c > 0x20 && c != 0x7f) || (blank_too && (c == ' ' || c == '\t')));
	}
}

/* A slice of the input, or its normal form in the struct; and the normal form of that is the
 * same. */
static void
check_host(const struct http_request *r, struct text in)
{
	char store[HTTP_HOST_MAX];
	size_t i;

	check_bytes(r->host, false);
	if (r->host.n == 0)
		return;
	inside(r->host, r->host.p == r->host_store
			    ? (struct text){ r->host_store, sizeof(r->host_store) }
			    : in);
	must(text_eq(http1_host(r->host, store), r->host));
	for (i = 0; i < r->host.n; i++)
		must((r->host.p[i] < 'A' || r->host.p[i] > 'Z') && r->host.p[i] != '%' &&
		     r->host.p[i] != '@');
	must(r->host.p[r->host.n - 1] != '.' && r->host.p[r->host.n - 1] != ':');
}

static void
check_rules(const struct http_request *r, struct text in)
{
	unsigned i, hosts = 0, lengths = 0, codings = 0;

	inside(r->line, in);
	check_host(r, in);
	check_bytes(r->target, false);
	must(r->target.n > 0 &&
	     (r->target.p[0] == '/' || (r->verb == HTTP_OPTIONS && text_eq(r->target, TEXT("*")))));
	for (i = 0; i < r->nheaders; i++) {
		inside(r->headers[i].name, in);
		if (r->headers[i].value.p != r->host.p)
			inside(r->headers[i].value, in);
		must(r->headers[i].name.n > 0);
		check_bytes(r->headers[i].name, false);
		check_bytes(r->headers[i].value, true);
		must(text_eq(text_trim(r->headers[i].value), r->headers[i].value));
		hosts += text_ieq(r->headers[i].name, TEXT("host"));
		lengths += text_ieq(r->headers[i].name, TEXT("content-length"));
		codings += text_ieq(r->headers[i].name, TEXT("transfer-encoding"));
	}
	must(hosts <= 1 && (r->minor == 0 || hosts == 1));
	must(lengths + codings <= 1);
	must((r->content_length >= 0) == (lengths == 1) && r->chunked == (codings == 1));
}

static void
check_again(const struct http_request *r)
{
	static struct outcome again;
	struct buf b;
	unsigned i;

	buf_init(&b, 0);
	buf_text(&b, r->line);
	buf_str(&b, "\r\n");
	for (i = 0; i < r->nheaders; i++) {
		buf_text(&b, r->headers[i].name);
		buf_str(&b, ": ");
		buf_text(&b, r->headers[i].value);
		buf_str(&b, "\r\n");
	}
	buf_str(&b, "\r\n");
	parse(buf_as_text(&b), 2 * MAX_HEAD, &again);
	must(again.s == PARSE_DONE && again.used == b.n);
	same_request(r, &again.r);
	buf_free(&b);
}

static void
check_cut(struct text in, size_t cut, size_t max_head, const struct outcome *whole)
{
	static struct outcome o;
	char *exact = malloc(cut > 0 ? cut : 1);

	must(exact != NULL);
	memcpy(exact, in.p, cut);
	parse((struct text){ exact, cut }, max_head, &o);
	if (whole->s == PARSE_DONE && cut < whole->used)
		must(o.s == PARSE_MORE);
	else if (o.s != PARSE_MORE || cut == in.n) {
		must(o.s == whole->s && o.status == whole->status && o.used == whole->used);
		if (o.s == PARSE_DONE)
			same_request(&o.r, &whole->r);
	}
	free(exact);
}

static void
check_head(struct text in, size_t max_head)
{
	static struct outcome whole;
	size_t cut, step = in.n <= ALL_CUTS ? 1 : in.n / 32;

	parse(in, max_head, &whole);
	for (cut = 0; cut <= in.n; cut += step)
		check_cut(in, cut, max_head, &whole);
	if (whole.s == PARSE_DONE) {
		check_cut(in, whole.used, max_head, &whole);
		check_rules(&whole.r, in);
		check_again(&whole.r);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n };

	check_head(in, MAX_HEAD);
	check_head(in, SMALL_HEAD);
	return (0);
}
