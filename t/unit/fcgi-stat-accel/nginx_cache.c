/* t/unit/fcgi-stat-accel/nginx_cache.c -- names of files as nginx makes them from keys, and which
 * options are refused. */

#include "fcgi-stat-accel/accel.h"
#include "t/unit/test.h"

#include <errno.h>
#include <string.h>

static void
check_file(const char *option, const char *key, const char *want)
{
	struct nginx_cache c;
	g_autoptr(GString) path = g_string_new("left over");

	g_assert_true(nginx_cache_read(option, &c));
	nginx_cache_file(&c, key, path);
	g_assert_cmpstr(path->str, ==, want);
}

/* printf http://example.com/ | md5sum; t/site/nginx-cache.t has names that nginx made. */
#define KEY  "http://example.com/"
#define HASH "a6bf1757fff057f266b697df9cf176fd"

TEST("/nginx_cache/levels")
{
	check_file("/data/nginx/cache:1:2", KEY, "/data/nginx/cache/d/6f/" HASH);
	check_file("/c", KEY, "/c/" HASH);
	check_file("/c//", KEY, "/c/" HASH);
	check_file("/c:1", KEY, "/c/d/" HASH);
	check_file("/c/:2:1:2", KEY, "/c/fd/6/17/" HASH);
	check_file("name=/c:2:2:2", KEY, "/c/fd/76/f1/" HASH);
	check_file("/a=b:1", KEY, "/a=b/d/" HASH);
	check_file("/c:2", "keyvalue", "/c/30/6a02f950958aeda3dbbf83fbb306a030");
}

TEST("/nginx_cache/refused")
{
	static const char *const wrong[] = { "", ":", "/", "//", "cache", "cache:1", "=/c",
		"n=", "n=c", "n=/:1", "/c:", "/c:0", "/c:3", "/c:12", "/c:1:", "/c::1",
		"/c:1:2:", "/c:1-2", "/c:1:2:2:1", "/c:a", "/c:1 ", "/a:b/c:1:2" };
	struct nginx_cache c = { .path = "/unchanged" };

	for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
		g_test_message("%s", wrong[i]);
		g_assert_false(nginx_cache_read(wrong[i], &c));
	}
	g_assert_cmpstr(c.path, ==, "/unchanged");
}

TEST("/nginx_cache/find")
{
	struct nginx_cache all[4] = { { 0 } };

	g_assert_null(nginx_cache_find(NULL, NULL));
	g_assert_null(nginx_cache_find(all, NULL));
	g_assert_true(nginx_cache_read("/a:1:2", &all[0]));
	g_assert_true(nginx_cache_read("b=/b:1", &all[1]));
	g_assert_true(nginx_cache_read("/ab", &all[2]));
	g_assert_true(nginx_cache_find(all, NULL) == &all[0]);
	g_assert_true(nginx_cache_find(all, "b") == &all[1]);
	g_assert_true(nginx_cache_find(all, "/b") == &all[1]);
	g_assert_true(nginx_cache_find(all, "/ab/") == &all[2]);
	g_assert_null(nginx_cache_find(all, "/"));
	g_assert_null(nginx_cache_find(all, "a"));
	g_assert_null(nginx_cache_find(all, "/ab/c"));
}

/* The file has a head of at most 64 KiB before the answer. */
TEST("/nginx_cache/ranges")
{
	const uint64_t head = 64 << 10;
	struct range_set want = { 0 };

	nginx_cache_ranges(&want);
	g_assert_cmpuint(want.n, ==, 1);
	g_assert_cmpuint(want.part[0].from, ==, 0);
	g_assert_cmpuint(want.part[0].to, ==, head);
	want = (struct range_set){ 1, { { 0, UINT64_MAX } } };
	nginx_cache_ranges(&want);
	g_assert_cmpuint(want.n, ==, 1);
	g_assert_cmpuint(want.part[0].to, ==, UINT64_MAX);
	want = (struct range_set){ 2, { { 1 << 20, 2 << 20 }, { RANGE_TAIL, 100 } } };
	nginx_cache_ranges(&want);
	g_assert_cmpuint(want.n, ==, 3);
	g_assert_cmpuint(want.part[1].from, ==, 1 << 20);
	g_assert_cmpuint(want.part[1].to, ==, (2 << 20) + head);
	g_assert_cmpuint(want.part[2].from, ==, RANGE_TAIL);
	g_assert_cmpuint(want.part[2].to, ==, 100);
	want = (struct range_set){ 4, { { 1 << 20, 2 << 20 }, { 3 << 20, 4 << 20 },
					  { 5 << 20, 6 << 20 }, { 7 << 20, 8 << 20 } } };
	nginx_cache_ranges(&want);
	g_assert_cmpuint(want.n, ==, RANGE_PARTS);
	g_assert_cmpuint(want.part[3].from, ==, 5 << 20);
}

#define PARAMS(...) ((char *[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void
check_path(const struct nginx_cache *caches, char **params, int err, const char *want)
{
	const struct accel_conf conf = { .header = "X-Accel-Redirect", .caches = caches };
	g_autoptr(GString) path = g_string_new(NULL);
	struct range_set bytes;

	g_assert_cmpint(accel_path(&conf, params, path, &bytes), ==, err);
	if (err == 0)
		g_assert_cmpstr(path->str, ==, want);
}

TEST("/nginx_cache/request")
{
	struct nginx_cache all[3] = { { 0 } };
	const struct accel_conf with = { .caches = all }, without = { 0 };
	char **const one = PARAMS("WARM_CACHE_KEY=" KEY, "WARM_PATH=/w");

	g_assert_true(nginx_cache_read("/a:1:2", &all[0]));
	g_assert_true(nginx_cache_read("b=/b", &all[1]));
	check_path(all, one, 0, "/a/d/6f/" HASH);
	check_path(NULL, one, 0, "/w");
	check_path(all, PARAMS("WARM_CACHE_KEY=", "WARM_PATH=/w"), 0, "/w");
	check_path(all, PARAMS("WARM_CACHE=b", "WARM_CACHE_KEY=" KEY), 0, "/b/" HASH);
	check_path(all, PARAMS("WARM_CACHE=c", "WARM_CACHE_KEY=k"), -ENODEV, NULL);
	g_assert_true(accel_is_auth(&with, one)); /* "go on" in each mode */
	g_assert_false(accel_is_auth(&without, one));
}

static void
check_reply(char **params, int err, bool kept)
{
	struct nginx_cache all[2] = { { 0 } };
	const struct accel_conf conf = { .header = "X-Accel-Redirect", .caches = all };
	const struct warm_found found = { .err = err };
	struct accel_counters *counters = g_new0(struct accel_counters, 1);
	g_autoptr(GString) out = g_string_new(NULL);

	g_assert_true(nginx_cache_read("/a:1:2", &all[0]));
	accel_reply(&conf, params, "/a/d/6f/" HASH, &found, counters, out);
	g_assert_true(g_str_has_prefix(out->str, "Status: 204 "));
	g_assert_true((strstr(out->str, "no-store") == NULL) == kept);
	g_free(counters);
}

/* "Go on" in each mode; nginx may keep the answer if the file was there. */
TEST("/nginx_cache/reply")
{
	check_reply(PARAMS("WARM_CACHE_KEY=" KEY), 0, true);
	check_reply(PARAMS("WARM_CACHE_KEY=" KEY), -ENOENT, false);
	check_reply(PARAMS("WARM_CACHE_KEY=" KEY), -ENODEV, false);
	check_reply(PARAMS("WARM_CACHE_KEY=" KEY), -ETIMEDOUT, false);
}
