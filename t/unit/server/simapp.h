/* t/unit/server/simapp.h -- a FastCGI application behind a simulated worker: it says what the test
 * lets it say. */
#ifndef SIMAPP_H
#define SIMAPP_H

#include "t/unit/wire/wire_test.h"
#include "t/unit/server/simworker.h"

#define APP                                                                         \
	"$HTTP[\"url\"] =~ \"^/app\" { proxy-core.protocol = \"fastcgi\"\n"         \
	"proxy-core.backends = ( \"10.0.0.1:80\" )\nproxy-core.max-pool-size = 2\n" \
	"proxy-core.max-keep-alive-requests = 100\nproxy-core.allow-x-sendfile = \"enable\" }\n"
#define POST(length) "POST /app HTTP/1.1\r\n" HOST "Content-Length: " length "\r\n\r\n"

static struct buf said;

/* The application's socket: kept from the last request, or connected now. */
static G_GNUC_UNUSED struct io_sock *
app(void)
{
	struct io_op *op = sim_find(io, IO_CONNECT, NULL);
	struct io_sock *s;

	if (op == NULL) {
		op = sim_find(io, IO_SEND, NULL);
		g_assert_nonnull(op);
		return (op->sock);
	}
	s = op->sock;
	sim_sent_clear(io, s);
	sim_finish(io, op, 0);
	sim_run(io);
	return (s);
}

/* The client asks; the application has read all of it. */
static G_GNUC_UNUSED struct io_sock *
asked(struct io_sock *s, const char *in)
{
	struct io_sock *b;

	say(s, in);
	b = app();
	take(b, SIZE_MAX);
	return (b);
}

static void G_GNUC_UNUSED
app_flush(struct io_sock *b)
{
	say_n(b, said.p, said.n);
	buf_free(&said);
}

static void G_GNUC_UNUSED
app_says(struct io_sock *b, const char *out)
{
	put_stdout(&said, out);
	app_flush(b);
}

static void G_GNUC_UNUSED
app_ends(struct io_sock *b, const char *out)
{
	if (*out != '\0')
		put_stdout(&said, out);
	put_end(&said, 0);
	app_flush(b);
}

static void G_GNUC_UNUSED
app_sends(struct io_sock *b, size_t n)
{
	g_autofree char *p = g_malloc(n);
	size_t at, len;

	memset(p, 'z', n);
	for (at = 0; at < n; at += len) {
		len = n - at < 65535 ? n - at : 65535;
		record(&said, 1, 6, 1, (struct text){ p + at, len }, 0);
	}
	app_flush(b);
}

#endif
