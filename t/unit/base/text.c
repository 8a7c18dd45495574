/* t/unit/base/text.c -- slices, numbers, hashes, near names. */
#include <errno.h>
#include "base/text.h"
#include "t/unit/test.h"

TEST("/text/compare")
{
	g_assert_true(text_eq(TEXT("a\0b"), TEXT("a\0b")));
	g_assert_false(text_eq(TEXT("a\0b"), TEXT("a\0c")));
	g_assert_true(text_eq(TEXT_NONE, TEXT("")));
	g_assert_true(text_ieq(TEXT("Keep-Alive"), TEXT("kEEP-aLIVE")));
	g_assert_false(text_ieq(TEXT("["), TEXT("{"))); /* bit 0x20 apart, and no letters */
	g_assert_false(text_ieq(TEXT("\xc4"), TEXT("\xe4")));
	g_assert_true(text_starts(TEXT("abc"), TEXT("ab")));
	g_assert_true(text_starts(TEXT_NONE, TEXT_NONE));
	g_assert_false(text_starts(TEXT("a"), TEXT("ab")));
	g_assert_true(text_ends(TEXT("abc"), TEXT("bc")));
	g_assert_true(text_ends(TEXT("abc"), TEXT("")));
	g_assert_false(text_ends(TEXT("c"), TEXT("bc")));
	g_assert_cmpuint(text_of(NULL).n, ==, 0);
}

TEST("/text/plain")
{
	g_assert_true(text_is_plain(TEXT("aZ09-"), '-'));
	g_assert_false(text_is_plain(TEXT("a_b"), '-'));
	g_assert_true(text_is_plain(TEXT("a_b"), '_'));
	g_assert_false(text_is_plain(TEXT("@"), '-')); /* beside 'A' */
	g_assert_false(text_is_plain(TEXT("["), '-')); /* beside 'Z' */
	g_assert_false(text_is_plain(TEXT("`"), '-'));
	g_assert_false(text_is_plain(TEXT("{"), '-'));
	g_assert_false(text_is_plain(TEXT("/"), '-'));
	g_assert_false(text_is_plain(TEXT("\x10"), '-')); /* '0' without bit 0x20 */
	g_assert_false(text_is_plain(TEXT("\xc1"), '-'));
	g_assert_false(text_is_plain(TEXT(""), '-'));
}

TEST("/text/trim")
{
	g_assert_true(text_eq(text_trim(TEXT(" \t a b\t ")), TEXT("a b")));
	g_assert_true(text_eq(text_trim(TEXT(" \t ")), TEXT("")));
	g_assert_true(text_eq(text_trim(TEXT("\r\n")), TEXT("\r\n")));
	g_assert_true(text_eq(text_trim(TEXT_NONE), TEXT_NONE));
}

/* The members of t, each in brackets. */
static char *
members(struct text t)
{
	GString *s = g_string_new("");
	struct text m;

	while (text_next(&t, ',', &m))
		g_string_append_printf(s, "[%.*s]", (int)m.n, m.p);
	return (g_string_free(s, FALSE));
}

TEST("/text/next")
{
	static const struct {
		const char *list, *want;
	} rows[] = {
		{ "a", "[a]" },
		{ "a,b", "[a][b]" },
		{ "a,,b", "[a][][b]" },
		{ ",", "[][]" },
		{ "a,", "[a][]" },
		{ "", "[]" },
		{ NULL, "" },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_autofree char *got = members(text_of(rows[i].list));

		g_assert_cmpstr(got, ==, rows[i].want);
	}
}

TEST("/text/numbers")
{
	static const struct {
		const char *t;
		int err;
		uint64_t v;
	} rows[] = {
		{ "0", 0, 0 },
		{ "10", 0, 10 },
		{ "00000000000000000000000000000000007", 0, 7 },
		{ "ff", -EINVAL, 0 },
		{ "fFfFfFfFfFfFfFfF", -EINVAL, 0 },
		{ "10000000000000000", 0, 10000000000000000 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999999", -ERANGE, 0 },
		{ "99999999999999999999999999x", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "0x1", -EINVAL, 0 },
		{ "g", -EINVAL, 0 },
		{ "@", -EINVAL, 0 },
	};
	uint64_t v;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		v = 0;
		g_assert_cmpint(text_u64(text_of(rows[i].t), &v), ==, rows[i].err);
		g_assert_cmpuint(v, ==, rows[i].v);
	}
	for (i = 0; i < 256; i++) {
		const char *at = i != 0 ? strchr("0123456789abcdefABCDEF", (int)i) : NULL;

		g_assert_cmpint(text_hex_digit((char)i), ==,
		    at != NULL ? g_ascii_xdigit_value((char)i) : -1);
	}
}

static void
check_put(uint64_t v)
{
	g_autofree char *want = g_strdup_printf("%" G_GUINT64_FORMAT, v);
	char got[20];
	size_t n = text_put_u64(got, v);

	g_assert_true(text_eq((struct text){ got, n }, text_of(want)));
}

TEST("/text/put")
{
	uint64_t v;

	check_put(0);
	check_put(UINT64_MAX);
	for (v = 1; v < UINT64_MAX / 10; v *= 10) {
		check_put(v - 1);
		check_put(v);
	}
}

/* Texts that differ in one byte or in length only, at every length around the steps of the loop. */
TEST("/text/hash")
{
	g_autoptr(GHashTable) seen =
	    g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	char b[70] = { 0 };
	size_t n, i, texts = 0;
	int64_t *h;

	for (n = 0; n <= 64; n++)
		for (i = 0; i <= n; i++) {
			memset(b, 0, sizeof(b));
			if (i < n)
				b[i] = 1;
			h = g_new(int64_t, 1);
			*h = (int64_t)text_hash((struct text){ b, n });
			g_assert_true(text_hash((struct text){ b, n }) == (uint64_t)*h);
			g_hash_table_add(seen, h);
			texts++;
		}
	g_assert_cmpuint(g_hash_table_size(seen), ==, texts);
	g_assert_true(text_hash(TEXT_NONE) == text_hash(TEXT("")));
}

/* The low bits choose a bucket: numbered names must spread over them. */
TEST("/text/hash-spread")
{
	unsigned bucket[256] = { 0 }, i;
	char name[32];

	for (i = 0; i < 25600; i++) {
		g_snprintf(name, sizeof(name), "/pool/%05u.jpg", i);
		bucket[text_hash(text_of(name)) & 255]++;
	}
	for (i = 0; i < 256; i++) {
		g_assert_cmpuint(bucket[i], >, 30); /* 100 expected, standard deviation 10 */
		g_assert_cmpuint(bucket[i], <, 170);
	}
}

TEST("/text/nearest")
{
	static const char *const names[] = { "server.port", "server.document-root", "server.name",
		"etag", NULL };
	char longest[65];
	const char *const long_names[] = { longest, NULL };

	g_assert_cmpstr(text_nearest("server.prot", names), ==, "server.port");
	g_assert_cmpstr(text_nearest("server.documentroot", names), ==, "server.document-root");
	g_assert_cmpstr(text_nearest("Server.Port", names), ==, "server.port");
	g_assert_cmpstr(text_nearest("etags", names), ==, "etag");
	g_assert_null(text_nearest("x", names));
	g_assert_null(text_nearest("mimetype.assign", names));
	g_assert_null(text_nearest("", names));
	/* the longest word and the longest name */
	memset(longest, 'x', 64);
	longest[64] = '\0';
	g_assert_cmpstr(text_nearest(longest, long_names), ==, longest);
	g_assert_null(
	    text_nearest("0123456789012345678901234567890123456789012345678901234567890123456789",
		names));
}
