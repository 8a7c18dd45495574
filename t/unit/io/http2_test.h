/* t/unit/io/http2_test.h -- a connection of HTTP/2 on the simulated loop, with a client of nghttp2
 * in memory at its other side.
 *
 *   ask() --> client --> http2_receive() --> owner[], one for each stream
 *   say() --> IO_SEND of the connection --> the socket, while it has room --> client --> reply_of()
 *
 * exchange() moves bytes both ways until neither side has any.
 */
#ifndef T_UNIT_IO_HTTP2_TEST_H
#define T_UNIT_IO_HTTP2_TEST_H

#include <errno.h>
#include <string.h>

#include "io/http2/impl.h"
#include "io/loop/sim.h"
#include "t/unit/test.h"

/* As in t/fuzz/connection.h. */
#ifndef SERVER_WORKS
#define SERVER_WORKS(on) ((void)0)
#endif

#define OWNERS  512
#define REPLIES 1024
#define MANY    (8u << 20) /* bytes that a reply has at most */
#define GET     ":method GET\n:path /\n:scheme http\n:authority h\n"
#define POST    ":method POST\n:path /\n:scheme http\n:authority h\n"
#define OK      "HTTP/1.1 200 OK\r\n"

/* A request as the server has it. */
struct owner {
	struct io_sock sock;
	struct io_op rd, wr, end;
	struct iovec iov;
	char *head;
	GString *got;
	int64_t rd_res, wr_res; /* of the last op */
	size_t said;            /* bytes that sends took */
	bool keeps_on;          /* sends the rest by itself */
	bool closed;
};

/* A reply as the client has it. */
struct reply {
	int status;
	unsigned interim;
	GString *fields; /* "name=value|" */
	GString *body;
	bool ended, closed;
	uint32_t code;
	/* the body that the client sends */
	size_t up;
	bool up_ends;
};

static struct io *io;
static struct io_sock sock;
static struct http2 *h2;
static struct io_counters counters;
static nghttp2_session *client;
static struct owner owner[OWNERS];
static unsigned nowners;
static struct reply replies[REPLIES];
static GString *order; /* of DATA: "1 3 3 " */
static GString *raw;   /* bytes for the server beside those of the client's session */
static char *many;

static struct {
	size_t room;    /* of the socket */
	bool refuses;   /* no memory for a stream */
	int received;   /* http2_receive() returned that */
	unsigned ended; /* calls of ended() */
	unsigned quiet; /* ... of quiet() */
	int err;        /* ... with this */
	int32_t last;   /* of GOAWAY */
	uint32_t code;
	unsigned goaways, pings, settings;
	bool deaf;    /* the client does not open windows */
	bool by_hand; /* frames of the server do not reach the client's session */
} now;

static inline struct reply *
reply_of(int32_t id)
{
	g_assert_cmpint(id / 2, <, REPLIES);
	return (&replies[id / 2]);
}

/* ---- the server */

static inline void
server_runs(void)
{
	SERVER_WORKS(true);
	sim_run(io);
	SERVER_WORKS(false);
}

static inline void
submit(struct io_op *op)
{
	SERVER_WORKS(true);
	op_submit(io, op);
	SERVER_WORKS(false);
}

static inline bool
stream_begins(struct http2 *h, struct io_transport *t, struct text head)
{
	struct owner *o = &owner[nowners];

	g_assert_true(h == h2 && http2_owner(h) == &now);
	if (now.refuses)
		return (false);
	g_assert_cmpuint(nowners, <, OWNERS);
	nowners++;
	*o = (struct owner){ .head = g_strndup(head.p, head.n), .got = g_string_new(NULL) };
	io_sock_init(&o->sock, -1);
	io_sock_plug(&o->sock, t);
	return (true);
}

static inline void
connection_ended(struct http2 *h, int err)
{
	now.ended++;
	now.err = now.err == 0 ? err : now.err;
}

static void
connection_quiet(struct http2 *h)
{
	g_assert_false(http2_is_busy(h));
	now.quiet++;
}

static const struct http2_calls owner_calls = { stream_begins, connection_ended, connection_quiet };

static inline void
heard(struct io_op *op)
{
	struct owner *o = (struct owner *)((char *)op - offsetof(struct owner, rd));

	o->rd_res = op->res;
	if (op->res > 0 && op->buf != NULL)
		g_string_append_len(o->got, op->buf, (gssize)op->res);
}

static inline void
hear_with(struct owner *o, uint32_t ms, bool little)
{
	o->rd_res = -EINPROGRESS;
	op_init(&o->rd, IO_RECV, heard);
	o->rd.sock = &o->sock;
	o->rd.little = little;
	o->rd.deadline_ms = ms;
	submit(&o->rd);
}

static inline void
hear(struct owner *o)
{
	hear_with(o, 0, false);
}

static inline void
said(struct io_op *op)
{
	struct owner *o = (struct owner *)((char *)op - offsetof(struct owner, wr));

	o->wr_res = op->res;
	if (op->kind != IO_SEND || op->res <= 0)
		return;
	o->said += (size_t)op->res;
	o->iov.iov_base = (char *)o->iov.iov_base + op->res;
	o->iov.iov_len -= (size_t)op->res;
	if (!o->keeps_on || o->iov.iov_len == 0)
		return;
	o->wr_res = -EINPROGRESS;
	op_submit(io, op);
}

static inline void
say_op(struct owner *o, enum io_kind kind, uint32_t ms)
{
	o->wr_res = -EINPROGRESS;
	op_init(&o->wr, kind, said);
	o->wr.sock = &o->sock;
	o->wr.deadline_ms = ms;
	o->wr.send.iov = &o->iov;
	o->wr.send.n = o->wr.send.first = 1;
}

static inline void
say_bytes(struct owner *o, const char *p, size_t n)
{
	o->iov = (struct iovec){ (char *)(uintptr_t)p, n };
	o->keeps_on = true;
	say_op(o, IO_SEND, 0);
	submit(&o->wr);
}

static inline void
say(struct owner *o, const char *s)
{
	say_bytes(o, s, strlen(s));
}

/* A head, and n bytes after it, which all have the value of `many`. */
static inline void
say_head(struct owner *o, const char *head)
{
	say(o, head);
	server_runs();
	g_assert_cmpint(o->wr_res, ==, (int64_t)strlen(head));
}

static inline void
say_many(struct owner *o, size_t n)
{
	char head[80];

	g_snprintf(head, sizeof(head), OK "Content-Length: %zu\r\n\r\n", n);
	say_head(o, head);
	say_bytes(o, many, n);
}

static inline void
shut(struct io_op *op)
{
	struct owner *o = (struct owner *)((char *)op - offsetof(struct owner, end));

	o->closed = true;
}

static inline void
close_owner(struct owner *o, bool cuts)
{
	op_init(&o->end, IO_CLOSE, shut);
	o->end.sock = &o->sock;
	o->end.cuts = cuts;
	submit(&o->end);
	server_runs();
	g_assert_true(o->closed);
}

static inline struct http2_stream *
stream_of_owner(const struct owner *o)
{
	return (stream_of(&o->sock));
}

/* Bytes of the windows. */
static inline size_t
held(const struct owner *o)
{
	return (stream_of_owner(o)->in.n - stream_of_owner(o)->in_at);
}

/* ---- the client */

static inline int
client_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t nname,
    const uint8_t *value, size_t nvalue, uint8_t flags, void *arg)
{
	struct reply *r = reply_of(f->hd.stream_id);

	if (nname == 7 && memcmp(name, ":status", 7) == 0) {
		r->interim += r->status != 0;
		r->status = atoi((const char *)value);
		return (0);
	}
	g_string_append_printf(r->fields, "%.*s=%.*s|", (int)nname, name, (int)nvalue, value);
	return (0);
}

static inline int
client_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
	g_string_append_len(reply_of(id)->body, (const char *)p, (gssize)n);
	if (!now.deaf)
		g_assert_cmpint(nghttp2_session_consume(s, id, n), ==, 0);
	return (0);
}

static inline int
client_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	switch (f->hd.type) {
	case NGHTTP2_GOAWAY:
		now.goaways++;
		now.last = f->goaway.last_stream_id;
		now.code = f->goaway.error_code;
		return (0);
	case NGHTTP2_PING: now.pings++; return (0);
	case NGHTTP2_SETTINGS: now.settings++; return (0);
	case NGHTTP2_DATA:
		if (f->hd.length != 0)
			g_string_append_printf(order, "%d ", f->hd.stream_id);
		break;
	case NGHTTP2_HEADERS: break;
	default: return (0);
	}
	if (f->hd.flags & NGHTTP2_FLAG_END_STREAM)
		reply_of(f->hd.stream_id)->ended = true;
	return (0);
}

static inline int
client_closed(nghttp2_session *s, int32_t id, uint32_t code, void *arg)
{
	reply_of(id)->closed = true;
	reply_of(id)->code = code;
	return (0);
}

static inline void
open_client(void)
{
	nghttp2_session_callbacks *cb;
	nghttp2_option *o;

	g_assert_cmpint(nghttp2_session_callbacks_new(&cb), ==, 0);
	nghttp2_session_callbacks_set_on_header_callback(cb, client_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, client_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, client_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, client_closed);
	g_assert_cmpint(nghttp2_option_new(&o), ==, 0);
	nghttp2_option_set_no_auto_window_update(o, 1);
	g_assert_cmpint(nghttp2_session_client_new2(&client, cb, NULL, o), ==, 0);
	nghttp2_option_del(o);
	nghttp2_session_callbacks_del(cb);
}

/* ---- bytes both ways */

static inline bool
to_server(void)
{
	const uint8_t *p;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(client, &p)) > 0)
		g_string_append_len(raw, (const char *)p, n);
	g_assert_cmpint(n, ==, 0);
	if (raw->len == 0)
		return (false);
	SERVER_WORKS(true);
	now.received = http2_receive(h2, (struct text){ raw->str, raw->len });
	SERVER_WORKS(false);
	g_string_truncate(raw, 0);
	return (true);
}

static inline void
look_for_goaway(struct text t)
{
	const uint8_t *p = (const uint8_t *)t.p, *end = p + t.n;

	for (; p < end; p += 9 + (p[0] << 16 | p[1] << 8 | p[2])) {
		if (p[3] != NGHTTP2_GOAWAY)
			continue;
		now.goaways++;
		now.code = (uint32_t)(p[13] << 24 | p[14] << 16 | p[15] << 8 | p[16]);
	}
}

static inline bool
to_client(void)
{
	struct io_op *op = sim_find(io, IO_SEND, &sock);
	struct text t;
	size_t n;

	if (op == NULL || now.room == 0)
		return (false);
	n = sim_send(io, op, now.room);
	if (now.room != SIZE_MAX)
		now.room -= n;
	t = sim_sent(io, &sock);
	if (now.by_hand)
		look_for_goaway(t);
	else
		g_assert_cmpint(nghttp2_session_mem_recv(client, (const uint8_t *)t.p, t.n), ==,
		    t.n);
	sim_sent_clear(io, &sock);
	return (true);
}

/* False: nothing moved. */
static inline bool
step(void)
{
	bool moved = to_server();

	server_runs();
	moved |= to_client();
	server_runs();
	return (moved);
}

static inline void
exchange(void)
{
	while (step())
		;
}

static inline ssize_t
client_reads(nghttp2_session *s, int32_t id, uint8_t *buf, size_t most, uint32_t *flags,
    nghttp2_data_source *source, void *arg)
{
	struct reply *r = reply_of(id);
	size_t n = r->up < most ? r->up : most;

	if (n == 0 && !r->up_ends)
		return (NGHTTP2_ERR_DEFERRED);
	memset(buf, 'u', n);
	r->up -= n;
	if (r->up == 0 && r->up_ends)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return ((ssize_t)n);
}

#define NO_BODY (-1)

/* "name value" lines; body: bytes that the client has now, or NO_BODY */
static inline int32_t
ask_with(const char *lines, int64_t body, bool ends)
{
	nghttp2_data_provider data = { .read_callback = client_reads };
	g_auto(GStrv) line = g_strsplit(lines, "\n", -1);
	nghttp2_nv nv[64];
	size_t n = 0;
	int32_t id;
	char *space;

	for (; line[n] != NULL && *line[n] != '\0'; n++) {
		space = strchr(line[n], ' ');
		nv[n] = (nghttp2_nv){ .name = (uint8_t *)line[n],
			.namelen = (size_t)(space - line[n]),
			.value = (uint8_t *)space + 1,
			.valuelen = strlen(space + 1) };
	}
	id = nghttp2_submit_request(client, NULL, nv, n, body == NO_BODY ? NULL : &data, NULL);
	g_assert_cmpint(id, >, 0);
	*reply_of(id) = (struct reply){ .fields = g_string_new(NULL),
		.body = g_string_new(NULL),
		.up = body > 0 ? (size_t)body : 0,
		.up_ends = ends };
	return (id);
}

static inline int32_t
ask(const char *lines)
{
	return (ask_with(lines, NO_BODY, true));
}

static inline void
more_body(int32_t id, size_t n, bool ends)
{
	reply_of(id)->up += n;
	reply_of(id)->up_ends = ends;
	g_assert_cmpint(nghttp2_session_resume_data(client, id), ==, 0);
}

/* ---- up and down */

static uint32_t up_rate; /* bytes a second that a client has to take; 0: any */

/* by_hand: the client has not seen the server's SETTINGS. */
static inline void
up_with(bool by_hand)
{
	const struct http2_conf conf = { .max_streams = 100,
		.max_head = 8192,
		.send_ms = 5000,
		.send_rate = up_rate };

	io = sim_new();
	sim_auto_close(io, true);
	memset(&counters, 0, sizeof(counters));
	io_count_into(io, &counters);
	io_sock_init(&sock, 7);
	memset(&now, 0, sizeof(now));
	now.room = SIZE_MAX;
	now.by_hand = by_hand;
	nowners = 0;
	order = g_string_new(NULL);
	raw = g_string_new(NULL);
	if (many == NULL)
		many = g_strnfill(MANY, 'm');
	h2 = http2_new(io, &sock, &conf, &owner_calls, &now);
	g_assert_nonnull(h2);
	open_client();
	nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, NULL, 0);
	exchange();
	g_assert_cmpuint(now.settings, ==, by_hand ? 0 : 2); /* and the answer to ours */
}

static inline void
up(void)
{
	up_with(false);
}

/* The client lets the server send as much as it likes. */
static inline void
open_wide(void)
{
	const nghttp2_settings_entry set = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30 };

	nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, &set, 1);
	nghttp2_session_set_local_window_size(client, NGHTTP2_FLAG_NONE, 0, 1 << 30);
	exchange();
}

static inline void
free_all(void)
{
	unsigned i;

	for (i = 0; i < nowners; i++) {
		g_free(owner[i].head);
		g_string_free(owner[i].got, TRUE);
	}
	for (i = 0; i < REPLIES; i++) {
		if (replies[i].body != NULL) {
			g_string_free(replies[i].body, TRUE);
			g_string_free(replies[i].fields, TRUE);
		}
		replies[i] = (struct reply){ 0 };
	}
	g_string_free(order, TRUE);
	g_string_free(raw, TRUE);
	order = raw = NULL;
}

static inline void
stop_owner(struct owner *o)
{
	if (o->closed)
		return;
	if (o->rd.state != 0)
		op_cancel(io, &o->rd);
	o->keeps_on = false;
	if (o->wr.state != 0)
		op_cancel(io, &o->wr);
	sim_run(io);
	close_owner(o, true);
}

/* Whatever is open ends as it does when a worker ends. */
static inline void
down(void)
{
	unsigned i;

	http2_stop(h2);
	for (i = 0; i < nowners; i++)
		stop_owner(&owner[i]);
	sim_run(io);
	g_assert_false(http2_is_busy(h2));
	http2_free(h2);
	nghttp2_session_del(client);
	free_all();
	io_free(io);
}

#endif
