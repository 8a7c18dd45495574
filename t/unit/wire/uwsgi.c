/* t/unit/wire/uwsgi.c -- variables out; replies are those of HTTP, cut anywhere. */
#include "t/unit/wire/events.h"
#include "t/unit/wire/wire_test.h"

extern const struct proto proto_uwsgi;
static const struct proto *const uwsgi = &proto_uwsgi;

static void
check(const char *bytes, const char *want)
{
	struct buf b;

	buf_init(&b, 0);
	buf_str(&b, bytes);
	check_events(uwsgi, &b, want);
}

TEST("/uwsgi/replies, at every split")
{
	check("HTTP/1.1 404 x\r\n\r\nhello", "H404 b:hello E-");
	check("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more", "H200 b:hello E-");
	check("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "H200 E-");
	check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\n\r\n",
	    "H200 b:he E-");
	check("HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n", "H304 E-");
}

TEST("/uwsgi/replies that lie")
{
	check("H", " bad");
	check("HTTP/1.1 200 OK\r\n", " bad");
	check("Status: 200 OK\r\n\r\n", " bad"); /* CGI is another protocol */
	check("HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n", " bad");
	check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "H200 b:hell bad");
	check("HTTP/1.1 200 OK\r\nA: \001\r\n\r\n", " bad");
}

/* The variables as "NAME=VALUE\n", then the body. */
static char *
sent(const struct proxy_request *r, struct text body)
{
	GString *s = g_string_new(NULL);
	void *state = calloc(1, uwsgi->size);
	const unsigned char *p, *end;
	bool name = true;
	struct buf out;
	size_t n;

	buf_init(&out, 0);
	g_assert_cmpint(uwsgi->request(state, r, false, &out), ==, 0);
	if (body.n > 0)
		uwsgi->body(state, body, &out);
	uwsgi->body_end(state, &out);
	p = (const unsigned char *)out.p;
	n = p[1] | (size_t)p[2] << 8;
	g_assert_cmpuint(p[0] | p[3], ==, 0);
	g_assert_cmpuint(4 + n + body.n, ==, out.n);
	for (p += 4, end = p + n; p < end; name = !name) {
		n = p[0] | (size_t)p[1] << 8;
		g_assert_cmpint(end - p, >=, 2 + n);
		g_string_append_len(s, (const char *)p + 2, (gssize)n);
		g_string_append_c(s, name ? '=' : '\n');
		p += 2 + n;
	}
	g_assert_true(p == end && name);
	g_string_append_len(s, (const char *)p, (gssize)body.n);
	buf_free(&out);
	free(state);
	return (g_string_free(s, FALSE));
}

TEST("/uwsgi/a request")
{
	struct proxy_request r = a_request("POST");
	char *s;

	r.content_length = 5;
	s = sent(&r, TEXT("he,lo"));
	g_assert_nonnull(strstr(s, "\nREQUEST_METHOD=POST\n"));
	g_assert_nonnull(strstr(s, "\nREQUEST_URI=/a%20b?x=1\n"));
	g_assert_nonnull(strstr(s, "\nSCRIPT_NAME=\n"));
	g_assert_nonnull(strstr(s, "\nPATH_INFO=/a b\n"));
	g_assert_nonnull(strstr(s, "\nCONTENT_LENGTH=5\n"));
	g_assert_true(g_str_has_suffix(s, "\nhe,lo"));
	g_free(s);
	r.path_is_split = true;
	s = sent(&r, TEXT(""));
	g_assert_nonnull(strstr(s, "\nSCRIPT_NAME=/a b\n"));
	g_assert_null(strstr(s, "PATH_INFO"));
	g_free(s);
	r.content_length = -1;
	r.path = TEXT("/app/a b");
	r.path_info = TEXT("/a b"); /* from a rewrite */
	s = sent(&r, TEXT(""));
	g_assert_nonnull(strstr(s, "\nSCRIPT_NAME=/app\n"));
	g_assert_nonnull(strstr(s, "\nPATH_INFO=/a b\n"));
	g_free(s);
}

/* To HEAD the application may send a length, and no body. */
TEST("/uwsgi/HEAD")
{
	struct text in = TEXT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
	struct proxy_request r = a_request("HEAD");
	void *state = calloc(1, uwsgi->size);
	struct proto_event ev;
	struct reply_head h;
	struct buf out;

	buf_init(&out, 0);
	reply_head_init(&h);
	g_assert_cmpint(uwsgi->request(state, &r, false, &out), ==, 0);
	uwsgi->reply(state, &h, &in, &out, &ev);
	g_assert_cmpint(ev.kind, ==, PROTO_HEAD);
	uwsgi->reply(state, &h, &in, &out, &ev);
	g_assert_cmpint(ev.kind, ==, PROTO_END);
	g_assert_false(ev.reuse);
	reply_head_free(&h);
	buf_free(&out);
	free(state);
}

static int
request_with(size_t n)
{
	g_autofree char *big = g_malloc0(n + 1);
	struct proxy_field h = { TEXT("X-Big"), { big, n } };
	struct proxy_request r = a_request("GET");
	void *state = calloc(1, uwsgi->size);
	struct buf out;
	int err;

	memset(big, 'b', n);
	r.headers = &h;
	r.nheaders = 1;
	buf_init(&out, 0);
	err = uwsgi->request(state, &r, false, &out);
	buf_free(&out);
	free(state);
	return (err);
}

TEST("/uwsgi/64 KiB of variables")
{
	size_t n;

	for (n = 64000; n < 66000; n += 10)
		g_assert_true(request_with(n) == 0 || request_with(n) == -E2BIG);
	g_assert_cmpint(request_with(60000), ==, 0);
	g_assert_cmpint(request_with(65535), ==, -E2BIG);
	g_assert_cmpint(request_with(65536), ==, -E2BIG);
	g_assert_cmpint(request_with(200000), ==, -E2BIG);
}
