/* t/unit/io/http2.c -- requests and replies of HTTP/2; http2_test.h says how. */
#include "t/unit/io/http2_test.h"

#define WINDOW 65535u /* of a stream, as each side has it at first */

static const struct reply *
is_reply(int32_t id, int status, const char *fields, const char *body)
{
	const struct reply *r = reply_of(id);

	g_assert_cmpint(r->status, ==, status);
	g_assert_cmpstr(r->fields->str, ==, fields);
	g_assert_cmpstr(r->body->str, ==, body);
	g_assert_true(r->ended);
	return (r);
}

/* The only stream has ended for both. */
static void
is_over(int32_t id, uint32_t code)
{
	exchange();
	g_assert_true(reply_of(id)->closed);
	g_assert_cmpuint(reply_of(id)->code, ==, code);
	g_assert_cmpuint(http2_streams(h2), ==, 0);
	g_assert_true(list_empty(&h2->streams));
}

/* Says it, reads the reply, and closes. */
static void
answer(const char *reply)
{
	say(&owner[nowners - 1], reply);
	exchange();
	g_assert_cmpint(owner[nowners - 1].wr_res, ==, (int64_t)strlen(reply));
	close_owner(&owner[nowners - 1], false);
	exchange();
}

UP_TEST("/http2/a request and its reply")
{
	int32_t id = ask(GET "x-a b\n");

	exchange();
	g_assert_cmpuint(nowners, ==, 1);
	g_assert_cmpstr(owner[0].head, ==, "GET / HTTP/2.0\r\nHost: h\r\nx-a: b\r\n\r\n");
	g_assert_cmpuint(http2_streams(h2), ==, 1);
	g_assert_cmpuint(counters.http2_streams, ==, 1);
	answer(OK "Content-Length: 5\r\nConnection: close\r\n\r\nhello");
	is_reply(id, 200, "content-length=5|", "hello");
	is_over(id, NGHTTP2_NO_ERROR);
	g_assert_cmpuint(now.ended, ==, 0);
}

/* One after the other on a connection. */
UP_TEST("/http2/many requests")
{
	unsigned i;
	int32_t id;

	for (i = 0; i < 150; i++) {
		id = ask(GET);
		exchange();
		answer(OK "Content-Length: 2\r\n\r\nok");
		is_reply(id, 200, "content-length=2|", "ok");
		is_over(id, NGHTTP2_NO_ERROR);
	}
	g_assert_cmpuint(counters.http2_streams, ==, 150);
	g_assert_cmpuint(counters.http2_resets, ==, 0);
}

UP_TEST("/http2/interim replies")
{
	int32_t id = ask(GET);

	exchange();
	say(&owner[0], "HTTP/1.1 100 Continue\r\n\r\n");
	exchange();
	g_assert_cmpint(reply_of(id)->status, ==, 100);
	say(&owner[0],
	    "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" OK "Content-Length: 2\r\n\r\nok");
	exchange();
	is_reply(id, 200, "link=a|content-length=2|", "ok");
	g_assert_cmpuint(reply_of(id)->interim, ==, 2);
	close_owner(&owner[0], false);
	is_over(id, NGHTTP2_NO_ERROR);
}

/* The server sends a head in pieces only if an application does. */
UP_TEST("/http2/a head in pieces")
{
	static const char head[] = OK "Content-Length: 2\r\nA: b\r\n\r\nok";
	int32_t id = ask(GET);
	size_t i;

	exchange();
	for (i = 0; i < sizeof(head) - 1; i++) {
		say_bytes(&owner[0], head + i, 1);
		exchange();
		g_assert_cmpint(owner[0].wr_res, ==, 1);
	}
	is_reply(id, 200, "content-length=2|a=b|", "ok");
	close_owner(&owner[0], false);
	is_over(id, NGHTTP2_NO_ERROR);
}

UP_TEST("/http2/a head of several parts")
{
	struct iovec iov[4] = { { (char *)OK, sizeof(OK) - 1 }, { (char *)"A: b\r\n\r", 7 },
		{ (char *)"\no", 2 }, { (char *)"k", 1 } };
	int32_t id = ask(GET);

	exchange();
	say_op(&owner[0], IO_SEND, 0);
	owner[0].keeps_on = false;
	owner[0].wr.send.iov = iov;
	owner[0].wr.send.n = owner[0].wr.send.first = 4;
	op_submit(io, &owner[0].wr);
	exchange();
	g_assert_cmpint(owner[0].wr_res, ==, sizeof(OK) - 1 + 10);
	close_owner(&owner[0], false);
	exchange();
	is_reply(id, 200, "a=b|", "ok");
	is_over(id, NGHTTP2_NO_ERROR);
}

static void
check_empty(const char *request, const char *reply, int status, const char *fields)
{
	int32_t id = ask(request);

	exchange();
	answer(reply);
	is_reply(id, status, fields, "");
	is_over(id, NGHTTP2_NO_ERROR);
}

UP_TEST("/http2/replies without a body")
{
	static const char head[] = ":method HEAD\n:path /\n:scheme http\n:authority h\n";

	check_empty(head, OK "Content-Length: 9\r\n\r\n", 200, "content-length=9|");
	check_empty(head, OK "\r\n", 200, "");
	check_empty(head, OK "\r\nnobody reads this", 200, "");
	check_empty(GET, "HTTP/1.1 204 x\r\n\r\n", 204, "");
	check_empty(GET, "HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", 304, "content-length=9|");
	check_empty(GET, OK "Content-Length: 0\r\n\r\n", 200, "content-length=0|");
	check_empty(GET, OK "Content-Length: 0\r\n\r\nmore", 200, "content-length=0|");
	g_assert_cmpstr(order->str, ==, "");
}

UP_TEST("/http2/a body ends with its socket")
{
	int32_t id = ask(GET);

	exchange();
	say(&owner[0], OK "\r\n");
	exchange();
	say(&owner[0], "hel");
	exchange();
	say(&owner[0], "lo");
	exchange();
	g_assert_false(reply_of(id)->ended);
	close_owner(&owner[0], false);
	is_over(id, NGHTTP2_NO_ERROR);
	is_reply(id, 200, "", "hello");
}

UP_TEST("/http2/fields after a body")
{
	int32_t id = ask(GET);

	exchange();
	say(&owner[0], OK "\r\n");
	exchange();
	g_assert_true(http2_trailers(&owner[0].sock, TEXT("X-Sum: 1\r\nConnection: x\r\n")));
	say(&owner[0], "hello");
	exchange();
	g_assert_false(reply_of(id)->ended);
	close_owner(&owner[0], false);
	is_over(id, NGHTTP2_NO_ERROR);
	is_reply(id, 200, "x-sum=1|", "hello");
}

/* The number of its stream. */
static int32_t
ask_with_trailers(struct text lines)
{
	int32_t id = ask(GET);

	exchange();
	g_assert_true(http2_trailers(&owner[0].sock, lines));
	return (id);
}

UP_TEST("/http2/fields after no byte of a body")
{
	int32_t id = ask_with_trailers(TEXT("X-Sum: 1\r\n"));

	answer(OK "\r\n");
	is_over(id, NGHTTP2_NO_ERROR);
	is_reply(id, 200, "x-sum=1|", "");
}

/* The length says where the reply ends. */
UP_TEST("/http2/fields after a body with a length")
{
	int32_t id = ask_with_trailers(TEXT("X-Sum: 1\r\n"));

	answer(OK "Content-Length: 2\r\n\r\nok");
	is_over(id, NGHTTP2_NO_ERROR);
	is_reply(id, 200, "content-length=2|", "ok");
}

UP_TEST("/http2/fields that cannot be read")
{
	int32_t id = ask_with_trailers(TEXT("X-Sum\r\n"));

	answer(OK "\r\nok");
	is_over(id, NGHTTP2_INTERNAL_ERROR);
}

UP_TEST("/http2/fields after a reply that is cut")
{
	int32_t id = ask_with_trailers(TEXT("X-Sum: 1\r\n"));

	say(&owner[0], OK "\r\nok");
	exchange();
	close_owner(&owner[0], true);
	is_over(id, NGHTTP2_INTERNAL_ERROR);
	g_assert_cmpstr(reply_of(id)->fields->str, ==, "");
}

UP_TEST("/http2/no byte of a body, and its end")
{
	int32_t id = ask(GET);

	exchange();
	answer(OK "\r\n");
	is_reply(id, 200, "", "");
	is_over(id, NGHTTP2_NO_ERROR);
}

/* More than the head announces does not belong to the reply. */
UP_TEST("/http2/a body that is too long")
{
	int32_t id = ask(GET);

	exchange();
	say(&owner[0], OK "Content-Length: 2\r\n\r\nokmore");
	owner[0].keeps_on = true;
	exchange();
	g_assert_cmpuint(owner[0].said, ==, sizeof(OK "Content-Length: 2\r\n\r\nokmore") - 1);
	is_reply(id, 200, "content-length=2|", "ok");
	close_owner(&owner[0], false);
	is_over(id, NGHTTP2_NO_ERROR);
}

static void
check_cut(const char *said, bool cuts)
{
	int32_t id = ask(GET);
	struct owner *o;

	exchange();
	o = &owner[nowners - 1];
	if (*said != '\0')
		say(o, said);
	exchange();
	close_owner(o, cuts);
	is_over(id, NGHTTP2_INTERNAL_ERROR);
	g_assert_false(reply_of(id)->ended);
}

UP_TEST("/http2/a reply that is cut")
{
	check_cut(OK "\r\nhel", true);
	check_cut(OK "Content-Length: 5\r\n\r\nhel", true);
	check_cut(OK "Content-Length: 5\r\n\r\nhel", false); /* bytes are missing */
	check_cut(OK "Content-Length: 5\r\n\r\n", false);
	check_cut("", false);
	check_cut("", true);
	check_cut("HTTP/1.1 100 Continue\r\n\r\n", false);
	check_cut("HTTP/1.1 2", false);
}

static void
check_no_head(const char *said)
{
	int32_t id = ask(GET);
	struct owner *o;

	exchange();
	o = &owner[nowners - 1];
	say(o, said);
	exchange();
	g_assert_cmpint(o->wr_res, ==, -EPROTO);
	close_owner(o, true);
	is_over(id, NGHTTP2_INTERNAL_ERROR);
}

UP_TEST("/http2/a reply that cannot be read")
{
	g_autofree char *long_head = g_strconcat(OK "A: ", many, NULL);

	check_no_head("nonsense\r\n\r\n");
	check_no_head("HTTP/1.1 101 x\r\n\r\n"); /* the client has not asked for it */
	check_no_head(long_head);
}

/* Fields of an application; beside them the server has some of its own. */
UP_TEST("/http2/a large head")
{
	g_autofree char *value = g_strnfill(40000, 'v');
	g_autofree char *head =
	    g_strconcat(OK "A: ", value, "\r\nB: ", value, "\r\nContent-Length: 0\r\n\r\n", NULL);
	int32_t id = ask(GET);

	exchange();
	answer(head);
	g_assert_cmpint(reply_of(id)->status, ==, 200);
	g_assert_cmpuint(reply_of(id)->fields->len, >, 80000);
	is_over(id, NGHTTP2_NO_ERROR);
}

UP_TEST("/http2/a large body")
{
	int32_t id = ask(GET);

	exchange();
	say_many(&owner[0], MANY);
	exchange();
	g_assert_cmpuint(reply_of(id)->body->len, ==, MANY);
	g_assert_cmpmem(reply_of(id)->body->str, MANY, many, MANY);
	close_owner(&owner[0], false);
	is_over(id, NGHTTP2_NO_ERROR);
}

UP_TEST("/http2/the client's windows hold a body back")
{
	int32_t id;

	now.deaf = true;
	id = ask(GET);
	exchange();
	say_many(&owner[0], MANY);
	exchange();
	g_assert_cmpuint(reply_of(id)->body->len, ==, WINDOW);
	g_assert_cmpint(owner[0].wr_res, ==, -EINPROGRESS);
	g_assert_true(http2_stream_is_blocked(stream_of_owner(&owner[0])));
	g_assert_true(http2_waits(h2));
	now.deaf = false;
	nghttp2_session_consume(client, id, WINDOW);
	exchange();
	g_assert_cmpuint(reply_of(id)->body->len, ==, MANY);
	close_owner(&owner[0], false);
	is_over(id, NGHTTP2_NO_ERROR);
}

/* ---- bodies of requests */

UP_TEST("/http2/a body with a length")
{
	int32_t id = ask_with(POST "content-length 10\n", 4, false);

	exchange();
	g_assert_cmpstr(owner[0].head, ==,
	    "POST / HTTP/2.0\r\nHost: h\r\ncontent-length: 10\r\n\r\n");
	hear(&owner[0]);
	exchange();
	g_assert_cmpstr(owner[0].got->str, ==, "uuuu");
	hear(&owner[0]);
	exchange();
	g_assert_cmpint(owner[0].rd_res, ==, -EINPROGRESS);
	more_body(id, 6, true);
	exchange();
	g_assert_cmpstr(owner[0].got->str, ==, "uuuuuuuuuu");
	answer(OK "Content-Length: 0\r\n\r\n");
	is_over(id, NGHTTP2_NO_ERROR);
}

UP_TEST("/http2/a body in chunks")
{
	int32_t id = ask_with(POST, 5, false);

	exchange();
	hear(&owner[0]);
	exchange();
	g_assert_cmpstr(owner[0].got->str, ==, "5\r\nuuuuu\r\n");
	more_body(id, 17, true);
	exchange();
	hear(&owner[0]);
	exchange();
	g_assert_cmpstr(owner[0].got->str, ==,
	    "5\r\nuuuuu\r\n11\r\nuuuuuuuuuuuuuuuuu\r\n0\r\n\r\n");
	answer(OK "Content-Length: 0\r\n\r\n");
	is_over(id, NGHTTP2_NO_ERROR);
}

/* It comes alone, and the reader waits already. */
UP_TEST("/http2/the end of a body")
{
	int32_t id = ask_with(POST, 0, false);

	exchange();
	hear(&owner[0]);
	exchange();
	g_assert_cmpint(owner[0].rd_res, ==, -EINPROGRESS);
	more_body(id, 0, true);
	exchange();
	g_assert_cmpstr(owner[0].got->str, ==, "0\r\n\r\n");
	answer(OK "Content-Length: 0\r\n\r\n");
	is_over(id, NGHTTP2_NO_ERROR);
}

UP_TEST("/http2/trailers of a request end its body")
{
	nghttp2_nv nv = { (uint8_t *)"x", (uint8_t *)"y", 1, 1, 0 };
	int32_t id = ask_with(POST, 5, false);

	exchange();
	g_assert_cmpint(nghttp2_submit_trailer(client, id, &nv, 1), ==, 0);
	exchange();
	hear(&owner[0]);
	exchange();
	g_assert_cmpstr(owner[0].got->str, ==, "5\r\nuuuuu\r\n0\r\n\r\n");
	answer(OK "Content-Length: 0\r\n\r\n");
	is_over(id, NGHTTP2_NO_ERROR);
}

/* The window opens as the owner reads, so that much is all that waits for it. */
UP_TEST("/http2/a body waits for its reader")
{
	const struct buf *in;
	int32_t id = ask_with(POST "content-length 8388608\n", MANY, true);
	size_t most = 0;

	exchange();
	in = &stream_of_owner(&owner[0])->in;
	g_assert_cmpuint(in->n, ==, WINDOW);
	while (owner[0].got->len < MANY) {
		hear_with(&owner[0], 0, true);
		exchange();
		g_assert_cmpint(owner[0].rd_res, >, 0);
		most = in->cap > most ? in->cap : most;
	}
	g_assert_cmpuint(most, <=, 256u << 10);
	g_assert_cmpuint(reply_of(id)->up, ==, 0);
	answer(OK "Content-Length: 0\r\n\r\n");
	is_over(id, NGHTTP2_NO_ERROR);
}

/* A chunk for each of them would take six times as much. */
UP_TEST("/http2/a body of many small frames")
{
	int32_t id = ask_with(POST, 0, false);
	unsigned i;

	exchange();
	for (i = 0; i < WINDOW; i++) {
		more_body(id, 1, false);
		to_server();
	}
	exchange();
	g_assert_cmpuint(stream_of_owner(&owner[0])->in.cap, <=, 256u << 10);
	while (owner[0].got->len == 0 || owner[0].rd_res > 0) {
		hear(&owner[0]);
		exchange();
	}
	g_assert_cmpuint(held(&owner[0]), ==, 0);
}

/* WINDOW_ALL is for all streams of a connection together. */
UP_TEST("/http2/bodies of many streams wait")
{
	size_t all = 0;
	unsigned i;

	for (i = 0; i < 40; i++)
		ask_with(POST, MANY, true);
	exchange();
	g_assert_cmpuint(nowners, ==, 40);
	for (i = 0; i < 40; i++)
		all += held(&owner[i]);
	g_assert_cmpuint(all, ==, 1u << 20);
	for (i = 0; i < 39; i++) /* what they did not read is free for others */
		close_owner(&owner[i], true);
	exchange();
	g_assert_cmpuint(held(&owner[39]), ==, WINDOW);
}

/* The rest of the body is dropped, from DROP_MAX on refused, and the reply is complete. */
UP_TEST("/http2/a reply before the end of the request")
{
	int32_t id = ask_with(POST, MANY, true);

	exchange();
	answer("HTTP/1.1 413 x\r\nContent-Length: 2\r\n\r\nno");
	is_reply(id, 413, "content-length=2|", "no");
	is_over(id, NGHTTP2_NO_ERROR);
	g_assert_cmpuint(reply_of(id)->up, >, MANY - (1u << 20));
	id = ask(GET);
	exchange();
	answer(OK "Content-Length: 2\r\n\r\nok");
	is_reply(id, 200, "content-length=2|", "ok");
}

UP_TEST("/http2/a reply before the end of a small request")
{
	int32_t id = ask_with(POST, 1000, false);

	exchange();
	answer(OK "Content-Length: 2\r\n\r\nok");
	is_reply(id, 200, "content-length=2|", "ok");
	g_assert_false(reply_of(id)->closed);
	more_body(id, 1000, true);
	is_over(id, NGHTTP2_NO_ERROR);
}

/* ---- resets */

static void
reset(int32_t id)
{
	nghttp2_submit_rst_stream(client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	exchange();
}

UP_TEST("/http2/the client resets a stream that is read")
{
	int32_t id = ask_with(POST, 3, false);

	exchange();
	hear(&owner[0]);
	exchange();
	hear(&owner[0]);
	reset(id);
	g_assert_cmpint(owner[0].rd_res, ==, -ECONNRESET);
	g_assert_cmpuint(counters.http2_resets, ==, 1);
	g_assert_cmpuint(http2_streams(h2), ==, 0);
	say(&owner[0], OK "\r\n");
	sim_run(io);
	g_assert_cmpint(owner[0].wr_res, ==, -EPIPE);
	close_owner(&owner[0], false);
	is_over(id, NGHTTP2_CANCEL);
}

UP_TEST("/http2/the client resets a stream that is sent")
{
	int32_t id = ask(GET);

	now.deaf = true;
	exchange();
	say_many(&owner[0], MANY);
	exchange();
	g_assert_cmpint(owner[0].wr_res, ==, -EINPROGRESS);
	reset(id);
	g_assert_cmpint(owner[0].wr_res, <, 0);
	g_assert_cmpint(owner[0].wr_res, !=, -EINPROGRESS);
	close_owner(&owner[0], true);
	is_over(id, NGHTTP2_CANCEL);
}

static void
check_hangup(bool or_end)
{
	int32_t id = ask(GET);
	struct owner *o;

	exchange();
	o = &owner[nowners - 1];
	o->rd_res = -EINPROGRESS;
	op_init(&o->rd, IO_RECV, heard);
	o->rd.sock = &o->sock;
	o->rd.only_hangup = true;
	o->rd.or_end = or_end;
	op_submit(io, &o->rd);
	exchange();
	g_assert_cmpint(o->rd_res, ==, -EINPROGRESS);
	reset(id);
	g_assert_cmpint(o->rd_res, ==, 0);
	close_owner(o, true);
	is_over(id, NGHTTP2_CANCEL);
}

UP_TEST("/http2/the client resets a stream that waits")
{
	check_hangup(false);
	check_hangup(true);
}

/* The bytes of its body that are there are the connection's window. */
UP_TEST("/http2/a stream that was reset gives its window back")
{
	unsigned i;
	int32_t id;

	for (i = 0; i < 40; i++) {
		id = ask_with(POST, WINDOW, false);
		exchange();
		g_assert_cmpuint(stream_of_owner(&owner[i])->in.n, ==, WINDOW);
		reset(id);
		close_owner(&owner[i], true);
		is_over(id, NGHTTP2_CANCEL);
	}
}

UP_TEST("/http2/no memory for a stream")
{
	int32_t id;

	now.refuses = true;
	id = ask(GET);
	is_over(id, NGHTTP2_REFUSED_STREAM);
	id = ask_with(POST, MANY, true);
	is_over(id, NGHTTP2_REFUSED_STREAM);
	now.refuses = false;
	id = ask(GET);
	exchange();
	answer(OK "Content-Length: 2\r\n\r\nok");
	is_over(id, NGHTTP2_NO_ERROR);
}

static void
check_malformed(const char *fields)
{
	int32_t id = ask(fields);

	is_over(id, NGHTTP2_PROTOCOL_ERROR);
	g_assert_cmpuint(nowners, ==, 0);
	g_assert_cmpuint(http2_head_since(h2), ==, 0); /* no head is awaited */
}

UP_TEST("/http2/malformed requests")
{
	check_malformed(":method GET\n:path /\n:authority h\n");
	check_malformed(":method GET\n:path /\n:scheme http\n:authority h\nconnection close\n");
	check_malformed(GET "te gzip\n");
	check_malformed(GET "host x\n");
	check_malformed(GET "x  y\n");
	check_malformed(GET ":path /\n");
	check_malformed(":method GET\n:path a\n:scheme http\n:authority h\n");
	check_malformed(GET "content-length 5\n"); /* and no body */
	g_assert_cmpint(now.received, ==, 0);
}

/* The head is one that http2_head() refuses. */
UP_TEST("/http2/a head that is too long")
{
	g_autofree char *value = g_strnfill(10000, 'v');
	g_autofree char *fields = g_strconcat(GET "x ", value, "\n", NULL);
	int32_t id = ask(fields);

	exchange();
	g_assert_cmpuint(nowners, ==, 1);
	g_assert_cmpuint(strlen(owner[0].head), >, 8192);
	answer("HTTP/1.1 431 x\r\nContent-Length: 0\r\n\r\n");
	is_reply(id, 431, "content-length=0|", "");
}

/* ---- tunnels */

#define CONNECT                                                  \
	":method CONNECT\n:path /\n:scheme http\n:authority h\n" \
	":protocol websocket\n"
#define SWITCH "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

UP_TEST("/http2/a tunnel")
{
	int32_t id = ask_with(CONNECT, 0, false);

	exchange();
	say(&owner[0], SWITCH);
	exchange();
	g_assert_cmpint(reply_of(id)->status, ==, 200);
	hear(&owner[0]);
	more_body(id, 3, false);
	exchange();
	g_assert_cmpstr(owner[0].got->str, ==, "uuu");
	say(&owner[0], "abc");
	exchange();
	g_assert_cmpstr(reply_of(id)->body->str, ==, "abc");
	hear(&owner[0]);
	more_body(id, 2, true);
	exchange();
	g_assert_cmpstr(owner[0].got->str, ==, "uuuuu");
	hear(&owner[0]);
	exchange();
	g_assert_cmpint(owner[0].rd_res, ==, 0);
	say(&owner[0], "more");
	exchange();
	close_owner(&owner[0], false);
	exchange();
	is_reply(id, 200, "", "abcmore");
	is_over(id, NGHTTP2_NO_ERROR);
}

UP_TEST("/http2/a tunnel that is refused")
{
	int32_t id = ask_with(CONNECT, 0, false);

	exchange();
	answer("HTTP/1.1 403 x\r\nContent-Length: 2\r\n\r\nno");
	is_reply(id, 403, "content-length=2|", "no");
	more_body(id, 0, true);
	is_over(id, NGHTTP2_NO_ERROR);
}

/* ---- the connection */

UP_TEST("/http2/draining")
{
	int32_t first = ask(GET), second;

	exchange();
	http2_drain(h2);
	now.room = 0;
	second = ask(GET); /* on its way already */
	sim_run(io);
	exchange();
	g_assert_cmpuint(nowners, ==, 2);
	now.room = SIZE_MAX;
	exchange();
	g_assert_cmpuint(now.goaways, ==, 2);
	g_assert_cmpint(now.last, ==, second);
	g_assert_cmpuint(now.code, ==, NGHTTP2_NO_ERROR);
	g_assert_false(http2_is_drained(h2));
	answer(OK "Content-Length: 0\r\n\r\n");
	g_assert_false(http2_is_drained(h2));
	nowners = 1;
	answer(OK "Content-Length: 0\r\n\r\n");
	nowners = 2;
	g_assert_true(http2_is_drained(h2));
	g_assert_true(reply_of(first)->ended && reply_of(second)->ended);
	http2_drain(h2); /* once */
	exchange();
	g_assert_cmpuint(now.goaways, ==, 2);
	http2_end(h2);
	exchange();
	g_assert_cmpuint(now.ended, ==, 1);
	g_assert_cmpint(now.err, ==, 0);
}

/* What is on its way is taken, whatever comes before it. */
UP_TEST("/http2/draining without a request")
{
	int32_t id;

	now.room = 500; /* the notice and the PING are sent, and not read yet */
	http2_drain(h2);
	server_runs();
	now.room = 0;
	nghttp2_submit_window_update(client, NGHTTP2_FLAG_NONE, 0, 1000);
	exchange();
	g_assert_cmpint(now.received, ==, 0);
	g_assert_false(http2_is_drained(h2));
	id = ask(GET);
	exchange();
	g_assert_cmpuint(nowners, ==, 1);
	now.room = SIZE_MAX;
	exchange();
	g_assert_cmpint(now.last, ==, id);
	answer(OK "Content-Length: 0\r\n\r\n");
	is_reply(id, 200, "content-length=0|", "");
	g_assert_true(http2_is_drained(h2));
}

/* The caller asks again, now and then. */
UP_TEST("/http2/draining a client that answers no PING")
{
	now.by_hand = true;
	http2_drain(h2);
	exchange();
	g_assert_cmpuint(now.goaways, ==, 1);
	g_assert_true(http2_is_draining(h2));
	sim_advance_ms(io, 999);
	http2_drain(h2);
	g_assert_false(http2_is_drained(h2));
	sim_advance_ms(io, 1);
	http2_drain(h2);
	g_assert_true(http2_is_drained(h2));
	g_assert_false(http2_is_draining(h2));
	exchange();
	g_assert_cmpuint(now.goaways, ==, 2);
}

/* The client goes when it has its replies. */
UP_TEST("/http2/the client's GOAWAY")
{
	int32_t id = ask(GET);

	exchange();
	nghttp2_submit_goaway(client, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
	exchange();
	g_assert_cmpint(now.received, ==, 0);
	answer(OK "Content-Length: 2\r\n\r\nok");
	is_reply(id, 200, "content-length=2|", "ok");
	g_assert_cmpuint(now.ended, ==, 0);
	g_assert_null(http2_why(h2));
}

UP_TEST("/http2/the client's GOAWAY without a request")
{
	nghttp2_submit_goaway(client, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
	exchange();
	g_assert_cmpint(now.received, ==, -EPROTO); /* to be closed, and not a failure */
	g_assert_null(http2_why(h2));
}

UP_TEST("/http2/the end says what was taken")
{
	int32_t id = ask(GET);

	exchange();
	http2_end(h2);
	exchange();
	g_assert_cmpuint(now.goaways, ==, 1);
	g_assert_cmpint(now.last, ==, id);
	g_assert_cmpuint(now.code, ==, NGHTTP2_NO_ERROR);
	g_assert_cmpuint(now.ended, ==, 1);
	g_assert_cmpint(now.err, ==, 0);
	g_assert_cmpint(http2_receive(h2, TEXT("x")), ==, -EPROTO);
}

UP_TEST("/http2/a socket that fails")
{
	ask(GET);
	ask(GET);
	exchange();
	now.room = 0;
	say_many(&owner[0], MANY);
	hear(&owner[1]);
	sim_run(io);
	sim_finish(io, sim_find(io, IO_SEND, &sock), -ECONNRESET);
	sim_run(io);
	g_assert_cmpuint(now.ended, ==, 1);
	g_assert_cmpint(now.err, ==, -ECONNRESET);
	g_assert_cmpint(owner[0].wr_res, <, 0);
	g_assert_cmpint(owner[1].rd_res, ==, -ECONNRESET);
}

UP_TEST("/http2/a worker that stops")
{
	ask(GET);
	exchange();
	g_assert_false(http2_waits(h2));
	now.room = 0;
	say_many(&owner[0], MANY);
	server_runs();
	g_assert_true(http2_is_busy(h2));
	http2_stop(h2);
	server_runs();
	g_assert_false(http2_is_busy(h2));
	g_assert_cmpuint(now.ended, >=, 1);
	g_assert_cmpint(now.err, ==, -ECANCELED);
	g_assert_cmpint(owner[0].wr_res, <, 0);
}

/* A socket that stays full. */
UP_TEST("/http2/a client that reads nothing")
{
	ask(GET);
	exchange();
	now.room = 0;
	say_many(&owner[0], MANY);
	exchange();
	sim_advance_ms(io, 4900);
	g_assert_cmpuint(now.ended, ==, 0);
	sim_advance_ms(io, 200);
	g_assert_cmpuint(now.ended, ==, 1);
	g_assert_cmpint(now.err, ==, -ETIMEDOUT);
}

UP_TEST("/http2/what is no HTTP/2")
{
	g_string_append_len(raw, "\0\0\1\0\0\0\0\0\0x", 10); /* DATA of no stream */
	exchange();
	g_assert_cmpint(now.received, ==, -EPROTO);
	http2_end(h2);
	exchange();
	g_assert_cmpuint(now.goaways, ==, 1);
	g_assert_cmpuint(now.code, !=, NGHTTP2_NO_ERROR);
	g_assert_cmpuint(now.ended, ==, 1);
}

/* nghttp2 skips it. */
UP_TEST("/http2/a stream that depends on itself")
{
	g_string_append_len(raw, "\0\0\5\2\0\0\0\0\3\0\0\0\3\0", 14);
	exchange();
	g_assert_cmpint(now.received, ==, -EPROTO);
	g_assert_nonnull(http2_why(h2));
	http2_end(h2);
	exchange();
	g_assert_cmpuint(now.code, ==, NGHTTP2_PROTOCOL_ERROR);
	g_assert_cmpuint(now.ended, ==, 1);
}

UP_TEST("/http2/no preface")
{
	const struct http2_conf conf = { .max_streams = 100, .max_head = 8192 };
	struct io_sock other;
	struct http2 *h;

	io_sock_init(&other, 8);
	h = http2_new(io, &other, &conf, &owner_calls, &now);
	g_assert_cmpint(http2_receive(h, TEXT("GET / HTTP/1.1\r\nHost: a\r\n\r\n")), ==, -EPROTO);
	g_assert_nonnull(http2_why(h));
	http2_end(h);
	sim_run(io);
	while (sim_find(io, IO_SEND, &other) != NULL) {
		sim_send(io, sim_find(io, IO_SEND, &other), SIZE_MAX);
		sim_run(io);
	}
	g_assert_cmpuint(now.ended, ==, 1);
	g_assert_false(http2_is_busy(h));
	http2_free(h);
}

/* The op of a rate that waits. */
UP_TEST("/http2/the client resets a stream that pauses")
{
	int32_t id = ask(GET);

	exchange();
	say_op(&owner[0], IO_PAUSE, 1000);
	op_submit(io, &owner[0].wr);
	exchange();
	sim_advance_ms(io, 1100);
	g_assert_cmpint(owner[0].wr_res, ==, -ETIMEDOUT);
	say_op(&owner[0], IO_PAUSE, 1000);
	op_submit(io, &owner[0].wr);
	reset(id);
	g_assert_cmpint(owner[0].wr_res, ==, 0);
	close_owner(&owner[0], true);
	is_over(id, NGHTTP2_CANCEL);
}

/* An op that was cancelled leaves room for the next one. */
UP_TEST("/http2/ops that are cancelled")
{
	int32_t id = ask_with(POST, 0, false);

	now.deaf = true;
	exchange();
	hear(&owner[0]);
	say_many(&owner[0], 100000);
	exchange();
	op_cancel(io, &owner[0].rd);
	sim_run(io);
	g_assert_cmpint(owner[0].rd_res, ==, -ECANCELED);
	hear(&owner[0]);
	more_body(id, 3, true);
	exchange();
	g_assert_cmpstr(owner[0].got->str, ==, "3\r\nuuu\r\n0\r\n\r\n");
	op_cancel(io, &owner[0].wr);
	sim_run(io);
	g_assert_cmpint(owner[0].wr_res, ==, -ECANCELED);
	close_owner(&owner[0], true);
	is_over(id, NGHTTP2_INTERNAL_ERROR);
}

UP_TEST("/http2/how long a head takes")
{
	static const char begin[] = "\0\0\x05\x01\x01\0\0\0\x01\x82\x84\x86\x01\x01";
	static const char end[] = "\0\0\x01\x09\x04\0\0\0\x01h";

	g_assert_cmpuint(http2_head_since(h2), ==, 0);
	g_assert_cmpuint(http2_head_bytes(h2), ==, 0);
	sim_advance_ms(io, 10);
	g_string_append_len(raw, begin, sizeof(begin) - 1);
	exchange();
	g_assert_cmpuint(http2_head_since(h2), ==, io_now(io));
	g_assert_cmpuint(http2_head_bytes(h2), >, 0);
	sim_advance_ms(io, 10);
	g_assert_cmpuint(http2_head_since(h2), <, io_now(io));
	g_string_append_len(raw, end, sizeof(end) - 1);
	exchange();
	g_assert_cmpuint(nowners, ==, 1);
	g_assert_cmpuint(http2_head_since(h2), ==, 0);
	g_assert_cmpuint(http2_head_bytes(h2), ==, 0);
}
