/* t/unit/proxy-core/laws_server.h -- the applications of laws.c, which speak FastCGI. */
#ifndef LAWS_SERVER_H
#define LAWS_SERVER_H

#include "t/unit/proxy-core/laws.h"

/* ---------------------------------------------------------------- sockets */

static struct conn *
conn_of(const struct io_sock *s)
{
	unsigned i;

	for (i = w.nconns; i-- > 0;)
		if (w.conn[i].open && w.conn[i].sock == s)
			return (&w.conn[i]);
	return (NULL);
}

/* Finds new connects and closed sockets, and counts sockets for each address. */
static void
conns_look(void)
{
	const struct sockaddr_in *in;
	struct conn *c, *d;
	struct io_op *op;
	unsigned i, n;

	for (c = w.conn; c < w.conn + w.nconns; c++)
		if (c->open && sim_closed(io, c->fd) > 0)
			c->open = false;
	for (i = 0; (op = sim_nth(io, i)) != NULL; i++) {
		if (op->kind != IO_CONNECT || conn_of(op->sock) != NULL)
			continue;
		law(w.nconns < CONNS, "too many sockets for this test");
		in = (const struct sockaddr_in *)(const void *)op->connect.addr;
		c = &w.conn[w.nconns++];
		*c = (struct conn){ .sock = op->sock,
			.fd = op->sock->fd,
			.address = ntohl(in->sin_addr.s_addr),
			.open = true,
			.in = g_byte_array_new() };
		sim_sent_clear(io, op->sock);
		trace("socket %d to %08x", c->fd, c->address);
	}
	for (c = w.conn; c < w.conn + w.nconns; c++) {
		for (n = 0, d = w.conn; c->open && d < w.conn + w.nconns; d++)
			n += d->open && d->address == c->address;
		law(n <= w.conf.max_pool_size, "%u sockets to %08x, expected at most %u", n,
		    c->address, w.conf.max_pool_size);
	}
}

/* ---------------------------------------------------------------- requests */

static void
conn_record(struct conn *c, unsigned type, const guint8 *p, size_t n)
{
	const char *id;

	if (type == 1) {
		law(c->id == 0, "a request on a socket that has one");
		law(!c->odd, "a request on a socket that sent bytes which nobody asked for");
		law(c->served < MAX(w.conf.max_keep_alive_requests, 1),
		    "a request on a socket that had %u", c->served);
		c->started = false;
		c->body = 0;
	} else if (type == 4 && n > 0) {
		id = memmem(p, n, "id=", 3);
		if (id != NULL)
			c->id = (unsigned)strtoul(id + 3, NULL, 10);
	} else if (type == 4) {
		if (c->id == 0) {
			law(w.conf.check_url != NULL, "a request without its id");
			c->id = ASKS + 1;
		}
		c->started = true;
		ask_of(c->id)->runs++;
		trace("socket %d runs %u", c->fd, c->id);
	} else if (type == 5 && n > 0) {
		c->body += n;
	} else if (type == 5 && c->id != 0) {
		law((int64_t)c->body == MAX(ask_of(c->id)->req.content_length, 0),
		    "%zu bytes of the body of %u", c->body, c->id);
	}
}

static void
conn_received(struct conn *c, struct text bytes)
{
	const guint8 *p;
	size_t n;

	g_byte_array_append(c->in, (const guint8 *)bytes.p, (guint)bytes.n);
	for (p = c->in->data; c->in->len >= 8; p = c->in->data) {
		n = (size_t)(p[4] << 8 | p[5]);
		if (c->in->len < 8 + n + p[6])
			break;
		conn_record(c, p[1], p + 8, n);
		g_byte_array_remove_range(c->in, 0, (guint)(8 + n + p[6]));
	}
}

static void
on_send(struct io_op *op)
{
	struct conn *c = conn_of(op->sock);
	const struct io_sock *s = op->sock;

	if (c->dead || one_in(60 * w.faults)) {
		c->dead = true;
		sim_finish(io, op, one_in(2) ? -EPIPE : -ECONNRESET);
		return;
	}
	sim_send(io, op, one_in(3) ? 1 + below(300) : 1 + below(200000));
	conn_received(c, sim_sent(io, s));
	sim_sent_clear(io, s);
}

static void
on_connect(struct io_op *op)
{
	static const int errors[] = { -ECONNREFUSED, -EAGAIN, -EMFILE, -ECONNRESET, -ETIMEDOUT };
	bool up = !one_in(5 * w.faults);

	trace("socket %d %s", op->sock->fd, up ? "is connected" : "cannot connect");
	conn_of(op->sock)->up = up;
	sim_finish(io, op, up ? 0 : errors[below(G_N_ELEMENTS(errors))]);
}

/* ---------------------------------------------------------------- replies */

static int
reply_kind(const struct conn *c)
{
	if (one_in(12 * w.faults))
		return (reply_refused);
	if (one_in(10 * w.faults))
		return (reply_broken);
	return (one_in(20 * w.faults) && !ask_of(c->id)->head_only ? reply_short : reply_good);
}

static void
reply_decide(struct conn *c)
{
	GString *body = g_string_new(NULL), *all = g_string_new(NULL);
	bool length = one_in(2);
	struct buf b;
	size_t cut;

	buf_init(&b, 0);
	reply_body(c->id, body);
	c->how = reply_kind(c);
	length = length || c->how == reply_short;
	if (length)
		g_string_append_printf(all, "Content-Length: %zu\r\n",
		    body->len + (c->how == reply_short));
	g_string_append_printf(all, "A: 1\r\n\r\n");
	if (!ask_of(c->id)->head_only)
		g_string_append_len(all, body->str, (gssize)body->len);
	if (c->how == reply_refused) {
		put_end(&b, 2);
	} else {
		if (one_in(4))
			put_stderr(&b, "a note\n");
		cut = below((unsigned)all->len);
		record(&b, 1, 6, 1, (struct text){ all->str, cut }, below(4));
		record(&b, 1, 6, 1, (struct text){ all->str + cut, all->len - cut }, 0);
		put_end(&b, 0);
	}
	c->reply = g_string_new_len(b.p, (gssize)b.n);
	c->given = 0;
	if (c->how == reply_broken)
		g_string_truncate(c->reply, below((unsigned)b.n));
	buf_free(&b);
	g_string_free(body, TRUE);
	g_string_free(all, TRUE);
}

static void
conn_lose(struct conn *c, struct io_op *op)
{
	trace("socket %d breaks", c->fd);
	c->dead = true;
	sim_finish(io, op, one_in(2) ? 0 : -ECONNRESET);
}

/* The next piece; after the last one the socket is free for another request. */
static void
reply_go_on(struct conn *c, struct io_op *op)
{
	size_t n = c->reply->len - c->given;
	struct ask *a = ask_of(c->id);

	if (n == 0) { /* a broken reply ends */
		conn_lose(c, op);
		return;
	}
	if (one_in(2))
		n = 1 + below((unsigned)n);
	c->given += n;
	if (c->given == c->reply->len && c->how != reply_broken) {
		trace("socket %d answered %u%s", c->fd, c->id,
		    c->how == reply_refused ? ": refused" : "");
		a->refusals += c->how == reply_refused;
		a->whole = a->whole || c->how == reply_good;
		a->shortened = a->shortened || c->how == reply_short;
		sim_recv(io, op, (struct text){ c->reply->str + c->given - n, n });
		g_string_free(c->reply, TRUE);
		c->reply = NULL;
		c->id = 0;
		c->served++;
		return;
	}
	sim_recv(io, op, (struct text){ c->reply->str + c->given - n, n });
}

static void
on_recv(struct io_op *op)
{
	struct conn *c = conn_of(op->sock);

	if (c->dead || one_in(150 * w.faults))
		conn_lose(c, op);
	else if (c->id == 0 && c->in->len == 0 && one_in(40 * w.faults)) {
		c->odd = sim_find(io, IO_SEND, op->sock) == NULL;
		sim_recv(io, op, TEXT("a byte that nobody asked for"));
	} else if (c->started && c->id != 0 && one_in(2)) {
		if (c->reply == NULL)
			reply_decide(c);
		reply_go_on(c, op);
	}
}

static void
conns_free(void)
{
	struct conn *c;

	for (c = w.conn; c < w.conn + w.nconns; c++) {
		g_byte_array_free(c->in, TRUE);
		if (c->reply != NULL)
			g_string_free(c->reply, TRUE);
	}
}

#endif
