/* t/fuzz/fuzz_reply_head.c -- any bytes as the head of an application's reply.
 *
 * However the bytes are cut, the head is the same.  A field that passes is a token and a value
 * without control characters, and no Connection line of the head names it. */
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/must.h"
#include "wire/http1/headers.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("Status: 404 Not Found\r\nContent-Type: text/html\r\n\r\nbody"),
	SEED("HTTP/1.1 200 OK\r\nA: 1\r\n\r\n"),
	SEED("Location: /a\nContent-Length: 12\nSet-Cookie: a=b\nSet-Cookie: c=d\n\nbody of more"),
	SEED("X-Sendfile: /srv/a%20b\r\nContent-Length: 0\r\nConnection: close, X-A\r\nX-A: "
	     "b\r\n\r\n"),
	SEED("X-Accel-Redirect: /a\r\nX-LIGHTTPD-send-file: /b\r\nTransfer-Encoding: "
	     "chunked\r\n\r\n"),
	SEED("Status: 99\r\n\r\n"),
	SEED("A b: c\r\n folded\r\n\r\n"),
	{ NULL, 0 },
};

struct outcome {
	enum head_result s;
	size_t used;
	struct reply_head h;
};

static void
feed(struct text in, size_t first, size_t step, struct outcome *o)
{
	struct text piece;
	size_t at = 0, n;

	reply_head_init(&o->h);
	o->s = HEAD_MORE;
	for (n = first; at < in.n && o->s == HEAD_MORE; n = step) {
		piece = (struct text){ in.p + at, n < in.n - at ? n : in.n - at };
		o->s = reply_head_cgi(&o->h, &piece);
		at = (size_t)(piece.p - in.p);
		must(o->s != HEAD_MORE || piece.n == 0);
	}
	o->used = at;
	must((o->s == HEAD_BAD) == (o->h.why != NULL));
}

static void
same(const struct outcome *a, const struct outcome *b)
{
	const struct proxy_reply *x = &a->h.reply, *y = &b->h.reply;
	size_t i;

	must(a->s == b->s);
	if (a->s != HEAD_DONE)
		return;
	must(
	    a->used == b->used && x->status == y->status && x->content_length == y->content_length);
	must(x->nheaders == y->nheaders && text_eq(x->unknown_control, y->unknown_control));
	for (i = 0; i < CONTROLS; i++)
		must(text_eq(x->control[i], y->control[i]));
	for (i = 0; i < x->nheaders; i++)
		must(text_eq(x->headers[i].name, y->headers[i].name) &&
		     text_eq(x->headers[i].value, y->headers[i].value));
}

static void
check_value(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		must(t.p[i] == '\t' || ((unsigned char)t.p[i] >= 0x20 && t.p[i] != 0x7f));
}

/* Whether a list holds the name: byte by byte, without a helper of the program. */
static bool
listed(struct text v, struct text name)
{
	size_t at, end, last;

	for (at = 0; at < v.n; at = end + 1) {
		for (end = at; end < v.n && v.p[end] != ','; end++)
			;
		for (last = end; last > at && (v.p[last - 1] == ' ' || v.p[last - 1] == '\t');
		     last--)
			;
		while (at < last && (v.p[at] == ' ' || v.p[at] == '\t'))
			at++;
		if (last - at == name.n && strncasecmp(v.p + at, name.p, name.n) == 0)
			return (true);
	}
	return (false);
}

/* A field that a Connection line of the raw head lists ends here, and so does Connection. */
static void
check_hop(struct text raw, struct text name)
{
	static const struct text key = TEXT("connection:");
	struct text line;

	must(!text_ieq(name, TEXT("connection")));
	while (text_next(&raw, '\n', &line)) {
		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		if (line.n > key.n && strncasecmp(line.p, key.p, key.n) == 0)
			must(!listed((struct text){ line.p + key.n, line.n - key.n }, name));
	}
}

static void
check_head(const struct outcome *o)
{
	const struct proxy_reply *r = &o->h.reply;
	size_t i;

	must(r->status >= 100 && r->status <= 599 && r->content_length >= -1);
	must(r->nheaders <= REPLY_FIELDS_MAX);
	for (i = 0; i < r->nheaders; i++) {
		must(header_is_token(r->headers[i].name) && header_value_ok(r->headers[i].value));
		must(!header_is_control(r->headers[i].name));
		check_value(r->headers[i].value);
		check_hop(buf_as_text(&o->h.raw), r->headers[i].name);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n };
	struct outcome whole, cut;
	size_t at, step = n <= 300 ? 1 : n / 32;

	if (n == 0)
		return (0);
	feed(in, n, 1, &whole);
	if (whole.s == HEAD_DONE)
		check_head(&whole);
	for (at = 1; at < n; at += step) {
		feed(in, at, n, &cut);
		same(&cut, &whole);
		reply_head_free(&cut.h);
	}
	feed(in, 1, 1, &cut);
	same(&cut, &whole);
	reply_head_free(&cut.h);
	reply_head_free(&whole.h);
	return (0);
}
