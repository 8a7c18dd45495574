/* t/unit/wire/http.c -- HTTP/1.1 from the client's side: what is sent, and replies cut anywhere. */
#include "t/unit/wire/events.h"
#include "t/unit/wire/wire_test.h"
#include "wire/http1/http1.h"

extern const struct proto proto_http;
static const struct proto *const http = &proto_http;

/* ---------------------------------------------------------------- replies */

static const char *method = "GET";
static bool asks_upgrade, closes;

/* proto_http after a request: how a reply is read depends on it. */
static void
asked_reply(void *state, struct reply_head *h, struct text *in, struct buf *none,
    struct proto_event *ev)
{
	char *started = (char *)state + http->size;
	struct proxy_request r = a_request(method);
	struct buf out;

	if (*started == 0) {
		*started = 1;
		buf_init(&out, 0);
		r.upgrade = asks_upgrade ? TEXT("websocket") : TEXT("");
		g_assert_cmpint(http->request(state, &r, !closes, &out), ==, 0);
		buf_free(&out);
	}
	http->reply(state, h, in, NULL, ev);
}

static void
check_asked(const char *verb, bool upgrade, bool close, const char *bytes, const char *want)
{
	struct proto asked = *http;
	struct buf b;

	method = verb;
	asks_upgrade = upgrade;
	closes = close;
	asked.size = http->size + 1;
	asked.reply = asked_reply;
	buf_init(&b, 0);
	buf_str(&b, bytes);
	check_events(&asked, &b, want);
}

static void
check(const char *bytes, const char *want)
{
	check_asked("GET", false, false, bytes, want);
}

#define OK11 "HTTP/1.1 200 OK\r\n"

TEST("/http/a reply with a Content-Length, at every split")
{
	check(OK11 "Content-Length: 5\r\n\r\nhello", "H200 b:hello E+");
	check(OK11 "content-length:0\r\n\r\n", "H200 E+");
	check("HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nno", "H404 b:no E+");
	check("HTTP/1.1 404 \r\nContent-Length: 2\r\n\r\nno", "H404 b:no E+");
	check("HTTP/1.7 599 \xff\tx\nContent-Length: 2\n\nno", "H599 b:no E+");
	check(OK11 "Status: 404\r\nContent-Length: 2\r\n\r\nok", "H200 b:ok E+");
	check("HTTP/1.1 304 x\r\nContent-Length: 900\r\n\r\n", "H304 E+");
	check("HTTP/1.1 304 x\r\nTransfer-Encoding: chunked\r\n\r\n", "H304 E+");
	check("HTTP/1.1 204 x\r\n\r\n", "H204 E+");
	check_asked("HEAD", false, false, OK11 "Content-Length: 9\r\n\r\n", "H200 E+");
	check_asked("HEAD", false, false, OK11 "Transfer-Encoding: chunked\r\n\r\n", "H200 E+");
	check_asked("HEAD", false, false, OK11 "\r\n", "H200 E+");
}

#define CHUNKS OK11 "Transfer-Encoding: chunked\r\n"

TEST("/http/fields after the chunks, at every split")
{
	check(CHUNKS "\r\n1\r\n!\r\n0\r\nX-Sum:  5 \r\na:\r\n\r\n", "H200 b:! E+ X-Sum=5 a=");
	check(CHUNKS "\r\n0\r\nDate: x\r\na:b\r\nX-Sendfile: /x\r\nIf-Match: x\r\nTE: x\r\n\r\n",
	    "H200 E+ a=b");
	check(CHUNKS "\r\n0\r\nSet-Cookie: a=b\r\n\r\n", "H200 E+");
	check(CHUNKS "\r\n0\r\nX-Sum: 5\r\n", "H200 bad");
	check(CHUNKS "Connection: x, keep-alive\r\n\r\n0\r\na:b\r\n\r\n", "H200 E+");
	check(CHUNKS "Connection: close\r\nConnection: ,te\r\n\r\n0\r\na:b\r\n\r\n", "H200 E- a=b");
}

TEST("/http/a reply in chunks, at every split")
{
	check(OK11 "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
	    "H200 b:hello! E+");
	check(OK11 "Transfer-Encoding: Chunked\r\n\r\n0\r\nA: b\r\nX-Sendfile: c\r\n\r\n",
	    "H200 E+ A=b");
	check(OK11 "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", "H200 b:hel bad");
	check(OK11 "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "H200 b:ab bad");
	check(OK11 "Transfer-Encoding: chunked\r\n\r\n0\r\n", "H200 bad");
	check(OK11 "Transfer-Encoding: chunked\r\n\r\n-1\r\n", "H200 bad");
	check(OK11 "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "H200 b:ab bad");
	check(OK11 "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "H200 bad");
}

TEST("/http/a reply to the end of the stream")
{
	check(OK11 "\r\nhello", "H200 b:hello E-");
	check(OK11 "\r\n", "H200 E-");
	check("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello", "H200 b:hello E-");
}

TEST("/http/which sockets are kept")
{
	check("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "H200 b:ok E-");
	check("HTTP/1.0 200 x\r\nConnection: x, Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
	    "H200 b:ok E+");
	check(OK11 "Connection: keep-alive\r\nConnection: x , Close\r\nContent-Length: 2\r\n\r\nok",
	    "H200 b:ok E-");
	check_asked("GET", false, true, OK11 "Content-Length: 2\r\n\r\nok", "H200 b:ok E-");
}

TEST("/http/1xx before the reply")
{
	check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n" OK11
	      "Content-Length: 2\r\n\r\nok",
	    "H200 b:ok E+");
	check("HTTP/1.1 100 Continue\r\n\r\n", " bad");
	check("HTTP/1.1 103 x\r\nA b\r\n\r\n" OK11 "\r\n", " bad");
}

TEST("/http/101 only to who asked")
{
	static const char agreed[] =
	    "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	    "\r\n\x81\r\n0\r\n";

	check_asked("GET", true, false, agreed, "H101 b:\x81\r\n0\r\n E-");
	check(agreed, " bad");
	check_asked("GET", true, false, "HTTP/1.1 101 x\r\nConnection: Upgrade\r\n\r\n", " bad");
	check_asked("GET", true, false, OK11 "Upgrade: h2c\r\nContent-Length: 2\r\n\r\nok",
	    "H200 b:ok E+");
}

/* Readers disagree on where these end. */
TEST("/http/replies with two meanings")
{
	check(OK11 "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", " bad");
	check(OK11 "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", " bad");
	check(OK11 "Content-Length: 2, 2\r\n\r\nok", " bad");
	check(OK11 "Content-Length: +2\r\n\r\nok", " bad");
	check(OK11 "Content-Length: 9223372036854775808\r\n\r\nok", " bad");
	check(OK11 "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", " bad");
	check(OK11 "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", " bad");
	check(OK11 "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", " bad");
	check(OK11 "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	    " bad");
	check(OK11 "Transfer-Encoding: identity\r\n\r\nok", " bad");
	check(OK11 "Transfer-Encoding:\r\n\r\nok", " bad");
	check("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", " bad");
}

TEST("/http/malformed heads")
{
	check("H", " bad");
	check("HTTP/1.1 200", " bad");
	check("HTTP/1.1 200 OK\r\n", " bad");
	check(OK11 "A: b\r\n", " bad");
	check("\r\n" OK11 "\r\n", " bad");
	check("Status: 200\r\n\r\n", " bad");
	check("ICY 200 OK\r\n\r\n", " bad");
	check("http/1.1 200 OK\r\n\r\n", " bad");
	check("HTTP/2.0 200 OK\r\n\r\n", " bad");
	check("HTTP/1.10 200 OK\r\n\r\n", " bad");
	check("HTTP/1.1  200 OK\r\n\r\n", " bad");
	check("HTTP/1.1 20 OK\r\n\r\n", " bad");
	check("HTTP/1.1 2000 OK\r\n\r\n", " bad");
	check("HTTP/1.1 099 OK\r\n\r\n", " bad");
	check("HTTP/1.1 600 OK\r\n\r\n", " bad");
	check("HTTP/1.1 200 O\rK\r\n\r\n", " bad");
	check("HTTP/1.1 200 O\001K\r\n\r\n", " bad");
	check("HTTP/1.1 200\r\r\n\r\n", " bad");
	check(OK11 "A b\r\n\r\n", " bad");
	check(OK11 "A : b\r\n\r\n", " bad");
	check(OK11 " A: b\r\n\r\n", " bad");
	check(OK11 "A: b\r\n c\r\n\r\n", " bad");
	check(OK11 "A: b\rc\r\n\r\n", " bad");
	check(OK11 ": b\r\n\r\n", " bad");
}

static void
long_line(size_t reason, const char *want)
{
	g_autoptr(GString) s = g_string_new("HTTP/1.1 200 ");
	char *got;

	while (reason-- > 0)
		g_string_append_c(s, 'x');
	g_string_append(s, "\r\n\r\n");
	got = events_of(http, (struct text){ s->str, s->len }, 1000, 1000);
	g_assert_cmpstr(got, ==, want);
	g_free(got);
}

static void
many_fields(int n, const char *want)
{
	g_autoptr(GString) s = g_string_new(OK11);
	char *got;
	int i;

	for (i = 0; i < n; i++)
		g_string_append(s, "A: b\r\n");
	g_string_append(s, "\r\n");
	got = events_of(http, (struct text){ s->str, s->len }, s->len, 1);
	g_assert_cmpstr(got, ==, want);
	g_free(got);
}

TEST("/http/bounds")
{
	long_line(8177, "H200 E-");
	long_line(8178, " bad");
	many_fields(256, "H200 E-");
	many_fields(257, " bad");
}

TEST("/http/noise: any cut gives the same events")
{
	static const char *const words[] = { OK11, "HTTP/1.1 100 x\r\n\r\n", "HTTP/1.0 204 x\r\n",
		"\r\n", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "\r\n\r\n",
		"3\r\nabc\r\n", "0\r\n\r\n", "A: b\r\n", "x", "Connection: close\r\n" };
	g_autoptr(GString) s = g_string_new(NULL);
	char *whole, *cut;
	int i, k;

	for (i = 0; i < 20000; i++) {
		g_string_assign(s, i % 4 != 0 ? OK11 : "");
		for (k = 0; k < 9; k++)
			g_string_append(s, words[g_test_rand_int_range(0, G_N_ELEMENTS(words))]);
		whole = events_of(http, (struct text){ s->str, s->len }, s->len, 1);
		cut = events_of(http, (struct text){ s->str, s->len }, 3, 5);
		g_assert_cmpstr(whole, ==, cut);
		g_free(whole);
		g_free(cut);
	}
}

/* ---------------------------------------------------------------- requests */

/* Request and body; "" if the request is refused. */
static char *
sent(const struct proxy_request *r, bool keep, const char *body, int want)
{
	void *state = calloc(1, http->size);
	struct buf out;
	char *s;

	buf_init(&out, 0);
	g_assert_cmpint(http->request(state, r, keep, &out), ==, want);
	if (*body != '\0')
		http->body(state, text_of(body), &out);
	if (want == 0)
		http->body_end(state, &out);
	s = want == 0 ? g_strndup(out.p, out.n) : g_strdup("");
	buf_free(&out);
	free(state);
	return (s);
}

#define SENDS(r, keep, body, want)                 \
	do {                                       \
		char *s_ = sent(r, keep, body, 0); \
		g_assert_cmpstr(s_, ==, want);     \
		g_free(s_);                        \
	} while (0)

#define FORWARDED                                  \
	"X-Forwarded-For: 192.0.2.7\r\n"           \
	"X-Forwarded-Proto: http\r\n"              \
	"X-Forwarded-Host: www.example.org:81\r\n" \
	"X-Host: www.example.org:81\r\n"
#define H(n, v)                                   \
	{                                         \
		.name = TEXT(n), .value = TEXT(v) \
	}

TEST("/http/a request")
{
	struct proxy_request r = a_request("GET");

	SENDS(&r, true, "",
	    "GET /a%20b?x=1 HTTP/1.1\r\nHost: www.example.org:81\r\n" FORWARDED "\r\n");
	SENDS(&r, false, "",
	    "GET /a%20b?x=1 HTTP/1.1\r\nHost: www.example.org:81\r\n" FORWARDED
	    "Connection: close\r\n\r\n");
	r.redirect_uri = TEXT("/new");
	r.upgrade = TEXT("websocket");
	SENDS(&r, false, "",
	    "GET /new HTTP/1.1\r\nHost: www.example.org:81\r\n" FORWARDED
	    "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

/* A client of HTTP/1.0 need not name a host; the application must get one. */
TEST("/http/a client without a host")
{
	struct proxy_request r = a_request("GET");
	char *s;

	r.host = TEXT("");
	s = sent(&r, true, "", 0);
	g_assert_nonnull(strstr(s, " HTTP/1.1\r\nHost: www.example.org\r\n"));
	g_free(s);
	r.server_name = TEXT("");
	s = sent(&r, true, "", 0);
	g_assert_nonnull(strstr(s, " HTTP/1.1\r\nHost: localhost\r\n"));
	g_free(s);
}

TEST("/http/fields of the client that pass")
{
	static const struct proxy_field h[] = { H("Host", "other.example"), H("Cookie", "a=1"),
		H("Connection", "X-Hop, close"), H("X-Hop", "evil"), H("Keep-Alive", "evil"),
		H("TE", "evil"), H("Trailer", "evil"), H("Transfer-Encoding", "evil"),
		H("Upgrade", "evil"), H("Expect", "evil"), H("Proxy", "evil"),
		H("Proxy-Authorization", "evil"), H("X-Sendfile-Type", "evil"),
		H("X-Accel-Mapping", "evil"), H("X_Forwarded_For", "evil"),
		H("Content-Length", "99"), H("X-Host", "evil"), H("X-Forwarded-Proto", "evil"),
		H("x-forwarded-for", "10.0.0.1"), H("X-Forwarded-For", "10.0.0.2"),
		H("cookie", "b=2"),
		{ .name = TEXT("X-Sendfile-Type"), .value = TEXT("X-Sendfile"), .set = true } };
	struct proxy_request r = a_request("GET");

	r.headers = h;
	r.nheaders = G_N_ELEMENTS(h);
	SENDS(&r, true, "",
	    "GET /a%20b?x=1 HTTP/1.1\r\nHost: other.example\r\nCookie: a=1\r\ncookie: b=2\r\n"
	    "X-Sendfile-Type: X-Sendfile\r\nX-Forwarded-For: 192.0.2.7\r\n"
	    "X-Forwarded-Proto: http\r\n"
	    "X-Forwarded-Host: www.example.org:81\r\nX-Host: www.example.org:81\r\n\r\n");
}

TEST("/http/bodies")
{
	struct proxy_request r = a_request("POST");
	char *s;

	r.content_length = 5;
	s = sent(&r, true, "hello", 0);
	g_assert_nonnull(strstr(s, "\r\nContent-Length: 5\r\n\r\nhello"));
	g_assert_true(g_str_has_suffix(s, "hello"));
	g_free(s);
	r.content_length = 0;
	s = sent(&r, true, "", 0);
	g_assert_true(g_str_has_suffix(s, "\r\nContent-Length: 0\r\n\r\n"));
	g_free(s);
	r.content_length = -1;
	r.unsized = true;
	s = sent(&r, true, "hello, world", 0);
	g_assert_true(g_str_has_suffix(s,
	    "\r\nTransfer-Encoding: chunked\r\n\r\nc\r\nhello, world\r\n0\r\n\r\n"));
	g_free(s);
}

static void
refused(struct proxy_request *r, int want)
{
	g_free(sent(r, true, "", want));
}

/* A rewrite may make values that would end a line. */
TEST("/http/requests that cannot be said")
{
	struct proxy_field f = H("A", "b\r\nEvil: 1");
	struct proxy_request r = a_request("GET");
	g_autofree char *big = g_malloc(PROTO_REQUEST_MAX);

	memset(big, 'b', PROTO_REQUEST_MAX);
	r.redirect_uri = TEXT("/a b");
	refused(&r, -EINVAL);
	r.redirect_uri = TEXT("/a\r\nEvil: 1");
	refused(&r, -EINVAL);
	r = a_request("G T");
	refused(&r, -EINVAL);
	r = a_request("GET");
	r.headers = &f;
	r.nheaders = 1;
	refused(&r, -EINVAL);
	f.name = TEXT("Host");
	refused(&r, -EINVAL);
	f.value = (struct text){ big, PROTO_REQUEST_MAX - 1000 };
	refused(&r, 0);
	f.value.n = PROTO_REQUEST_MAX;
	refused(&r, -E2BIG);
	r.nheaders = FIELDS_MAX + 1;
	refused(&r, -E2BIG);
}
