/* t/unit/proxy-core/exchange_codec.c -- what a codec may do while a reply comes in: a toy protocol.
 *
 *   to it     "ask" BODY "end"
 *   from it   "+N" N more bytes of the body may go (4 at first)    "?" answered with "yes"
 *             "1" HEAD: interim    "2" HEAD: final    "=C" a byte of the body    "." the end
 */
#include "t/unit/proxy-core/exchange_test.h"

struct toy {
	unsigned credit;
	char doing; /* the letter whose rest is still to come */
};

static unsigned encodings; /* Transfer-Encoding fields seen */

static int
toy_request(void *state, const struct proxy_request *r, bool keep, struct buf *out)
{
	((struct toy *)state)->credit = 4;
	buf_str(out, "ask");
	return (0);
}

static size_t
toy_credit(const void *state)
{
	return (((const struct toy *)state)->credit);
}

static void
toy_body(void *state, struct text bytes, struct buf *out)
{
	struct toy *t = state;

	g_assert_cmpuint(bytes.n, <=, t->credit);
	t->credit -= (unsigned)bytes.n;
	buf_text(out, bytes);
}

static void
toy_body_end(void *state, struct buf *out)
{
	buf_str(out, "end");
}

static void
toy_head(struct toy *t, struct reply_head *h, struct text *in, struct proto_event *ev)
{
	size_t i;

	if (reply_head_feed(h, in) == HEAD_MORE)
		return;
	for (i = 0; i < h->nfields; i++) /* the fields as they came */
		encodings += text_ieq(h->fields[i].name, TEXT("Transfer-Encoding"));
	h->reply.status = t->doing == '1' ? 103 : 201;
	ev->kind = reply_head_sort(h) == HEAD_BAD ? PROTO_BAD
		   : t->doing == '1'              ? PROTO_INTERIM
						  : PROTO_HEAD;
	ev->why = h->why;
	t->doing = 0;
}

static void
toy_reply(void *state, struct reply_head *h, struct text *in, struct buf *out,
    struct proto_event *ev)
{
	struct toy *t = state;

	*ev = (struct proto_event){ .kind = PROTO_MORE };
	while (in->n > 0 && ev->kind == PROTO_MORE) {
		if (t->doing == '1' || t->doing == '2') {
			toy_head(t, h, in, ev);
			continue;
		}
		if (t->doing == '+')
			t->credit += (unsigned)(*in->p - '0');
		if (t->doing == '=')
			*ev = (struct proto_event){ .kind = PROTO_BODY, .bytes = { in->p, 1 } };
		if (t->doing == 0 && *in->p == '?')
			buf_str(out, "yes");
		if (t->doing == 0 && *in->p == '.')
			*ev = (struct proto_event){ .kind = PROTO_END, .reuse = true };
		t->doing = t->doing == 0 && strchr("12+=", *in->p) != NULL ? *in->p : 0;
		in->p++;
		in->n--;
	}
}

static void
toy_eof(void *state, struct proto_event *ev)
{
	*ev = (struct proto_event){ .kind = PROTO_BAD, .why = "the end is missing" };
}

static const struct proto toy = {
	.name = "toy",
	.size = sizeof(struct toy),
	.request = toy_request,
	.credit = toy_credit,
	.body = toy_body,
	.body_end = toy_body_end,
	.reply = toy_reply,
	.eof = toy_eof,
};

#define TOY_TEST(path) EXCHANGE_TEST(path, a_conf(one, 1), conf.proto = &toy)

/* Compares all bytes that went to the application so far. */
static void
check_sent(const char *want)
{
	struct text t;

	run_send();
	t = sim_sent(io, nth_recv(0)->sock);
	g_assert_cmpmem(t.p, t.n, want, strlen(want));
}

static void
says(const char *s)
{
	run_recv(text_of(s));
}

TOY_TEST("/codec/the body goes out as credit comes in")
{
	ask_with(&c, "POST", 10);
	run_connect(0);
	check_sent("ask");
	g_assert_cmpuint(exchange_body(c.x, TEXT("abcdefghij")), ==, 10);
	check_sent("askabcd");
	says("+");
	check_sent("askabcd");
	says("3");
	check_sent("askabcdefg");
	says("2A: 1\n\n=x+1"); /* it may answer before it has read all */
	check_sent("askabcdefgh");
	says("+9");
	check_sent("askabcdefghijend");
	says("=y.");
	ENDED(&c, 0);
	g_assert_cmpstr(c.body->str, ==, "xy");
	g_assert_cmpuint(open_sockets(), ==, 1); /* fit for another request */
}

TOY_TEST("/codec/a body without credit")
{
	ask_with(&c, "POST", 10);
	run_connect(0);
	run_send();
	exchange_body(c.x, TEXT("abcdefghij"));
	run_send();
	says("2\n\n.");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 0); /* a part of the body is still owed */
	ask_with(&c, "POST", 10);
	run_connect(0);
	run_send();
	exchange_body(c.x, TEXT("abcdefghij"));
	run_send();
	sim_advance_ms(io, 61000); /* silent, and nothing is on its way to it */
	ENDED(&c, 504);
}

TOY_TEST("/codec/answers while a reply comes in")
{
	asked(&c, "GET");
	says("?");
	check_sent("askendyes");
	says("2\n\n=x?");
	says("?"); /* the last answer is on its way */
	check_sent("askendyesyesyes");
	says(".");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 1);
	asked(&c, "GET");
	says("2\n\n?.");
	ENDED(&c, 0);
	g_assert_cmpuint(open_sockets(), ==, 0); /* it has an answer to come */
}

/* The application asks on and on and reads nothing. */
TOY_TEST("/codec/an application that asks without end gets 502")
{
	g_autofree char *flood = g_strnfill(2000, '?');

	ask(&c, "GET");
	run_connect(0);
	says(flood); /* the request is still being sent */
	ENDED(&c, 502);
	g_assert_nonnull(strstr(logged->str, "does not read what was sent"));
}

TOY_TEST("/codec/1xx heads, and fields before they are sorted")
{
	asked(&c, "GET");
	says("1Link: </a>\n\n1Link: </b>\n");
	g_assert_cmpint(c.heads, ==, 0);
	encodings = 0;
	says("\n2Transfer-Encoding: chunked\nStatus: 404\nA: 1\n\n=x.");
	ENDED(&c, 0);
	g_assert_cmpint(c.heads, ==, 1);
	g_assert_cmpint(c.status, ==, 201); /* of the codec */
	g_assert_cmpuint(encodings, ==, 1);
	g_assert_cmpstr(c.body->str, ==, "x");
}

/* n heads of 1xx with a field of that many bytes, and the reply. */
static void
check_interims(unsigned n, gsize bytes, int status)
{
	g_autofree char *value = g_strnfill(bytes, 'x'),
			*head = g_strdup_printf("1A: %s\n\n", value);

	conf = a_conf(one, 1);
	conf.proto = &toy;
	set_up();
	asked(&c, "GET");
	while (n-- > 0)
		says(head);
	if (status == 0)
		says("2\n\n.");
	ENDED(&c, status);
	tear_down();
}

TEST("/codec/too many 1xx heads, or bytes of them, get 502")
{
	check_interims(INTERIM_MAX, 8, 0);
	check_interims(INTERIM_MAX + 1, 8, 502);
	check_interims(2, INTERIM_BYTES / 2 - 16, 0);
	check_interims(2, INTERIM_BYTES / 2, 502);
}
