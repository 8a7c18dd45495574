/* t/unit/wire/accept_encoding.c -- Accept-Encoding: what a client takes, and what it gets. */
#include <string.h>

#include "t/unit/test.h"
#include "wire/http1/accept_encoding.h"

static struct accept_encoding
read_line(const char *line)
{
	struct accept_encoding a;

	accept_encoding_init(&a);
	accept_encoding_line(&a, text_of(line));
	return (a);
}

static const uint8_t order[] = { CODING_BROTLI, CODING_ZSTD, CODING_GZIP, CODING_DEFLATE };

static void
gets(const char *line, const char *want)
{
	struct accept_encoding a = read_line(line);
	struct text got = coding_name(accept_encoding_pick(&a, order, sizeof(order)));

	if (!text_eq(got, text_of(want)))
		g_error("\"%s\" gets %.*s, expected %s", line, (int)got.n, got.p, want);
}

TEST("/accept-encoding/pick")
{
	gets("", "identity");
	gets("gzip", "gzip");
	gets("x-gzip", "gzip");
	gets("GZip", "gzip");
	gets("deflate", "deflate");
	gets("gzip, deflate, br", "br");
	gets("gzip, deflate, br, zstd", "br");
	gets("zstd , gzip", "zstd");
	gets(",, ,gzip,,", "gzip");
	gets("*", "br");
	gets("*;q=0", "identity");
	gets("br;q=0, *", "zstd");
	gets("gzip;q=0.001", "gzip");
	gets("gzip;q=0.000", "identity");
	gets("gzip;q=0", "identity");
	gets("gzip;q=1.000", "gzip");
	gets("gzip;q=1.001", "identity");
	gets("gzip;q=0.0001", "identity");
	gets("gzip;q=2", "identity");
	gets("gzip;q=", "identity");
	gets("gzip;q", "identity");
	gets("gzip;", "identity");
	gets("gzip;q=0.5;x=1", "identity");
	gets("gzip;level=1", "identity");
	gets("gzip ; Q=0.5", "gzip");
	gets("gzip; q=1., br;q=0.", "gzip");
	gets("gzip, gzip;q=0", "identity");
	gets("compress, bzip2", "identity");
	gets("gzip deflate", "identity");
	gets("gzi", "identity");
	gets("gzipp", "identity");
	/* identity counts only if it is named */
	gets("gzip;q=0.5, identity", "identity");
	gets("gzip;q=0.5, identity;q=0.5", "gzip");
	gets("gzip;q=0.5, identity;q=0.4", "gzip");
	gets("gzip;q=0.2, *;q=0.1", "br");
	gets("identity;q=0", "identity");
	gets("identity;q=0, gzip;q=0.1", "gzip");
}

TEST("/accept-encoding/takes")
{
	struct accept_encoding a;

	accept_encoding_init(&a);
	g_assert_true(accept_encoding_takes(&a, CODING_IDENTITY));
	g_assert_false(accept_encoding_takes(&a, CODING_GZIP));
	a = read_line("identity;q=0");
	g_assert_false(accept_encoding_takes(&a, CODING_IDENTITY));
	a = read_line("*;q=0");
	g_assert_false(accept_encoding_takes(&a, CODING_IDENTITY));
	a = read_line("*;q=0, identity;q=0.1");
	g_assert_true(accept_encoding_takes(&a, CODING_IDENTITY));
	a = read_line("gzip");
	accept_encoding_line(&a, TEXT("br"));
	g_assert_true(accept_encoding_takes(&a, CODING_GZIP));
	g_assert_true(accept_encoding_takes(&a, CODING_BROTLI));
}

/* Members after the bound count as not sent. */
TEST("/accept-encoding/bound")
{
	g_autoptr(GString) line = g_string_new("");
	unsigned i;

	for (i = 0; i < ACCEPT_MEMBERS - 1; i++)
		g_string_append(line, "x,");
	g_string_append(line, "gzip,br");
	gets(line->str, "gzip");
}

/* Each beginning of a line is read without a byte after it. */
TEST("/accept-encoding/cut")
{
	static const char line[] = "gzip;q=0.125, *;q=0, identity;q=0.5";
	struct accept_encoding a;
	size_t n;
	char *cut;

	for (n = 0; n < sizeof(line); n++) {
		cut = g_memdup2(line, n);
		accept_encoding_init(&a);
		accept_encoding_line(&a, (struct text){ cut, n });
		(void)accept_encoding_pick(&a, order, sizeof(order));
		g_free(cut);
	}
}
