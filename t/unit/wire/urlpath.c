/* t/unit/wire/urlpath.c -- the path of a URL, decoded and cleaned, or refused. */
#include <errno.h>
#include <stdlib.h>
#include "t/unit/test.h"
#include "wire/urlpath.h"

static const struct {
	struct text in;
	int want; /* 0: becomes .path */
	const char *path;
} rows[] = {
	{ TEXT("/"), 0, "/" },
	{ TEXT("/a"), 0, "/a" },
	{ TEXT("/a/b/"), 0, "/a/b/" },
	{ TEXT("//"), 0, "/" },
	{ TEXT("//a///b//"), 0, "/a/b/" },
	{ TEXT("/."), 0, "/" },
	{ TEXT("/./"), 0, "/" },
	{ TEXT("/a/."), 0, "/a/" },
	{ TEXT("/a/./b"), 0, "/a/b" },
	{ TEXT("/a/.."), 0, "/" },
	{ TEXT("/a/../"), 0, "/" },
	{ TEXT("/a/../b"), 0, "/b" },
	{ TEXT("/a/b/.."), 0, "/a/" },
	{ TEXT("/aa/bb/cc/../../d"), 0, "/aa/d" },
	{ TEXT("/a//../b"), 0, "/b" },
	{ TEXT("/a/..b/b..c/c../..."), 0, "/a/..b/b..c/c../..." },
	{ TEXT("/.a/.b./"), 0, "/.a/.b./" },
	{ TEXT("/%61%2Eb%20"), 0, "/a.b " },
	{ TEXT("/a/%2e%2E/b"), 0, "/b" },
	{ TEXT("/a/%2e/b"), 0, "/a/b" },
	{ TEXT("/a/.%2e"), 0, "/" },
	{ TEXT("/%252e%252e/%252f"), 0, "/%2e%2e/%2f" }, /* decoded once, never twice */
	{ TEXT("/\xc3\xa4%C3%A4"), 0, "/\xc3\xa4\xc3\xa4" },
	{ TEXT("/%0a%ff"), 0, "/\n\xff" },
	{ TEXT("/a;x=1/b;c.d;/;"), 0, "/a;x=1/b;c.d;/;" },
	{ TEXT("/;jsessionid=1"), 0, "/;jsessionid=1" },
	{ TEXT("/...;x/.a;x"), 0, "/...;x/.a;x" },
	{ TEXT("/.x;./..x;.."), 0, "/.x;./..x;.." },
	{ TEXT("/.."), -EPERM, NULL },
	{ TEXT("/a/..;/b"), -EPERM, NULL },
	{ TEXT("/a/..;x=1/b"), -EPERM, NULL },
	{ TEXT("/a/..;x"), -EPERM, NULL },
	{ TEXT("/a/.;x/b"), -EPERM, NULL },
	{ TEXT("/a/.;"), -EPERM, NULL },
	{ TEXT("/a/%2e%2e;/b"), -EPERM, NULL },
	{ TEXT("/a/.%2E%3Bx/b"), -EPERM, NULL },
	{ TEXT("/;x/a"), -EPERM, NULL },
	{ TEXT("/a/;/b"), -EPERM, NULL },
	{ TEXT("/../"), -EPERM, NULL },
	{ TEXT("/../etc/passwd"), -EPERM, NULL },
	{ TEXT("/a/../../b"), -EPERM, NULL },
	{ TEXT("/./.."), -EPERM, NULL },
	{ TEXT("//.."), -EPERM, NULL },
	{ TEXT("/%2e%2e/"), -EPERM, NULL },
	{ TEXT("/a%2fb"), -EPERM, NULL },
	{ TEXT("/..%2F"), -EPERM, NULL },
	{ TEXT("/a\\b"), -EPERM, NULL },
	{ TEXT("/..\\..\\"), -EPERM, NULL },
	{ TEXT("/%5c"), -EPERM, NULL },
	{ TEXT(""), -EINVAL, NULL },
	{ TEXT("a"), -EINVAL, NULL },
	{ TEXT("%2f"), -EINVAL, NULL },
	{ TEXT("*"), -EINVAL, NULL },
	{ TEXT("/%"), -EINVAL, NULL },
	{ TEXT("/%4"), -EINVAL, NULL },
	{ TEXT("/%4g"), -EINVAL, NULL },
	{ TEXT("/%g4"), -EINVAL, NULL },
	{ TEXT("/%%41"), -EINVAL, NULL },
	{ TEXT("/%u0041"), -EINVAL, NULL },
	{ TEXT("/a%00b"), -EINVAL, NULL },
	{ TEXT("/a\0b"), -EINVAL, NULL },
};

/* Paths that urlpath_name() treats differently. */
static const struct {
	struct text in;
	int want; /* 0: becomes .path */
	const char *path;
} names[] = {
	{ TEXT("/a%2fb%2F%2fc"), 0, "/a/b/c" },
	{ TEXT("/a/..%2fb"), 0, "/b" },
	{ TEXT("/a/%2e%2e%2Fb"), 0, "/b" },
	{ TEXT("/%252fb"), 0, "/%2fb" },
	{ TEXT("/a\\b%5c"), 0, "/a\\b\\" },
	{ TEXT("/..\\..\\"), 0, "/..\\..\\" },
	{ TEXT("/a/..;/b"), 0, "/a/..;/b" },
	{ TEXT("/;x/.;/a"), 0, "/;x/.;/a" },
	{ TEXT("/..%2f"), -EPERM, NULL },
	{ TEXT("/%2e%2e%2fa"), -EPERM, NULL },
	{ TEXT("/a%2f../b"), 0, "/b" },
	{ TEXT("/a%2f../../b"), -EPERM, NULL },
	{ TEXT("%2fa"), -EINVAL, NULL },
	{ TEXT("/%2"), -EINVAL, NULL },
	{ TEXT("/a%2f%00"), -EINVAL, NULL },
	{ TEXT(""), -EINVAL, NULL },
};

/* The effects of server.http-parseopts. */
static const struct {
	struct text in, query;
	unsigned how;
	int want; /* 0: becomes .path */
	const char *path;
} options[] = {
	{ TEXT("/a%2fb%2F%2fc"), TEXT(""), URLPATH_SLASHES, 0, "/a/b/c" },
	{ TEXT("/a%2f..%2Fb"), TEXT(""), URLPATH_SLASHES, 0, "/b" },
	{ TEXT("/a%2f%2e%2e%2fb"), TEXT(""), URLPATH_SLASHES, 0, "/b" },
	{ TEXT("/%252fb"), TEXT(""), URLPATH_SLASHES, 0, "/%2fb" },
	{ TEXT("/%2%66b"), TEXT(""), URLPATH_SLASHES, -EINVAL, NULL },
	{ TEXT("/..%2fa"), TEXT(""), URLPATH_SLASHES, -EPERM, NULL },
	{ TEXT("/a%2f../../b"), TEXT(""), URLPATH_SLASHES, -EPERM, NULL },
	{ TEXT("/a%5cb"), TEXT(""), URLPATH_SLASHES, -EPERM, NULL },
	{ TEXT("/a%2f..;/b"), TEXT(""), URLPATH_SLASHES, -EPERM, NULL },
	{ TEXT("/a/./b"), TEXT(""), URLPATH_NO_STEPS, -EPERM, NULL },
	{ TEXT("/a/%2e%2E/b"), TEXT(""), URLPATH_NO_STEPS, -EPERM, NULL },
	{ TEXT("/a%2f..%2fb"), TEXT(""), URLPATH_NO_STEPS | URLPATH_SLASHES, -EPERM, NULL },
	{ TEXT("/a/...//.b"), TEXT(""), URLPATH_NO_STEPS, 0, "/a/.../.b" },
	{ TEXT("/a%2fb"), TEXT(""), URLPATH_NO_STEPS, -EPERM, NULL },
	{ TEXT("/a%01"), TEXT(""), URLPATH_NO_CONTROLS, -EPERM, NULL },
	{ TEXT("/a%7F"), TEXT(""), URLPATH_NO_CONTROLS, -EPERM, NULL },
	{ TEXT("/a"), TEXT("b=%0a"), URLPATH_NO_CONTROLS, -EPERM, NULL },
	{ TEXT("/a"), TEXT("b=%"), URLPATH_NO_CONTROLS, 0, "/a" },
	{ TEXT("/a%20%ff"), TEXT("%20"), URLPATH_NO_CONTROLS, 0, "/a \xff" },
	{ TEXT("/a%ff"), TEXT(""), URLPATH_UTF8, -EPERM, NULL },
	{ TEXT("/a%c3"), TEXT(""), URLPATH_UTF8, -EPERM, NULL },
	{ TEXT("/a%c0%af"), TEXT(""), URLPATH_UTF8, -EPERM, NULL },
	{ TEXT("/a"), TEXT("b=%ed%a0%80"), URLPATH_UTF8, -EPERM, NULL },
	{ TEXT("/%c3%a4\xc3\xa4%01"), TEXT("b=%E2%82%AC"), URLPATH_UTF8, 0, "/\xc3\xa4\xc3\xa4\1" },
	{ TEXT("a"), TEXT(""), URLPATH_SLASHES, -EINVAL, NULL },
	{ TEXT(""), TEXT(""), URLPATH_SLASHES, -EINVAL, NULL },
};

TEST("/urlpath/options")
{
	size_t i;
	char *dst;
	int n;

	for (i = 0; i < G_N_ELEMENTS(options); i++) {
		g_test_message("%s", options[i].in.p);
		dst = malloc(options[i].in.n + options[i].query.n + 1);
		n = urlpath_clean_as(options[i].in, options[i].query, options[i].how, dst);
		if (options[i].want == 0) {
			g_assert_cmpint(n, ==, (int)strlen(options[i].path));
			g_assert_cmpstr(dst, ==, options[i].path);
		} else {
			g_assert_cmpint(n, ==, options[i].want);
		}
		free(dst);
	}
	g_assert_true(urlpath_has_slashes(TEXT("/a%2f")));
	g_assert_true(urlpath_has_slashes(TEXT("/a%2Fb")));
	g_assert_false(urlpath_has_slashes(TEXT("/a%2")));
	g_assert_false(urlpath_has_slashes(TEXT("/a%252f")));
}

/* Exactly as much room as the contract asks for, on the heap, so that one byte more is noticed. */
TEST("/urlpath/clean")
{
	size_t i;
	char *in, *dst;
	int n;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_test_message("%s", rows[i].in.p);
		in = malloc(rows[i].in.n);
		memcpy(in, rows[i].in.p, rows[i].in.n);
		dst = malloc(rows[i].in.n + 1);
		n = urlpath_clean((struct text){ in, rows[i].in.n }, dst);
		if (rows[i].want == 0) {
			g_assert_cmpint(n, ==, (int)strlen(rows[i].path));
			g_assert_cmpstr(dst, ==, rows[i].path);
		} else {
			g_assert_cmpint(n, ==, rows[i].want);
		}
		free(in);
		free(dst);
	}
}

/* Ordinary paths come out the same, too. */
TEST("/urlpath/name")
{
	char dst[64];
	int n;

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		g_test_message("%s", names[i].in.p);
		n = urlpath_name(names[i].in, dst);
		g_assert_cmpint(n, ==,
		    names[i].want == 0 ? (int)strlen(names[i].path) : names[i].want);
		if (n >= 0)
			g_assert_cmpstr(dst, ==, names[i].path);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		if (rows[i].want != 0)
			continue;
		g_assert_cmpint(urlpath_name(rows[i].in, dst), ==, (int)strlen(rows[i].path));
		g_assert_cmpstr(dst, ==, rows[i].path);
	}
}

TEST("/urlpath/decode")
{
	char dst[32];

	g_assert_cmpint(urlpath_decode(TEXT("a%20b%2F../"), dst), ==, 7);
	g_assert_cmpstr(dst, ==, "a b/../");
	g_assert_cmpint(urlpath_decode(TEXT(""), dst), ==, 0);
	g_assert_cmpstr(dst, ==, "");
	g_assert_cmpint(urlpath_decode(TEXT("%0"), dst), ==, -EINVAL);
	g_assert_cmpint(urlpath_decode(TEXT("%00"), dst), ==, -EINVAL);
}

TEST("/urlpath/plain")
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "a=b", "a=b" },
		{ "%61=%7e%2D%5f%2E", "a=~-_." },
		{ "%2f%3d%00%ff", "%2F%3D%00%FF" },
		{ "%", "%" },
		{ "%6", "%6" },
		{ "%zz%6", "%zz%6" },
		{ "%2561", "%2561" },
		{ "%%361", "%61" },
	};
	char dst[64];
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		dst[urlpath_plain(text_of(cases[i][0]), dst)] = '\0';
		g_assert_cmpstr(dst, ==, cases[i][1]);
	}
}

TEST("/urlpath/steps")
{
	static const struct {
		struct text in;
		bool want;
	} v[] = {
		{ TEXT("/"), false },
		{ TEXT("*"), false },
		{ TEXT("/a//b/"), false },
		{ TEXT("/.a/a./..a/.../a..b/%2e%2ea/%2e%2e%2e"), false },
		{ TEXT("/a/."), true },
		{ TEXT("/./a"), true },
		{ TEXT("/a//../b"), true },
		{ TEXT("/a/.."), true },
		{ TEXT("/%2E/a"), true },
		{ TEXT("/a/.%2e/b"), true },
		{ TEXT("/a/%2e%2E"), true },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(v); i++) {
		g_test_message("%s", v[i].in.p);
		g_assert_cmpint(urlpath_has_steps(v[i].in), ==, v[i].want);
	}
}
