/* t/fuzz/fuzz_http2.c -- any fields as a request of HTTP/2, any bytes as the head of a reply and as
 * frames.
 *
 *   first byte    bit 0: a body follows; bit 1: heads are short
 *   field         bytes k and n; then the name: known[k], or k - N_KNOWN bytes; n bytes of value
 *
 * What has to hold: a request that is not malformed gives a head of one line for each field, so no
 * field can add one; and http2_head() refuses it, or reads exactly these fields.
 */
#include <stdlib.h>

#include "base/must.h"
#include "t/fuzz/fuzz.h"
#include "wire/http1/http1.h"
#include "wire/http2/frames.h"
#include "wire/http2/reply.h"
#include "wire/http2/request.h"

#define MAX_HEAD   2048
#define SMALL_HEAD 64
#define FIELDS     600

static const struct text known[] = {
	{ ":method", 7 },
	{ ":path", 5 },
	{ ":scheme", 7 },
	{ ":authority", 10 },
	{ ":protocol", 9 },
	{ "host", 4 },
	{ "cookie", 6 },
	{ "content-length", 14 },
	{ "te", 2 },
	{ "accept", 6 },
	{ "expect", 6 },
	{ "range", 5 },
	{ "connection", 10 },
	{ "transfer-encoding", 17 },
	{ "priority", 8 },
	{ "x", 1 },
};
#define N_KNOWN ((unsigned char)(sizeof(known) / sizeof(known[0])))

#define F(k, n, value) k n value
#define GET                       \
	F("\x00", "\x03", "GET")  \
	F("\x01", "\x02", "/a")   \
	F("\x02", "\x04", "http") \
	F("\x03", "\x01", "h")

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\x00" GET),
	SEED("\x01" GET F("\x07", "\x01", "5")),
	SEED("\x01" GET F("\x06", "\x01", "a") F("\x09", "\x03", "*/*") F("\x06", "\x03", "b=c")),
	SEED("\x00" GET F("\x05", "\x01", "h") F("\x12", "\x03", "aay y")
		F("\x08", "\x08", "trailers")),
	SEED("\x01" F("\x00", "\x07", "CONNECT") F("\x01", "\x02", "/a") F("\x02", "\x04", "http")
		F("\x03", "\x01", "h") F("\x04", "\x09", "websocket")),
	SEED("\x00" F("\x00", "\x07", "CONNECT") F("\x03", "\x04", "h:80")),
	SEED("\x03" GET F("\x0f", "\x20", "01234567890123456789012345678901")),
	SEED("\x00" GET F("\x0f", "\x05", "a\r\nb:") F("\x0c", "\x01", "x")),
	SEED("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\nA: b\r\n\r\n"),
	SEED("\0\0\3\1\5\0\0\0\1abc\0\0\1\0\0\0\0\0\1x"),
	SEED("\0\0\5\2\0\0\0\0\3\0\0\0\3\0"),
	SEED("HTTP/1.1 101 x\r\nUpgrade: a\r\nSec-WebSocket-Accept: a\r\n\r\n"),
	{ NULL, 0 },
};

struct field {
	struct text name, value;
};

static struct {
	struct field f[FIELDS];
	size_t n;
} in;

/* ---- the request */

static struct text
take_exactly(struct text *t, size_t n, char **exact)
{
	struct text part = text_take(t, n);

	*exact = malloc(part.n != 0 ? part.n : 1); /* a sanitizer sees a read past it */
	must(*exact != NULL);
	if (part.n != 0)
		memcpy(*exact, part.p, part.n);
	return (part);
}

static void
next_field(struct text *t, struct field *f)
{
	unsigned char k = (unsigned char)t->p[0], n = (unsigned char)t->p[1];

	text_take(t, 2);
	f->name = k < N_KNOWN ? known[k] : text_take(t, k - N_KNOWN);
	f->value = text_take(t, n);
}

static void
read_fields(struct text t)
{
	for (in.n = 0; t.n >= 2 && in.n < FIELDS; in.n++)
		next_field(&t, &in.f[in.n]);
}

static const char *
give_one(struct http2_request *q, const struct field *f)
{
	struct text name = f->name, value = f->value;
	char *p, *v;
	const char *why;

	name = take_exactly(&name, name.n, &p);
	value = take_exactly(&value, value.n, &v);
	why = http2_request_field(q, (struct text){ p, name.n }, (struct text){ v, value.n });
	free(p);
	free(v);
	return (why);
}

static const struct field *
find(struct text name)
{
	size_t i;

	for (i = 0; i < in.n; i++)
		if (text_eq(in.f[i].name, name))
			return (&in.f[i]);
	return (NULL);
}

static struct text
value_of(struct text name)
{
	const struct field *f = find(name);

	return (f != NULL ? f->value : TEXT_NONE);
}

/* A field that is a line of its own, in its order. */
static bool
is_line(const struct field *f)
{
	if (f->name.p[0] == ':' || text_eq(f->name, TEXT("cookie")))
		return (false);
	return (!text_eq(f->name, TEXT("host")) || find(TEXT(":authority")) == NULL);
}

static size_t
count_lines(bool tunnel, bool chunked)
{
	size_t i, n = 2; /* the first one, and the empty one */
	bool cookies = false;

	for (i = 0; i < in.n; i++) {
		n += is_line(&in.f[i]);
		cookies |= text_eq(in.f[i].name, TEXT("cookie")) && in.f[i].value.n != 0;
	}
	return (n + cookies + (find(TEXT(":authority")) != NULL) + 3u * tunnel + chunked);
}

static void
check_lines(struct text head, size_t want)
{
	size_t i, n = 0;

	for (i = 0; i < head.n; i++) {
		must(head.p[i] != '\0');
		must((head.p[i] == '\r') == (i + 1 < head.n && head.p[i + 1] == '\n'));
		n += head.p[i] == '\n';
	}
	must(n == want);
	must(text_ends(head, TEXT("\r\n\r\n")));
}

static void
check_request(const struct http_request *r, bool tunnel)
{
	size_t i, at = find(TEXT(":authority")) != NULL;

	must(r->major == 2);
	must(text_eq(r->method, tunnel ? TEXT("GET") : value_of(TEXT(":method"))));
	if (r->verb != HTTP_CONNECT)
		must(text_eq(r->target, value_of(TEXT(":path"))));
	for (i = 0; i < in.n; i++) {
		if (!is_line(&in.f[i]))
			continue;
		must(at < r->nheaders && text_eq(r->headers[at].name, in.f[i].name));
		if (!text_eq(in.f[i].name, TEXT("host"))) /* it has its normal form */
			must(text_eq(r->headers[at].value, in.f[i].value));
		at++;
	}
	must(at <= r->nheaders && r->nheaders <= at + 5);
}

static void
check_head(struct http2_request *q, struct text head, bool body)
{
	static struct http_request r;
	const char *why = NULL;
	size_t used = 0;
	int status = 0;
	enum parse s = http2_head(head, q->max, &r, &used, &status, &why);

	must(s != PARSE_MORE);
	if (q->cut != 0)
		must(s == PARSE_BAD);
	else
		check_lines(head,
		    count_lines(http2_request_is_tunnel(q), http2_request_is_chunked(q, body)));
	if (s == PARSE_BAD) {
		must(status >= 400 && status < 600);
		return;
	}
	must(used == head.n);
	must(r.chunked == http2_request_is_chunked(q, body));
	check_request(&r, http2_request_is_tunnel(q));
}

static void
check_fields(size_t max, bool body)
{
	static struct http2_request q;
	const char *why = NULL;
	struct text head;
	size_t i;

	if (q.max == 0)
		http2_request_init(&q, max);
	q.max = max;
	http2_request_begin(&q);
	for (i = 0; i < in.n && why == NULL; i++)
		why = give_one(&q, &in.f[i]);
	if (why == NULL)
		why = http2_request_end(&q, body, &head);
	must(q.head.cap + q.cookies.cap + q.values.cap <= 32u * MAX_HEAD);
	if (why == NULL)
		check_head(&q, head, body);
}

/* ---- the reply */

static void
check_reply_field(const struct http2_field *f, const char *head, size_t n)
{
	size_t i;

	must(f->name.n > 0 && f->name.p >= head && f->name.p + f->name.n <= head + n);
	must(f->value.n == 0 || (f->value.p >= head && f->value.p + f->value.n <= head + n));
	for (i = 0; i < f->name.n; i++)
		must(f->name.p[i] < 'A' || f->name.p[i] > 'Z');
	must(!text_eq(f->name, TEXT("connection")) && !text_eq(f->name, TEXT("transfer-encoding")));
	must(text_eq(text_trim(f->value), f->value));
}

static void
check_reply(struct text t)
{
	static struct http2_reply r;
	size_t used = 0;
	char *head;
	unsigned i;

	t = take_exactly(&t, t.n, &head);
	if (http2_reply_read(head, t.n, &r, &used) == PARSE_DONE) {
		must(used >= 4 && used <= t.n && memcmp(head + used - 2, "\r\n", 2) == 0);
		must(r.status >= 100 && r.status <= 999 && r.n <= HTTP2_REPLY_FIELDS);
		for (i = 0; i < r.n; i++)
			check_reply_field(&r.field[i], head, used);
	}
	free(head);
}

/* ---- frames */

static enum http2_wrong
look(struct text t, size_t part)
{
	enum http2_wrong w = HTTP2_RIGHT;
	struct http2_frames f;
	const char *why = NULL;

	http2_frames_init(&f);
	f.skip = 0; /* no preface */
	while (t.n != 0 && w == HTTP2_RIGHT)
		w = http2_frames_look(&f, text_take(&t, part), &why);
	must(w == HTTP2_RIGHT || why != NULL);
	return (w);
}

/* Any split gives one answer. */
static void
check_frames(struct text t)
{
	enum http2_wrong w = look(t, t.n);

	must(look(t, 1) == w && look(t, 5) == w && look(t, t.n / 2 + 1) == w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n == 0)
		return (0);
	check_reply((struct text){ (const char *)p, n });
	check_frames((struct text){ (const char *)p, n });
	read_fields((struct text){ (const char *)p + 1, n - 1 });
	check_fields((p[0] & 2) != 0 ? SMALL_HEAD : MAX_HEAD, (p[0] & 1) != 0);
	return (0);
}
