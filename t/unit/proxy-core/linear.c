/* t/unit/proxy-core/linear.c -- what clients and applications send costs as much as it is long. */
#include "wire/codec/cgi_env.h"
#include "t/unit/linear.h"
#include "proxy-core/exchange.h"
#include "t/unit/wire/wire_test.h"

/* n fields, and n * 100 bytes of names that Connection lists. */
static GString *
make_hops(unsigned n)
{
	GString *s = g_string_new("Connection: b");
	unsigned i;

	for (i = 0; i < n * 50; i++)
		g_string_append(s, ",b");
	g_string_append(s, "\r\n");
	for (i = 0; i < n; i++)
		g_string_append_printf(s, "Name-%u: value\r\n", i);
	return (g_string_append(s, "\r\n"));
}

static GString *
make_same(unsigned n)
{
	GString *s = g_string_new(NULL);
	unsigned i;

	for (i = 0; i < n; i++)
		g_string_append_printf(s, "Name: %0200u\r\n", i);
	return (g_string_append(s, "\r\n"));
}

static void
work_head(const GString *s)
{
	struct text in = { s->str, s->len };
	struct reply_head h;

	reply_head_init(&h);
	g_assert_cmpint(reply_head_cgi(&h, &in), ==, HEAD_DONE);
	reply_head_free(&h);
}

static void
work_head_bytes(const GString *s)
{
	struct reply_head h;
	struct text in;
	size_t i;

	reply_head_init(&h);
	for (i = 0; i < s->len; i++) {
		in = (struct text){ s->str + i, 1 };
		g_assert_cmpint(reply_head_cgi(&h, &in), ==,
		    i + 1 < s->len ? HEAD_MORE : HEAD_DONE);
	}
	reply_head_free(&h);
}

static void
ignore(void *arg, struct text name, struct text value)
{
}

/* The lines of the reply's head, as headers of a request. */
static void
work_env(const GString *s)
{
	struct text rest = { s->str, s->len - 3 }, line;
	struct proxy_request r = a_request("GET");
	struct proxy_field f[256];
	const char *colon;
	size_t n = 0;

	while (text_next(&rest, '\n', &line)) {
		colon = memchr(line.p, ':', line.n);
		g_assert_nonnull(colon);
		f[n++] = (struct proxy_field){ .name = { line.p, (size_t)(colon - line.p) },
			.value = { colon + 2, (size_t)(line.p + line.n - colon - 3) } };
	}
	r.headers = f;
	r.nheaders = n;
	g_assert_cmpint(cgi_env(&r, ignore, NULL), ==, 0);
}

static GString *
make_records(unsigned n)
{
	struct buf b;
	GString *s;
	unsigned i;

	buf_init(&b, 0);
	put_stdout(&b, "\r\n");
	for (i = 0; i < n; i++)
		(i % 2 != 0 ? put_stdout : put_stderr)(&b, "x");
	put_end(&b, 0);
	s = g_string_new_len(b.p, (gssize)b.n);
	buf_free(&b);
	return (s);
}

static void
work_records(const GString *s)
{
	const struct proto *p = proto_find("fastcgi");
	struct text in = { s->str, s->len };
	void *state = g_malloc0(p->size);
	struct proto_event ev;
	struct reply_head h;

	reply_head_init(&h);
	do {
		p->reply(state, &h, &in, NULL, &ev);
		g_assert_cmpint(ev.kind, !=, PROTO_BAD);
	} while (ev.kind != PROTO_END && ev.kind != PROTO_MORE);
	reply_head_free(&h);
	g_free(state);
}

static const struct linear cases[] = {
	{ "reply-head/connection", make_hops, work_head, 120 },
	{ "reply-head/same-name", make_same, work_head, 125 },
	{ "reply-head/byte-by-byte", make_same, work_head_bytes, 125 },
	{ "request-headers/connection", make_hops, work_env, 49 },
	{ "request-headers/same-name", make_same, work_env, 50 },
	{ "fastcgi/records-of-one-byte", make_records, work_records, 3600 },
};

int
main(int argc, char **argv)
{
	return (linear_main(argc, argv, cases, G_N_ELEMENTS(cases)));
}
