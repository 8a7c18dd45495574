/* t/unit/wire/ajp13_request.c -- a second reader takes forward requests apart. */
#include "t/unit/wire/ajp13_test.h"
#include "t/unit/wire/wire_test.h"
#include "wire/codec/ajp13.h"

/* ---------------------------------------------------------------- the reader */

struct reader {
	const unsigned char *p, *end;
	GString *said;
};

static unsigned
u8(struct reader *r)
{
	g_assert_true(r->p < r->end);
	return (*r->p++);
}

static unsigned
u16(struct reader *r)
{
	unsigned hi = u8(r);

	return (hi << 8 | u8(r));
}

static void
say_string(struct reader *r, char behind)
{
	unsigned n = u16(r);

	g_assert_cmpint(r->end - r->p, >, n);
	g_assert_cmpint(r->p[n], ==, '\0');
	g_string_append_len(r->said, (const char *)r->p, n);
	g_string_append_c(r->said, behind);
	r->p += n + 1;
}

static void
say_line(struct reader *r)
{
	int i;

	g_assert_cmpuint(u8(r), ==, 2);
	g_string_append_printf(r->said, "method %u ", u8(r));
	for (i = 0; i < 5; i++)
		say_string(r, ' ');
	g_string_append_printf(r->said, "%u ", u16(r));
	g_string_append(r->said, u8(r) != 0 ? "ssl\n" : "plain\n");
}

static void
say_fields(struct reader *r)
{
	unsigned n = u16(r);

	for (; n > 0; n--) {
		if (*r->p == 0xA0)
			g_string_append_printf(r->said, "%X:", u16(r));
		else
			say_string(r, ':');
		say_string(r, '\n');
	}
}

static void
say_attributes(struct reader *r)
{
	unsigned code;

	while ((code = u8(r)) != 0xff) {
		g_string_append_printf(r->said, "attribute %u ", code);
		if (code == 10)
			say_string(r, '=');
		if (code == 11)
			g_string_append_printf(r->said, "%u\n", u16(r));
		else
			say_string(r, '\n');
	}
}

/* The request in words; aborts if it is not one. */
static char *
sent(const struct proxy_request *q)
{
	struct reader r = { .said = g_string_new(NULL) };
	struct buf out;

	buf_init(&out, 0);
	buf_str(&out, "before");
	g_assert_cmpint(ajp13_put_request(q, &out), ==, 0);
	g_assert_cmpuint(out.n - 6, <=, AJP13_PACKET_MAX);
	r.p = (const unsigned char *)out.p + 6;
	r.end = (const unsigned char *)out.p + out.n;
	g_assert_cmpuint(u16(&r), ==, 0x1234);
	g_assert_cmpuint(u16(&r), ==, out.n - 6 - 4);
	say_line(&r);
	say_fields(&r);
	say_attributes(&r);
	g_assert_true(r.p == r.end);
	buf_free(&out);
	return (g_string_free(r.said, FALSE));
}

#define has(s, what)   g_assert_nonnull(strstr((s), (what)))
#define lacks(s, what) g_assert_null(strstr((s), (what)))

/* ---------------------------------------------------------------- what is sent */

TEST("/ajp13_request/line and attributes")
{
	static const struct proxy_field tls[] = { { TEXT("SSL_PROTOCOL"), TEXT("TLSv1.3") },
		{ TEXT("SSL_CIPHER"), TEXT("AES") },
		{ TEXT("SSL_CIPHER_USEKEYSIZE"), TEXT("256") } };
	struct proxy_request q = a_request("GET");
	char *s = sent(&q);

	g_assert_true(g_str_has_prefix(s,
	    "method 2 HTTP/1.1 /a%20b 192.0.2.7 192.0.2.7 www.example.org 81 plain\n"));
	has(s, "attribute 5 x=1\n");
	has(s, "attribute 10 AJP_REMOTE_PORT=40000\n");
	lacks(s, "attribute 12");
	lacks(s, "A008"); /* Content-Length */
	g_free(s);
	q.scheme = TEXT("https");
	q.secret = TEXT("Geheimnis");
	s = sent(&q);
	has(s, " 81 ssl\n");
	has(s, "attribute 12 Geheimnis\n");
	lacks(s, "attribute 8");
	lacks(s, "attribute 11");
	g_free(s);
	q.tls = tls;
	q.ntls = 3;
	s = sent(&q);
	has(s, "attribute 8 AES\n");
	has(s, "attribute 11 256\n");
	lacks(s, "TLSv1.3");
	g_free(s);
}

TEST("/ajp13_request/the target as it was sent")
{
	struct proxy_request q = a_request("GET");
	char *s;

	q.target = TEXT("/%252e;x=1/%C3%A4");
	s = sent(&q);
	has(s, " /%252e;x=1/%C3%A4 ");
	lacks(s, "attribute 5");
	g_free(s);
	q.target = TEXT("/a?");
	s = sent(&q);
	has(s, " /a ");
	has(s, "attribute 5 \n"); /* an empty query is one */
	g_free(s);
	q.redirect_uri = TEXT("/new?y?z");
	s = sent(&q);
	has(s, " /new ");
	has(s, "attribute 5 y?z\n");
	g_free(s);
}

TEST("/ajp13_request/methods")
{
	static const struct {
		const char *name;
		const char *want;
	} rows[] = { { "OPTIONS", "method 1 " }, { "POST", "method 4 " },
		{ "PROPFIND", "method 8 " }, { "MKACTIVITY", "method 27 " },
		{ "PATCH", "method 255 " }, { "get", "method 255 " } };
	struct proxy_request q;
	size_t i;
	char *s, *stored;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		q = a_request(rows[i].name);
		s = sent(&q);
		stored = g_strdup_printf("attribute 13 %s\n", rows[i].name);
		g_assert_true(g_str_has_prefix(s, rows[i].want));
		g_assert_true((strstr(s, stored) != NULL) == g_str_has_prefix(s, "method 255"));
		g_free(stored);
		g_free(s);
	}
}

TEST("/ajp13_request/header fields")
{
	static const struct proxy_field h[] = { { TEXT("Host"), TEXT("h:1") },
		{ TEXT("accept"), TEXT("a/b") }, { TEXT("X-A"), TEXT("1") },
		{ TEXT("x-a"), TEXT("2") }, { TEXT("User-Agent"), TEXT("u") },
		{ TEXT("Content-Length"), TEXT("999") },
		{ TEXT("Transfer-Encoding"), TEXT("chunked") },
		{ TEXT("Connection"), TEXT("X-Hop") }, { TEXT("X-Hop"), TEXT("evil") },
		{ TEXT("Proxy"), TEXT("evil") }, { TEXT("X-Sendfile-Type"), TEXT("evil") },
		{ TEXT("X-Forwarded-For"), TEXT("10.0.0.1") },
		{ TEXT("X-Forwarded-Proto"), TEXT("evil") }, { TEXT("X-Host"), TEXT("evil") } };
	struct proxy_request q = a_request("POST");
	char *s;

	q.headers = h;
	q.nheaders = G_N_ELEMENTS(h);
	q.content_length = 5;
	s = sent(&q);
	has(s, "\nA00B:h:1\nA001:a/b\nX-A:1\nx-a:2\nA00E:u\nA008:5\n");
	has(s, "\nX-Forwarded-For:192.0.2.7\n");
	has(s, "\nX-Forwarded-Proto:http\n");
	lacks(s, "10.0.0.1");
	lacks(s, "999");
	lacks(s, "evil");
	lacks(s, "chunked");
	g_free(s);
	q.content_length = 0;
	s = sent(&q);
	has(s, "\nA008:0\n");
	g_free(s);
}

/* ---------------------------------------------------------------- what is not */

static int
request_with(struct text value)
{
	struct proxy_field h = { TEXT("X-Big"), value };
	struct proxy_request q = a_request("GET");
	struct buf out;
	int err;

	q.headers = &h;
	q.nheaders = 1;
	buf_init(&out, 0);
	err = ajp13_put_request(&q, &out);
	if (err == 0)
		g_assert_cmpuint(out.n, <=, AJP13_PACKET_MAX);
	buf_free(&out);
	return (err);
}

TEST("/ajp13_request/one packet")
{
	g_autofree char *big = g_malloc(100000);
	size_t n, fits = 0;

	memset(big, 'b', 100000);
	for (n = 7000; n < 9000; n++)
		if (request_with((struct text){ big, n }) == 0)
			fits = n;
		else
			g_assert_cmpint(request_with((struct text){ big, n }), ==, -E2BIG);
	g_assert_cmpint(request_with((struct text){ big, fits }), ==, 0);
	g_assert_cmpuint(fits, >, 7500);
	g_assert_cmpuint(fits, <, 8100);
	g_assert_cmpint(request_with((struct text){ big, 65535 }), ==, -E2BIG);
	g_assert_cmpint(request_with((struct text){ big, 65536 + 10 }), ==, -E2BIG);
}

TEST("/ajp13_request/values that may not pass")
{
	struct proxy_field many[FIELDS_MAX + 1];
	struct proxy_request q = a_request("GET");
	struct buf out;
	size_t i;

	g_assert_cmpint(request_with(TEXT("a\0b")), ==, -EINVAL);
	g_assert_cmpint(request_with(TEXT("a\r\nX-Evil: 1")), ==, -EINVAL);
	g_assert_cmpint(request_with(TEXT("a\tb")), ==, 0);
	for (i = 0; i < G_N_ELEMENTS(many); i++)
		many[i] = (struct proxy_field){ TEXT("A"), TEXT("") };
	q.headers = many;
	q.nheaders = G_N_ELEMENTS(many);
	buf_init(&out, 0);
	g_assert_cmpint(ajp13_put_request(&q, &out), ==, -E2BIG);
	q.nheaders--;
	g_assert_cmpint(ajp13_put_request(&q, &out), ==, 0);
	buf_free(&out);
}
