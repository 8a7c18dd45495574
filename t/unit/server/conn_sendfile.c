/* t/unit/server/conn_sendfile.c -- an application names a file: which one is sent, and which is
 * not. */
#include "t/unit/server/simapp.h"

/* The head of the application's reply, with %s the document root; then the disk does its part. */
static struct io_sock *
send_file(const char *in, const char *fmt)
{
	struct io_sock *s = client(), *b;
	g_autofree char *head = g_strdup_printf(fmt, dir);

	b = asked(s, in);
	app_ends(b, head);
	settle(s);
	return (s);
}

UP_TEST("/send-file/sends", APP)
{
	struct io_sock *s;

	s = send_file(GET("/app") GET("/b"),
	    "X-LIGHTTPD-send-file: %s/a\r\nSet-Cookie: c\r\nContent-Length: 77\r\n\r\nignored");
	g_assert_true(heard_has(s, "\r\n\r\nAAAA"));
	g_assert_true(heard_has(s, "Set-Cookie: c\r\n"));
	g_assert_true(heard_has(s, "Content-Length: 4\r\n"));
	g_assert_false(heard_has(s, "end-file"));
	heard_statuses(s, "200 200");
	s = send_file(GET("/app"), "X-Sendfile: %s/a\r\n\r\n"); /* hot now */
	heard_statuses(s, "200");
	s = send_file("HEAD /app HTTP/1.1\r\n" HOST "\r\n",
	    "X-Accel-Redirect: /b\r\nX-Ignored: %s\r\n\r\n");
	g_assert_true(heard_has(s, "Content-Length: 6\r\n"));
	g_assert_false(heard_has(s, "BBB"));
	s = send_file(GET("/app"), "X-Sendfile: %s/dir\r\n\r\n");
	heard_statuses(s, "403");
	s = send_file(GET("/app"), "X-Sendfile: %s/none\r\n\r\n");
	heard_statuses(s, "404");
}

/* An application that only looks files up names the requested path. */
UP_TEST("/send-file/excluded", APP "static-file.exclude-extensions = ( \"A\" )\n")
{
	struct io_sock *s;

	s = send_file(GET("/app"), "X-Sendfile: %s/a\r\n\r\n");
	heard_statuses(s, "403");
	g_assert_false(heard_has(s, "AAAA"));
	s = send_file(GET("/app"), "X-Sendfile: %s/b\r\n\r\n");
	heard_statuses(s, "200");
}

UP_TEST("/send-file/refused", APP)
{
	static const struct {
		const char *head, *why;
	} cases[] = {
		{ "X-Sendfile: /etc/passwd\r\nA: %s\r\n\r\n", "not below proxy-core.x-sendfile-" },
		{ "X-Sendfile: %s-not/a\r\n\r\n", "not below proxy-core.x-sendfile-" },
		{ "X-Sendfile: %s/%%00a\r\n\r\n", "write %25 for %, or set proxy-core.x-send" },
		{ "X-Sendfile: %s/100%%.txt\r\n\r\n", "write %25 for %, or set proxy-core.x-s" },
		{ "X-Sendfile2: %s/100%%.txt 0-\r\n\r\n", "write %25 for %\"" },
		{ "X-Sendfile: a\r\nA: %s\r\n\r\n", "it does not begin with /" },
		{ "X-Accel-Redirect: /a%%00\r\nA: %s\r\n\r\n", "write %25 for %" },
		{ "X-Accel-Redirect: /../../a\r\nA: %s\r\n\r\n", "it has an encoded slash" },
		{ "X-Accel-Redirect: a\r\nA: %s\r\n\r\n", "it does not begin with /" },
	};
	struct io_sock *s;
	const char *line;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		log_suppressed_flush(); /* each case has its line */
		g_string_truncate(logged, 0);
		s = send_file(GET("/app") GET("/b"), cases[i].head);
		heard_statuses(s, "403 200");
		line = strstr(logged->str, "ev=sendfile.refused");
		g_assert_nonnull(line);
		if (strstr(line, cases[i].why) == NULL)
			g_error("%s: %s", cases[i].head, line);
	}
}

/* A request with a body, whose reply is a file: the file goes out, and the next request is
 * answered. */
UP_TEST("/send-file/after-body", APP)
{
	struct io_sock *s;

	s = send_file(POST("3") "abc", "X-Sendfile: %s/a\r\n\r\n");
	g_assert_true(heard_has(s, "\r\n\r\nAAAA"));
	heard_statuses(s, "200");
	asks(s, GET("/b"), "200");
}

/* As many headers as the application likes; more than fit in one piece of memory. */
UP_TEST("/send-file/many-headers", APP)
{
	g_autoptr(GString) head = g_string_new("X-Sendfile: %s/a\r\n");
	struct io_sock *s;
	int i;

	for (i = 0; i < 60; i++)
		g_string_append_printf(head, "Set-Cookie: %0500d\r\n", i);
	g_string_append(head, "\r\n");
	s = send_file(GET("/app"), head->str);
	g_assert_true(heard_has(s, "\r\n\r\nAAAA"));
	g_assert_true(heard_has(s, "0059\r\n"));
	heard_statuses(s, "200");
	s = send_file("GET /app HTTP/1.1\r\n" HOST "If-None-Match: *\r\n\r\n", head->str);
	g_assert_true(heard_has(s, "0059\r\n"));
	heard_statuses(s, "304");
}

#define STREAMED                                                                    \
	"$HTTP[\"url\"] =~ \"^/app\" { proxy-core.protocol = \"fastcgi\"\n"         \
	"proxy-core.backends = ( \"10.0.0.1:80\" )\nproxy-core.max-pool-size = 2\n" \
	"proxy-core.allow-x-sendfile = \"enable\"\nserver.stream-request-body = 1 }\n"

/* The answer of the look-up is remembered from the second time on, and comes at once. */
UP_TEST("/send-file/missing, under an error handler", APP "server.error-handler-404 = \"/b\"\n")
{
	static const char *const heads[] = {
		"X-Sendfile: %s/none\r\n\r\n",
		"X-Sendfile: %s/dir\r\n\r\n",
		"X-Sendfile2: %s/none 0-1\r\n\r\n",
		"X-Accel-Redirect: /none\r\nA: %s\r\n\r\n",
	};
	struct io_sock *s;
	size_t i;

	for (i = 0; i < 3 * G_N_ELEMENTS(heads); i++) {
		s = send_file(GET("/app"), heads[i / 3]);
		g_assert_true(heard_has(s, "BBBBBB"));
		heard_statuses(s, "200");
	}
}

/* The refusal may route the request to the error handler while the head of the application's reply
 * is still being read. */
UP_TEST("/send-file/refused, under an error handler", STREAMED "server.error-handler = \"/b\"\n")
{
	static const char *const heads[] = {
		"X-Sendfile2: %s-not/a 0-1\r\n\r\n",
		"X-Sendfile2: %s/none 0-1\r\n\r\n",
		"X-Sendfile: %s-not/a\r\n\r\n",
		"X-Sendfile: %s/none\r\n\r\n",
		"X-Accel-Redirect: /a%%00\r\nA: %s\r\n\r\n",
		"X-Reproxy-URL: http://10.9.9.9/%s\r\n\r\n",
		"X-LIGHTTPD-send-tempfile: %s/none\r\n\r\n",
	};
	struct io_sock *s, *b;
	size_t i;

	for (i = 0; i < 2 * G_N_ELEMENTS(heads); i++) {
		s = send_file(GET("/app") POST("5") "hello", heads[i / 2]);
		b = app();
		take(b, SIZE_MAX);
		g_assert_true(heard_has(b, "hello"));
		sim_sent_clear(io, b);
		app_ends(b, "\r\nthanks");
		settle(s);
		g_assert_true(heard_has(s, "thanks"));
		leave(s, 0);
	}
}
