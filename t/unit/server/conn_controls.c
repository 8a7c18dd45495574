/* t/unit/server/conn_controls.c -- control headers, event by event: files that are removed, pieces,
 * replies from elsewhere, rates; and clients that leave at each moment. */
#include "t/unit/server/simapp.h"

#define TEMP_FD 4711
#define CONTROLS_CONF                                                               \
	"$HTTP[\"url\"] =~ \"^/app\" { proxy-core.protocol = \"fastcgi\"\n"         \
	"proxy-core.backends = ( \"10.0.0.1:80\" )\nproxy-core.max-pool-size = 2\n" \
	"proxy-core.max-keep-alive-requests = 100\n"                                \
	"proxy-core.allow-x-sendfile = \"enable\"\n"                                \
	"proxy-core.allow-x-reproxy = \"enable\"\n"                                 \
	"proxy-core.x-sendfile-tempdir = ( \"/tmp\" ) }\n"

/* The request, and the head of the application's reply, with %s the document root. */
static struct io_sock *
ask(const char *in, const char *fmt)
{
	struct io_sock *s = client(), *b;
	g_autofree char *head = g_strdup_printf(fmt, dir);

	b = asked(s, in);
	app_ends(b, head);
	return (s);
}

static struct io_op *
removal(void)
{
	struct io_op *op = sim_find(io, IO_OPEN, NULL);

	g_assert_nonnull(op);
	g_assert_true(op->removes);
	g_assert_cmpstr(op->open.path, ==, "t/x.txt");
	return (op);
}

#define TEMP "X-LIGHTTPD-send-tempfile: /tmp/t/x.txt\r\n"

static void
temp_send(struct io_sock *s)
{
	struct io_op *op;

	sim_open(io, removal(), TEMP_FD, 4, 1000, 0);
	sim_run(io);
	take(s, SIZE_MAX);
	op = sim_find(io, IO_SEND_FILE, s);
	g_assert_nonnull(op);
	g_assert_cmpint(op->file.file->fd, ==, TEMP_FD);
	g_assert_cmpuint(op->file.len, ==, 4);
	sim_finish(io, op, 4);
	sim_run(io);
}

UP_TEST("/controls/temp", CONTROLS_CONF)
{
	struct io_sock *s;

	s = ask(GET("/app"), TEMP "Status: 201 x\r\nSet-Cookie: c\r\n\r\n%s");
	temp_send(s);
	g_assert_true(heard_has(s, "HTTP/1.1 201 "));
	g_assert_true(heard_has(s, "Content-Length: 4\r\n"));
	g_assert_true(heard_has(s, "Set-Cookie: c\r\n"));
	g_assert_true(heard_has(s, "Content-Type: text/plain"));
	g_assert_cmpuint(sim_closed(io, TEMP_FD), ==, 1);
	sim_sent_clear(io, s);
	say(s, GET("/a")); /* the connection goes on */
	disk();
	takes(s, "200");
}

UP_TEST("/controls/temp/fails", CONTROLS_CONF)
{
	static const struct {
		int err;
		const char *status;
	} rows[] = { { -ENOENT, "404" }, { -EACCES, "403" }, { -ELOOP, "403" }, { -EXDEV, "403" },
		{ -EAGAIN, "503" }, { -ETIMEDOUT, "503" }, { -EIO, "500" } };
	struct io_sock *s;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		s = ask(GET("/app"), TEMP "\r\n%s");
		sim_finish(io, removal(), rows[i].err);
		sim_run(io);
		take(s, SIZE_MAX);
		g_assert_true(
		    strcmp(rows[i].status, "503") != 0 || heard_has(s, "Retry-After: 1\r\n"));
		heard_statuses(s, rows[i].status);
	}
	g_assert_nonnull(strstr(logged->str, "ev=sendfile.failed"));
}

/* The op is cancelled, its descriptor is closed if there is one. */
UP_TEST("/controls/temp/client-leaves", CONTROLS_CONF)
{
	struct io_sock *s;
	struct io_op *op;

	s = ask(GET("/app"), TEMP "\r\n%s");
	op = removal();
	hangs_up(s);
	g_assert_null(sim_find(io, IO_OPEN, NULL));
	s = ask(GET("/app"), TEMP "\r\n%s");
	op = removal();
	sim_open(io, op, TEMP_FD, 4, 1000, 0); /* its result is on the way */
	hangs_up(s);
	g_assert_cmpuint(sim_closed(io, TEMP_FD), ==, 1);
}

UP_TEST("/controls/pieces", CONTROLS_CONF)
{
	struct io_sock *s;
	char *head;

	head = g_strdup_printf("X-Sendfile2: %s/b 1-2, %s/m 0-1,%s/a 0-\r\n\r\n", dir, dir, dir);
	s = ask(GET("/app"), head);
	g_assert_cmpuint(sim_count(io, IO_OPEN), ==, 1); /* one after the other */
	settle(s);
	g_assert_true(heard_has(s, "Content-Length: 8\r\n"));
	g_assert_true(heard_has(s, "\r\n\r\nBBmmAAAA"));
	heard_statuses(s, "200");
	s = ask("HEAD /app HTTP/1.1\r\n" HOST "\r\n", head); /* hot now */
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "Content-Length: 8\r\n"));
	g_assert_false(heard_has(s, "BBmm"));
	g_free(head);
}

UP_TEST("/controls/pieces/client-leaves", CONTROLS_CONF)
{
	struct io_sock *s;
	char *head;

	head = g_strdup_printf("X-Sendfile2: %s/b 1-2, %s/m 0-1,%s/none 0-\r\n\r\n", dir, dir, dir);
	s = ask(GET("/app"), head);
	disk_answers(sim_find(io, IO_OPEN, NULL));
	sim_run(io); /* one is held, the next is looked up */
	hangs_up(s);
	s = ask(GET("/app"), head);
	settle(s);
	heard_statuses(s, "404");
	g_free(head);
}

/* The backend of the URL is the same block: the fetched reply may not send it on. */
UP_TEST("/controls/fetch", CONTROLS_CONF)
{
	struct io_sock *s, *b;

	s = ask(GET("/app"), "X-Reproxy-URL: http://10.0.0.1/app/again\r\n\r\n%s");
	b = sim_find(io, IO_SEND, NULL)->sock; /* its socket was kept */
	sim_sent_clear(io, b);
	take(b, SIZE_MAX);
	g_assert_true(heard_has(b, "/app/again"));
	app_ends(b, "X-Reproxy-URL: http://10.0.0.1/app/again\r\nX-Ok: 1\r\n\r\nfetched");
	take(s, SIZE_MAX);
	g_assert_true(heard_has(s, "X-Ok: 1\r\n"));
	g_assert_true(heard_has(s, "fetched"));
	g_assert_false(heard_has(s, "Reproxy"));
	heard_statuses(s, "200");
	g_assert_null(sim_find(io, IO_SEND, b));
	sim_finish(io, sim_find(io, IO_CONNECT, NULL), 0); /* it was not needed */
	sim_run(io);
	s = ask(GET("/app"), "X-Reproxy-URL: http://10.0.0.2/\r\n\r\n%s");
	takes(s, "502");
	s = ask(GET("/app"), "X-Reproxy-URL: http://10.0.0.1/\r\n\r\n%s");
	hangs_up(s); /* during the second exchange */
}

/* The rate ends with its reply. */
UP_TEST("/controls/rate", CONTROLS_CONF)
{
	struct io_sock *s;

	s = ask(GET("/app") GET("/a"), "X-Accel-Limit-Rate: 40\r\n\r\n%s");
	g_assert_cmpuint(take(s, SIZE_MAX), ==, 1);
	g_assert_cmpuint(sim_sent(io, s).n, ==, 10);
	sim_advance_ms(io, 240);
	g_assert_cmpuint(take(s, SIZE_MAX), ==, 0);
	sim_advance_ms(io, 10);
	g_assert_cmpuint(take(s, SIZE_MAX), ==, 1);
	g_assert_cmpuint(sim_sent(io, s).n, ==, 20);
	while (!heard_has(s, "AAAA")) {
		sim_advance_ms(io, 250);
		disk();
		take(s, SIZE_MAX);
	}
	heard_statuses(s, "200 200");
	g_assert_null(sim_find(io, IO_SEND, s));
}
