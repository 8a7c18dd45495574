/* t/unit/wire/fastcgi.c -- records in and out, cut anywhere, and records that lie. */
#include "t/unit/wire/events.h"
#include "t/unit/wire/wire_test.h"

extern const struct proto proto_fastcgi;
static const struct proto *const fcgi = &proto_fastcgi;

static char *
events(struct text all, size_t first, size_t step)
{
	return (events_of(fcgi, all, first, step));
}

static void
check(struct buf *b, const char *want)
{
	check_events(fcgi, b, want);
}

TEST("/fastcgi/a reply, at every split")
{
	struct buf b;

	buf_init(&b, 0);
	put_stdout(&b, "Status: 404 x\r\n\r\nhello");
	put_stdout(&b, "");
	put_end(&b, 0);
	check(&b, "H404 b:hello E+");

	put_stdout(&b, "Content-Ty");
	put_stderr(&b, "first\n");
	put_stdout(&b, "pe: x\r\n\r");
	put_stdout(&b, "\n");
	put_stdout(&b, "bo");
	put_stderr(&b, "second\n");
	put_stdout(&b, "dy");
	put_end(&b, 0);
	check(&b, "H200 b:body n:first\nsecond\n E+");
}

TEST("/fastcgi/padding")
{
	struct buf b;

	buf_init(&b, 0);
	record(&b, 1, 6, 1, TEXT("A: 1\n\nxyz"), 7);
	record(&b, 1, 6, 1, TEXT(""), 255);
	record(&b, 1, 7, 1, TEXT("n"), 3);
	put_end(&b, 0);
	check(&b, "H200 b:xyz n:n E+");
}

/* Records of other requests, management records and unknown types are ignored. */
TEST("/fastcgi/records of others are ignored")
{
	struct buf b;

	buf_init(&b, 0);
	record(&b, 1, 6, 2, TEXT("X-Evil: 1\n\nevil"), 1);
	record(&b, 1, 3, 2, TEXT("12345678"), 0);
	record(&b, 1, 11, 0, TEXT("12345678"), 0);
	record(&b, 1, 3, 2, TEXT(""), 0);
	put_stdout(&b, "A: 1\n\nok");
	record(&b, 1, 99, 1, TEXT("what"), 5);
	record(&b, 1, 6, 257, TEXT("evil"), 0);
	put_end(&b, 0);
	check(&b, "H200 b:ok E+");
}

TEST("/fastcgi/records that lie")
{
	struct buf b;

	buf_init(&b, 0);
	record(&b, 2, 6, 1, TEXT("A: 1\n\n"), 0);
	check(&b, " bad");
	buf_str(&b, "HTTP/3 200 OK\r\n\r\n");
	check(&b, " bad");
	put_end(&b, 0);
	check(&b, " bad"); /* a reply without a head */
	put_stdout(&b, "A: 1\n");
	put_end(&b, 0);
	check(&b, " bad"); /* ended within its head */
	put_stdout(&b, "A 1\n\n");
	check(&b, " bad");
	record(&b, 1, 3, 1, TEXT("1234567"), 0);
	check(&b, " bad");
	record(&b, 1, 3, 1, TEXT(""), 0);
	check(&b, " bad");
	put_end(&b, 1);
	check(&b, " refused");
	put_end(&b, 2);
	check(&b, " refused");
	put_stdout(&b, "A: 1\n"); /* nothing of it has been passed on */
	put_end(&b, 2);
	check(&b, " refused");
	put_end(&b, 3);
	check(&b, " bad");
	put_end(&b, 4);
	check(&b, " bad");
	put_stdout(&b, "A: 1\n\nb");
	put_end(&b, 2);
	check(&b, "H200 b:b bad");
	put_stdout(&b, "A: 1\n\nb");
	check(&b, "H200 b:b bad"); /* the stream ends, the reply has not */
	put_stdout(&b, "A: 1\n");
	check(&b, " bad");
}

/* An END_REQUEST whose content or padding has more to come: complete, but the socket is not clean.
 */
TEST("/fastcgi/padding after the end")
{
	struct buf b;
	char *s;

	buf_init(&b, 0);
	put_stdout(&b, "A: 1\n\n");
	record(&b, 1, 3, 1, TEXT("\0\0\0\0\0\0\0\0"), 8);
	s = events(buf_as_text(&b), b.n, 1);
	g_assert_cmpstr(s, ==, "H200 E+");
	g_free(s);
	s = events(buf_as_text(&b), b.n - 8, 8);
	g_assert_cmpstr(s, ==, "H200 E-");
	g_free(s);
	buf_free(&b);
}

/* ---------------------------------------------------------------- what we send */

struct wire {
	GString *params, *body;
	unsigned begins, flags, params_records, params_ends, body_ends;
};

static void
wire_read(struct wire *w, struct text t)
{
	const unsigned char *h;
	size_t n;

	w->params = g_string_new(NULL);
	w->body = g_string_new(NULL);
	while (t.n > 0) {
		h = (const unsigned char *)t.p;
		n = (size_t)(h[4] << 8 | h[5]);
		g_assert_cmpuint(t.n, >=, 8 + n);
		g_assert_cmpuint(h[0], ==, 1);
		g_assert_cmpuint(h[2] << 8 | h[3], ==, 1);
		if (h[1] == 1) {
			w->begins++;
			w->flags = h[10];
			g_assert_cmpuint(h[9], ==, 1);
		} else if (h[1] == 4) {
			g_assert_cmpuint(w->params_ends, ==, 0);
			w->params_records++;
			w->params_ends += n == 0;
			g_string_append_len(w->params, t.p + 8, (gssize)n);
		} else {
			g_assert_cmpuint(h[1], ==, 5);
			g_assert_cmpuint(w->body_ends, ==, 0);
			w->body_ends += n == 0;
			g_string_append_len(w->body, t.p + 8, (gssize)n);
		}
		t.p += 8 + n + h[6];
		t.n -= 8 + n + h[6];
	}
}

static size_t
pair_length(const unsigned char **p)
{
	size_t n = **p;

	if (n < 128) {
		*p += 1;
		return (n);
	}
	n = (size_t)((*p)[0] & 0x7f) << 24 | (size_t)(*p)[1] << 16 | (size_t)(*p)[2] << 8 | (*p)[3];
	*p += 4;
	return (n);
}

/* The value of a PARAMS pair, or NULL. */
static char *
param(const struct wire *w, const char *name)
{
	const unsigned char *p = (const unsigned char *)w->params->str, *end = p + w->params->len;
	size_t nn, vn;

	while (p < end) {
		nn = pair_length(&p);
		vn = pair_length(&p);
		g_assert_cmpuint((size_t)(end - p), >=, nn + vn);
		if (nn == strlen(name) && memcmp(p, name, nn) == 0)
			return (g_strndup((const char *)p + nn, vn));
		p += nn + vn;
	}
	return (NULL);
}

static void
wire_free(struct wire *w)
{
	g_string_free(w->params, TRUE);
	g_string_free(w->body, TRUE);
}

static void
send_request(const struct proxy_request *r, bool keep, struct wire *w, int err)
{
	void *state = calloc(1, fcgi->size);
	struct buf out;

	memset(w, 0, sizeof(*w));
	buf_init(&out, 0);
	g_assert_cmpint(fcgi->request(state, r, keep, &out), ==, err);
	if (err == 0) {
		fcgi->body_end(state, &out);
		wire_read(w, buf_as_text(&out));
		g_assert_cmpuint(w->begins, ==, 1);
		g_assert_cmpuint(w->flags, ==, keep);
		g_assert_cmpuint(w->params_ends, ==, 1);
		g_assert_cmpuint(w->body_ends, ==, 1);
	}
	buf_free(&out);
	free(state);
}

TEST("/fastcgi/a request")
{
	struct proxy_request r = a_request("GET");
	struct wire w;
	char *s;

	send_request(&r, true, &w, 0);
	s = param(&w, "REQUEST_URI");
	g_assert_cmpstr(s, ==, "/a%20b?x=1");
	g_free(s);
	g_assert_null(param(&w, "HTTP_PROXY"));
	wire_free(&w);
	send_request(&r, false, &w, 0);
	wire_free(&w);
}

/* A header of each size around the borders of a length byte and of a record. */
TEST("/fastcgi/parameters beyond a record")
{
	static const size_t sizes[] = { 0, 1, 127, 128, 129, 65000, 65535, 65536, 131000, 200000 };
	struct proxy_field h = { .name = TEXT("X-Big") };
	struct proxy_request r = a_request("GET");
	struct wire w;
	char *big = g_malloc(300000), *s;
	size_t i;

	memset(big, 'b', 300000);
	r.headers = &h;
	r.nheaders = 1;
	for (i = 0; i < NELEM(sizes); i++) {
		h.value = (struct text){ big, sizes[i] };
		send_request(&r, true, &w, 0);
		s = param(&w, "HTTP_X_BIG");
		g_assert_cmpuint(strlen(s), ==, sizes[i]);
		g_free(s);
		s = param(&w, "HTTP_X_HOST"); /* the last of them */
		g_assert_cmpstr(s, ==, "www.example.org:81");
		g_free(s);
		g_assert_cmpuint(w.params_records, >=, 2 + sizes[i] / 65536);
		wire_free(&w);
	}
	h.value = (struct text){ big, 270000 };
	send_request(&r, true, &w, -E2BIG);
	g_free(big);
}

TEST("/fastcgi/a body")
{
	struct buf out;
	struct wire w = { 0 };
	g_autofree char *big = g_malloc0(200000);

	buf_init(&out, 0);
	fcgi->body(NULL, (struct text){ big, 200000 }, &out);
	fcgi->body(NULL, TEXT("tail"), &out);
	fcgi->body_end(NULL, &out);
	wire_read(&w, buf_as_text(&out));
	g_assert_cmpuint(w.body->len, ==, 200004);
	g_assert_cmpuint(w.body_ends, ==, 1);
	wire_free(&w);
	buf_free(&out);
}

TEST("/fastcgi/noise: any cut gives the same events")
{
	char bytes[400], *whole, *cut;
	int i, k;

	for (i = 0; i < 20000; i++) {
		for (k = 0; k < (int)sizeof(bytes); k++)
			bytes[k] = (char)g_test_rand_int_range(0, 256);
		if (i % 2 == 0) { /* let it get past the version now and then */
			for (k = 0; k < 392; k += 16)
				memcpy(bytes + k,
				    i % 4 == 0 ? "\1\6\0\1\0\10\0\0" : "\1\3\0\1\0\10\0\0", 8);
		}
		whole = events((struct text){ bytes, sizeof(bytes) }, sizeof(bytes), 1);
		cut = events((struct text){ bytes, sizeof(bytes) }, 3, 5);
		g_assert_cmpstr(whole, ==, cut);
		g_free(whole);
		g_free(cut);
	}
}
