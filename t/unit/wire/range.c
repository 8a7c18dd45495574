/* t/unit/wire/range.c -- ranges of a file: parsed, and resolved when the size is known. */
#include <string.h>

#include "t/unit/test.h"
#include "wire/http1/range.h"

static void
resolves(const char *header, uint64_t size, uint64_t most, const char *want)
{
	struct range_part out[RANGE_PARTS];
	g_autoptr(GString) got = g_string_new(NULL);
	struct range_set set;
	unsigned i, n;

	g_assert_true(range_set_read(text_of(header), &set));
	n = range_resolve(&set, size, most, out);
	for (i = 0; i < n; i++)
		g_string_append_printf(got, "%s%d-%d", i > 0 ? " " : "", (int)out[i].from,
		    (int)out[i].to);
	g_assert_cmpstr(got->str, ==, want);
}

TEST("/range/resolve")
{
	resolves("bytes=5-9", 100, UINT64_MAX, "5-10");
	resolves("bytes=5-", 100, UINT64_MAX, "5-100");
	resolves("bytes=-5", 100, UINT64_MAX, "95-100");
	resolves("bytes=-500", 100, UINT64_MAX, "0-100");
	resolves("bytes=100-", 100, UINT64_MAX, "");
	resolves("bytes=0-", 0, UINT64_MAX, "");
	resolves("bytes=-5", 0, UINT64_MAX, "");
	resolves("bytes=-0", 100, UINT64_MAX, "");
	resolves("bytes=0-0,-1", 100, UINT64_MAX, "0-1 99-100");
	resolves("bytes=50-59,10-19,30-39", 100, UINT64_MAX, "10-20 30-40 50-60");
	resolves("bytes=50-59,10-19,15-55", 100, UINT64_MAX, "10-60");
	resolves("bytes=0-9,10-19", 100, UINT64_MAX, "0-20");
	resolves("bytes=0-,0-,0-,0-,0-", 100, UINT64_MAX, "0-100");
	resolves("bytes=50-59,10-19", 100, 15, "10-20 50-55");
	resolves("bytes=50-59,10-19", 100, 10, "10-20");
	resolves("bytes=50-59,10-19", 100, 0, "");
	resolves("bytes=0-18446744073709551614", 100, UINT64_MAX, "0-100");
	resolves("bytes=18446744073709551615-", 100, UINT64_MAX, "");
	resolves("bytes=99999999999999999999-99999999999999999999", 100, UINT64_MAX, "");
}

TEST("/range/refused")
{
	static const char *const bad[] = { "", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=5",
		"bytes=9-5", "bytes=a-5", "bytes=5-b", "bytes=5 -6", "lines=5-6", "bytes=0-0,x",
		"bytes =0-1", "bytes= 0-1", "bytes = 0-1", "bytes\t=0-1", "bytes=\t0-1",
		" bytes=0-1" };
	struct range_set set;

	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
		g_assert_false(range_set_read(text_of(bad[i]), &set));
}
