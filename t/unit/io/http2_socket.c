/* t/unit/io/http2_socket.c -- replies of HTTP/2 by a real socket that takes a part of each
 * send.
 *
 * Bodies are sent from where they lie.  Here each part has memory of its own, which is freed as
 * soon as its send has ended, and its bytes say where they belong. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "t/unit/io/http2_test.h"

#define STREAMS  20u
#define BODY     300000u
#define PART_MAX 70000u

struct body {
	char *part;
	size_t at, n;
};

static struct io_op incoming;
static struct body body[STREAMS];
static int far_end;

static void
came(struct io_op *op)
{
	if (op->res <= 0)
		return;
	g_assert_cmpint(http2_receive(h2, (struct text){ op->buf, (size_t)op->res }), ==, 0);
	op_submit(io, op);
}

static void
open_loop(void)
{
	const struct io_conf conf = { .pools = NULL }; /* no files */
	int err = 0;

	io = io_new(&conf, &err);
	g_assert_nonnull(io);
	memset(&counters, 0, sizeof(counters));
	io_count_into(io, &counters);
}

static void
socket_up(int room)
{
	const struct http2_conf conf = { .max_streams = 100, .max_head = 8192, .send_ms = 60000 };
	int fd[2];

	open_loop();
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), ==, 0);
	g_assert_cmpint(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), ==, 0);
	io_sock_init(&sock, fd[0]);
	far_end = fd[1];
	memset(&now, 0, sizeof(now));
	nowners = 0;
	order = g_string_new(NULL);
	raw = g_string_new(NULL);
	h2 = http2_new(io, &sock, &conf, &owner_calls, &now);
	g_assert_nonnull(h2);
	open_client();
	op_init(&incoming, IO_RECV, came);
	incoming.sock = &sock;
	op_submit(io, &incoming);
}

static void
to_socket(void)
{
	const uint8_t *p;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(client, &p)) > 0)
		g_string_append_len(raw, (const char *)p, n);
	n = raw->len != 0 ? send(far_end, raw->str, raw->len, MSG_NOSIGNAL) : 0;
	if (n > 0)
		g_string_erase(raw, 0, n);
}

static void
from_socket(size_t most)
{
	static char buf[1 << 16];
	ssize_t n = recv(far_end, buf, most < sizeof(buf) ? most : sizeof(buf), 0);

	if (n > 0)
		g_assert_cmpint(nghttp2_session_mem_recv(client, (uint8_t *)buf, (size_t)n), ==, n);
}

static void
one_round(size_t most)
{
	to_socket();
	io_wake(io); /* it does not wait */
	io_run(io);
	from_socket(most);
}

static char
byte_at(size_t stream, size_t at)
{
	return ((char)(at * 31 + (at >> 8) + stream * 17));
}

static void
next_part(struct owner *o)
{
	size_t nr = (size_t)(o - owner), i;
	struct body *b = &body[nr];

	b->n = 1 + (b->at * 7919 + nr * 104729) % PART_MAX;
	if (b->n > BODY - b->at)
		b->n = BODY - b->at;
	if (b->n == 0)
		return;
	b->part = malloc(b->n);
	for (i = 0; i < b->n; i++)
		b->part[i] = byte_at(nr, b->at + i);
	o->iov = (struct iovec){ b->part, b->n };
	op_submit(io, &o->wr);
}

static void
part_said(struct io_op *op)
{
	struct owner *o = (struct owner *)((char *)op - offsetof(struct owner, wr));
	struct body *b = &body[o - owner];

	g_assert_cmpint(op->res, >, 0);
	b->at += (size_t)op->res;
	free(b->part);
	b->part = NULL;
	next_part(o);
}

static void
head_said(struct io_op *op)
{
	op->done = part_said;
	next_part((struct owner *)((char *)op - offsetof(struct owner, wr)));
}

static void
begin(struct owner *o)
{
	static const char head[] = OK "Content-Length: 300000\r\n\r\n";

	say_op(o, IO_SEND, 0);
	o->wr.done = head_said;
	o->iov = (struct iovec){ (char *)(uintptr_t)head, sizeof(head) - 1 };
	op_submit(io, &o->wr);
}

static bool
all_came(void)
{
	unsigned i;

	for (i = 0; i < STREAMS; i++)
		if (!replies[i].ended)
			return (false);
	return (true);
}

/* Streams are 1, 3, ... in the order of their owners. */
static void
check_bodies(void)
{
	size_t nr, i;

	for (nr = 0; nr < STREAMS; nr++) {
		g_assert_cmpuint(replies[nr].body->len, ==, BODY);
		for (i = 0; i < BODY; i++)
			if (replies[nr].body->str[i] != byte_at(nr, i))
				g_error("stream %zu has a wrong byte at %zu", nr, i);
	}
}

static void
socket_down(void)
{
	unsigned i;

	http2_stop(h2);
	op_cancel(io, &incoming);
	for (i = 0; i < nowners; i++)
		stop_owner(&owner[i]);
	sim_run(io);
	http2_free(h2);
	nghttp2_session_del(client);
	free_all();
	op_init(&incoming, IO_CLOSE, came);
	incoming.sock = &sock;
	op_submit(io, &incoming);
	sim_run(io);
	close(far_end);
	io_free(io);
}

static void
bodies(int room, size_t most)
{
	unsigned i;

	memset(body, 0, sizeof(body));
	socket_up(room);
	nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, NULL, 0);
	for (i = 0; i < STREAMS; i++)
		ask(GET);
	while (nowners < STREAMS)
		one_round(most);
	for (i = 0; i < STREAMS; i++)
		begin(&owner[i]);
	while (!all_came())
		one_round(most);
	check_bodies();
	socket_down();
}

TEST("/http2-socket/a socket with room")
{
	bodies(4 << 20, 1 << 16);
}

TEST("/http2-socket/a socket with little room")
{
	bodies(4096, 5000);
}

TEST("/http2-socket/a client that reads little")
{
	bodies(50000, 1999);
}
