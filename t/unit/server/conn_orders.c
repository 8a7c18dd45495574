/* t/unit/server/conn_orders.c -- many clients at once, and everything that can happen to them in
 * any order.
 *
 * Each client knows which replies it is owed.  Whatever the disk does and however the sockets take
 * it, what it heard is the beginning of just those, whole and in order; and all of them, if nobody
 * was cut off.
 */
#include "t/unit/server/simworker.h"

#define NCLIENTS 4
#define STEPS    400

static const struct {
	/* body: the expected one; NULL: a status whose body does not matter */
	const char *in, *body;
	int status;
} kinds[] = {
	{ GET("/a"), "AAAA", 200 },
	{ GET("/b"), "BBBBBB", 200 },
	{ GET("/dir/"), "index", 200 },
	{ GET("/none"), NULL, 404 },
	{ "HEAD /a HTTP/1.1\r\n" HOST "\r\n", "", 200 },
	{ "POST /c HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nxxxxx", NULL, 405 },
	{ "GET /b HTTP/1.1\r\n" HOST "Range: bytes=1-2\r\n\r\n", "BB", 206 },
	{ GET("/c"), "CC", 200 },
};

struct visitor {
	struct io_sock *s;
	unsigned nth; /* of all clients */
	GString *to_say;
	size_t said;
	unsigned owed[32], nowed;
};

static struct visitor v[NCLIENTS];
static GRand *rnd;

static unsigned
any(unsigned n)
{
	return ((unsigned)g_rand_int_range(rnd, 0, (gint32)n));
}

static void
visitor_comes(struct visitor *x)
{
	unsigned i;

	x->s = client();
	x->nth = clients - 1;
	x->to_say = g_string_new(NULL);
	x->said = 0;
	x->nowed = 1 + any(12);
	for (i = 0; i < x->nowed; i++) {
		x->owed[i] = any(G_N_ELEMENTS(kinds));
		g_string_append(x->to_say, kinds[x->owed[i]].in);
	}
}

/* The length of one whole reply at the front of t, checked against what is owed; 0: it is not all
 * there. */
static size_t
one_reply(struct text t, unsigned kind)
{
	const char *end = t.n != 0 ? memmem(t.p, t.n, "\r\n\r\n", 4) : NULL, *cl;
	size_t head, len;
	char status[4] = "";

	if (end == NULL)
		return (0);
	head = (size_t)(end - t.p) + 4;
	g_assert_cmpmem(t.p, 9, "HTTP/1.1 ", 9);
	memcpy(status, t.p + 9, 3);
	if (strcmp(status, "503") != 0)
		g_assert_cmpint(atoi(status), ==, kinds[kind].status);
	cl = memmem(t.p, head, "Content-Length: ", 16);
	g_assert_nonnull(cl);
	len = kinds[kind].body != NULL && *kinds[kind].body == '\0' ? 0 : (size_t)atoi(cl + 16);
	if (t.n < head + len)
		return (0);
	if (kinds[kind].body != NULL && strcmp(status, "503") != 0)
		g_assert_cmpmem(t.p + head, len, kinds[kind].body, strlen(kinds[kind].body));
	return (head + len);
}

static void
visitor_checks(struct visitor *x, bool whole)
{
	struct text t = sim_sent(io, x->s);
	unsigned i;
	size_t n = 1;

	for (i = 0; i < x->nowed && n != 0; i++) {
		n = one_reply(t, x->owed[i]);
		t.p += n;
		t.n -= n;
	}
	if (whole) {
		g_assert_cmpuint(i, ==, x->nowed);
		g_assert_cmpuint(n, !=, 0);
	}
	if (i == x->nowed && n != 0)
		g_assert_cmpuint(t.n, ==, 0);
}

static void
visitor_goes(struct visitor *x)
{
	visitor_checks(x, false);
	g_string_free(x->to_say, TRUE);
	sim_sent_clear(io, x->s);
	visitor_comes(x);
}

/* ---------------------------------------------------------------- what happens */

static struct visitor *
whose(const struct io_op *op)
{
	unsigned i;

	for (i = 0; i < NCLIENTS; i++)
		if (op->sock == v[i].s && !is_closed(v[i].nth))
			return (&v[i]);
	return (NULL);
}

static void
hears(struct io_op *op, struct visitor *x)
{
	size_t n = x->to_say->len - x->said, want = 1 + any(any(2) != 0 ? 10 : 1000);

	if (n == 0)
		return; /* idle */
	n = n < want ? n : want;
	sim_recv(io, op, (struct text){ x->to_say->str + x->said, n });
	x->said += n;
}

static void
disk_may_fail(struct io_op *op)
{
	static const int errs[] = { -EAGAIN, -EMFILE, -ETIMEDOUT };

	if (any(20) != 0)
		disk_answers(op);
	else
		sim_finish(io, op, errs[any(3)]);
}

static void
one_event(void)
{
	struct io_op *op;
	struct visitor *x;
	unsigned n = 0;

	while (sim_nth(io, n) != NULL)
		n++;
	if (n == 0)
		return;
	op = sim_nth(io, any(n));
	x = op->sock != NULL ? whose(op) : NULL;
	if (sim_kind(op) == IO_RECV && x != NULL && any(60) == 0)
		sim_finish(io, op, any(2) != 0 ? 0 : -ECONNRESET);
	else if (sim_kind(op) == IO_RECV && x != NULL)
		hears(op, x);
	else if (op->kind == IO_SEND && any(60) == 0)
		sim_finish(io, op, -EPIPE);
	else if (op->kind == IO_SEND)
		sim_send(io, op, any(4) == 0 ? 1 + any(50) : SIZE_MAX);
	else if (op->kind == IO_OPEN || op->kind == IO_READ)
		disk_may_fail(op);
}

static void
one_step(void)
{
	unsigned i;

	one_event();
	if (any(3) != 0)
		sim_run(io); /* else several are heard of at once */
	if (any(10) == 0)
		sim_advance_ms(io, any(700));
	if (any(100) == 0)
		conn_stop(conn_of_link(w->conns.next));
	for (i = 0; i < NCLIENTS; i++)
		if (is_closed(v[i].nth))
			visitor_goes(&v[i]);
}

/* Without further failures, each client that stays gets all its replies. */
static void
calm(struct visitor *x)
{
	struct io_op *op;

	sim_run(io);
	while (!is_closed(x->nth)) {
		if (disk() + take(x->s, SIZE_MAX) != 0)
			continue;
		if (x->said == x->to_say->len)
			break;
		op = sim_find(io, IO_RECV, x->s);
		g_assert_nonnull(op);
		sim_recv(io, op,
		    (struct text){ x->to_say->str + x->said, x->to_say->len - x->said });
		x->said = x->to_say->len;
		sim_run(io);
	}
	visitor_checks(x, !is_closed(x->nth));
	g_string_free(x->to_say, TRUE);
}

TEST("/conn/any-order")
{
	unsigned seed, i, replies = 0, cut = 0;

	for (seed = 0; seed < 300; seed++) {
		rnd = g_rand_new_with_seed(seed);
		up("server.max-keep-alive-idle = 5");
		for (i = 0; i < NCLIENTS; i++)
			visitor_comes(&v[i]);
		for (i = 0; i < STEPS; i++)
			one_step();
		for (i = 0; i < NCLIENTS; i++)
			calm(&v[i]);
		replies += w->base.counts.reply->replies;
		cut += w->base.counts.conn->client_gone;
		down();
		g_rand_free(rnd);
	}
	g_test_message("%u replies, %u clients gone within one", replies, cut);
}
