/* t/fuzz/fuzz_fcgi_request.c -- any bytes as a request that goes on to a FastCGI, an SCGI and an
 * HTTP application, and into the access log.
 *
 * What has to hold: records, and a netstring, that a second reader takes apart give each variable
 * once; what a client sends becomes HTTP_* and nothing else, joined from all its lines; the body
 * arrives as it was; our own parser reads one HTTP request of the same meaning; a log line stays
 * one line with three quoted fields.
 *
 * The first byte: flags.  The second: how often the fields, and the body, are repeated, for what is
 * larger than a record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/must.h"
#include "wire/urlpath.h"
#include "wire/http1/fields.h"
#include "wire/codec/codec.h"
#include "server/log/accesslog.h"
#include "wire/http1/http1.h"
#include "t/fuzz/fuzz.h"

#define MAX_HEAD    4096
#define CONTENT_MAX 65535u
#define VARS_MAX    (FIELDS_MAX + 64)

static const struct text believed[] = { TEXT("X-Forwarded-For"), TEXT("Forwarded") };

enum { KEEP = 1, HTTPS = 2, PATH_INFO = 4, REDIRECTED = 8, EMPTY_BODY = 16, TRUSTED = 32 };
enum { BEGIN = 1, PARAMS = 4, STDIN = 5 };

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\0\0GET /a%20b/c.php?x=1 HTTP/1.1\r\nHost: h:80\r\nCookie: a=1\r\nAccept: "
	     "x\r\ncookie: b=2\r\nACCEPT: y\r\n\r\n"),
	SEED("\1\0GET / HTTP/1.0\r\nProxy: http://evil\r\nX_Forwarded_For: "
	     "evil\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n"),
	SEED("\7\0POST /app/info HTTP/1.1\r\nHost: h\r\nContent-Type: text/x\r\nContent-Length: "
	     "5\r\n\r\nhello"),
	SEED("\16\0GET /x HTTP/1.1\r\nHost: h\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nTE: "
	     "x\r\nX-Sendfile-Type: X-Accel-Redirect\r\n\r\n"),
	SEED("\0\377GET / HTTP/1.0\r\nReferer: \"\\\"\r\nUser-Agent: \\x22 "
	     "\x7f\xff\r\n\r\n0123456789"),
	SEED("\1\372GET / HTTP/1.0\r\nA: "
	     "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
	     "5678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
	     "0123456789012345678901234567890123456789123456789012345678901234567890123456789012345"
	     "67890123456789012345678901234567890123456789012345678901234567890123456789\r\n\r\nxxx"
	     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
	{ NULL, 0 },
};

struct sent {
	struct http_request http;
	struct proxy_field *fields;
	struct proxy_request req;
	struct buf body;
	char *path;
	bool keep;
};

/* The result of the second reader. */
struct got {
	struct buf params, body;
	struct proxy_field var[VARS_MAX];
	size_t nvars;
};

/* ---------------------------------------------------------------- the request */

static bool
fill_path(struct sent *s)
{
	int n;

	s->path = malloc(s->http.path.n + 1);
	must(s->path != NULL);
	n = urlpath_clean(s->http.path, s->path);
	s->req.path = (struct text){ s->path, n > 0 ? (size_t)n : 0 };
	return (n > 0);
}

static void
fill_fields(struct sent *s, unsigned times)
{
	size_t i, n = s->http.nheaders;

	s->fields = calloc(n * times + 1, sizeof(*s->fields));
	must(s->fields != NULL);
	for (i = 0; i < n * times; i++)
		s->fields[i] = (struct proxy_field){ s->http.headers[i % n].name,
			s->http.headers[i % n].value };
	s->req.headers = s->fields;
	s->req.nheaders = n * times;
}

static void
fill(struct sent *s, struct text body, unsigned flags, unsigned times)
{
	struct proxy_request *q = &s->req;
	const struct http_request *h = &s->http;
	const char *slash = memrchr(q->path.p, '/', q->path.n);

	fill_fields(s, times);
	for (; times > 0; times--)
		buf_text(&s->body, body);
	s->keep = (flags & KEEP) != 0;
	q->id = "c1.1";
	q->method = h->method;
	q->target = h->target;
	q->query = h->query.p != NULL ? h->query : TEXT("");
	q->protocol = h->minor == 0 ? TEXT("HTTP/1.0") : TEXT("HTTP/1.1");
	q->host = q->server_name = h->host.p != NULL ? h->host : TEXT("");
	q->scheme = (flags & HTTPS) != 0 ? TEXT("https") : TEXT("http");
	q->docroot = TEXT("/srv");
	q->script_filename = TEXT("/srv/x");
	if ((flags & PATH_INFO) != 0 && slash != NULL)
		q->path_info = (struct text){ slash, q->path.n - (size_t)(slash - q->path.p) };
	q->redirect_uri = (flags & REDIRECTED) != 0 ? q->target : TEXT("");
	q->remote_addr = TEXT("192.0.2.7");
	q->server_addr = TEXT("192.0.2.1");
	q->remote_port = 40000;
	q->forward = FORWARD_X | FORWARD_STANDARD;
	q->peer_trusted = (flags & TRUSTED) != 0;
	q->claims = believed;
	q->nclaims = NELEM(believed);
	q->server_port = 80;
	q->content_length = s->body.n > 0 || (flags & EMPTY_BODY) != 0 ? (int64_t)s->body.n : -1;
}

/* ---------------------------------------------------------------- the second reader */

static unsigned
u16(const unsigned char *p)
{
	return ((unsigned)p[0] << 8 | p[1]);
}

/* The next record, of id 1 and without padding. */
static unsigned
take_record(struct text *in, struct text *content)
{
	const unsigned char *p = (const unsigned char *)in->p;

	must(in->n >= 8 && p[0] == 1 && u16(p + 2) == 1 && p[6] == 0 && p[7] == 0);
	content->p = in->p + 8;
	content->n = u16(p + 4);
	must(in->n - 8 >= content->n);
	in->p += 8 + content->n;
	in->n -= 8 + content->n;
	return (p[1]);
}

/* A stream up to its empty record; all but the last one before that are full. */
static void
take_stream(struct text *in, unsigned type, struct buf *to)
{
	struct text content;
	bool last = false;

	while (must(take_record(in, &content) == type), content.n > 0) {
		must(!last);
		last = content.n < CONTENT_MAX;
		buf_text(to, content);
	}
}

static size_t
take_length(struct text *in)
{
	const unsigned char *p = (const unsigned char *)in->p;
	size_t n, used;

	must(in->n > 0 && (p[0] < 128 || in->n >= 4));
	used = p[0] < 128 ? 1 : 4;
	n = used == 1 ? p[0] : (size_t)(p[0] & 127) << 24 | (size_t)p[1] << 16 | u16(p + 2);
	must(used == 1 || n >= 128);
	in->p += used;
	in->n -= used;
	return (n);
}

static struct text
take_text(struct text *in, size_t n)
{
	struct text t = { in->p, n };

	must(n <= in->n);
	in->p += n;
	in->n -= n;
	return (t);
}

static void
take_pairs(struct got *g)
{
	struct text in = buf_as_text(&g->params);
	size_t name, value;

	while (in.n > 0) {
		must(g->nvars < VARS_MAX);
		name = take_length(&in);
		value = take_length(&in);
		g->var[g->nvars].name = take_text(&in, name);
		g->var[g->nvars++].value = take_text(&in, value);
	}
}

/* LENGTH ":", a NUL after each name and each value, "," and the body. */
static void
take_netstring(struct got *g, struct text in)
{
	struct text length = { in.p, 0 }, name, value;
	uint64_t n = 0;

	while (length.n < in.n && in.p[length.n] != ':')
		length.n++;
	must(text_u64(length, &n) == 0 && length.p[0] != '0' && in.n > length.n + 1 + n);
	in.p += length.n + 1;
	in.n -= length.n + 1;
	buf_text(&g->params, take_text(&in, n));
	must(text_eq(take_text(&in, 1), TEXT(",")));
	buf_text(&g->body, in);
	in = buf_as_text(&g->params);
	must(in.p[in.n - 1] == '\0');
	in.n--; /* so that nothing stands after the last value */
	while (in.p != NULL) {
		must(g->nvars < VARS_MAX && text_next(&in, '\0', &name) &&
		     text_next(&in, '\0', &value));
		g->var[g->nvars++] = (struct proxy_field){ name, value };
	}
	must(text_eq(g->var[0].name, TEXT("CONTENT_LENGTH")) &&
	     text_eq(g->var[1].name, TEXT("SCGI")));
	must(text_eq(g->var[1].value, TEXT("1")));
}

static struct text
variable(const struct got *g, const char *name)
{
	size_t i;

	for (i = 0; i < g->nvars; i++)
		if (text_eq(g->var[i].name, text_of(name)))
			return (g->var[i].value);
	return (TEXT_NONE);
}

/* ---------------------------------------------------------------- what an application may be
 * told */

/* A field's name as a variable; false: it holds what may not become one. */
static bool
as_variable(struct text name, struct buf *to)
{
	size_t i;
	char c;

	buf_str(to, "HTTP_");
	for (i = 0; i < name.n; i++) {
		c = name.p[i];
		if (c == '_')
			return (false);
		buf_char(to, c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
	}
	return (true);
}

/* All lines of the client with that name, in order, with a separator, and no others. */
static void
check_client_variable(const struct sent *s, struct text name, struct text value)
{
	const char *sep = text_eq(name, TEXT("HTTP_COOKIE")) ? "; " : ", ";
	struct buf as, all = { 0 };
	bool any = false;
	size_t i;

	for (i = 0; i < s->req.nheaders; i++) {
		as = (struct buf){ 0 };
		if (as_variable(s->fields[i].name, &as) && text_eq(buf_as_text(&as), name)) {
			if (all.n > 0)
				buf_str(&all, sep);
			buf_text(&all, s->fields[i].value);
			any = true;
		}
		buf_free(&as);
	}
	must(any && text_eq(buf_as_text(&all), value));
	buf_free(&all);
}

static void
check_variable(const struct sent *s, const struct got *g, size_t i)
{
	static const char *const never[] = {
		"HTTP_PROXY",
		"HTTP_CONTENT_LENGTH",
		"HTTP_CONTENT_TYPE",
		"HTTP_CONNECTION",
		"HTTP_TE",
		"HTTP_TRANSFER_ENCODING",
		"HTTP_UPGRADE",
		"HTTP_KEEP_ALIVE",
		"HTTP_X_SENDFILE_TYPE",
		"HTTP_X_ACCEL_MAPPING",
	};
	static const char *const ours[] = { "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO",
		"HTTP_X_FORWARDED_HOST", "HTTP_X_HOST", "HTTP_FORWARDED" };
	struct text name = g->var[i].name, value = g->var[i].value;
	size_t k;

	must(name.n > 0 && memchr(value.p, '\0', value.n) == NULL);
	for (k = 0; k < name.n; k++)
		must((name.p[k] >= 'A' && name.p[k] <= 'Z') ||
		     (name.p[k] >= '0' && name.p[k] <= '9') || name.p[k] == '_');
	for (k = 0; k < i; k++)
		must(!text_eq(g->var[k].name, name));
	for (k = 0; k < NELEM(never); k++)
		must(!text_eq(name, text_of(never[k])));
	for (k = 0; k < NELEM(ours); k++)
		if (text_eq(name, text_of(ours[k])))
			return;
	if (text_starts(name, TEXT("HTTP_")))
		check_client_variable(s, name, value);
}

static void
check_known(const struct sent *s, const struct got *g, bool always)
{
	struct text length = variable(g, "CONTENT_LENGTH"),
		    from = variable(g, "HTTP_X_FORWARDED_FOR");
	struct text script = variable(g, "SCRIPT_NAME"), info = variable(g, "PATH_INFO"),
		    target = variable(g, "REQUEST_URI");
	uint64_t n = 0;

	must(text_eq(variable(g, "REQUEST_METHOD"), s->req.method) &&
	     text_eq(target, s->req.target));
	must(text_ends(from, s->req.remote_addr));
	must((length.p != NULL) == (always || s->req.content_length >= 0));
	must(length.p == NULL || (text_u64(length, &n) == 0 && n == s->body.n));
	must(script.n + info.n == s->req.path.n && memcmp(script.p, s->req.path.p, script.n) == 0);
	must((variable(g, "HTTPS").p != NULL) == text_eq(s->req.scheme, TEXT("https")));
}

static void
check_got(const struct sent *s, struct got *g, bool always)
{
	size_t i;

	for (i = 0; i < g->nvars; i++)
		check_variable(s, g, i);
	check_known(s, g, always);
	must(text_eq(buf_as_text(&g->body), buf_as_text(&s->body)));
	buf_free(&g->params);
	buf_free(&g->body);
}

static void
check_fastcgi(const struct sent *s, struct text in)
{
	static struct got g;
	struct text begin;

	g = (struct got){ .nvars = 0 };
	must(take_record(&in, &begin) == BEGIN && begin.n == 8);
	must(begin.p[0] == 0 && begin.p[1] == 1 && begin.p[2] == s->keep);
	take_stream(&in, PARAMS, &g.params);
	take_pairs(&g);
	take_stream(&in, STDIN, &g.body);
	must(in.n == 0);
	check_got(s, &g, false);
}

static void
check_scgi(const struct sent *s, struct text in)
{
	static struct got g;

	g = (struct got){ .nvars = 0 };
	take_netstring(&g, in);
	check_got(s, &g, true);
}

/* Our own parser finds the same request, with the same length, and nothing after it. */
static void
check_http(const struct sent *s, struct text in)
{
	static struct http_request r;
	const char *why = NULL;
	size_t used = 0;
	int status = 0;

	if (s->req.nheaders > HTTP_MAX_HEADERS - 10)
		return; /* the parser takes fewer */
	must(http1_head(in, in.n + 1, &r, &used, &status, &why) == PARSE_DONE);
	must(text_eq(r.method, s->req.method) && text_eq(r.target, s->req.target));
	must(r.minor == 1 && r.keep_alive == s->keep && !r.chunked && !r.expect_continue);
	must(r.content_length == s->req.content_length);
	text_take(&in, used);
	must(text_eq(in, buf_as_text(&s->body)));
}

static void
check_request(const struct sent *s, const struct proto *p,
    void (*check)(const struct sent *, struct text))
{
	void *state = calloc(1, p->size);
	struct buf out;
	int err;

	must(state != NULL);
	buf_init(&out, 0);
	err = p->request(state, &s->req, s->keep, &out);
	must(err == 0 || err == -E2BIG);
	must(s->req.nheaders <= FIELDS_MAX || err == -E2BIG);
	if (err == 0) {
		must(out.n <= PROTO_REQUEST_MAX);
		if (s->body.n > 0)
			p->body(state, buf_as_text(&s->body), &out);
		p->body_end(state, &out);
		check(s, buf_as_text(&out));
	}
	buf_free(&out);
	free(state);
}

static void
check_requests(const struct sent *s)
{
	extern const struct proto proto_fastcgi, proto_scgi, proto_http;

	check_request(s, &proto_fastcgi, check_fastcgi);
	check_request(s, &proto_scgi, check_scgi);
	check_request(s, &proto_http, check_http);
}

/* ---------------------------------------------------------------- the access log */

static void
check_log(const struct http_request *h)
{
	struct access a = { .remote = TEXT("192.0.2.7"),
		.user = h->host,
		.line = h->line,
		.referer = h->known[HH_REFERER],
		.agent = h->known[HH_USER_AGENT],
		.status = 200,
		.bytes = 1,
		.date = "Sun, 06 Nov 1994 08:49:37 GMT" };
	unsigned quotes = 0;
	struct buf b;
	size_t i;

	buf_init(&b, 0);
	accesslog_line(&b, &a);
	must(b.n > 0 && !b.failed && b.p[b.n - 1] == '\n');
	for (i = 0; i + 1 < b.n; i++) {
		must((unsigned char)b.p[i] >= 0x20 && b.p[i] != 0x7f);
		must(b.p[i] != '\\' || b.p[i + 1] == 'x');
		quotes += b.p[i] == '"';
	}
	must(quotes == 6);
	buf_free(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct sent s;
	struct text in;
	const char *why = NULL;
	size_t used = 0;
	int status = 0;

	if (n < 2)
		return (0);
	s = (struct sent){ .body = { 0 } };
	in = (struct text){ (const char *)p + 2, n - 2 };
	if (http1_head(in, MAX_HEAD, &s.http, &used, &status, &why) != PARSE_DONE)
		return (0);
	check_log(&s.http);
	if (fill_path(&s)) {
		fill(&s, (struct text){ in.p + used, in.n - used }, p[0], p[1] + 1u);
		check_requests(&s);
	}
	free(s.path);
	free(s.fields);
	buf_free(&s.body);
	return (0);
}
