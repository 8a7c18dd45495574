/* t/unit/wire/proxy_protocol.c -- headers of the PROXY protocol, at every split. */

#include "base/must.h"
#include "t/unit/test.h"
#include "wire/proxy_protocol.h"

#define SIG "\r\n\r\n\0\r\nQUIT\n"

struct row {
	const char *bytes;
	size_t n;
	enum parse result;
	const char *addr; /* NULL: none */
	unsigned port;
	bool tls;
};
#define R(lit, ...)                               \
	{                                         \
		lit, sizeof(lit) - 1, __VA_ARGS__ \
	}

/* The answer of a prefix is MORE until it is the final one, which more bytes do not change. */
static void
check(const struct row *r)
{
	struct proxy_header h;
	const char *why = NULL;
	enum parse res = PARSE_MORE;
	size_t n, used = 0, first = 0;
	struct ip ip;
	char *exact;

	for (n = 0; n <= r->n && res == PARSE_MORE; n++) {
		exact = g_memdup2(r->bytes, n); /* a read past it is found */
		res = proxy_header_read((struct text){ exact, n }, &h, &used, &why);
		g_free(exact);
		first = n;
	}
	g_assert_cmpint(res, ==, r->result);
	for (n = first; n <= r->n && res != PARSE_MORE; n++)
		g_assert_cmpint(proxy_header_read((struct text){ r->bytes, n }, &h, &used, &why),
		    ==, res);
	if (res == PARSE_BAD)
		g_assert_nonnull(why);
	if (res != PARSE_DONE)
		return;
	g_assert_cmpuint(used, ==, first);
	g_assert_cmpint(h.has_addr, ==, r->addr != NULL);
	g_assert_cmpint(h.tls, ==, r->tls);
	if (r->addr == NULL)
		return;
	g_assert_true(ip_read(text_of(r->addr), &ip));
	g_assert_cmpmem(&ip, sizeof(ip), &h.addr, sizeof(ip));
	g_assert_cmpuint(h.port, ==, r->port);
}

TEST("/proxy_protocol/version 1")
{
	static const struct row rows[] = {
		R("PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\r\nGET", PARSE_DONE, "203.0.113.7",
		    40000, false),
		R("PROXY TCP6 2001:db8::7 2001:db8::1 65535 0\r\n", PARSE_DONE, "2001:db8::7",
		    65535, false),
		R("PROXY TCP6 ::ffff:203.0.113.7 ::1 1 2\r\n", PARSE_DONE, "203.0.113.7", 1, false),
		R("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
		    PARSE_DONE, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535, false),
		R("PROXY UNKNOWN\r\nGET / HTTP/1.1\r\n", PARSE_DONE, NULL, 0, false),
		R("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
		    PARSE_DONE, NULL, 0, false),
		R("PROXY UNKNOWN xffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
		    PARSE_BAD, NULL, 0, false), /* 108 bytes */
		R("PROXY TCP4 203.0.113.7 192.0.2.1 40000 443", PARSE_MORE, NULL, 0, false),
		R("PROXY", PARSE_MORE, NULL, 0, false),
		R("", PARSE_MORE, NULL, 0, false),
		R("PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\n", PARSE_BAD, NULL, 0, false),
		R("PROXY TCP4 203.0.113.7 192.0.2.1 40000 443 \r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY TCP4 203.0.113.7 192.0.2.1 40000 443 1\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY TCP4  203.0.113.7 192.0.2.1 40000 443\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY TCP4 203.0.113.7 192.0.2.1 40000\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY TCP4 203.0.113.7 192.0.2.1 040000 443\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY TCP4 203.0.113.7 192.0.2.1 65536 443\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY TCP4 203.0.113.7 192.0.2.1 1 65536\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY TCP4 203.0.113.7 x 1 2\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY TCP4 2001:db8::7 2001:db8::1 1 2\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY TCP6 203.0.113.7 192.0.2.1 1 2\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY UDP4 203.0.113.7 192.0.2.1 1 2\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY UNKNOWNX\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY \r\n", PARSE_BAD, NULL, 0, false),
		R("PROXY \n", PARSE_BAD, NULL, 0, false),
		R("proxy TCP4 203.0.113.7 192.0.2.1 1 2\r\n", PARSE_BAD, NULL, 0, false),
		R("GET / HTTP/1.1\r\n", PARSE_BAD, NULL, 0, false),
		R("PROXYGET / HTTP/1.1\r\n", PARSE_BAD, NULL, 0, false),
		R("\0", PARSE_BAD, NULL, 0, false),
	};
	size_t i;

	for (i = 0; i < NELEM(rows); i++)
		check(&rows[i]);
}

#define V4 "\xcb\0\x71\7\xc0\0\2\1\x9c\x40\1\xbb" /* 203.0.113.7:40000 */
#define V6                                       \
	"\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\7" \
	"\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\x9c\x40\1\xbb"
#define TLS  "\x20\0\5\1\0\0\0\0"
#define ALPN "\1\0\2h2"

TEST("/proxy_protocol/version 2")
{
	static const struct row rows[] = {
		R(SIG "\x21\x11\0\x0c" V4 "GET", PARSE_DONE, "203.0.113.7", 40000, false),
		R(SIG "\x21\x21\0\x24" V6, PARSE_DONE, "2001:db8::7", 40000, false),
		R(SIG "\x21\x11\0\x14" V4 TLS, PARSE_DONE, "203.0.113.7", 40000, true),
		R(SIG "\x21\x11\0\x19" V4 ALPN TLS, PARSE_DONE, "203.0.113.7", 40000, true),
		R(SIG "\x21\x11\0\x14" V4 "\x20\0\5\6\0\0\0\0", PARSE_DONE, "203.0.113.7", 40000,
		    false),
		R(SIG "\x21\x11\0\x13" V4 "\x20\0\4\1\0\0\0", PARSE_DONE, "203.0.113.7", 40000,
		    false),
		R(SIG "\x20\0\0\0", PARSE_DONE, NULL, 0, false),
		R(SIG "\x20\x11\0\x0c" V4, PARSE_DONE, NULL, 0, false), /* LOCAL */
		R(SIG "\x20\xff\0\1x", PARSE_DONE, NULL, 0, false),
		R(SIG "\x21\0\0\0", PARSE_DONE, NULL, 0, false), /* UNSPEC */
		R(SIG "\x21\0\0\x08" TLS, PARSE_DONE, NULL, 0, true),
		R(SIG "\x21\x11\0\x0c\xcb\0\x71\7", PARSE_MORE, NULL, 0, false),
		R(SIG, PARSE_MORE, NULL, 0, false),
		R(SIG "\x21\x11\0\x0b\xcb\0\x71\7\xc0\0\2\1\x9c\x40\1", PARSE_BAD, NULL, 0, false),
		R(SIG "\x21\x11\0\x0e" V4 "\1\0", PARSE_BAD, NULL, 0, false),
		R(SIG "\x21\x11\0\x0f" V4 "\1\0\1", PARSE_BAD, NULL, 0, false),
		R(SIG "\x21\x12\0\x0c" V4, PARSE_BAD, NULL, 0, false), /* UDP */
		R(SIG "\x21\x41\0\x0c" V4, PARSE_BAD, NULL, 0, false),
		R(SIG "\x22\x11\0\x0c" V4, PARSE_BAD, NULL, 0, false),
		R(SIG "\x11\x11\0\x0c" V4, PARSE_BAD, NULL, 0, false),
		R("\r\n\r\n\0\r\nQUIT\r\x21\x11\0\0", PARSE_BAD, NULL, 0, false),
		R("\r\n\r\nGET / HTTP/1.1\r\n", PARSE_BAD, NULL, 0, false),
	};
	size_t i;

	for (i = 0; i < NELEM(rows); i++)
		check(&rows[i]);
}

TEST("/proxy_protocol/version 2, long")
{
	char bytes[PROXY_HEADER_MAX + 1] = SIG "\x21\x31";
	struct row r = { bytes, 16 + 216, PARSE_DONE, NULL, 0, false };
	unsigned n = PROXY_HEADER_MAX - 16;

	bytes[15] = (char)216; /* a unix socket */
	check(&r);
	/* one TLV fills the longest header */
	bytes[13] = 0;
	bytes[14] = (char)(n >> 8);
	bytes[15] = (char)n;
	bytes[16] = 4;
	bytes[17] = (char)((n - 3) >> 8);
	bytes[18] = (char)(n - 3);
	r.n = PROXY_HEADER_MAX;
	check(&r);
	bytes[14] = (char)((n + 1) >> 8);
	bytes[15] = (char)(n + 1);
	r.result = PARSE_BAD;
	check(&r);
}
