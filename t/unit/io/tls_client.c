/* t/unit/io/tls_client.c -- TLS as a client: both ends are in one loop, with the server that others
 * meet. */
#include "io/tls/client.h"
#include "t/unit/io/tls_test.h"

static struct io_secure *ours;

static void
client_up(void)
{
	const struct tls_client_settings set = { .host = "x", .resumes = true };
	struct tls_fault fault;

	tls_up();
	ours = tls_client_new(&set, &fault);
	g_assert_nonnull(ours);
}

static void
client_down(void)
{
	tls_client_free(ours);
	tls_down();
}

#define CLIENT_TEST(path) TEST_IN(path, client_up(), client_down())

/* A pair of sockets of this loop. */
static void
both(struct io_sock *server, struct io_sock *client)
{
	int fd;

	unix_pair(server, &fd, 0);
	g_assert_cmpint(fcntl(fd, F_SETFL, O_NONBLOCK), ==, 0);
	io_sock_init(client, fd);
	client->hints = SOCK_WRITABLE;
}

static int64_t
client_shakes(struct io_sock *s, struct waiter *w)
{
	wait_init(w, IO_HANDSHAKE, s);
	w->op.handshake.with = ours;
	w->op.deadline_ms = LATE_MS;
	wait_submit(w);
	return (wait_for(w));
}

/* True: a session was resumed. */
static bool
shake_both(struct io_sock *server, struct io_sock *client)
{
	struct waiter w;

	shake_begin(server, LATE_MS);
	g_assert_cmpint(client_shakes(client, &w), ==, 0);
	g_assert_cmpint(wait_for(&shake), ==, 0);
	return (w.op.handshake.resumed);
}

static void
close_sock(struct io_sock *s)
{
	struct waiter w;

	wait_init(&w, IO_CLOSE, s);
	g_assert_cmpint(wait_op(&w), ==, 0);
}

/* All n bytes go from one to the other. */
static void
carry(struct io_sock *from, struct io_sock *to, size_t n)
{
	g_autofree char *bytes = g_malloc(n);
	struct waiter out, in;
	struct iovec iov;
	size_t sent = 0, got = 0;

	for (size_t i = 0; i < n; i++)
		bytes[i] = pattern(i);
	out.done = in.done = true;
	while (got < n) {
		if (out.done && sent < n) {
			wait_init(&out, IO_SEND, from);
			iov = (struct iovec){ bytes + sent, n - sent };
			out.op.send.iov = &iov;
			out.op.send.n = 1;
			sent += (size_t)wait_op(&out);
		}
		wait_init(&in, IO_RECV, to);
		wait_submit(&in);
		g_assert_cmpint(wait_for(&in), >, 0);
		got += (size_t)in.res;
	}
	g_assert_cmpuint(got, ==, n);
}

CLIENT_TEST("/tls client/bytes go both ways, and the next session is resumed")
{
	struct io_sock server, client;

	for (int i = 0; i < 3; i++) {
		both(&server, &client);
		g_assert_cmpint(shake_both(&server, &client), ==, i > 0);
		carry(&client, &server, 100);
		carry(&server, &client, 1000); /* the tickets are before it */
		close_sock(&client);
		close_sock(&server);
	}
}

CLIENT_TEST("/tls client/the server's word is not its end, which is awaited")
{
	struct io_sock server, client;
	struct waiter w, answer;

	both(&server, &client);
	shake_both(&server, &client);
	carry(&server, &client, 10);
	server.transport->calls->say_end(&server);
	wait_init(&w, IO_RECV, &client);
	wait_submit(&w);
	for (int i = 0; i < 5; i++)
		go_round();
	g_assert_false(w.done);
	wait_init(&answer, IO_RECV, &server);
	g_assert_cmpint(wait_op(&answer), ==,
	    0); /* lighttpd waits for this word before it closes */
	shutdown(server.fd, SHUT_WR);
	g_assert_cmpint(wait_for(&w), ==, 0);
	close_sock(&client);
	close_sock(&server);
}

/* What comes from a peer that is not such a server. */
static int64_t
meets(const char *bytes, size_t n, const char **why)
{
	struct io_sock client;
	struct waiter w;
	int fd;

	unix_pair(&client, &fd, 0);
	client.hints = SOCK_WRITABLE;
	g_assert_cmpint(write(fd, bytes, n), ==, (ssize_t)n);
	shutdown(fd, SHUT_WR);
	client_shakes(&client, &w);
	*why = w.op.handshake.why;
	close(fd);
	close_sock(&client);
	return (w.res);
}

CLIENT_TEST("/tls client/a peer that says other things, or leaves")
{
	const char *why;

	g_assert_cmpint(meets("HTTP/1.1 400 Bad\r\n\r\n", 20, &why), ==, -EPROTO);
	g_assert_nonnull(why);
	g_assert_cmpint(meets("\x15\x03\x03\x00\x02\x02\x46", 7, &why), ==, -EPROTO);
	g_assert_cmpstr(why, ==, "tlsv1 alert protocol version");
	g_assert_cmpint(meets("", 0, &why), ==, -ECONNRESET);
	g_assert_cmpint(meets("\x16\x03\x03\x00", 4, &why), ==, -ECONNRESET);
}

CLIENT_TEST("/tls client/a peer that says nothing")
{
	struct io_sock client;
	struct waiter w;
	int fd;

	unix_pair(&client, &fd, 0);
	client.hints = SOCK_WRITABLE;
	wait_init(&w, IO_HANDSHAKE, &client);
	w.op.handshake.with = ours;
	w.op.deadline_ms = 20;
	g_assert_cmpint(wait_op(&w), ==, -ETIMEDOUT);
	close_sock(&client);
	close(fd);
}
