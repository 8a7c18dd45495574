/* t/unit/wire/scgi.c -- a netstring out, a CGI reply in, cut anywhere and ended anywhere. */
#include "t/unit/wire/events.h"
#include "t/unit/wire/wire_test.h"

extern const struct proto proto_scgi;
static const struct proto *const scgi = &proto_scgi;

static void
check(const char *bytes, const char *want)
{
	struct buf b;

	buf_init(&b, 0);
	buf_str(&b, bytes);
	check_events(scgi, &b, want);
}

TEST("/scgi/a reply to the end of the stream, at every split")
{
	check("Status: 404 x\r\n\r\nhello", "H404 b:hello E-");
	check("A: 1\n\nhello\n\nA: 2\n\n", "H200 b:hello\n\nA: 2\n\n E-");
	check("\n", "H200 E-");
	check("Location: /x\r\n\r\n", "H302 E-");
	check("X-Sendfile: /a\r\n\r\n", "H200 E-");
}

TEST("/scgi/a reply with a Content-Length, at every split")
{
	check("Content-Length: 5\r\n\r\nhello", "H200 b:hello E-");
	check("Content-Length: 5\r\n\r\nhello, and more", "H200 b:hello E-");
	check("Content-Length: 0\r\n\r\n", "H200 E-");
	check("Content-Length: 0\r\n\r\nmore", "H200 E-");
	check("Content-Length: 5\r\n\r\nhell", "H200 b:hell E-"); /* the exchange counts */
}

TEST("/scgi/replies that lie")
{
	check("H", " bad");
	check("A: 1\r\n", " bad");
	check("A: 1\r\n\r", " bad");
	check("HTTP/1.1 404 Gone\r\n\r\n", "H404 E-");
	check("HTTP/3 200 OK\r\n\r\n", " bad");
	check("Status: abc\n\n", " bad");
	check("Content-Length: 1\nContent-Length: 1\n\na", " bad");
	check("Content-Length: -1\n\na", " bad");
	check("A: \001\n\n", " bad");
}

static enum proto_kind
feed(void *state, struct reply_head *h, const char *bytes)
{
	struct text in = text_of(bytes);
	struct proto_event ev;

	scgi->reply(state, h, &in, NULL, &ev);
	g_assert_cmpuint(in.n, ==, 0);
	return (ev.kind);
}

/* The last byte of a promised body ends the reply, whether or not the application hangs up. */
TEST("/scgi/a promised body needs no end of the stream")
{
	void *state = calloc(1, scgi->size);
	struct reply_head h;

	reply_head_init(&h);
	g_assert_cmpint(feed(state, &h, "Content-Length: 2\n\n"), ==, PROTO_HEAD);
	g_assert_cmpint(feed(state, &h, ""), ==, PROTO_MORE);
	g_assert_cmpint(feed(state, &h, "a"), ==, PROTO_BODY);
	g_assert_cmpint(feed(state, &h, ""), ==, PROTO_MORE);
	g_assert_cmpint(feed(state, &h, "b"), ==, PROTO_BODY);
	g_assert_cmpint(feed(state, &h, ""), ==, PROTO_END);
	reply_head_free(&h);
	free(state);
}

/* ---------------------------------------------------------------- what we send */

/* Request and body as an application reads them: the pairs as "NAME=VALUE\n", then the body. */
static char *
sent(const struct proxy_request *r, struct text body)
{
	GString *s = g_string_new(NULL);
	void *state = calloc(1, scgi->size);
	struct buf out;
	char *colon;
	size_t n, i;
	bool name = true;

	buf_init(&out, 0);
	g_assert_cmpint(scgi->request(state, r, true, &out), ==, 0);
	if (body.n > 0)
		scgi->body(state, body, &out);
	scgi->body_end(state, &out);
	g_assert_cmpint(out.p[0], !=, '0');
	n = strtoul(out.p, &colon, 10);
	g_assert_cmpint(*colon, ==, ':');
	g_assert_cmpuint((size_t)(colon - out.p) + 1 + n + 1 + body.n, ==, out.n);
	g_assert_cmpint(colon[n], ==, '\0');
	g_assert_cmpint(colon[1 + n], ==, ',');
	for (i = 1; i <= n; i++) {
		g_string_append_c(s, colon[i] != '\0' ? colon[i] : name ? '=' : '\n');
		name = colon[i] != '\0' ? name : !name;
	}
	g_assert_true(name); /* as many values as names */
	g_string_append_len(s, colon + 2 + n, (gssize)body.n);
	buf_free(&out);
	free(state);
	return (g_string_free(s, FALSE));
}

TEST("/scgi/a request")
{
	struct proxy_request r = a_request("GET");
	char *s = sent(&r, TEXT(""));

	g_assert_true(g_str_has_prefix(s, "CONTENT_LENGTH=0\nSCGI=1\n"));
	g_assert_nonnull(strstr(s, "\nREQUEST_METHOD=GET\n"));
	g_assert_nonnull(strstr(s, "\nREQUEST_URI=/a%20b?x=1\n"));
	g_assert_nonnull(strstr(s, "\nSCRIPT_NAME=\n")); /* an empty value */
	g_assert_nonnull(strstr(s, "\nPATH_INFO=/a b\n"));
	g_assert_nonnull(strstr(s, "\nSCRIPT_FILENAME=/srv/a b\n"));
	g_assert_nonnull(strstr(s, "\nHTTP_X_HOST=www.example.org:81\n"));
	g_assert_null(strstr(s, "PROXY"));
	g_free(s);
	r.path_is_split = true; /* by a rule, or a look-up, that finds no more than the script */
	s = sent(&r, TEXT(""));
	g_assert_nonnull(strstr(s, "\nSCRIPT_NAME=/a b\n"));
	g_assert_null(strstr(s, "PATH_INFO"));
	g_free(s);
}

TEST("/scgi/a body")
{
	struct proxy_request r = a_request("POST");
	char *s;

	r.content_length = 5;
	s = sent(&r, TEXT("he,lo"));
	g_assert_true(g_str_has_prefix(s, "CONTENT_LENGTH=5\nSCGI=1\n"));
	g_assert_null(strstr(s + 1, "CONTENT_LENGTH")); /* once */
	g_assert_true(g_str_has_suffix(s, "\nhe,lo"));
	g_free(s);
}

static int
request_with(struct text value)
{
	struct proxy_field h = { TEXT("X-Big"), value };
	struct proxy_request r = a_request("GET");
	struct buf out;
	int err;

	r.headers = &h;
	r.nheaders = 1;
	buf_init(&out, 0);
	err = scgi->request(NULL, &r, false, &out);
	if (err == 0)
		g_assert_cmpuint(out.n, <=, PROTO_REQUEST_MAX);
	buf_free(&out);
	return (err);
}

/* A NUL would end the value, and what follows it would be a variable of the client's making. */
TEST("/scgi/requests that cannot be said")
{
	g_autofree char *big = g_malloc(PROTO_REQUEST_MAX);
	size_t n;

	memset(big, 'b', PROTO_REQUEST_MAX);
	g_assert_cmpint(request_with(TEXT("a\0HTTPS\0on")), ==, -EINVAL);
	g_assert_cmpint(request_with((struct text){ big, PROTO_REQUEST_MAX - 2000 }), ==, 0);
	g_assert_cmpint(request_with((struct text){ big, PROTO_REQUEST_MAX - 10 }), ==, -E2BIG);
	g_assert_cmpint(request_with((struct text){ big, PROTO_REQUEST_MAX }), ==, -E2BIG);
	/* the length before them counts, too */
	for (n = PROTO_REQUEST_MAX - 2000; n < PROTO_REQUEST_MAX; n += 4)
		request_with((struct text){ big, n });
}

TEST("/scgi/noise: any cut gives the same events")
{
	static const char *const words[] = { "\n", "\r\n", ": ", "A", "Status", "200",
		"Content-Length", "3", "\n\n", "\001" };
	g_autoptr(GString) s = g_string_new(NULL);
	char *whole, *cut;
	int i, k;

	for (i = 0; i < 20000; i++) {
		g_string_assign(s, i % 2 == 0 ? "Content-Length: 3\n" : "");
		for (k = 0; k < 12; k++)
			g_string_append(s, words[g_test_rand_int_range(0, G_N_ELEMENTS(words))]);
		whole = events_of(scgi, (struct text){ s->str, s->len }, s->len, 1);
		cut = events_of(scgi, (struct text){ s->str, s->len }, 3, 5);
		g_assert_cmpstr(whole, ==, cut);
		g_free(whole);
		g_free(cut);
	}
}
