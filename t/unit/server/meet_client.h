/* t/unit/server/meet_client.h -- clients: a random train of requests, and how its bytes leave. */
#ifndef MEET_CLIENT_H
#define MEET_CLIENT_H

#include "t/unit/server/meet.h"

/* ---------------------------------------------------------------- one request */

static const char *
target_of(struct ask *a)
{
	static const struct {
		const char *url, *file;
	} files_[] = { { "/a", "AAAA" }, { "/b", "BBBBBB" }, { "/m", m_bytes },
		{ "/big", big_bytes }, { "/dir/", "index" }, { "/c", "CC" } };
	unsigned i;

	switch (below(now.programs ? 16 : 14)) {
	case 0: a->at = AT_NONE; return (one_in(2) ? "/none" : "/nothing");
	case 1: a->at = AT_DIR; return ("/dir");
	case 2: a->at = AT_REFUSED; return ("/a~");
	case 3: a->at = AT_MOVED; return ("/moved");
	case 4: a->at = AT_PAGE; return ("/page");
	case 5:
	case 6:
	case 7:
	case 8:
		a->at = AT_FILE;
		i = below(G_N_ELEMENTS(files_));
		a->file = files_[i].file;
		return (files_[i].url);
	case 9: a->at = AT_APP; return (now.authorizer ? "/ok/1" : "/up/1");
	case 14:
	case 15: a->at = AT_CGI; return ("/run.cgi");
	default: a->at = AT_APP; return ("/up/2");
	}
}

static void
add_chunks(struct ask *a, GString *to)
{
	size_t at, piece;
	g_autoptr(GString) body = g_string_new(NULL);

	add_body(body, a->id, a->length);
	for (at = 0; at < a->length; at += piece) {
		piece = 1 + below((unsigned)(a->length - at));
		g_string_append_printf(to, "%zx\r\n", piece);
		g_string_append_len(to, body->str + at, (gssize)piece);
		g_string_append(to, "\r\n");
	}
	g_string_append(to, a->malformed ? "ZZ\r\n" : "0\r\n\r\n");
}

static const char *
method_of(const struct ask *a)
{
	return (a->put ? "PUT" : a->post ? "POST" : a->head ? "HEAD" : "GET");
}

static void
add_ask(struct visitor *v)
{
	struct ask *a = &v->ask[v->nasks];
	const char *url;

	*a = (struct ask){ .id = ++now.ids, .n = v->nasks++, .of = v, .first = v->to_say->len };
	now.by_id[a->id] = a;
	url = target_of(a);
	a->post = one_in(a->at == AT_APP || a->at == AT_CGI ? 2 : 8);
	a->put = a->post && one_in(2);
	a->head = !a->post && one_in(6);
	if (one_in(8) && strcmp(url, "/moved") != 0)
		a->met |= BIT(rewritten);
	g_string_append_printf(v->to_say, "%s %s%s HTTP/1.1\r\n" HOST "X-Id: id=%u;\r\n",
	    method_of(a), (a->met & BIT(rewritten)) ? "/re" : "", url, a->id);
	if (a->post) {
		a->length = below(one_in(12) ? LONGEST : 300);
		a->chunked = one_in(2);
		a->malformed = a->chunked && one_in(2);
		if (one_in(a->malformed ? 2 : 20))
			a->length = 0;
		a->expect = one_in(5);
		if (a->expect)
			g_string_append(v->to_say, "Expect: 100-continue\r\n");
		if (a->chunked)
			g_string_append(v->to_say, "Transfer-Encoding: chunked\r\n");
		else
			g_string_append_printf(v->to_say, "Content-Length: %zu\r\n", a->length);
	}
	if (one_in(8)) /* a stranger names none */
		g_string_append(v->to_say, "X-Request-ID: forged\r\n");
	if (one_in(3)) { /* the request needs memory beyond its own */
		a->met |= BIT(long_head);
		g_string_append_printf(v->to_say, "X-Long: %0*u\r\n", 500 + (int)below(3000), 0);
	}
	g_string_append(v->to_say, "\r\n");
	a->body = v->to_say->len;
	if (a->post && a->chunked)
		add_chunks(a, v->to_say);
	else if (a->post)
		add_body(v->to_say, a->id, a->length);
	a->last = v->to_say->len;
	a->waits = a->expect && one_in(2);
	a->excuses = a->malformed ? X_MALFORMED : 0;
	a->url = url;
	trace("request %u: %s %s, %zu bytes%s%s%s%s", a->id, method_of(a), url, a->length,
	    a->chunked ? ", chunked" : "", a->malformed ? ", malformed" : "",
	    a->expect ? ", expect" : "", a->waits ? ", waits" : "");
}

/* ---------------------------------------------------------------- the train */

static void
visitor_connects(struct visitor *v, unsigned address)
{
	union io_addr peer = { .in = { .sin_family = AF_INET } };
	struct io_op *op;
	unsigned i;

	peer.in.sin_addr.s_addr = htonl(0x0a020001 + address);
	conn_new(w, v->fd, &peer, listeners[0].name);
	for (i = 0; (op = sim_nth(io, i)) != NULL; i++)
		if (op->kind == IO_RECV && op->sock->fd == v->fd)
			break;
	g_assert_nonnull(op);
	sim_sent_clear(io, op->sock);
	v->s = op->sock;
	trace("visitor %u comes with %u requests: %.9s..., stops at %zd", v->nth, v->nasks,
	    v->to_say->str, (ssize_t)v->stops_at);
}

static struct visitor *
visitor_new(void)
{
	struct visitor *v = &now.visitor[now.nvisitors++];

	*v = (struct visitor){ .fd = FIRST_CLIENT + (int)clients++,
		.nth = now.conns++,
		.to_say = g_string_new(NULL),
		.stops_at = SIZE_MAX };
	return (v);
}

static void
visitor_comes(void)
{
	unsigned n = 1 + below(ASKS), i, address = now.nvisitors % 3;
	struct visitor *v = visitor_new();

	v->sends = below(3);
	v->slow = one_in(4);
	v->leaves = one_in(3);
	v->leaves_at = below(n);
	for (i = 0; i < n; i++)
		add_ask(v);
	if (now.faults && one_in(6))
		v->stops_at = below((unsigned)v->to_say->len);
	visitor_connects(v, address);
}

static bool
is_within_body(const struct visitor *v)
{
	unsigned i = v->next;

	while (i < v->nasks && v->said >= v->ask[i].last)
		i++;
	return (i < v->nasks && v->said > v->ask[i].body);
}

/* The position up to which it may send now. */
static size_t
may_say(const struct visitor *v)
{
	size_t most = MIN(v->to_say->len, v->stops_at);
	const struct ask *a;
	unsigned i;

	for (i = 0; i < v->nasks; i++) {
		a = &v->ask[i];
		if (a->waits && !a->continued)
			most = MIN(most, a->body);
		if (v->sends == SENDS_ALONE && i > v->next)
			most = MIN(most, a->first);
	}
	return (most);
}

static int
what_is_heard(const struct io_op *op, bool reset)
{
	if (op->only_hangup)
		return (!reset);
	return (reset ? -ECONNRESET : 0);
}

/* The end of its stream, or a reset.  After the end it still reads, and its complete requests are
 * answered. */
static void
visitor_leaves(struct visitor *v, struct io_op *op, int res)
{
	unsigned i;

	trace("visitor %u %s", v->nth, res == 0 ? "half-closes" : "leaves");
	for (i = v->next; i < v->nasks; i++) {
		if (res != 0 || v->said < v->ask[i].last)
			v->ask[i].excuses |= X_GONE;
		v->ask[i].met |= res == 0 ? BIT(half_closes) : BIT(leaves);
	}
	v->gone = true;
	v->reset = res != 0;
	sim_finish(io, op, what_is_heard(op, res != 0));
}

/* False: nothing to say. */
static bool
visitor_says(struct visitor *v, struct io_op *op, bool all)
{
	size_t most = may_say(v), n = most > v->said ? most - v->said : 0;

	if (n == 0)
		return (false);
	n = MIN(n, 65536);
	if (!all && v->sends == SENDS_SPLIT)
		n = least(n, 1 + below(one_in(2) ? 20 : 20000));
	trace("visitor %u says %zu bytes from %zu: %.*s", v->nth, n, v->said, (int)MIN(n, 60),
	    v->to_say->str + v->said);
	sim_recv(io, op, (struct text){ v->to_say->str + v->said, n });
	v->said += n;
	return (true);
}

static struct visitor *
visitor_of(const struct io_sock *s)
{
	unsigned i;

	for (i = 0; i < now.nvisitors; i++)
		if (now.visitor[i].s == s && !now.visitor[i].ended)
			return (&now.visitor[i]);
	return (NULL);
}

#endif
