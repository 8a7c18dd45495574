/* wire/proxy_protocol.c -- see proxy_protocol.h */
#include "base/must.h"
#include "wire/proxy_protocol.h"

static const struct text signature = { "\r\n\r\n\0\r\nQUIT\n", 12 };

static enum parse
bad(const char **why, const char *what)
{
	*why = what;
	return (PARSE_BAD);
}

/* ---- version 1 */

/* Without leading zeros. */
static bool
port_read(struct text t, uint16_t *port)
{
	uint64_t n;

	if (t.n > 5 || (t.n > 1 && t.p[0] == '0') || text_u64(t, &n) != 0 || n > UINT16_MAX)
		return (false);
	*port = (uint16_t)n;
	return (true);
}

/* " SOURCE DESTINATION PORT PORT" */
static bool
line_addresses(struct text rest, bool v6, struct proxy_header *h)
{
	struct text word[4], more;
	struct ip to;
	uint16_t port;
	size_t i;

	for (i = 0; i < NELEM(word); i++)
		if (!text_next(&rest, ' ', &word[i]))
			return (false);
	if (text_next(&rest, ' ', &more))
		return (false);
	for (i = 0; i < 2; i++)
		if ((memchr(word[i].p, ':', word[i].n) != NULL) != v6)
			return (false);
	h->has_addr = true;
	return (ip_read(word[0], &h->addr) && ip_read(word[1], &to) &&
		port_read(word[2], &h->port) && port_read(word[3], &port));
}

/* The line without its end. */
static enum parse
line_read(struct text line, struct proxy_header *h, const char **why)
{
	static const struct text v4 = TEXT("PROXY TCP4 "), v6 = TEXT("PROXY TCP6 "),
				 unknown = TEXT("PROXY UNKNOWN");
	bool is_v6 = text_starts(line, v6);

	if (text_starts(line, unknown) && (line.n == unknown.n || line.p[unknown.n] == ' '))
		return (PARSE_DONE);
	if (!is_v6 && !text_starts(line, v4))
		return (bad(why, "expected TCP4, TCP6 or UNKNOWN after PROXY"));
	(void)text_take(&line, v4.n);
	if (!line_addresses(line, is_v6, h))
		return (bad(why, "expected two addresses and two ports after PROXY TCP4 or TCP6"));
	return (PARSE_DONE);
}

static enum parse
v1_read(struct text in, struct proxy_header *h, size_t *used, const char **why)
{
	size_t n = in.n < PROXY_LINE_MAX ? in.n : PROXY_LINE_MAX;
	const char *nl = memchr(in.p, '\n', n);

	if (nl == NULL)
		return (n < PROXY_LINE_MAX ? PARSE_MORE
					   : bad(why, "the PROXY line is longer than 107 bytes"));
	if (nl[-1] != '\r')
		return (bad(why, "the PROXY line does not end with CR LF"));
	*used = (size_t)(nl + 1 - in.p);
	return (line_read((struct text){ in.p, *used - 2 }, h, why));
}

/* ---- version 2 */

enum { FAMILY_NONE = 0, FAMILY_V4 = 1, FAMILY_V6 = 2, FAMILY_UNIX = 3 };
enum { TLV_SSL = 0x20, SSL_CLIENT = 1 }; /* PP2_TYPE_SSL, PP2_CLIENT_SSL */

static unsigned
u16(const char *p)
{
	return ((unsigned)(unsigned char)p[0] << 8 | (unsigned char)p[1]);
}

/* False: a TLV ends after the header. */
static bool
tlvs_read(struct text rest, struct proxy_header *h)
{
	struct text value;
	unsigned type;
	size_t n;

	while (rest.n > 0) {
		if (rest.n < 3)
			return (false);
		type = (unsigned char)rest.p[0];
		n = u16(rest.p + 1);
		(void)text_take(&rest, 3);
		if (n > rest.n)
			return (false);
		value = text_take(&rest, n);
		if (type == TLV_SSL && value.n >= 5)
			h->tls = (value.p[0] & SSL_CLIENT) != 0;
	}
	return (true);
}

/* rest: addresses and TLVs */
static enum parse
v2_proxied(unsigned family, struct text rest, struct proxy_header *h, const char **why)
{
	static const size_t sizes
	    [] = { [FAMILY_NONE] = 0, [FAMILY_V4] = 12, [FAMILY_V6] = 36, [FAMILY_UNIX] = 216 };
	struct text addrs;

	if (family >> 4 > FAMILY_UNIX || (family != 0 && (family & 15) != 1))
		return (bad(why, "expected the family UNSPEC, or TCP or UNIX streams"));
	family >>= 4;
	if (rest.n < sizes[family])
		return (bad(why, "the addresses are longer than the header"));
	addrs = text_take(&rest, sizes[family]);
	h->has_addr = family == FAMILY_V4 || family == FAMILY_V6;
	if (family == FAMILY_V4) {
		h->addr = ip_of_v4(addrs.p);
		h->port = (uint16_t)u16(addrs.p + 8);
	} else if (family == FAMILY_V6) {
		h->addr = ip_of_v6(addrs.p);
		h->port = (uint16_t)u16(addrs.p + 32);
	}
	return (tlvs_read(rest, h) ? PARSE_DONE : bad(why, "a TLV is longer than the header"));
}

static enum parse
v2_read(struct text in, struct proxy_header *h, size_t *used, const char **why)
{
	unsigned command, n;

	if (in.n < 16)
		return (PARSE_MORE);
	command = (unsigned char)in.p[12];
	n = u16(in.p + 14);
	if (command != 0x20 && command != 0x21)
		return (bad(why, "expected version 2 and the command LOCAL or PROXY"));
	if (n > PROXY_HEADER_MAX - 16)
		return (bad(why, "the header is longer than 4096 bytes"));
	if (in.n < 16 + n)
		return (PARSE_MORE);
	*used = 16 + n;
	if (command == 0x20)
		return (PARSE_DONE);
	return (v2_proxied((unsigned char)in.p[13], (struct text){ in.p + 16, n }, h, why));
}

/* ---- both */

/* True while the bytes so far may be the beginning of it. */
static bool
may_begin(struct text in, struct text with)
{
	size_t n = in.n < with.n ? in.n : with.n;

	return (memcmp(in.p, with.p, n) == 0);
}

enum parse
proxy_header_read(struct text in, struct proxy_header *h, size_t *used, const char **why)
{
	static const struct text word = TEXT("PROXY ");

	memset(h, 0, sizeof(*h));
	*used = 0;
	if (in.n == 0)
		return (PARSE_MORE);
	if (may_begin(in, word))
		return (in.n < word.n ? PARSE_MORE : v1_read(in, h, used, why));
	if (may_begin(in, signature))
		return (v2_read(in, h, used, why));
	return (bad(why, "expected the header of the PROXY protocol"));
}
