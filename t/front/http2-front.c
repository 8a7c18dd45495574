/* http2-front -- puts HTTP/2 between the tests for HTTP/1.1 and accel-server.
 *
 *	http2-front PORT [FD]
 *
 * PORT is that of the server on 127.0.0.1.  FD is a listening socket that it inherits; without it,
 * it chooses a port and prints it.  It ends at the end of its standard input.
 */
#include "front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE             65536
#define CONNECTION_WINDOW (64 << 20)
#define SKIPPED           (1 << 20)
#define SILENT_US         (5 * G_USEC_PER_SEC)
#define SEND_BUFFER       (256 << 10)
#define STREAM_WINDOW \
	(2 << 20) /* tests expect about what the kernel buffers for a client of HTTP/1 */

static int epoll_fd;
static in_port_t server_port;
static GQueue renewed;  /* connections that wait for SETTINGS of another server, oldest first */
static GPtrArray *dead; /* connections that are freed after the events of this turn */
static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;

static void
fatal(const char *what)
{
	fprintf(stderr, "http2-front: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void
watch(struct side *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	if (s->fd < 0 || s->events == events)
		return;
	s->events = events;
	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, s->fd, &ev);
}

static void
watch_begin(struct side *s, struct conn *c, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	*s = (struct side){ .conn = c, .fd = fd, .events = events };
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		fatal("epoll_ctl");
}

static void
side_close(struct side *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* ---------------------------------------------------------------- a connection begins and ends */

static void
conn_die(struct conn *c)
{
	if (c->dead)
		return;
	c->dead = true;
	side_close(&c->client);
	side_close(&c->server);
	g_ptr_array_add(dead, c);
}

/* From the address of the client, which the server sees. */
static int
connect_from(const struct sockaddr_in *client)
{
	struct sockaddr_in from = *client,
			   to = { .sin_family = AF_INET, .sin_port = htons(server_port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		return (-1);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	from.sin_port = 0;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)) {
		close(fd);
		return (-1);
	}
	return (fd);
}

static bool
server_connect(struct conn *c)
{
	nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
	};
	int fd = connect_from(&c->from);

	if (fd < 0)
		return (false);
	if (nghttp2_session_client_new2(&c->h2, callbacks, c, options) != 0)
		fatal("nghttp2");
	nghttp2_submit_settings(c->h2, 0, settings, G_N_ELEMENTS(settings));
	nghttp2_session_set_local_window_size(c->h2, 0, 0, CONNECTION_WINDOW);
	watch_begin(&c->server, c, fd, EPOLLIN | EPOLLOUT);
	return (true);
}

static void
conn_new(int fd, const struct sockaddr_in *client)
{
	int one = 1, room = SEND_BUFFER;
	struct conn *c;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	c = g_new0(struct conn, 1);
	c->in = g_string_new(NULL);
	c->up = g_string_new(NULL);
	c->all = g_ptr_array_new_with_free_func((GDestroyNotify)exchange_free);
	c->from = *client;
	c->server.fd = -1;
	watch_begin(&c->client, c, fd, EPOLLIN);
	if (!server_connect(c))
		conn_die(c);
}

static void
conn_free(struct conn *c)
{
	g_queue_remove(&renewed, c);
	nghttp2_session_del(c->h2);
	g_queue_clear(&c->queue);
	g_ptr_array_free(c->all, TRUE);
	g_string_free(c->in, TRUE);
	g_string_free(c->up, TRUE);
	g_free(c);
}

/* ---------------------------------------------------------------- bytes */

static void
server_write(struct conn *c)
{
	const uint8_t *bytes;
	ssize_t n;

	if (c->server.fd < 0 || c->mute)
		return;
	while (c->up->len < PIECE && (n = nghttp2_session_mem_send(c->h2, &bytes)) > 0)
		g_string_append_len(c->up, (const char *)bytes, n);
	while (c->up->len > 0) {
		n = send(c->server.fd, c->up->str, c->up->len, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			c->mute = true;
		if (n <= 0)
			break;
		g_string_erase(c->up, 0, n);
	}
}

static bool
is_refused(const struct conn *c)
{
	GList *l;

	for (l = c->queue.head; l != NULL; l = l->next)
		if (((struct exchange *)l->data)->refused)
			return (true);
	return (false);
}

/* A head that is not whole ends with its connection. */
static bool
has_head(const struct conn *c)
{
	return (c->part == PART_HEAD && memmem(c->in->str, c->in->len, "\r\n\r\n", 4) != NULL);
}

/* A client of HTTP/1 stays connected while the server reloads: it moves to the next generation.  It
 * does not stay if the server ends it because it is idle, or to make room.  A request of the client
 * that has not been taken goes to a new connection in both cases, as clients of HTTP/2 do.  After
 * the last request that the server takes (server.max-keep-alive-requests) it says the same as
 * before a reload: the client stays connected. */
static bool
server_renew(struct conn *c)
{
	if (!c->goaway || c->failed ||
	    !(has_head(c) || is_refused(c) || (c->moves && !c->client_eof)))
		return (false);
	g_string_truncate(c->up, 0);
	nghttp2_session_del(c->h2);
	c->h2 = NULL;
	c->settled = c->goaway = c->moves = c->mute = c->server_eof = false;
	c->renewed = server_connect(c);
	c->renewed_us = g_get_monotonic_time();
	g_queue_remove(&renewed, c);
	g_queue_push_tail(&renewed, c);
	return (c->renewed);
}

/* The session is over.  What the server has said counts even if it has closed. */
static void
server_lost(struct conn *c)
{
	GList *l;

	side_close(&c->server);
	exchanges_close(c);
	if (server_renew(c))
		return;
	for (l = c->queue.head; l != NULL; l = l->next)
		((struct exchange *)l->data)->refused = false;
}

/* The server may close first, or leave it to its client. */
static bool
is_over(const struct conn *c)
{
	return (c->server.fd >= 0 &&
		(c->server_eof ||
		    (c->goaway && c->up->len == 0 && nghttp2_session_want_read(c->h2) == 0 &&
			nghttp2_session_want_write(c->h2) == 0)));
}

static void
server_read(struct conn *c)
{
	uint8_t buf[PIECE];
	ssize_t n = recv(c->server.fd, buf, sizeof(buf), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || nghttp2_session_mem_recv(c->h2, buf, n) < 0)
		c->server_eof = true;
}

static void
client_read(struct conn *c)
{
	char buf[PIECE];
	ssize_t n = recv(c->client.fd, buf, sizeof(buf), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0) {
		conn_die(c); /* the server sees that the client has left */
		return;
	}
	if (n == 0)
		c->client_eof = true;
	else if (!c->finishing)
		g_string_append_len(c->in, buf, n);
}

/* Nothing follows.  What the client still sends is read: unread bytes would make it a reset. */
static void
client_finish(struct conn *c)
{
	c->finishing = true;
	if (c->server.fd >= 0) {
		nghttp2_session_terminate_session(c->h2, NGHTTP2_NO_ERROR);
		server_write(c);
		side_close(&c->server);
	}
	shutdown(c->client.fd, SHUT_WR);
	if (c->client_eof)
		conn_die(c);
}

/* A close would end the body as if it were whole: only a reset shows that it is cut. */
static void
client_reset(struct conn *c)
{
	struct linger now = { 1, 0 };

	setsockopt(c->client.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	conn_die(c);
}

/* True if all of it has left. */
static bool
client_write(struct conn *c, struct exchange *x)
{
	size_t at = 0;
	ssize_t n = 1;

	for (; n > 0 && at < x->out->len; at += MAX(n, 0)) {
		n = send(c->client.fd, x->out->str + at, x->out->len - at, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			conn_die(c);
	}
	g_string_erase(x->out, 0, at);
	if (x->out->len > 0)
		return (false);
	if (x->owed > 0 && !x->closed)
		nghttp2_session_consume_stream(c->h2, x->id, x->owed);
	x->owed = 0;
	return (true);
}

/* The server has answered before the body was whole.  Skips the rest if it is short. */
static bool
skip_body(struct conn *c, struct exchange *x)
{
	if (c->upload != x || c->part != PART_BODY || c->left > SKIPPED)
		return (false);
	c->upload = NULL;
	if (!x->closed)
		nghttp2_submit_rst_stream(c->h2, 0, x->id, NGHTTP2_NO_ERROR);
	return (true);
}

/* Writes replies in their order.  True if one is over. */
static bool
replies_write(struct conn *c)
{
	struct exchange *x = g_queue_peek_head(&c->queue);
	bool end, cut;

	if (x == NULL || !client_write(c, x) || !(x->ended || x->broken))
		return (false);
	if (x->refused && (c->goaway || c->renewed))
		return (false); /* it is sent again */
	end = x->close || x->broken || (!x->body_end && !skip_body(c, x));
	cut = x->broken && x->replied && !x->chunked && x->length == UINT64_MAX;
	g_queue_pop_head(&c->queue);
	exchange_leave(x);
	if (cut)
		client_reset(c);
	else if (end)
		client_finish(c);
	return (!end);
}
/* ---------------------------------------------------------------- turns */

static bool
wants_more(const struct conn *c)
{
	return (!c->client_eof &&
		(c->finishing || c->in->len < (c->part == PART_HEAD ? HEAD_MAX : PIECE)));
}

static void
conn_watch(struct conn *c)
{
	struct exchange *x = g_queue_peek_head(&c->queue);
	bool up =
	    c->server.fd >= 0 && !c->mute && (c->up->len > 0 || nghttp2_session_want_write(c->h2));

	watch(&c->client,
	    (wants_more(c) ? EPOLLIN : 0) | (x != NULL && x->out->len > 0 ? EPOLLOUT : 0));
	watch(&c->server, EPOLLIN | (up ? EPOLLOUT : 0));
}

/* Does all that can be done without waiting. */
static void
conn_turn(struct conn *c)
{
	bool again = true;

	while (again && !c->dead && !c->finishing) {
		if (c->renewed && c->settled)
			request_again(c);
		again = request_take(c);
		if (c->client_eof && c->settled && !(c->goaway && c->part == PART_HEAD))
			request_eof(c);
		server_write(c);
		if (is_over(c)) {
			server_lost(c);
			again = true;
		}
		again = replies_write(c) || again;
	}
	if (c->dead)
		return;
	if (c->finishing) {
		if (c->client_eof)
			conn_die(c);
	} else if (((c->client_eof && c->settled && !(c->goaway && has_head(c))) ||
		       c->server.fd < 0) &&
		   g_queue_is_empty(&c->queue)) {
		client_finish(c);
	}
	if (!c->dead)
		conn_watch(c);
}

static void
conn_event(struct side *s, uint32_t events)
{
	struct conn *c = s->conn;

	if (c->dead)
		return;
	if (s == &c->client && (events & (EPOLLERR | EPOLLHUP))) {
		conn_die(c);
		return;
	}
	if (s == &c->client && (events & EPOLLIN))
		client_read(c);
	if (s == &c->server && s->fd >= 0 && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		server_read(c);
	if (!c->dead)
		conn_turn(c);
}

/* The socket of a server that stops still listens while replies run, and nobody accepts. */
static void
end_silent(void)
{
	int64_t before = g_get_monotonic_time() - SILENT_US;
	struct conn *c;

	while ((c = g_queue_peek_head(&renewed)) != NULL && c->renewed_us < before) {
		g_queue_pop_head(&renewed);
		if (c->dead || !c->renewed)
			continue;
		c->server_eof = true;
		conn_turn(c);
	}
}

static void
accept_one(int listener)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int fd = accept4(listener, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		conn_new(fd, &from);
}

static int
listen_here(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 511) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		fatal("listen");
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	return (fd);
}

static void
run(struct side *listener, struct side *input)
{
	struct epoll_event ev[64];
	int i, n;

	while (true) {
		n = epoll_wait(epoll_fd, ev, G_N_ELEMENTS(ev),
		    g_queue_is_empty(&renewed) ? -1 : 1000);
		for (i = 0; i < n; i++) {
			if (ev[i].data.ptr == input)
				return;
			if (ev[i].data.ptr == listener)
				accept_one(listener->fd);
			else
				conn_event(ev[i].data.ptr, ev[i].events);
		}
		end_silent();
		g_ptr_array_set_size(dead, 0);
	}
}

int
main(int argc, char **argv)
{
	struct rlimit most;
	struct side listener, input;

	if (argc < 2) {
		fprintf(stderr, "usage: http2-front PORT [FD]\n");
		return (64);
	}
	server_port = atoi(argv[1]);
	getrlimit(RLIMIT_NOFILE, &most);
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
	nghttp2_session_callbacks_new(&callbacks);
	reply_callbacks(callbacks);
	nghttp2_option_new(&options);
	nghttp2_option_set_no_auto_window_update(options, 1);
	nghttp2_option_set_max_send_header_block_length(options, 1 << 20);
	dead = g_ptr_array_new_with_free_func((GDestroyNotify)conn_free);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	watch_begin(&listener, NULL, argc > 2 ? atoi(argv[2]) : listen_here(), EPOLLIN);
	watch_begin(&input, NULL, 0, EPOLLIN);
	run(&listener, &input);
	_exit(0); /* open connections are not a leak */
}
