/* t/unit/wire/http1.c -- request heads: tables of bytes to results, each fed whole, byte by byte
 * and at every split. */
#include "t/unit/wire/rows.h"

static char *
show(struct text t)
{
	return (g_strndup(t.p != NULL ? t.p : "", t.n));
}

/* The outcome of a request, as one line. */
static char *
tell_request(const struct http_request *r)
{
	g_autofree char *method = show(r->method), *target = show(r->target), *path = show(r->path);
	g_autofree char *query = show(r->query), *host = show(r->host);

	return (g_strdup_printf("%s %s path=%s query=%s host=%s 1.%d %s%s%s cl=%" G_GINT64_FORMAT
				" n=%d",
	    method, target, path, query, host, r->minor, r->keep_alive ? "keep" : "close",
	    r->chunked ? " chunked" : "", r->expect_continue ? " expect" : "", r->content_length,
	    r->nheaders));
}

/* Length up to the first empty line that is not at the beginning. */
static size_t
head_length(const char *p)
{
	const char *from = p + strspn(p, "\r\n");

	return ((size_t)(strstr(from, "\r\n\r\n") - p) + 4);
}

/* No slice points to the head where it was. */
static void
move_head(struct http_request *r, struct text *in)
{
	struct text now = copy(in->p, in->n);

	http1_head_moved(r, *in, now.p);
	memset((char *)in->p, 'X', in->n);
	free((char *)in->p);
	*in = now;
}

static char *
parse(const char *p, size_t n, size_t max_head)
{
	struct text in = copy(p, n);
	struct http_request r;
	const char *why = NULL;
	char *told = NULL;
	size_t used = 0;
	int status = 0;

	memset(&r, 0xa5, sizeof(r));
	switch (http1_head(in, max_head, &r, &used, &status, &why)) {
	case PARSE_MORE: told = g_strdup("more"); break;
	case PARSE_DONE:
		g_assert_cmpuint(used, ==, head_length(p));
		move_head(&r, &in);
		told = tell_request(&r);
		break;
	case PARSE_BAD:
		g_assert_nonnull(why);
		told = g_strdup_printf("%d", status);
		break;
	}
	free((char *)in.p);
	return (told);
}

/* Every prefix gives "more" until one gives the answer, and no byte after that changes it. */
static void
check_row(const struct row *row, size_t max_head)
{
	bool told = false;
	size_t n;

	for (n = 0; n <= row->n; n++) {
		g_autofree char *got = parse(row->bytes, n, max_head);

		if (!told && strcmp(got, "more") == 0)
			continue;
		told = true;
		if (strcmp(got, row->want) != 0)
			g_error("%zu bytes of \"%s\": got %s, want %s", n, row->bytes, got,
			    row->want);
	}
	if (told != (strcmp(row->want, "more") != 0))
		g_error("\"%s\": want %s", row->bytes, row->want);
}

static void
check_rows(gconstpointer rows)
{
	const struct row *row;

	for (row = rows; row->bytes != NULL; row++)
		check_row(row, MAX_HEAD);
}

#define GET  "GET / HTTP/1.1\r\n"
#define HOST "Host: h\r\n"

/* Applications read the field: it says the same as the host that conditions see. */
TEST("/http1/host-field")
{
	static const char *const heads[] = {
		GET "X: y\r\nHost: WWW.Example.ORG.:80\r\n\r\n",
		"GET http://www.Example.org:80/ HTTP/1.1\r\nX: y\r\nHost: other\r\n\r\n",
	};
	struct http_request r;
	const char *why;
	size_t i, used;
	int status;

	for (i = 0; i < G_N_ELEMENTS(heads); i++) {
		g_assert_cmpint(http1_head(text_of(heads[i]), MAX_HEAD, &r, &used, &status, &why),
		    ==, PARSE_DONE);
		g_assert_true(text_eq(r.host, TEXT("www.example.org")));
		g_assert_true(text_eq(r.headers[1].value, r.host));
		g_assert_true(text_eq(r.known[HH_HOST], r.host));
	}
}

static const struct row good[] = {
	ROW("GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n",
	    "GET / path=/ query= host=localhost:8080 1.1 keep cl=-1 n=1"),
	ROW("GET /a/b%20c?x=1?y HTTP/1.1\r\nHost: h\r\n\r\nGET /next",
	    "GET /a/b%20c?x=1?y path=/a/b%20c query=x=1?y host=h 1.1 keep cl=-1 n=1"),
	ROW("\r\n\r\nGET / HTTP/1.1\r\nhOsT:h\r\n\r\n",
	    "GET / path=/ query= host=h 1.1 keep cl=-1 n=1"),
	ROW("GET / HTTP/1.0\r\n\r\n", "GET / path=/ query= host= 1.0 close cl=-1 n=0"),
	ROW("GET / HTTP/1.0\r\nConnection: foo, Keep-Alive\r\n\r\n",
	    "GET / path=/ query= host= 1.0 keep cl=-1 n=1"),
	ROW("GET / HTTP/1.7\r\n" HOST "\r\n", "GET / path=/ query= host=h 1.1 keep cl=-1 n=1"),
	ROW(GET HOST "Connection: x\r\nConnection:  close \t\r\n\r\n",
	    "GET / path=/ query= host=h 1.1 close cl=-1 n=3"),
	ROW(GET HOST "Connection: keep-alive, close\r\n\r\n",
	    "GET / path=/ query= host=h 1.1 close cl=-1 n=2"),
	ROW(GET "Host: \r\n\r\n", "GET / path=/ query= host= 1.1 keep cl=-1 n=1"),
	ROW(GET "Host:\r\n\r\n", "GET / path=/ query= host= 1.1 keep cl=-1 n=1"),
	ROW(GET "Host: [::1]:80\r\n\r\n", "GET / path=/ query= host=[::1] 1.1 keep cl=-1 n=1"),
	ROW(GET "Host: [2001:DB8:0:0::1]:08080\r\n\r\n",
	    "GET / path=/ query= host=[2001:db8::1]:8080 1.1 keep cl=-1 n=1"),
	ROW(GET "Host: a_b-C.d:\r\n\r\n", "GET / path=/ query= host=a_b-c.d 1.1 keep cl=-1 n=1"),
	ROW(GET "Host: WWW.Example.ORG.:80\r\n\r\n",
	    "GET / path=/ query= host=www.example.org 1.1 keep cl=-1 n=1"),
	ROW(GET "Host: 127.0.0.1.:81\r\n\r\n",
	    "GET / path=/ query= host=127.0.0.1:81 1.1 keep cl=-1 n=1"),
	ROW("GET HTTP://Other.:81/p?q HTTP/1.1\r\n" HOST "\r\n",
	    "GET /p?q path=/p query=q host=other:81 1.1 keep cl=-1 n=1"),
	ROW("GET https://other HTTP/1.1\r\n" HOST "\r\n",
	    "GET / path=/ query= host=other 1.1 keep cl=-1 n=1"),
	ROW("OPTIONS http://other HTTP/1.1\r\n" HOST "\r\n",
	    "OPTIONS * path=* query= host=other 1.1 keep cl=-1 n=1"),
	ROW("OPTIONS * HTTP/1.1\r\n" HOST "\r\n",
	    "OPTIONS * path=* query= host=h 1.1 keep cl=-1 n=1"),
	ROW("BREW /pot HTTP/1.1\r\n" HOST "\r\n",
	    "BREW /pot path=/pot query= host=h 1.1 keep cl=-1 n=1"),
	ROW("POST /f HTTP/1.1\r\n" HOST "Content-Length: 0012\r\n\r\n0123",
	    "POST /f path=/f query= host=h 1.1 keep cl=12 n=2"),
	ROW("POST /f HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n" HOST "\r\n",
	    "POST /f path=/f query= host=h 1.1 keep chunked cl=-1 n=2"),
	ROW("POST /f HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n" HOST "\r\n",
	    "POST /f path=/f query= host=h 1.1 keep expect cl=1 n=3"),
	ROW("POST /f HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
	    "POST /f path=/f query= host= 1.0 close cl=1 n=2"),
	ROW(GET HOST "X: a\tb \x80\xff\r\nX_Y:\r\n!#$%&'*+-.^_`|~1:v\r\n\r\n",
	    "GET / path=/ query= host=h 1.1 keep cl=-1 n=4"),
	ROW(GET HOST, "more"),
	ROW("", "more"),
	{ NULL },
};

static const struct row bad_line[] = {
	ROW("GET / HTTP/1.1\n" HOST "\r\n", "400"),
	ROW("\nGET / HTTP/1.1\r\n", "400"),
	ROW("\rGET / HTTP/1.1\r\n", "400"),
	ROW("\r\n\r\n\r\n\r\n\r\n", "400"),
	ROW(" GET / HTTP/1.1\r\n", "400"),
	ROW("GET\t/ HTTP/1.1\r\n", "400"),
	ROW("G\0T / HTTP/1.1\r\n", "400"),
	ROW("GE(T / HTTP/1.1\r\n", "400"),
	ROW("GET\r\n", "400"),
	ROW("GET  / HTTP/1.1\r\n", "400"),
	ROW("GET /\r\n", "400"),
	ROW("GET / \r\n", "400"),
	ROW("GET /a b HTTP/1.1\r\n", "400"),
	ROW("GET /a\tb HTTP/1.1\r\n", "400"),
	ROW("GET /a\0b HTTP/1.1\r\n", "400"),
	ROW("GET /a\x7f HTTP/1.1\r\n", "400"),
	ROW("GET /a\xc3\xa4 HTTP/1.1\r\n", "400"),
	ROW("GET /0123456789abcdef\xc3\xa4 HTTP/1.1\r\n", "400"),
	ROW("GET /0123456789abcdef#x HTTP/1.1\r\n", "400"),
	ROW("GET /a#b HTTP/1.1\r\n", "400"),
	ROW("GET a HTTP/1.1\r\n", "400"),
	ROW("GET * HTTP/1.1\r\n", "400"),
	ROW("OPTIONS *x HTTP/1.1\r\n", "400"),
	ROW("GET ftp://h/ HTTP/1.1\r\n", "400"),
	ROW("GET http:///p HTTP/1.1\r\n", "400"),
	ROW("GET http://:80/p HTTP/1.1\r\n", "400"),
	ROW("GET http://u@h/p HTTP/1.1\r\n", "400"),
	ROW("GET http://h?q HTTP/1.1\r\n", "400"),
	ROW("GET http:/h/p HTTP/1.1\r\n", "400"),
	ROW("CONNECT h:443 HTTP/1.1\r\n", "501"),
	ROW("GET / HTTP/1.1 \r\n", "400"),
	ROW("GET / HTTP/1.1\rX", "400"),
	ROW("GET /  HTTP/1.1\r\n", "400"),
	ROW("GET / http/1.1\r\n", "400"),
	ROW("GET / HTTP/1\r\n", "400"),
	ROW("GET / HTTP/1.\r\n", "400"),
	ROW("GET / HTTP/1.10\r\n", "400"),
	ROW("GET / HTTP/11.1\r\n", "400"),
	ROW("GET / HTTP/1,1\r\n", "400"),
	ROW("GET / HTTP /1.1\r\n", "400"),
	ROW("GET / FTP/1.1\r\n", "400"),
	ROW("GET / HTTP/2.0\r\n", "505"),
	ROW("GET / HTTP/0.9\r\n", "505"),
	ROW("GET / HTTP/3.5X", "400"),
	ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
	ROW("\x16\x03\x01\x02\x00\x01", "400"),
	{ NULL },
};

static const struct row bad_field[] = {
	ROW(GET "\r\n", "400"),
	ROW(GET HOST HOST "\r\n", "400"),
	ROW("GET / HTTP/1.0\r\n" HOST HOST "\r\n", "400"),
	ROW("GET http://h/ HTTP/1.1\r\n\r\n", "400"),
	ROW(GET HOST "X: a\nY: b\r\n\r\n", "400"),
	ROW(GET HOST "X: a\rY: b\r\n\r\n", "400"),
	ROW(GET HOST "X: a\r\r\n\r\n", "400"),
	ROW(GET HOST "X: a\r\n\rX", "400"),
	ROW(GET HOST "\nX: a", "400"),
	ROW(GET HOST "X: a\0b\r\n", "400"),
	ROW(GET HOST "X: 0123456789abcdef\0b\r\n", "400"),
	ROW(GET HOST "X: 0123456789abcdef\x7f\r\n", "400"),
	ROW(GET HOST "X: a\x01\r\n", "400"),
	ROW(GET HOST "X: a\x1b[0m\r\n", "400"),
	ROW(GET HOST "X: a\r\n b\r\n", "400"),
	ROW(GET HOST "X: a\r\n\tb\r\n", "400"),
	ROW(GET " X: a\r\n", "400"),
	ROW(GET "Host : h\r\n\r\n", "400"),
	ROW(GET HOST "X\t: a\r\n", "400"),
	ROW(GET HOST ": a\r\n", "400"),
	ROW(GET HOST "X\r\n", "400"),
	ROW(GET HOST "X Y: a\r\n", "400"),
	ROW(GET HOST "X\0: a\r\n", "400"),
	ROW(GET HOST "X\xc3: a\r\n", "400"),
	ROW(GET HOST "X\"Y: a\r\n", "400"),
	ROW(GET "Host: a b\r\n", "400"),
	ROW(GET "Host: a/b\r\n", "400"),
	ROW(GET "Host: u@h\r\n", "400"),
	ROW(GET "Host: :80\r\n", "400"),
	ROW(GET "Host: h:8x\r\n", "400"),
	ROW(GET "Host: h:65536\r\n", "400"),
	ROW(GET "Host: h:80:80\r\n", "400"),
	ROW(GET "Host: h%4\r\n", "400"),
	ROW(GET "Host: h%zz\r\n", "400"),
	ROW(GET "Host: ::1\r\n", "400"),
	ROW(GET "Host: [::1\r\n", "400"),
	ROW(GET "Host: [::g]\r\n", "400"),
	ROW(GET "Host: []\r\n", "400"),
	ROW(GET "Host: [::1]x\r\n", "400"),
	ROW(GET "Host: h\xc3\xa4\r\n", "400"),
	ROW(GET "Host: h\"\r\n", "400"),
	ROW(GET "Host: h\\\r\n", "400"),
	ROW(GET "Content-Length:\r\n", "400"),
	ROW(GET "Content-Length: -1\r\n", "400"),
	ROW(GET "Content-Length: +1\r\n", "400"),
	ROW(GET "Content-Length: 0x1\r\n", "400"),
	ROW(GET "Content-Length: 1 1\r\n", "400"),
	ROW(GET "Content-Length: 1, 1\r\n", "400"),
	ROW(GET "Content-Length: 1.0\r\n", "400"),
	ROW(GET "Content-Length: 9223372036854775808\r\n", "400"),
	ROW(GET "Content-Length: 18446744073709551617\r\n", "400"),
	ROW(GET "Content-Length: 1\r\nContent-Length: 1\r\n", "400"),
	ROW(GET "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "400"),
	ROW(GET "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", "400"),
	ROW(GET "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "400"),
	ROW(GET "Transfer-Encoding: gzip\r\n", "501"),
	ROW(GET "Transfer-Encoding: chunked, chunked\r\n", "501"),
	ROW(GET "Transfer-Encoding: gzip, chunked\r\n", "501"),
	ROW(GET "Transfer-Encoding: identity\r\n", "501"),
	ROW(GET "Transfer-Encoding: xchunked\r\n", "501"),
	ROW(GET "Transfer-Encoding: chunked;q=1\r\n", "501"),
	ROW(GET "Transfer-Encoding: \"chunked\"\r\n", "501"),
	ROW(GET "Transfer-Encoding:\r\n", "400"),
	ROW(GET "Transfer-Encoding: \x0b"
		"chunked\r\n",
	    "400"),
	ROW("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", "400"),
	ROW(GET "Expect: 200-ok\r\n", "417"),
	ROW(GET "Expect: 100-continue, x\r\n", "417"),
	{ NULL },
};

/* The line with its CR LF has 16 bytes: a bound below that is the line's fault. */
TEST("/http1/limits")
{
	struct row row = ROW(GET HOST "X: 0123456789\r\n\r\n", "431");
	g_autofree char *fits = NULL;
	size_t max;

	for (max = 16; max < row.n; max++)
		check_row(&row, max);
	row.want = "414";
	for (max = 1; max < 16; max++)
		check_row(&row, max);
	fits = parse(row.bytes, row.n, row.n);
	g_assert_true(g_str_has_suffix(fits, "n=2"));
}

TEST("/http1/many-fields")
{
	g_autoptr(GString) s = g_string_new(GET HOST);
	struct row row;
	int i;

	for (i = 1; i < HTTP_MAX_HEADERS; i++)
		g_string_append(s, "X: y\r\n");
	g_string_append(s, "\r\n");
	row = (struct row){ s->str, s->len, "GET / path=/ query= host=h 1.1 keep cl=-1 n=100" };
	check_row(&row, MAX_HEAD);
	g_string_insert(s, (gssize)s->len - 2, "Y: y\r\n");
	row = (struct row){ s->str, s->len, "431" };
	check_row(&row, MAX_HEAD);
}

static const struct {
	enum http_known id;
	const char *name;
} all_known[] = {
	{ HH_HOST, "Host" },
	{ HH_CONNECTION, "Connection" },
	{ HH_RANGE, "Range" },
	{ HH_IF_RANGE, "If-Range" },
	{ HH_IF_MATCH, "If-Match" },
	{ HH_IF_NONE_MATCH, "If-None-Match" },
	{ HH_IF_MODIFIED_SINCE, "If-Modified-Since" },
	{ HH_IF_UNMODIFIED_SINCE, "If-Unmodified-Since" },
	{ HH_USER_AGENT, "User-Agent" },
	{ HH_REFERER, "Referer" },
	{ HH_COOKIE, "Cookie" },
};

static void
parse_done(const char *head, struct http_request *r)
{
	const char *why;
	size_t used;
	int status;

	g_assert_cmpint(http1_head(text_of(head), MAX_HEAD, r, &used, &status, &why), ==,
	    PARSE_DONE);
	g_assert_cmpuint(used, ==, strlen(head));
}

static void
check_known(const char *name, unsigned id, bool want)
{
	g_autofree char *head = g_strdup_printf("GET / HTTP/1.0\r\n%s: v1\r\n\r\n", name);
	struct http_request r;
	unsigned i;

	parse_done(head, &r);
	for (i = 0; i < HH_N; i++)
		g_assert_cmpint(r.known[i].p != NULL, ==, want && i == id);
	if (want)
		g_assert_true(text_eq(r.known[id], TEXT("v1")));
	g_assert_cmpuint(r.nheaders, ==, 1);
	g_assert_true(text_eq(r.headers[0].name, text_of(name)));
	g_assert_true(text_eq(r.headers[0].value, TEXT("v1")));
}

/* Each known name in three spellings, and with one letter changed, which must not be taken for
 * it. */
TEST("/http1/known")
{
	size_t i, at;

	for (i = 0; i < G_N_ELEMENTS(all_known); i++) {
		g_autofree char *lower = g_ascii_strdown(all_known[i].name, -1);
		g_autofree char *upper = g_ascii_strup(all_known[i].name, -1);

		check_known(all_known[i].name, all_known[i].id, true);
		check_known(lower, all_known[i].id, true);
		check_known(upper, all_known[i].id, true);
		for (at = 0; lower[at] != '\0'; at++) {
			char was = lower[at];

			lower[at] = '_';
			check_known(lower, HH_N, false);
			lower[at] = was;
		}
	}
}

TEST("/http1/repeated")
{
	struct http_request r;

	parse_done("GET / HTTP/1.0\r\nRange: bytes=0-1\r\nRange: bytes=0-1\r\nIf-Range: "
		   "\"a\"\r\n\r\n",
	    &r);
	g_assert_null(r.known[HH_RANGE].p);
	parse_done("GET / HTTP/1.0\r\nIf-Range: \"a\"\r\nRange: bytes=0-1\r\nIf-Range: "
		   "\"b\"\r\n\r\n",
	    &r);
	g_assert_null(r.known[HH_RANGE].p);
	parse_done("GET / HTTP/1.0\r\nIf-Modified-Since: a\r\nIf-Modified-Since: a\r\n"
		   "Cookie: a\r\nCookie: b\r\n\r\n",
	    &r);
	g_assert_null(r.known[HH_IF_MODIFIED_SINCE].p);
	g_assert_true(text_eq(r.known[HH_COOKIE], TEXT("a")));
	parse_done("GET / HTTP/1.0\r\nIf-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n\r\n", &r);
	g_assert_true(text_eq(r.known[HH_IF_NONE_MATCH], TEXT("\"a\"")));
}

TEST("/http1/slices")
{
	static const char head[] = "\r\nGET /p?q HTTP/1.1\r\nHost: h\r\nX:   a b\t \r\n\r\n";
	struct http_request r;

	parse_done(head, &r);
	g_assert_true(text_eq(r.line, TEXT("GET /p?q HTTP/1.1")));
	g_assert_true(r.line.p == head + 2);
	g_assert_true(text_eq(r.headers[1].name, TEXT("X")));
	g_assert_true(text_eq(r.headers[1].value, TEXT("a b")));
	g_assert_cmpuint(r.nheaders, ==, 2);
	g_assert_cmpint(r.verb, ==, HTTP_GET);
}

TEST("/http1/reason")
{
	g_assert_cmpstr(http1_reason(404), ==, "Not Found");
	g_assert_cmpstr(http1_reason(206), ==, "Partial Content");
	g_assert_nonnull(http1_reason(799));
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/http1/good", good, check_rows);
	g_test_add_data_func("/http1/bad-line", bad_line, check_rows);
	g_test_add_data_func("/http1/bad-field", bad_field, check_rows);
	return (tests_run());
}
