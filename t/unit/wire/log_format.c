/* t/unit/wire/log_format.c -- formats of the access log: parsed, refused; values escaped. */
#include <string.h>

#include "t/unit/test.h"
#include "wire/log_format.h"

static void
parses(const char *text, unsigned n, enum log_piece_kind first, const char *arg)
{
	struct log_format f;
	char err[256];

	g_assert_true(log_format_parse(text_of(text), &f, err, sizeof(err)));
	g_assert_cmpuint(f.n, ==, n);
	g_assert_cmpint(f.v[0].kind, ==, first);
	g_assert_true(text_eq(f.v[0].arg, text_of(arg)));
}

TEST("/log_format/pieces")
{
	static const char standard[] = "[%d/%b/%Y:%H:%M:%S %z]";

	parses("%h", 1, LOG_REMOTE, "");
	parses("%% %h", 3, LOG_LITERAL, "%");
	parses("a %h b", 3, LOG_LITERAL, "a ");
	parses("%>s", 1, LOG_STATUS, "");
	parses("%<s%>{X}i", 2, LOG_STATUS, "");
	parses("%{X}>i", 1, LOG_HEADER, "X");
	parses("%{User-Agent}i", 1, LOG_HEADER, "User-Agent");
	parses("%{Content-Type}o", 1, LOG_REPLY, "Content-Type");
	parses("%t", 1, LOG_TIME, standard);
	parses("%{begin:}t", 1, LOG_TIME, standard);
	parses("%{end:%F}t", 1, LOG_TIME, "%F");
	parses("%{sec}t", 1, LOG_CLOCK, "sec");
	parses("%{begin:usec_frac}t", 1, LOG_CLOCK, "usec_frac");
	parses("%{remote}p", 1, LOG_PEERPORT, "remote");
	parses("%{canonical}p", 1, LOG_PORT, "canonical");
	parses("%{us}T", 1, LOG_TAKEN, "us");
	parses("%D", 1, LOG_TAKEN, "");
	parses("%L", 1, LOG_ID, "");
	parses("%{c}L", 1, LOG_NUMBER, "c");
	parses("%{backend}x", 1, LOG_BACKEND, "backend");
	parses("%{cache}x", 1, LOG_CACHE, "cache");
	parses("%{proxy-queue-us}x", 1, LOG_STAGE, "proxy-queue-us");
	parses("%{SSL_PROTOCOL}x", 1, LOG_TLS, "SSL_PROTOCOL");
	parses("json", 61, LOG_LITERAL, "{\"ts\":");
	parses("json ", 1, LOG_LITERAL, "json ");
	parses("%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\"", 18, LOG_REMOTE, "");
}

static void
refuses(const char *text, const char *why)
{
	struct log_format f;
	char err[256];

	g_assert_false(log_format_parse(text_of(text), &f, err, sizeof(err)));
	g_assert_nonnull(strstr(err, why));
}

TEST("/log_format/refused")
{
	char many[4 * LOG_PIECES_MAX];

	refuses("%", "expected one of %%");
	refuses("%y", "\"%y\": expected one of");
	refuses("%h %{x}y", "\"%{x}y\"");
	refuses("%{x", "closing brace");
	refuses("%{x}", "expected one of");
	refuses("%i", "a name in braces");
	refuses("%{}o", "a name in braces");
	refuses("%C", "a name in braces");
	refuses("%{second}t", "strftime");
	refuses("%{sec_frac}t", "strftime");
	refuses("%{ms}t", "strftime");
	refuses("%{min}T", "s, ms, us or ns");
	refuses("%{peer}p", "canonical");
	refuses("%x", "a name in braces");
	refuses("%{proxy}x",
	    "expected backend, cache, trace, url, SSL_PROTOCOL or another fact of TLS, or one of "
	    "handshake-us stat-queue-us stat-us");
	refuses("%{SSL_PROTOCOLS}x", "SSL_PROTOCOL or another");
	refuses("%{-us}x", "expected backend");
	refuses("%{d}L", "%{c}L");
	memset(many, 0, sizeof(many));
	for (size_t i = 0; i < LOG_PIECES_MAX; i++)
		memcpy(many + 2 * i, "%h", 2);
	parses(many, LOG_PIECES_MAX, LOG_REMOTE, "");
	memcpy(many + strlen(many), "%h", 2);
	refuses(many, "at most 128 parts");
}

TEST("/log_format/escape")
{
	struct buf b;

	buf_init(&b, 0);
	log_format_escape(&b, (struct text){ "a\"b\\c\td\r\n\x01\x7f\xc3\xa9\0z", 15 });
	g_assert_true(
	    text_eq(buf_as_text(&b), TEXT("a\\\"b\\\\c\\td\\r\\n\\x01\\x7F\\xC3\\xA9\\x00z")));
	b.n = 0;
	log_format_escape(&b, TEXT_NONE);
	g_assert_cmpuint(b.n, ==, 0);
	log_format_json(&b, TEXT("a\"b\\\n\xff"));
	g_assert_true(text_starts(buf_as_text(&b), TEXT("a\\\"b\\\\\\")));
	g_assert_null(memchr(b.p, '\n', b.n));
	g_assert_cmpint(b.p[b.n - 1], !=, '"');
	buf_free(&b);
}

static void
clock_is(const char *format, const char *want)
{
	struct log_format f;
	struct buf b;
	char err[256];

	buf_init(&b, 0);
	g_assert_true(log_format_parse(text_of(format), &f, err, sizeof(err)));
	log_format_clock(&b, &f.v[0], 1234567890012345678ull);
	g_assert_true(text_eq(buf_as_text(&b), text_of(want)));
	buf_free(&b);
}

TEST("/log_format/clock")
{
	clock_is("%{sec}t", "1234567890");
	clock_is("%{msec}t", "1234567890012");
	clock_is("%{usec}t", "1234567890012345");
	clock_is("%{nsec}t", "1234567890012345678");
	clock_is("%{msec_frac}t", "012");
	clock_is("%{usec_frac}t", "012345");
	clock_is("%{nsec_frac}t", "012345678");
}
