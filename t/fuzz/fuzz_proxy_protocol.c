/* t/fuzz/fuzz_proxy_protocol.c -- any bytes as the header of the PROXY protocol: every prefix asks
 * for more until the answer is final. */
#include "base/must.h"
#include "wire/proxy_protocol.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\r\nGET / HTTP/1.1\r\n"),
	SEED("PROXY TCP6 2001:db8::7 2001:db8::1 65535 0\r\n"),
	SEED("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"),
	SEED("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x14\xcb\0\x71\7\xc0\0\2\1\x9c\x40\1\xbb\x20\0\5\1\0\0"
	     "\0\0"),
	SEED("\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\7\x20\1\x0d"
	     "\xb8\0\0\0\0"
	     "\0\0\0\0\0\0\0\1\x9c\x40\1\xbb"),
	SEED("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"),
	{ NULL, 0 },
};

struct answer {
	enum parse res;
	struct proxy_header h;
	size_t used;
};

static struct answer
ask(const uint8_t *p, size_t n)
{
	const char *why = NULL;
	struct answer a;

	a.res = proxy_header_read((struct text){ (const char *)p, n }, &a.h, &a.used, &why);
	must((a.res == PARSE_BAD) == (why != NULL));
	must(a.res != PARSE_DONE || (a.used > 0 && a.used <= n && a.used <= PROXY_HEADER_MAX));
	return (a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct answer whole = ask(p, n), part = { .res = PARSE_MORE };
	size_t i;

	must(whole.res != PARSE_MORE || n < PROXY_HEADER_MAX);
	for (i = 0; i <= n && i <= PROXY_HEADER_MAX && part.res == PARSE_MORE; i++)
		part = ask(p, i);
	must(part.res == whole.res);
	if (whole.res == PARSE_DONE)
		must(part.used == whole.used && part.h.has_addr == whole.h.has_addr &&
		     part.h.tls == whole.h.tls && part.h.port == whole.h.port &&
		     memcmp(&part.h.addr, &whole.h.addr, sizeof(whole.h.addr)) == 0);
	return (0);
}
