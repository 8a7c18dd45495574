/* t/unit/accel-load/http.c -- requests as they are sent, and answers however they are cut. */
#include "accel-load/answer.h"
#include "accel-load/urls.h"
#include "t/unit/test.h"

void
load_message(const char *format, ...)
{
}

static void
request_is(const struct load_conf *conf, const struct request *r, const char *want)
{
	static const char list[] = "http://h:81/a?b\n";
	FILE *f = fmemopen((void *)list, sizeof(list) - 1, "r");
	struct urls urls = { .n = 0 };
	struct buf out;

	g_assert_cmpint(urls_read(&urls, conf, f, NULL), ==, 0);
	buf_init(&out, 0);
	g_assert_true(load_http.request(conf, &urls.url[0], r, &out));
	g_assert_cmpmem(out.p, out.n, want, strlen(want));
	buf_free(&out);
	urls_close(&urls);
	fclose(f);
}

TEST("/http/requests")
{
	static const char *const fields[] = { "host: other", "User-agent: me", "A: b", NULL };
	struct load_conf conf = { .unix_path = "/s" };
	struct request r = { .length = 0 };

	request_is(&conf, &r, "GET /a?b HTTP/1.1\r\nHost: h:81\r\nUser-Agent: accel-load\r\n\r\n");
	conf.head = conf.close = true;
	conf.headers = fields;
	request_is(&conf, &r,
	    "HEAD /a?b HTTP/1.1\r\nhost: other\r\nUser-agent: me\r\nA: b\r\n"
	    "Connection: close\r\n\r\n");
	conf = (struct load_conf){ .unix_path = "/s" };
	r = (struct request){ .offset = 5, .length = 10 };
	request_is(&conf, &r,
	    "GET /a?b HTTP/1.1\r\nHost: h:81\r\nUser-Agent: accel-load\r\n"
	    "Range: bytes=5-14\r\n\r\n");
	r.length = UINT64_MAX;
	request_is(&conf, &r,
	    "GET /a?b HTTP/1.1\r\nHost: h:81\r\nUser-Agent: accel-load\r\n"
	    "Range: bytes=5-\r\n\r\n");
}

/* Writes the events of these bytes, cut after the first `cut`: "200 k 5/99 [body] end". */
static void
events(const char *bytes, size_t cut, bool head_only, struct buf *out)
{
	struct text in = { bytes, cut }, body;
	size_t n = strlen(bytes);
	struct answer a = { .state = NULL };
	enum answer_event ev;
	bool whole = cut == n;

	answer_begin(&a, &load_http, head_only);
	for (;;) {
		ev = load_http.take(&a, &in, &body);
		if (ev == ANSWER_MORE && !whole) {
			in.n = (size_t)(bytes + n - in.p);
			whole = true;
			continue;
		}
		if (ev == ANSWER_MORE)
			ev = load_http.eof(&a);
		if (ev == ANSWER_HEAD)
			buf_printf(out, "%d %u/%d [", a.status, (unsigned)a.first, (int)a.total);
		else if (ev == ANSWER_BODY)
			buf_text(out, body);
		else
			break;
	}
	buf_printf(out, "] %s", ev == ANSWER_BAD ? a.why : a.keep ? "keep" : "close");
}

#define OK "HTTP/1.1 200 OK\r\n"

TEST("/http/answers, cut anywhere")
{
	static const struct {
		const char *bytes, *want;
		bool head_only;
	} rows[] = {
		{ OK "Content-Length: 2\r\n\r\nok", "200 0/2 [ok] keep" },
		{ OK "content-length: 2\r\nConnection: x, Close\r\n\r\nok", "200 0/2 [ok] close" },
		{ "HTTP/1.0 200 OK\nContent-Length: 2\n\nok", "200 0/2 [ok] close" },
		{ "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
		    "200 0/0 [] keep" },
		{ "HTTP/1.1 103 x\r\nA: b\r\n\r\n" OK "Content-Length: 1\r\n\r\na",
		    "200 0/1 [a] keep" },
		{ OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
		    "200 0/-1 [abc] keep" },
		{ OK "\r\nto the end", "200 0/-1 [to the end] close" },
		{ OK "Content-Length: 9\r\n\r\n", "200 0/9 [] keep", true },
		{ "HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", "304 0/9 [] keep" },
		{ "HTTP/1.1 206 x\r\nContent-Range: bytes 5-6/99\r\nContent-Length: 2\r\n\r\nok",
		    "206 5/99 [ok] keep" },
		{ "HTTP/1.1 206 x\r\nContent-Range: bytes 5-6/*\r\nContent-Length: 2\r\n\r\nok",
		    "206 5/-1 [ok] keep" },
		{ OK "Content-Length: 3\r\n\r\nok",
		    "200 0/3 [ok] the answer ended before its length" },
		{ OK "Content-Le", "] the answer ended within its head" },
		{ OK "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", "] Content-Length twice" },
		{ OK "Content-Length: -2\r\n\r\nok", "] Content-Length is not a number" },
		{ OK "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
		    "] Content-Length beside Transfer-Encoding" },
		{ "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		    "] Transfer-Encoding in HTTP/1.0" },
		{ OK "Transfer-Encoding: gzip\r\n\r\n",
		    "] expected chunked as the only Transfer-Encoding" },
		{ OK "a b: c\r\n\r\n", "] expected \"name: value\"" },
		{ OK "a: \x01\r\n\r\n", "] a control character in the head" },
		{ "HTTP/1.1 2000 OK\r\n\r\n", "] expected three digits of a status" },
		{ "HTTP/1.1 099 OK\r\n\r\n", "] expected a status from 100 to 599" },
		{ "HTTP/2.0 200 OK\r\n\r\n", "] expected HTTP/1.x and a status" },
		{ OK "Transfer-Encoding: chunked\r\n\r\nx\r\n", "200 0/-1 [] malformed chunk" },
	};
	struct buf out;

	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
		for (size_t cut = 0; cut <= strlen(rows[i].bytes); cut++) {
			buf_init(&out, 0);
			events(rows[i].bytes, cut, rows[i].head_only, &out);
			buf_char(&out, '\0');
			g_assert_cmpstr(out.p, ==, rows[i].want);
			buf_free(&out);
		}
}

/* A head that does not end is malformed, not collected for ever. */
TEST("/http/a head has a bound")
{
	g_autofree char *head = g_strdup_printf("%sX: %0*d", OK, (int)ANSWER_HEAD_MAX, 0);
	struct answer a = { .state = NULL };
	struct text in = text_of(head), body;

	answer_begin(&a, &load_http, false);
	g_assert_cmpint(load_http.take(&a, &in, &body), ==, ANSWER_BAD);
}

TEST("/http/bodies that are dropped")
{
	struct answer a = { .state = NULL };
	struct text in = TEXT(OK "Content-Length: 100\r\n\r\nabc"), body;

	answer_begin(&a, &load_http, false);
	g_assert_cmpint(load_http.take(&a, &in, &body), ==, ANSWER_HEAD);
	g_assert_cmpint(load_http.take(&a, &in, &body), ==, ANSWER_BODY);
	g_assert_cmpuint(a.drop, ==, 97);
	load_http.dropped(&a, 97);
	g_assert_cmpint(load_http.take(&a, &in, &body), ==, ANSWER_END);
	g_assert_true(a.keep);
}
