/* t/unit/wire/cgi_request.c -- a request for a CGI program: what wire/codec/fastcgi.c writes is
 * read at every split, and nothing else. */
#include "t/unit/test.h"
#include "wire/codec/cgi_request.h"
#include "wire/codec/codec.h"

#define BEGIN  "\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0"
#define PARAM  "\1\4\0\1\0\5\0\0\1\2A12"
#define PARAMS "\1\4\0\1\0\0\0\0"
#define END    "\1\5\0\1\0\0\0\0"

/* P: params are complete, E: the end, !: refused; bytes of the body in between. */
static void
feed(struct cgi_request *q, struct text in, GString *log)
{
	struct text body;

	for (;;) {
		switch (cgi_request_feed(q, &in, &body)) {
		case CGI_MORE: g_assert_cmpuint(in.n, ==, 0); return;
		case CGI_PARAMS: g_string_append_c(log, 'P'); break;
		case CGI_BODY: g_string_append_len(log, body.p, (gssize)body.n); break;
		case CGI_END: g_string_append_c(log, 'E'); break;
		case CGI_BAD: g_string_append_c(log, '!'); return;
		}
	}
}

static void
check(struct text bytes, const char *want)
{
	struct cgi_request q;
	g_autoptr(GString) log = g_string_new("");
	size_t at;

	for (at = 0; at <= bytes.n; at++) {
		cgi_request_init(&q);
		g_string_truncate(log, 0);
		feed(&q, (struct text){ bytes.p, at }, log);
		if (log->len == 0 || log->str[log->len - 1] != '!')
			feed(&q, (struct text){ bytes.p + at, bytes.n - at }, log);
		g_assert_cmpstr(log->str, ==, want);
		cgi_request_free(&q);
	}
}

TEST("/cgi_request/streams")
{
	check(TEXT(BEGIN PARAM PARAMS END), "PE");
	check(TEXT(BEGIN PARAM PARAMS "\1\5\0\1\0\4\0\0body" END), "PbodyE");
	check(TEXT(BEGIN "\1\4\0\1\0\2\3\0\1\2..."
			 "\1\4\0\1\0\3\1\0A12." PARAMS "\1\5\0\1\0\1\2\0x.." END),
	    "PxE");
	check(TEXT(BEGIN PARAMS), "P");
	check(TEXT(BEGIN PARAM), "");
}

TEST("/cgi_request/refused")
{
	check(TEXT(BEGIN PARAM PARAMS END END), "PE!"); /* nothing follows the end */
	check(TEXT(BEGIN PARAM PARAMS PARAM), "P!");    /* params after their end */
	check(TEXT(BEGIN END), "!");                    /* a body before them */
	check(TEXT(PARAM), "!");
	check(TEXT(BEGIN BEGIN), "!");
	check(TEXT("\2\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0"), "!"); /* version */
	check(TEXT("\1\1\0\2\0\10\0\0\0\1\0\0\0\0\0\0"), "!"); /* id */
	check(TEXT("\1\1\0\1\0\7\0\0\0\1\0\0\0\0\0"), "!");    /* length */
	check(TEXT("\1\1\0\1\0\10\0\0\0\2\0\0\0\0\0\0"), "!"); /* role */
	check(TEXT(BEGIN "\1\2\0\1\0\0\0\0"), "!");            /* abort */
	check(TEXT(BEGIN "\1\4\0\1\0\2\0\0\1\5" PARAMS), "!"); /* half a pair */
	check(TEXT(BEGIN "\1\4\0\1\0\1\0\0\1" PARAMS), "!");
	check(TEXT(BEGIN "\1\4\0\1\0\6\0\0\377\377\377\377\0A" PARAMS), "!");
}

/* PROTO_REQUEST_MAX bytes of variables, and one more. */
TEST("/cgi_request/bounds")
{
	static char content[65535];
	struct cgi_request q;
	g_autoptr(GString) log = g_string_new("");
	size_t i;

	cgi_request_init(&q);
	feed(&q, TEXT(BEGIN), log);
	for (i = 0; i * sizeof(content) <= PROTO_REQUEST_MAX && log->len == 0; i++) {
		feed(&q, TEXT("\1\4\0\1\377\377\0\0"), log);
		feed(&q, (struct text){ content, sizeof(content) }, log);
	}
	g_assert_cmpstr(log->str, ==, "!");
	g_assert_cmpuint(q.params.n, <=, PROTO_REQUEST_MAX);
	cgi_request_free(&q);
}

/* What proxy-core sends for a request. */
TEST("/cgi_request/from_codec")
{
	const struct proto *p = proto_find("fastcgi");
	struct proxy_request r = { .method = TEXT("POST"),
		.target = TEXT("/a"),
		.path = TEXT("/a"),
		.query = TEXT(""),
		.scheme = TEXT("https"),
		.path_info = TEXT("/a"),
		.redirect_uri = TEXT("/b"),
		.content_length = 4 };
	g_autofree void *state = g_malloc0(p->size);
	g_autoptr(GString) log = g_string_new("");
	struct text in, name, value;
	struct cgi_request q;
	struct buf out;

	buf_init(&out, 0);
	g_assert_cmpint(p->request(state, &r, false, &out), ==, 0);
	p->body(state, TEXT("body"), &out);
	p->body_end(state, &out);
	check(buf_as_text(&out), "PbodyE");
	cgi_request_init(&q);
	feed(&q, buf_as_text(&out), log);
	in = buf_as_text(&q.params);
	while (in.n > 0) {
		g_assert_true(fcgi_take_pair(&in, &name, &value));
		g_assert_true(cgi_variable_ok(name, value));
		g_assert_true(cgi_variable_is_usual(name));
		if (text_eq(name, TEXT("REQUEST_METHOD")))
			g_assert_true(text_eq(value, TEXT("POST")));
	}
	cgi_request_free(&q);
	buf_free(&out);
}

TEST("/cgi_request/variables")
{
	g_assert_true(cgi_variable_ok(TEXT("A"), TEXT("")));
	g_assert_true(cgi_variable_ok(TEXT("A"), TEXT("b=c")));
	g_assert_false(cgi_variable_ok(TEXT(""), TEXT("b")));
	g_assert_false(cgi_variable_ok(TEXT("A=B"), TEXT("c")));
	g_assert_false(cgi_variable_ok(TEXT("A\0B"), TEXT("c")));
	g_assert_false(cgi_variable_ok(TEXT("A"), TEXT("b\0c")));
	g_assert_true(cgi_variable_is_usual(TEXT("HTTP_X")));
	g_assert_false(cgi_variable_is_usual(TEXT("HTTP_PROXY")));
	g_assert_true(cgi_variable_is_usual(TEXT("SSL_CIPHER")));
	g_assert_false(
	    cgi_variable_is_usual(TEXT("SSL_CERT_FILE"))); /* of OpenSSL in the program */
	g_assert_false(cgi_variable_is_usual(TEXT("LD_PRELOAD")));
	g_assert_false(cgi_variable_is_usual(TEXT("PERL5OPT")));
	g_assert_false(cgi_variable_is_usual(TEXT("BASH_ENV")));
}
