/* t/unit/accel-load/urls.c -- URLs, lists of them, and whose turn it is. */
#include <stdarg.h>
#include <sysexits.h>
#include "accel-load/urls.h"
#include "t/unit/test.h"

static char said[1000];

void
load_message(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

static const struct load_conf conf = { .unix_path = "/run/s", .list = "list", .threads = 1 };

TEST("/urls/a URL in its parts")
{
	static const struct {
		const char *url, *authority, *host, *path;
		unsigned port;
	} rows[] = {
		{ "http://h", "h", "h", "/", 80 },
		{ "http://h:8080/a?b#c", "h:8080", "h", "/a?b", 8080 },
		{ "HTTP://[::1]:81/x", "[::1]:81", "::1", "/x", 81 },
		{ "https://h/a", "h", "h", "/a", 443 },
		{ "HTTPS://h:80", "h:80", "h", "/", 80 },
		{ "/only/path?q", "", "", "/only/path?q", 0 },
	};
	struct url_parts u;

	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_assert_null(url_split(text_of(rows[i].url), &u));
		g_assert_cmpmem(u.authority.p, u.authority.n, rows[i].authority,
		    strlen(rows[i].authority));
		g_assert_cmpmem(u.host.p, u.host.n, rows[i].host, strlen(rows[i].host));
		g_assert_cmpmem(u.path.p, u.path.n, rows[i].path, strlen(rows[i].path));
		g_assert_cmpuint(u.port, ==, rows[i].port);
		g_assert_cmpint(u.tls, ==, g_ascii_strncasecmp(rows[i].url, "https:", 6) == 0);
	}
}

TEST("/urls/what is no URL")
{
	static const char *const rows[] = { "", "h/a", "https://", "https:/h/", "http://",
		"http:///a", "http://u@h/", "http://h:0/", "http://h:65536/", "http://h:x/",
		"http://[::1/", "http://::1/", "http://h?q", "/a b", "/\x80", "/\r", "#",
		"ftp://h/", "http://unix:/s/" };
	struct url_parts u;

	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
		g_assert_nonnull(url_split(text_of(rows[i]), &u));
}

static int
read_text(struct urls *list, const char *text, size_t n)
{
	FILE *f = fmemopen((void *)text, n, "r");
	int code;

	*list = (struct urls){ .n = 0 };
	said[0] = '\0';
	code = urls_read(list, &conf, f, NULL);
	fclose(f);
	return (code);
}

TEST("/urls/a list of URLs and paths")
{
	static const char text[] = "# comment\n\n/a\r\n  /b 404 \nhttp://other:81/c\n/d";
	struct urls list;

	g_assert_cmpint(read_text(&list, text, sizeof(text) - 1), ==, 0);
	g_assert_cmpuint(list.n, ==, 4);
	g_assert_cmpstr(list.url[0].path, ==, "/a");
	g_assert_cmpstr(list.url[0].target->authority, ==, "localhost");
	g_assert_cmpstr(list.url[1].path, ==, "/b");
	g_assert_cmpuint(list.url[1].status, ==, 404);
	g_assert_cmpstr(list.url[2].target->authority, ==, "other:81");
	g_assert_true(list.url[3].target == list.url[0].target);
	urls_close(&list);
}

/* The line is named, and what is wrong with it; control characters are not repeated. */
TEST("/urls/a fault names its line")
{
	g_autofree char *line = g_strnfill(20000, 'a');
	struct urls list;

	g_assert_cmpint(read_text(&list, "/a\n/b\x1b[2J\n", 9), ==, EX_DATAERR);
	g_assert_true(g_str_has_prefix(said, "list:2: expected "));
	g_assert_null(strchr(said, '\x1b'));
	urls_close(&list);
	line[0] = '/';
	g_assert_cmpint(read_text(&list, line, URL_MAX), ==, 0);
	urls_close(&list);
	g_assert_cmpint(read_text(&list, line, URL_MAX + 1), ==, EX_DATAERR);
	urls_close(&list);
	g_assert_cmpint(read_text(&list, line, 20000), ==, EX_DATAERR);
	g_assert_nonnull(strstr(said, "8192"));
	urls_close(&list);
}

/* Threads share a list; all of it is requested. */
TEST("/urls/threads share a list")
{
	struct load_conf c = { .threads = 3, .seed = 7 };
	unsigned seen[10] = { 0 };
	struct turn t;

	for (unsigned nr = 0; nr < 3; nr++) {
		turn_begin(&t, &c, nr);
		for (unsigned i = 0; i < 10; i++)
			seen[turn_next(&t, &c, 10)]++;
	}
	for (unsigned i = 0; i < 10; i++)
		g_assert_cmpuint(seen[i], ==, 3);
}

static void
random_order(uint64_t seed, unsigned nr, uint32_t out[100])
{
	struct load_conf c = { .threads = 2, .random = true, .seed = seed };
	struct turn t;

	turn_begin(&t, &c, nr);
	for (unsigned i = 0; i < 100; i++)
		out[i] = turn_next(&t, &c, 1000);
}

TEST("/urls/the same seed, the same order")
{
	uint32_t a[100], b[100];

	random_order(1, 0, a);
	random_order(1, 0, b);
	g_assert_cmpmem(a, sizeof(a), b, sizeof(b));
	random_order(2, 0, b);
	g_assert_cmpint(memcmp(a, b, sizeof(a)), !=, 0);
	random_order(1, 1, b); /* another thread */
	g_assert_cmpint(memcmp(a, b, sizeof(a)), !=, 0);
}
