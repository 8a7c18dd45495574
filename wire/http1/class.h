/* wire/http1/class.h -- the classes of a byte; shared by the files of wire/. */
#ifndef WIRE_HTTP1_CLASS_H
#define WIRE_HTTP1_CLASS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	C_TOKEN = 1,  /* RFC 9110 5.6.2 */
	C_HOST = 2,   /* reg-name: unreserved, sub-delims, '%' */
	C_TARGET = 4, /* printable, except '#' */
	C_VALUE = 8,  /* all but control characters; HTAB is allowed */
};

#define ALL (C_TOKEN | C_HOST | C_TARGET | C_VALUE)
#define TOK (C_TOKEN | C_TARGET | C_VALUE)
#define REG (C_HOST | C_TARGET | C_VALUE)
#define TGT (C_TARGET | C_VALUE)

static const uint8_t http1_class[256] = {
	['0' ... '9'] = ALL,
	['A' ... 'Z'] = ALL,
	['a' ... 'z'] = ALL,
	['!'] = ALL,
	['$'] = ALL,
	['%'] = ALL,
	['&'] = ALL,
	['\''] = ALL,
	['*'] = ALL,
	['+'] = ALL,
	['-'] = ALL,
	['.'] = ALL,
	['_'] = ALL,
	['~'] = ALL,
	['^'] = TOK,
	['`'] = TOK,
	['|'] = TOK,
	['#'] = C_TOKEN | C_VALUE,
	['('] = REG,
	[')'] = REG,
	[','] = REG,
	[';'] = REG,
	['='] = REG,
	['"'] = TGT,
	['/'] = TGT,
	[':'] = TGT,
	['<'] = TGT,
	['>'] = TGT,
	['?'] = TGT,
	['@'] = TGT,
	['['] = TGT,
	['\\'] = TGT,
	[']'] = TGT,
	['{'] = TGT,
	['}'] = TGT,
	['\t'] = C_VALUE,
	[' '] = C_VALUE,
	[0x80 ... 0xff] = C_VALUE,
};

static inline bool
is(char c, unsigned what)
{
	return ((http1_class[(unsigned char)c] & what) != 0);
}

#undef ALL
#undef TOK
#undef REG
#undef TGT

#endif
