/* Names of a request to the head of a reply: which path, which status, and no way to split a
 * header. */

#include "fcgi-stat-accel/accel.h"

#include <errno.h>
#include <string.h>

static const struct accel_conf percent = { .header = "X-LIGHTTPD-send-file" };
static const struct accel_conf raw = { .header = "X-Sendfile", .raw = true };

#define PARAMS(...) ((char *[]) { __VA_ARGS__ __VA_OPT__(,) NULL })

static void
check_path(const struct accel_conf *conf, char **params, int err, const char *want)
{
	GString *path = g_string_new("left over");

	g_assert_cmpint(accel_path(conf, params, path), ==, err);
	if (want != NULL)
		g_assert_cmpstr(path->str, ==, want);
	g_string_free(path, TRUE);
}

static char *
reply(const struct accel_conf *conf, char **params, const char *path, int result)
{
	GString *out = g_string_new(NULL);

	accel_reply(conf, params, path, result, out);
	return (g_string_free(out, FALSE));
}

static void
test_path_order(void)
{
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/a/b", "WARM_PATH=/w"), 0, "/w");
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/a/b", "WARM_PATH="), 0, "/a/b");
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/a/b", "DOCUMENT_ROOT=/d",
	    "SCRIPT_NAME=/s"), 0, "/a/b");
	check_path(&percent, PARAMS("DOCUMENT_ROOT=/d", "SCRIPT_NAME=/s", "PATH_INFO=/p q"), 0,
	    "/d/s/p q");
	check_path(&percent, PARAMS("SCRIPT_FILENAME=", "DOCUMENT_ROOT=/d//", "SCRIPT_NAME=s"), 0,
	    "/d/s");
	check_path(&percent, PARAMS("DOCUMENT_ROOT=/", "SCRIPT_NAME=/s"), 0, "/s");
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/a=b"), 0, "/a=b");
}

static void
test_path_of_a_split_url(void)
{
	/* lighttpd 1.4: the handler is /pre/d1, the file name is in PATH_INFO */
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/r/pre/d1", "DOCUMENT_ROOT=/r",
	    "SCRIPT_NAME=/pre/d1", "PATH_INFO=/a b.gif"), 0, "/r/pre/d1/a b.gif");
	/* here it is complete already */
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/r/pre/f", "DOCUMENT_ROOT=/r",
	    "SCRIPT_NAME=/pre", "PATH_INFO=/f"), 0, "/r/pre/f");
}

static void
test_path_refused(void)
{
	check_path(&percent, PARAMS(), -EPERM, NULL);
	check_path(&percent, PARAMS("SCRIPT_FILENAME="), -EPERM, NULL);
	check_path(&percent, PARAMS("SCRIPT_FILENAMES=/a"), -EPERM, NULL);
	check_path(&percent, PARAMS("SCRIPT_FILENAME=a/b"), -EPERM, NULL);
	check_path(&percent, PARAMS("SCRIPT_NAME=/s", "PATH_INFO=/p"), -EPERM, NULL);
	check_path(&percent, PARAMS("SCRIPT_FILENAME=/a/"), -EISDIR, NULL);
	check_path(&percent, PARAMS("DOCUMENT_ROOT=/d", "SCRIPT_NAME=/"), -EISDIR, NULL);
}

static void
test_raw_refuses_what_splits(void)
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

static void
test_status_of_each_errno(void)
{
	static const struct { int err; const char *status; } table[] = {
		{ EACCES, "403 Forbidden" }, { EPERM, "403 Forbidden" }, { ELOOP, "403 Forbidden" },
		{ EXDEV, "403 Forbidden" }, { EISDIR, "403 Forbidden" }, { ENXIO, "403 Forbidden" },
		{ ENODEV, "403 Forbidden" },
		{ ENOENT, "404 Not Found" }, { ENOTDIR, "404 Not Found" },
		{ ENAMETOOLONG, "404 Not Found" },
		{ EMFILE, "503 Service Unavailable" }, { ENFILE, "503 Service Unavailable" },
		{ ENOMEM, "503 Service Unavailable" }, { ETIMEDOUT, "503 Service Unavailable" },
		{ EAGAIN, "503 Service Unavailable" },
		{ EIO, "500 Internal Server Error" }, { ESTALE, "500 Internal Server Error" },
		{ EINVAL, "500 Internal Server Error" },
	};

	for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
		char *got = reply(&percent, PARAMS(), "/secret/place", -table[i].err);
		const char *status = table[i].status;
		char *want = g_strdup_printf("Status: %s\r\n"
		    "Content-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n%s\r\n%s\n",
		    status, strlen(status) + 1,
		    g_str_has_prefix(status, "503") ? "Retry-After: 1\r\n" : "", status);

		g_assert_cmpstr(got, ==, want);
		g_assert_null(strstr(got, "secret"));
		g_free(got);
		g_free(want);
	}
}

static void
check_reply(const struct accel_conf *conf, char **params, const char *path, const char *want)
{
	char *got = reply(conf, params, path, 0);

	g_assert_cmpstr(got, ==, want);
	g_free(got);
}

static void
test_nasty_names_are_encoded(void)
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

static void
test_head_has_the_same_head(void)
{
	for (int err = 0; err <= ENOENT; err += ENOENT) {
		char *get = reply(&percent, PARAMS("REQUEST_METHOD=GET"), "/f", -err);
		char *head = reply(&percent, PARAMS("REQUEST_METHOD=HEAD"), "/f", -err);

		strstr(get, "\r\n\r\n")[4] = '\0';
		g_assert_cmpstr(get, ==, head);
		g_free(get);
		g_free(head);
	}
}

static void
test_authorizer_is_told_to_go_on(void)
{
	check_reply(&percent, PARAMS("FCGI_ROLE=AUTHORIZER"), "/f", "Status: 200 OK\r\n\r\n");
}

static void
test_header_names(void)
{
	const char *bad[] = { "", "X Y", "X:", "X\r\nY", "X\xc3\xa4", "X\"" };

	g_assert_true(accel_header_valid("X-Accel-Redirect"));
	for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
		g_assert_false(accel_header_valid(bad[i]));
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/accel/path/order", test_path_order);
	g_test_add_func("/accel/path/split-url", test_path_of_a_split_url);
	g_test_add_func("/accel/path/refused", test_path_refused);
	g_test_add_func("/accel/path/raw-refuses-what-splits", test_raw_refuses_what_splits);
	g_test_add_func("/accel/reply/status-of-each-errno", test_status_of_each_errno);
	g_test_add_func("/accel/reply/nasty-names-are-encoded", test_nasty_names_are_encoded);
	g_test_add_func("/accel/reply/head-has-the-same-head", test_head_has_the_same_head);
	g_test_add_func("/accel/reply/authorizer", test_authorizer_is_told_to_go_on);
	g_test_add_func("/accel/header-names", test_header_names);
	return (g_test_run());
}
