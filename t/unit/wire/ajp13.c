/* t/unit/wire/ajp13.c -- AJP 1.3: replies cut anywhere, replies that lie, bodies that are asked
 * for. */
#include "t/unit/wire/ajp13_test.h"
#include "t/unit/wire/events.h"
#include "t/unit/wire/wire_test.h"

extern const struct proto proto_ajp13;
static const struct proto *const ajp = &proto_ajp13;

/* The bytes of a string literal, NULs included. */
#define CHECK(want, lit) check((want), TEXT(lit))

static void
check(const char *want, struct text bytes)
{
	struct buf b;

	buf_init(&b, 0);
	buf_text(&b, bytes);
	check_events(ajp, &b, want);
}

TEST("/ajp13/a reply, at every split")
{
	struct buf b;

	buf_init(&b, 0);
	put_head(&b, 404, "X-A: b", NULL);
	put_chunk(&b, "hello");
	put_chunk(&b, ""); /* a flush */
	put_chunk(&b, ", you");
	put_over(&b, 1);
	check_events(ajp, &b, "H404 b:hello, you E+");

	put_head(&b, 200, NULL);
	put_over(&b, 0);
	check_events(ajp, &b, "H200 E-");

	put_head(&b, 103, "Link: </a>", NULL);
	put_head(&b, 200, "Content-Length: 0", NULL);
	put_over(&b, 1);
	check_events(ajp, &b, "H200 E+");
}

/* Old containers send no NUL after the bytes of a chunk. */
TEST("/ajp13/chunks without a NUL")
{
	struct buf b;

	buf_init(&b, 0);
	put_head(&b, 200, NULL);
	message(&b, TEXT("\3\0\2ab"));
	message(&b, TEXT("\3\0\0"));
	message(&b, TEXT("\3\0\1c"));
	put_over(&b, 1);
	check_events(ajp, &b, "H200 b:abc E+");
}

TEST("/ajp13/coded names")
{
	static const char head[] = "\4\0\310\0\2OK\0"
				   "\0\5"
				   "\240\1\0\3x/y\0"
				   "\240\3\0\1"
				   "5\0"
				   "\240\7\0\3a=1\0"
				   "\240\7\0\3b=2\0"
				   "\0\3X-A\0\377\377"; /* no value */
	void *state = calloc(1, ajp->size);
	struct proto_event ev;
	struct reply_head h;
	struct text in;
	struct buf b;

	buf_init(&b, 0);
	message(&b, (struct text){ head, sizeof(head) - 1 });
	in = buf_as_text(&b);
	reply_head_init(&h);
	ajp->reply(state, &h, &in, NULL, &ev);
	g_assert_cmpint(ev.kind, ==, PROTO_HEAD);
	g_assert_cmpint(h.reply.content_length, ==, 5);
	g_assert_cmpuint(h.reply.nheaders, ==, 4);
	g_assert_true(text_eq(h.reply.headers[0].name, TEXT("Content-Type")));
	g_assert_true(text_eq(h.reply.headers[0].value, TEXT("x/y")));
	g_assert_true(text_eq(h.reply.headers[2].name, TEXT("Set-Cookie")));
	g_assert_true(text_eq(h.reply.headers[2].value, TEXT("b=2")));
	g_assert_true(text_eq(h.reply.headers[3].value, TEXT("")));
	reply_head_free(&h);
	buf_free(&b);
	free(state);
}

/* ---------------------------------------------------------------- replies that lie */

#define OK "AB\0\10\4\0\310\0\0\0\0\0" /* SEND HEADERS: 200, no fields */

TEST("/ajp13/messages that are none")
{
	CHECK(" bad", "HTTP/1.1 400 \r\n\r\n");
	CHECK(" bad", "AC\0\2\5\1");
	CHECK(" bad", "\22\64\0\2\5\1");
	CHECK(" bad", "AB\0\0\4");
	CHECK(" bad", "AB\0\1\1");
	CHECK(" bad", "AB\0\1\12"); /* a CPing from the wrong side */
	CHECK(" bad", "AB\0\1\11"); /* a CPong, and nobody asked */
	CHECK(" bad", "AB\0\1\7");
	CHECK(" bad", "AB\0\3\5\1\0");
	CHECK(" bad", "AB\0\1\5");
	CHECK("H200 bad", OK "AB\0\3\5\1\0");
	CHECK("H200 bad", OK "AB\0\1\5");
	CHECK("H200 bad", OK "AB\0\2\3\0");
	CHECK("H200 bad", OK "AB\0\2\6\0");
	CHECK("H200 bad", OK "AB\0\4\6\0\1\0");
}

TEST("/ajp13/messages in the wrong order")
{
	CHECK(" bad", "AB\0\2\5\1");
	CHECK(" bad", "AB\0\5\3\0\1a\0");
	CHECK("H200 bad", OK OK);
	CHECK("H200 b:a bad", OK "AB\0\5\3\0\1a\0" OK);
	CHECK("H200 bad", OK "AB\0\1\11");
}

TEST("/ajp13/a stream that ends early")
{
	CHECK(" bad", "A");
	CHECK(" bad", "AB\0\10\4\0\310\0\0\0\0");
	CHECK("H200 bad", OK);
	CHECK("H200 b:a bad", OK "AB\0\6\3\0\2a");
	CHECK("H200 b:a bad", OK "AB\0\5\3\0\1a");
	CHECK("H200 bad", OK "AB\0\2\5");
}

TEST("/ajp13/lengths that lie")
{
	CHECK("H200 bad", OK "AB\0\5\3\0\3a\0");        /* a chunk longer than its message */
	CHECK("H200 bad", OK "AB\0\6\3\0\1abc");        /* and shorter */
	CHECK("H200 bad", OK "AB\0\5\3\377\377a\0");    /* much longer */
	CHECK(" bad", "AB\0\7\4\0\310\0\0\0\0");        /* the count is cut */
	CHECK(" bad", "AB\0\11\4\0\310\0\0\0\0\0\0");   /* a byte too many */
	CHECK(" bad", "AB\0\10\4\0\310\0\1\0\0\0");     /* no NUL after the reason */
	CHECK(" bad", "AB\0\10\4\0\310\377\376\0\0\0"); /* a reason longer than the message */
	CHECK(" bad", "AB\0\10\4\0\310\0\0\0\0\1");     /* one field, and none is there */
	CHECK(" bad", "AB\0\12\4\0\310\0\0\0\377\377\240\1");
	CHECK(" bad", "AB\0\16\4\0\310\0\0\0\0\1\240\1\0\4abc");
}

TEST("/ajp13/fields that may not pass")
{
	struct buf b;

	CHECK(" bad", "AB\0\14\4\0\310\0\0\0\0\1\240\0\0\0\0"); /* names of no number */
	CHECK(" bad", "AB\0\14\4\0\310\0\0\0\0\1\240\14\0\0\0");
	CHECK(" bad", "AB\0\14\4\0\310\0\0\0\0\1\240\377\0\0\0");
	CHECK(" bad", "AB\0\14\4\0\310\0\0\0\0\1\377\377\0\0\0"); /* no name */
	buf_init(&b, 0);
	put_head(&b, 200, "X-A: b\nX-Evil: 1", NULL);
	check_events(ajp, &b, " bad");
	put_head(&b, 200, "X-A: b\r", NULL);
	check_events(ajp, &b, " bad");
	put_head(&b, 200, "X\r\nEvil: b", NULL);
	check_events(ajp, &b, " bad");
	put_head(&b, 200, "Content-Length: 1", "content-length: 1", NULL);
	check_events(ajp, &b, " bad");
	put_head(&b, 200, "Content-Length: -1", NULL);
	check_events(ajp, &b, " bad");
}

TEST("/ajp13/not a status")
{
	static const unsigned wrong[] = { 0, 99, 101, 600, 65535 };
	struct buf b;
	size_t i;

	buf_init(&b, 0);
	for (i = 0; i < NELEM(wrong); i++) {
		put_head(&b, wrong[i], NULL);
		check_events(ajp, &b, " bad");
	}
}

TEST("/ajp13/too many fields")
{
	struct buf b, m;
	unsigned i;

	buf_init(&b, 0);
	buf_init(&m, 0);
	buf_add(&m, "\4\0\310\0\0\0\2\0", 8); /* 512 of them */
	for (i = 0; i < 512; i++)
		buf_add(&m, "\0\1A\0\0\1b\0", 8);
	message(&b, buf_as_text(&m));
	check_events(ajp, &b, " bad");
	buf_free(&m);
}

/* ---------------------------------------------------------------- the body of a request */

struct talk { /* a request with a body */
	void *state;
	struct reply_head h;
	struct buf out;
};

static void
talk_begin(struct talk *t, int64_t length, bool unsized)
{
	struct proxy_request r = a_request("POST");

	r.content_length = length;
	r.unsized = unsized;
	t->state = calloc(1, ajp->size);
	buf_init(&t->out, 0);
	reply_head_init(&t->h);
	g_assert_cmpint(ajp->request(t->state, &r, true, &t->out), ==, 0);
	t->out.n = 0;
}

static void
talk_end(struct talk *t)
{
	reply_head_free(&t->h);
	buf_free(&t->out);
	free(t->state);
}

static enum proto_kind
ask(struct talk *t, unsigned n)
{
	const char m[] = { 'A', 'B', 0, 3, 6, (char)(n >> 8), (char)n };
	struct text in = { m, sizeof(m) };
	struct proto_event ev;

	ajp->reply(t->state, &t->h, &in, &t->out, &ev);
	g_assert_cmpuint(in.n, ==, 0);
	return (ev.kind);
}

static bool
is_out(struct talk *t, struct text want)
{
	bool same = text_eq(buf_as_text(&t->out), want);

	t->out.n = 0;
	return (same);
}

TEST("/ajp13/a body goes as it is asked for")
{
	struct talk t;

	talk_begin(&t, 5, false);
	g_assert_cmpuint(ajp->credit(t.state), ==, 8186); /* the first packet goes unasked */
	ajp->body(t.state, TEXT("hel"), &t.out);
	g_assert_true(is_out(&t, TEXT("\22\64\0\5\0\3hel")));
	g_assert_cmpuint(ajp->credit(t.state), ==, 0);
	g_assert_cmpint(ask(&t, 8186), ==, PROTO_MORE);
	g_assert_cmpuint(ajp->credit(t.state), ==, 8186);
	ajp->body(t.state, TEXT("lo"), &t.out);
	g_assert_true(is_out(&t, TEXT("\22\64\0\4\0\2lo")));
	ajp->body_end(t.state, &t.out);
	g_assert_true(is_out(&t, TEXT(""))); /* nobody asked */
	g_assert_cmpint(ask(&t, 8186), ==, PROTO_MORE);
	g_assert_true(is_out(&t, TEXT("\22\64\0\0"))); /* the end */
	g_assert_cmpuint(ajp->credit(t.state), ==, 0);
	talk_end(&t);
}

TEST("/ajp13/a body without a length")
{
	struct talk t;

	talk_begin(&t, -1, true);
	g_assert_cmpuint(ajp->credit(t.state), ==, 0);
	g_assert_cmpint(ask(&t, 2), ==, PROTO_MORE);
	g_assert_cmpuint(ajp->credit(t.state), ==, 2); /* no more than it wants */
	ajp->body(t.state, TEXT("ab"), &t.out);
	g_assert_true(is_out(&t, TEXT("\22\64\0\4\0\2ab")));
	g_assert_cmpint(ask(&t, 65535), ==, PROTO_MORE);
	g_assert_cmpuint(ajp->credit(t.state), ==, 8186);
	ajp->body_end(t.state, &t.out);
	g_assert_true(is_out(&t, TEXT("\22\64\0\0"))); /* the answer to its question */
	g_assert_cmpuint(ajp->credit(t.state), ==, 0);
	talk_end(&t);
}

TEST("/ajp13/no body, and the container asks")
{
	struct talk t;
	int length;

	for (length = -1; length <= 0; length++) {
		talk_begin(&t, length, false);
		g_assert_cmpuint(ajp->credit(t.state), ==, 0);
		ajp->body_end(t.state, &t.out);
		g_assert_true(is_out(&t, TEXT("")));
		g_assert_cmpint(ask(&t, 8186), ==, PROTO_MORE);
		g_assert_true(is_out(&t, TEXT("\22\64\0\0")));
		talk_end(&t);
	}
}

TEST("/ajp13/a container that asks wrongly")
{
	struct talk t;

	talk_begin(&t, 5, false);
	g_assert_cmpint(ask(&t, 8186), ==, PROTO_BAD); /* the first packet is on its way */
	talk_end(&t);
	talk_begin(&t, -1, true);
	g_assert_cmpint(ask(&t, 0), ==, PROTO_BAD);
	talk_end(&t);
	talk_begin(&t, -1, true);
	g_assert_cmpint(ask(&t, 1), ==, PROTO_MORE);
	g_assert_cmpint(ask(&t, 1), ==, PROTO_BAD); /* twice */
	talk_end(&t);
}

static enum proto_kind
answer_of_ping(struct text bytes)
{
	struct proxy_request r = a_request("GET");
	struct proto_event ev;
	struct talk t;

	r.ping = true;
	t.state = calloc(1, ajp->size);
	buf_init(&t.out, 0);
	reply_head_init(&t.h);
	g_assert_cmpint(ajp->request(t.state, &r, true, &t.out), ==, 0);
	ajp->body_end(t.state, &t.out);
	g_assert_true(is_out(&t, TEXT("\22\64\0\1\12")));
	ajp->reply(t.state, &t.h, &bytes, &t.out, &ev);
	g_assert_true(ev.kind != PROTO_END || ev.reuse);
	talk_end(&t);
	return (ev.kind);
}

TEST("/ajp13/CPING and CPONG")
{
	g_assert_cmpint(answer_of_ping(TEXT("AB\0\1\11")), ==, PROTO_END);
	g_assert_cmpint(answer_of_ping(TEXT("AB\0\1")), ==, PROTO_MORE);
	g_assert_cmpint(answer_of_ping(TEXT("AB\0\2\11\0")), ==, PROTO_BAD);
	g_assert_cmpint(answer_of_ping(TEXT(OK)), ==, PROTO_BAD);
	g_assert_cmpint(answer_of_ping(TEXT("AB\0\2\5\1")), ==, PROTO_BAD);
}

TEST("/ajp13/noise: any cut gives the same events")
{
	static const struct text words[] = { TEXT("AB"), TEXT("\0\2\5\1"), TEXT(OK), TEXT("\0"),
		TEXT("AB\0\5\3\0\1a\0"), TEXT("\0\1"), TEXT("\240\1"), TEXT("AB\0\3\6\0\1"),
		TEXT("\3"), TEXT("\377\377") };
	struct buf b;
	char *whole, *cut;
	int i, k;

	buf_init(&b, 0);
	for (i = 0; i < 20000; i++) {
		b.n = 0;
		buf_text(&b, i % 2 == 0 ? TEXT(OK) : TEXT("AB"));
		for (k = 0; k < 8; k++)
			buf_text(&b, words[g_test_rand_int_range(0, NELEM(words))]);
		whole = events_of(ajp, buf_as_text(&b), b.n, 1);
		cut = events_of(ajp, buf_as_text(&b), 3, 5);
		g_assert_cmpstr(whole, ==, cut);
		g_free(whole);
		g_free(cut);
	}
	buf_free(&b);
}
