/* t/unit/server/pattern.c -- rules of url.redirect and url.rewrite-*: what each form becomes. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/match.h"
#include "base/must.h"
#include "server/config/config.h"
#include "server/module/pattern.h"
#include "t/unit/test.h"
#include "wire/base64url.h"
#include "wire/urlpath.h"

static const struct {
	const char *regex, *replacement, *subject, *want; /* want NULL: no rule applies */
} rows[] = {
	{ "^/a/(.*)", "/b/$1", "/a/x?y", "/b/x?y" },
	{ "^/a", "/b", "/c", NULL },
	{ "^/a", "", "/a", NULL },
	{ "(b)(c)?", "$0$1$2$9", "/b", "bb" },
	{ "a", "$$%%$x%y$", "/a", "$%25$x%25y$" },
	{ "a", "%0-%1-%2", "/a", "whole-part-" },
	{ "a", "${0}%{1}", "/a", "apart" },
	{ "(.*)", "${esc:1}", "/%41b?c", "%2F%2541b%3Fc" },
	{ "(.*)", "${escnde:1}", "/a%2f", "%2Fa%2F" },
	{ "(.*)", "${escpsnde:1}", "/a%2f b", "/a%2F%20b" },
	{ "(.*)", "${tolower:1}${toupper:1}", "/aB%2f", "/ab%2F/AB%2F" },
	{ "(.*)", "${encb64u:1}", "/?", "Lz8" },
	{ "/(.*)", "${decb64u:1}", "/Lz8", "/?" },
	{ "/(.*)", "${decb64u:1}", "/!", "" },
	{ ".", "${url.scheme}:${url.authority}:${url.port}", "/", "https:h.org:81" },
	{ ".", "${url.path}${qsa}${qsa}", "/", "/p?q=1&q=1" },
	{ ".", "${url.query}", "/", "q=1" },
	{ "(.*)", "$1", "/\r\n \"<>\xff", "/%0D%0A%20%22%3C%3E%FF" },
	{ ".", "http://[::1]/#x", "/", "http://[::1]/#x" },
};

static struct patterns *
made(const char *regex, const char *replacement, char *err, size_t errsize)
{
	struct conf_pair pair = { .key = text_of(regex), .value = text_of(replacement) };
	struct conf_map map = { .n = 1, .v = &pair };

	return (patterns_new(&map, err, errsize));
}

static struct pattern_input
input_of(const char *subject, struct text cond[MATCH_CAPTURES])
{
	memset(cond, 0, MATCH_CAPTURES * sizeof(*cond));
	cond[0] = TEXT("whole");
	cond[1] = TEXT("part");
	return ((struct pattern_input){ .subject = text_of(subject),
	    .scheme = TEXT("https"),
	    .authority = TEXT("h.org"),
	    .path = TEXT("/p"),
	    .query = TEXT("q=1"),
	    .port = 81,
	    .cond = cond });
}

TEST("/pattern/forms")
{
	struct text cond[MATCH_CAPTURES];
	size_t i, rule;

	for (i = 0; i < NELEM(rows); i++) {
		struct pattern_input in = input_of(rows[i].subject, cond);
		struct patterns *ps;
		struct buf out;
		char err[128];

		ps = made(rows[i].regex, rows[i].replacement, err, sizeof(err));
		g_assert_nonnull(ps);
		buf_init(&out, 0);
		g_assert_cmpint(patterns_apply(ps, &in, &out, &rule), ==,
		    rows[i].want != NULL ? PATTERN_MADE : PATTERN_NONE);
		if (rows[i].want != NULL)
			g_assert_cmpmem(out.p, out.n, rows[i].want, strlen(rows[i].want));
		buf_free(&out);
		patterns_free(ps);
	}
}

TEST("/pattern/refused")
{
	static const char *const bad[] = { "${", "${x}", "${20}", "${esc:}", "%{1", "${1x}" };
	char err[128];
	size_t i;

	for (i = 0; i < NELEM(bad); i++)
		g_assert_null(made("a", bad[i], err, sizeof(err)));
	g_assert_null(made("(", "/", err, sizeof(err)));
}

TEST("/pattern/decoded captures")
{
	struct text cond[MATCH_CAPTURES];
	struct pattern_input in = input_of("/", cond);
	struct patterns *ps;
	struct buf out;
	char err[128];
	size_t rule;

	cond[1] = TEXT("/a%41?b");
	in.cond_decoded = true;
	ps = made(".", "%1", err, sizeof(err));
	buf_init(&out, 0);
	g_assert_cmpint(patterns_apply(ps, &in, &out, &rule), ==, PATTERN_MADE);
	g_assert_cmpmem(out.p, out.n, "/a%2541%3Fb", 11);
	buf_free(&out);
	patterns_free(ps);
}

/* A result of PATTERN_MAX bytes is allowed, one more is not. */
TEST("/pattern/longest")
{
	struct text cond[MATCH_CAPTURES];
	struct pattern_input in = input_of("/", cond);
	char *long_text = malloc(PATTERN_MAX + 1), err[128];
	struct patterns *ps = made("(?s).*", "$0", err, sizeof(err));
	struct buf out;
	size_t n, rule;

	memset(long_text, 'x', PATTERN_MAX + 1);
	for (n = PATTERN_MAX; n <= PATTERN_MAX + 1; n++) {
		in.subject = (struct text){ long_text, n };
		buf_init(&out, 0);
		g_assert_cmpint(patterns_apply(ps, &in, &out, &rule), ==,
		    n == PATTERN_MAX ? PATTERN_MADE : PATTERN_TOO_LONG);
		buf_free(&out);
	}
	patterns_free(ps);
	free(long_text);
}

TEST("/pattern/base64url")
{
	static const char *const rows64[][2] = { { "", "" }, { "f", "Zg" }, { "fo", "Zm8" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg" }, { "\xfb\xff", "-_8" } };
	char dst[64];
	size_t i;

	for (i = 0; i < NELEM(rows64); i++) {
		size_t n = base64url_encode(text_of(rows64[i][0]), dst);

		g_assert_cmpmem(dst, n, rows64[i][1], strlen(rows64[i][1]));
		n = base64url_decode(text_of(rows64[i][1]), dst);
		g_assert_cmpmem(dst, n, rows64[i][0], strlen(rows64[i][0]));
	}
	g_assert_cmpuint(base64url_decode(TEXT("Zg=="), dst), ==, 1);
	g_assert_cmpuint(base64url_decode(TEXT("Z"), dst), ==, 0);
	g_assert_cmpuint(base64url_decode(TEXT("Zg+/"), dst), ==, 0);
}

TEST("/pattern/steps")
{
	static const char *const paths[][2] = { { "/", "/" }, { "//a///b//", "/a/b/" },
		{ "/a/./b/../c", "/a/c" }, { "/a/..", "/" }, { "/a/.", "/a/" },
		{ "/a%2F..", "/a%2F.." } };
	char dst[64];
	size_t i, n;

	for (i = 0; i < NELEM(paths); i++) {
		g_strlcpy(dst, paths[i][0], sizeof(dst));
		n = urlpath_drop_steps(dst, strlen(dst));
		g_assert_cmpmem(dst, n, paths[i][1], strlen(paths[i][1]));
	}
}
