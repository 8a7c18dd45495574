/* t/unit/fcgi-stat-accel/accel.c -- names of a request to the head of a reply: path, status, and
 * no way to split a header. */

#include "fcgi-stat-accel/accel.h"
#include "t/unit/test.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static const struct accel_conf percent = { .header = "X-LIGHTTPD-send-file", .expires = -1 };
static const struct accel_conf raw = { .header = "X-Sendfile", .raw = true, .expires = -1 };

#define PARAMS(...) ((char *[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void
check_path(const struct accel_conf *conf, char **params, int err, const char *want)
{
	g_autoptr(GString) path = g_string_new("left over");
	struct range_set bytes;

	g_assert_cmpint(accel_path(conf, params, path, &bytes), ==, err);
	if (want != NULL)
		g_assert_cmpstr(path->str, ==, want);
}

static char *
reply_found(const struct accel_conf *conf, char **params, const char *path,
    const struct warm_found *found)
{
	struct accel_counters *counters = g_new0(struct accel_counters, 1);
	const struct accel_events *e = &counters->events;
	GString *out = g_string_new(NULL);

	accel_reply(conf, params, path, found, counters, out);
	g_assert_cmpuint(e->files + e->redirects + e->go_on + e->forbidden + e->not_found +
			     e->unavailable + e->failed,
	    ==, 1);
	g_free(counters);
	return (g_string_free(out, FALSE));
}

static char *
reply(const struct accel_conf *conf, char **params, const char *path, int result)
{
	const struct warm_found found = { .err = result };

	return (reply_found(conf, params, path, &found));
}

TEST("/accel/path/order")
{
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/a/b", "WARM_PATH=/w"), 0, "/w");
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/a/b", "WARM_PATH="), 0, "/a/b");
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/a/b", "DOCUMENT_ROOT=/d", "SCRIPT_NAME=/s"),
	    0, "/a/b");
	check_path(&percent, PARAMS("DOCUMENT_ROOT=/d", "SCRIPT_NAME=/s", "PATH_INFO=/p q"), 0,
	    "/d/s/p q");
	check_path(&percent, PARAMS("SCRIPT_FILENAME=", "DOCUMENT_ROOT=/d//", "SCRIPT_NAME=s"), 0,
	    "/d/s");
	check_path(&percent, PARAMS("DOCUMENT_ROOT=/", "SCRIPT_NAME=/s"), 0, "/s");
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/a=b"), 0, "/a=b");
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/a/"), 0, "/a/");
	check_path(&percent, PARAMS("DOCUMENT_ROOT=/d", "SCRIPT_NAME=/"), 0, "/d/");
	check_path(&percent, PARAMS("SCRIPT_FILENAME=proxy:fcgi://h:1/a"), 0, "/a");
}

TEST("/accel/path/split-url")
{
	/* lighttpd 1.4: the handler is /pre/d1, the file name is in PATH_INFO */
	check_path(&percent,
	    PARAMS("SCRIPT_FILENAME=/r/pre/d1", "DOCUMENT_ROOT=/r", "SCRIPT_NAME=/pre/d1",
		"PATH_INFO=/a b.gif"),
	    0, "/r/pre/d1/a b.gif");
	/* here it is complete already */
	check_path(&percent,
	    PARAMS("SCRIPT_FILENAME=/r/pre/f", "DOCUMENT_ROOT=/r", "SCRIPT_NAME=/pre",
		"PATH_INFO=/f"),
	    0, "/r/pre/f");
}

TEST("/accel/path/from")
{
	const char *const mine[] = { "MINE", "DOCUMENT", NULL };
	const struct accel_conf conf = { .header = "X-Sendfile", .path_from = mine };
	const char **names = accel_variables(&conf);

	check_path(&conf, PARAMS("WARM_PATH=/w", "MINE=/m"), 0, "/m");
	check_path(&conf, PARAMS("WARM_PATH=/w", "MINE=", "DOCUMENT_ROOT=/d", "PATH_INFO=/p"), 0,
	    "/d/p");
	check_path(&conf, PARAMS("WARM_PATH=/w", "SCRIPT_FILENAME=/s"), -EPERM, NULL);
	g_assert_true(g_strv_contains(names, "MINE"));
	g_assert_true(g_strv_contains(names, "HTTP_RANGE"));
	g_free(names);
}

#define ROOT "DOCUMENT_ROOT=/srv/www/"

static const struct accel_conf auth_conf = { .mode = MODE_AUTH, .expires = -1 };

/* What a client has sent, and the file below the root; NULL: refused. */
TEST("/accel/path/requested")
{
	static const struct {
		const char *uri, *path;
	} table[] = {
		{ "/", "/" },
		{ "/a", "/a" },
		{ "/a/b/?c=/d", "/a/b/" },
		{ "/a?", "/a" },
		{ "/a#b?c", "/a" },
		{ "/?a", "/" },
		{ "//a///b", "/a/b" },
		{ "/a/./b/../c", "/a/c" },
		{ "/%61%20%25%3F%23", "/a %?#" },
		{ "/%2541", "/%41" },
		{ "/a%2Fb", "/a/b" },
		{ "/a/%2e%2e/b", "/b" },
		{ "/a/.%2e%2fb", "/b" },
		{ "/a\\..;x", "/a\\..;x" },
		{ "/\xc3\xa4%ff", "/\xc3\xa4\xff" },
		{ "/stat-accel", "/stat-accel" },
		{ "", NULL },
		{ "?", NULL },
		{ "*", NULL },
		{ "a", NULL },
		{ "http://host/path", NULL },
		{ "%2Fa", NULL },
		{ "/%", NULL },
		{ "/%2", NULL },
		{ "/%2?f", NULL },
		{ "/%g0", NULL },
		{ "/a%00", NULL },
		{ "/%00/a", NULL },
		{ "/..", NULL },
		{ "/a/../../b", NULL },
		{ "/%2e%2e/b", NULL },
		{ "/..%2fb", NULL },
	};

	for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
		g_autofree char *uri = g_strconcat("REQUEST_URI=", table[i].uri, NULL);
		g_autofree char *path = g_strconcat("/srv/www", table[i].path, NULL);

		g_test_message("%s", uri);
		check_path(&auth_conf, PARAMS(ROOT, uri), table[i].path != NULL ? 0 : -EPERM,
		    table[i].path != NULL ? path : "");
	}
}

/* 8 kB, the longest line of nginx by default: of names, of escapes, of steps. */
TEST("/accel/path/long")
{
	static const char *const parts[][2] = { { "/a", "/a" }, { "%61", "a" }, { "/./", "" },
		{ "/a/..", "" }, { "//", "" } };

	for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
		GString *uri = g_string_new("REQUEST_URI=/"), *path = g_string_new("/srv/www/");

		while (uri->len < 8192) {
			g_string_append(uri, parts[i][0]);
			g_string_append(path,
			    path->str[path->len - 1] == '/' && parts[i][1][0] == '/'
				? parts[i][1] + 1
				: parts[i][1]);
		}
		check_path(&auth_conf, PARAMS(ROOT, uri->str), 0, path->str);
		g_string_free(uri, TRUE);
		g_string_free(path, TRUE);
	}
}

/* In nginx's subrequest uri, script name and file name are those of the question. */
TEST("/accel/path/question")
{
	static char uri[] = "REQUEST_URI=/a?b", warm[] = "WARM_PATH=/srv/www/stat-accel",
		    file[] = "SCRIPT_FILENAME=/srv/www/stat-accel",
		    name[] = "SCRIPT_NAME=/stat-accel";

	check_path(&auth_conf, PARAMS(ROOT, uri, warm), 0, "/srv/www/a");
	check_path(&auth_conf, PARAMS(ROOT, uri, file, name, warm), 0, "/srv/www/a");
	check_path(&auth_conf, PARAMS(ROOT, uri, name), 0, "/srv/www/a");
	check_path(&auth_conf, PARAMS(ROOT, uri, name, "PATH_INFO=/x"), 0, "/srv/www/a");
	check_path(&auth_conf, PARAMS(ROOT, uri, file, name, "WARM_PATH=/alias/a"), 0, "/alias/a");
	check_path(&auth_conf, PARAMS(ROOT, uri, name, "SCRIPT_FILENAME=/alias/a"), 0, "/alias/a");
	check_path(&auth_conf, PARAMS(warm), -EPERM, "");
	check_path(&auth_conf, PARAMS(uri), -EPERM, "");
	/* the name of a file is better: after a rewrite the client's name is another one */
	check_path(&auth_conf, PARAMS(ROOT, uri, "SCRIPT_NAME=/new"), 0, "/srv/www/new");
	check_path(&auth_conf, PARAMS(ROOT, uri, "PATH_INFO=/new"), 0, "/srv/www/new");
	/* no subrequest: the name of a file */
	check_path(&percent, PARAMS(ROOT, uri, name), 0, "/srv/www/stat-accel");
	check_path(&percent, PARAMS(ROOT, uri), 0, "/srv/www/a");
}

TEST("/accel/path/from-request")
{
	const char *const names[] = { "MINE", "REQUEST_URI", NULL };
	const struct accel_conf conf = { .header = "X-Sendfile", .path_from = names };

	check_path(&conf, PARAMS(ROOT, "REQUEST_URI=/a%20b?c", "SCRIPT_NAME=/s"), 0,
	    "/srv/www/a b");
	check_path(&conf, PARAMS(ROOT, "REQUEST_URI=/a", "MINE=/m"), 0, "/m");
	check_path(&conf, PARAMS("REQUEST_URI=/a"), -EPERM, "");
}

/* Whole pages: 4096, 8192, 12288. */
/* The parts as "FROM-TO", FROM or TO in words if it is not a number. */
static GString *
ranges_text(const struct range_set *want)
{
	GString *s = g_string_new(NULL);

	for (guint k = 0; k < want->n; k++) {
		g_string_append(s, k > 0 ? " " : "");
		if (want->part[k].from == RANGE_TAIL)
			g_string_append(s, "tail");
		else
			g_string_append_printf(s, "%" G_GUINT64_FORMAT,
			    (guint64)want->part[k].from);
		if (want->part[k].to == UINT64_MAX)
			g_string_append(s, "-all");
		else
			g_string_append_printf(s, "-%" G_GUINT64_FORMAT, (guint64)want->part[k].to);
	}
	return (s);
}

TEST("/accel/path/want")
{
	static const struct {
		const char *method, *range, *if_range, *want;
	} table[] = {
		{ "GET", "", "", "0-all" },
		{ "", "", "", "0-all" },
		{ "POST", "", "", "0-all" },
		{ "HEAD", "", "", "" },
		{ "HEAD", "bytes=5-", "", "" },
		{ "GET", "bytes=0-0", "", "0-4096" },
		{ "GET", "bytes=0-0", "\"tag\"", "0-all" },
		{ "GET", "bytes=5-", "", "0-all" },
		{ "GET", "bytes=8191-8192", "", "4096-12288" },
		{ "GET", "BYTES=4096-4096", "", "4096-8192" },
		{ "GET", "bytes= 4096-4096", "", "0-all" },
		{ "GET", "bytes=-1", "", "tail-4096" },
		{ "GET", "bytes=-0", "", "tail-0" },
		{ "GET", "bytes=0-0,-1", "", "0-4096 tail-4096" },
		{ "GET", "bytes=9000-9000, 1-1", "", "8192-12288 0-4096" },
		{ "GET", "bytes=0-0,,5000-5000,9000-9000,20000-20000,30000-30000", "",
		    "0-4096 4096-8192 8192-12288 16384-20480" },
		{ "GET", "bytes=99999999999999999999-", "", "18446744073709547520-all" },
		{ "GET", "bytes=", "", "0-all" },
		{ "GET", "bytes=5", "", "0-all" },
		{ "GET", "bytes=9-5", "", "0-all" },
		{ "GET", "bytes=x-5", "", "0-all" },
		{ "GET", "lines=5-", "", "0-all" },
		{ "GET", "bytes=0-0,x", "", "0-all" },
	};

	for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
		g_autofree char *method = g_strconcat("REQUEST_METHOD=", table[i].method, NULL),
				*range = g_strconcat("HTTP_RANGE=", table[i].range, NULL);
		g_autofree char *if_range = g_strconcat("HTTP_IF_RANGE=", table[i].if_range, NULL);
		GString *path = g_string_new(NULL), *got;
		struct range_set want;

		g_assert_cmpint(accel_path(&percent,
				    PARAMS("WARM_PATH=/w", method, range, if_range), path, &want),
		    ==, 0);
		got = ranges_text(&want);
		g_assert_cmpstr(got->str, ==, table[i].want);
		g_string_free(got, TRUE);
		g_string_free(path, TRUE);
	}
}

TEST("/accel/path/refused")
{
	check_path(&percent, PARAMS(), -EPERM, NULL);
	check_path(&percent, PARAMS("SCRIPT_FILENAME="), -EPERM, NULL);
	check_path(&percent, PARAMS("SCRIPT_FILENAMES=/a"), -EPERM, NULL);
	check_path(&percent, PARAMS("SCRIPT_FILENAME=a/b"), -EPERM, NULL);
	check_path(&percent, PARAMS("SCRIPT_NAME=/s", "PATH_INFO=/p"), -EPERM, NULL);
	check_path(&percent, PARAMS("SCRIPT_FILENAME=proxy:fcgi:"), -EPERM, NULL);
}

TEST("/accel/path/raw-refuses-what-splits")
{
	const char *bad[] = { "\r\nX: y", "\n", "\r", "\t", "\x01", "\x1b[2J", "\x7f", "end " };
	char *params[2] = { NULL };

	for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
		params[0] = g_strconcat("SCRIPT_FILENAME=/a", bad[i], NULL);
		check_path(&raw, params, -EPERM, NULL);
		check_path(&percent, params, 0, params[0] + strlen("SCRIPT_FILENAME="));
		g_free(params[0]);
	}
	check_path(&raw, PARAMS("SCRIPT_FILENAME=/a b\xc3\xa4%41"), 0, "/a b\xc3\xa4%41");
}

TEST("/accel/reply/status-of-each-errno")
{
	static const struct {
		int err;
		const char *status;
	} table[] = {
		{ EACCES, "403 Forbidden" },
		{ EPERM, "403 Forbidden" },
		{ ELOOP, "403 Forbidden" },
		{ EXDEV, "403 Forbidden" },
		{ EISDIR, "403 Forbidden" },
		{ ENXIO, "403 Forbidden" },
		{ ENODEV, "403 Forbidden" },
		{ ENOENT, "404 Not Found" },
		{ ENOTDIR, "404 Not Found" },
		{ ENAMETOOLONG, "404 Not Found" },
		{ EMFILE, "503 Service Unavailable" },
		{ ENFILE, "503 Service Unavailable" },
		{ ENOMEM, "503 Service Unavailable" },
		{ ETIMEDOUT, "503 Service Unavailable" },
		{ EAGAIN, "503 Service Unavailable" },
		{ EIO, "500 Internal Server Error" },
		{ ESTALE, "500 Internal Server Error" },
		{ EINVAL, "500 Internal Server Error" },
	};

	for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
		g_autofree char *got = reply(&percent, PARAMS(), "/secret/place", -table[i].err);
		const char *status = table[i].status;
		g_autofree char *want =
		    g_strdup_printf("Status: %s\r\n"
				    "Content-Type: text/plain; "
				    "charset=utf-8\r\nContent-Length: %zu\r\n%s\r\n%s\n",
			status, strlen(status) + 1,
			g_str_has_prefix(status, "503") ? "Retry-After: 1\r\n" : "", status);

		g_assert_cmpstr(got, ==, want);
		g_assert_null(strstr(got, "secret"));
	}
}

static void
check_reply(const struct accel_conf *conf, char **params, const char *path, const char *want)
{
	g_autofree char *got = reply(conf, params, path, 0);

	g_assert_cmpstr(got, ==, want);
}

TEST("/accel/reply/nasty-names-are-encoded")
{
	check_reply(&percent, PARAMS(), "/a-b_c.d~e/F9",
	    "Status: 200 OK\r\nX-LIGHTTPD-send-file: /a-b_c.d~e/F9\r\n\r\n");
	check_reply(&percent, PARAMS(), "/a\r\nSet-Cookie: x",
	    "Status: 200 OK\r\nX-LIGHTTPD-send-file: /a%0D%0ASet-Cookie%3A%20x\r\n\r\n");
	check_reply(&percent, PARAMS(), "/100%25?a#b+c&d@\xff",
	    "Status: 200 OK\r\nX-LIGHTTPD-send-file: /100%2525%3Fa%23b%2Bc%26d%40%FF\r\n\r\n");
	check_reply(&raw, PARAMS(), "/100% \xff",
	    "Status: 200 OK\r\nX-Sendfile: /100% \xff\r\n\r\n");
}

TEST("/accel/reply/head-has-the-same-head")
{
	for (int err = 0; err <= ENOENT; err += ENOENT) {
		g_autofree char *get = reply(&percent, PARAMS("REQUEST_METHOD=GET"), "/f", -err);
		g_autofree char *head = reply(&percent, PARAMS("REQUEST_METHOD=HEAD"), "/f", -err);

		strstr(get, "\r\n\r\n")[4] = '\0';
		g_assert_cmpstr(get, ==, head);
	}
}

static void
check_answer(const struct accel_conf *conf, char **params, int result, const char *want)
{
	g_autofree char *got = reply(conf, params, "/f", result);

	g_assert_true(g_str_has_prefix(got, want));
}

/* The server reports errors, so every file is answered alike. */
TEST("/accel/reply/auth")
{
	const struct accel_conf auth = { .mode = MODE_AUTH },
				strict = { .mode = MODE_AUTH, .late_503 = true },
				brief = { .mode = MODE_AUTH, .no_store = true };
	const int all[] = { 0, -ENOENT, -EACCES, -EIO, -ETIMEDOUT, -EAGAIN };
	const char *go_on = "Status: 200 OK\r\n\r\n", *go_on_204 = "Status: 204 No Content\r\n\r\n";
	/* The file may be cold, or the answer holds for less than a second. */
	const char *allow_once = "Status: 200 OK\r\nVariable-WARM_NO_STORE: 1\r\n\r\n";
	const char *once = "Status: 204 No Content\r\nCache-Control: no-store\r\n\r\n";

	for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
		bool late = all[i] == -ETIMEDOUT || all[i] == -EAGAIN;
		bool cold = late || all[i] == -EIO;
		const char *kept = cold ? once : go_on_204, *allow = cold ? allow_once : go_on;

		check_answer(&percent, PARAMS("FCGI_ROLE=AUTHORIZER"), all[i], allow);
		check_answer(&auth, PARAMS("FCGI_ROLE=AUTHORIZER"), all[i], allow);
		check_answer(&brief, PARAMS("FCGI_ROLE=AUTHORIZER"), all[i], allow_once);
		check_answer(&auth, PARAMS("FCGI_ROLE=RESPONDER"), all[i], kept);
		check_answer(&auth, PARAMS(), all[i], kept);
		check_answer(&brief, PARAMS(), all[i], once);
		check_answer(&strict, PARAMS("FCGI_ROLE=AUTHORIZER"), all[i],
		    late ? "Status: 503" : allow);
		check_answer(&auth, PARAMS("WARM_LATE=503"), all[i], late ? "Status: 503" : kept);
		check_answer(&auth, PARAMS("WARM_LATE=504"), all[i], kept);
		check_answer(&strict, PARAMS("WARM_LATE=go-on"), all[i],
		    late ? "Status: 503" : kept);
	}
}

/* A server that keeps the answer would send the cold rest to the next client. */
TEST("/accel/reply/part-not-kept")
{
	const struct accel_conf auth = { .mode = MODE_AUTH };
	const char *go_on = "Status: 204 No Content\r\n\r\n";
	const char *once = "Status: 204 No Content\r\nCache-Control: no-store\r\n\r\n";

	check_answer(&auth, PARAMS("REQUEST_METHOD=HEAD"), 0, once);
	check_answer(&auth, PARAMS("FCGI_ROLE=AUTHORIZER", "REQUEST_METHOD=HEAD"), 0,
	    "Status: 200 OK\r\nVariable-WARM_NO_STORE: 1\r\n\r\n");
	check_answer(&auth, PARAMS("HTTP_RANGE=bytes=0-0"), 0, once);
	check_answer(&auth, PARAMS("HTTP_RANGE=bytes=9999-"), 0, once);
	check_answer(&auth, PARAMS("HTTP_RANGE=bytes=0-0", "HTTP_IF_RANGE=\"tag\""), 0, go_on);
	check_answer(&auth, PARAMS("REQUEST_METHOD=GET"), 0, go_on);
	check_answer(&auth, PARAMS("REQUEST_METHOD=HEAD"), -ENOENT, go_on); /* has no bytes */
}

TEST("/accel/reply/maps")
{
	const struct accel_map maps[] = { { "/srv", "/all" }, { "/srv/w w", "http://h/%20" },
		{ "/data/", "/d/" }, { NULL } };
	const struct accel_conf conf = { .header = "X", .maps = maps, .expires = -1 };

	check_reply(&conf, PARAMS(), "/srv/a b", "Status: 200 OK\r\nX: /all/a%20b\r\n\r\n");
	check_reply(&conf, PARAMS(), "/srv/w w/a?",
	    "Status: 200 OK\r\nX: http://h/%20/a%3F\r\n\r\n");
	check_reply(&conf, PARAMS(), "/srv/w wx", "Status: 200 OK\r\nX: /all/w%20wx\r\n\r\n");
	check_reply(&conf, PARAMS(), "/data/x", "Status: 200 OK\r\nX: /d/x\r\n\r\n");
	check_answer(&conf, PARAMS(), 0, "Status: 403"); /* "/f": no map knows it */
}

TEST("/accel/reply/index")
{
	const struct warm_found found = { .index = "i.html" };
	g_autofree char *got = reply_found(&percent, PARAMS(), "/d", &found),
			*slash = reply_found(&percent, PARAMS(), "/d/", &found);

	g_assert_cmpstr(got, ==, "Status: 200 OK\r\nX-LIGHTTPD-send-file: /d/i.html\r\n\r\n");
	g_assert_cmpstr(got, ==, slash);
}

static void
check_index(const char *uri, const char *path, const char *want)
{
	const struct warm_found found = { .index = "i.html" };
	g_autofree char *param = g_strconcat("REQUEST_URI=", uri, NULL);
	g_autofree char *got = reply_found(&percent, PARAMS(param), path, &found);

	if (want != NULL) {
		g_autofree char *whole =
		    g_strdup_printf("Status: 301 Moved Permanently\r\nLocation: "
				    "%s\r\nContent-Length: 0\r\n\r\n",
			want);

		g_assert_cmpstr(got, ==, whole);
	} else
		g_assert_true(g_str_has_prefix(got, "Status: 200 OK\r\n"));
}

TEST("/accel/reply/directory-without-slash")
{
	check_index("/d", "/srv/d", "/d/");
	check_index("/a%20b?x=/&y?", "/srv/a b", "/a%20b/?x=/&y?");
	check_index("//evil.example/d", "/srv/d", "/evil.example/d/"); /* not another host */
	check_index("///d", "/srv/d", "/d/");
	check_index("/d/", "/srv/d", NULL);
	check_index("/d/?x", "/srv/d", NULL);
	check_index("/", "/srv", NULL);
	check_index("/d", "/srv/d/", NULL); /* the server has written a slash after it */
	check_index("/\\evil.example", "/srv/d", NULL);
	check_index("/d\r\nX: y", "/srv/d", NULL);
	check_index("http://h/d", "/srv/d", NULL);
	check_index("", "/srv/d", NULL);
}

TEST("/accel/reply/validators")
{
	const struct accel_conf conf = { .header = "X",
		.etag = true,
		.last_modified = true,
		.expires = -1 };
	struct warm_found found = { .settled = true,
		.stx = { .stx_size = 1000, .stx_mtime = { .tv_sec = 1000000000, .tv_nsec = 1 } } };
	char *old = reply_found(&conf, PARAMS(), "/f", &found), *fresh;

	g_assert_cmpstr(old, ==,
	    "Status: 200 OK\r\nX: /f\r\nETag: \"3e8-de0b6b3a7640001\"\r\n"
	    "Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT\r\n\r\n");
	found.settled = false;
	fresh = reply_found(&conf, PARAMS(), "/f", &found);
	g_assert_null(strstr(fresh, "ETag")); /* a weak tag would match that of the next contents */
	g_free(old);
	found.stx.stx_mtime.tv_sec = -1;
	old = reply_found(&conf, PARAMS(), "/f", &found);
	/* wire/http1/http_date.h begins in 1970 */
	g_assert_cmpstr(old, ==, "Status: 200 OK\r\nX: /f\r\n\r\n");
	g_free(old);
	g_free(fresh);
}

TEST("/accel/path/only-utf8")
{
	const struct accel_conf conf = { .header = "X-Sendfile", .utf8 = true };

	check_path(&conf, PARAMS("WARM_PATH=/\xc3\xa4"), 0, "/\xc3\xa4");
	check_path(&conf, PARAMS("WARM_PATH=/\xff"), -EPERM, NULL);
	/* it stands in no header */
	check_path(&conf, PARAMS("WARM_PATH=/\xff", "FCGI_ROLE=AUTHORIZER"), 0, "/\xff");
}
