/* base/utf8.c -- see utf8.h */
#include "base/utf8.h"

/* Length of the well-formed UTF-8 sequence at s (Unicode table 3-7), or 0: no overlong forms, no
 * surrogates, nothing above U+10FFFF. */
static size_t
utf8_len(const unsigned char *s, size_t n)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t len, i;

	if (s[0] < 0x80)
		return (1);
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return (0);
	len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[0] == 0xe0)
		lo = 0xa0;
	else if (s[0] == 0xed)
		hi = 0x9f;
	else if (s[0] == 0xf0)
		lo = 0x90;
	else if (s[0] == 0xf4)
		hi = 0x8f;
	if (n < len || s[1] < lo || s[1] > hi)
		return (0);
	for (i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return (0);
	return (len);
}

static uint32_t
decode(const unsigned char *s, size_t len)
{
	static const unsigned char mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = s[0] & mask[len];
	size_t i;

	for (i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	return (c);
}

uint32_t
utf8_char(struct text t)
{
	const unsigned char *s = (const unsigned char *)t.p;

	return (t.n > 0 && utf8_len(s, t.n) == t.n ? decode(s, t.n) : UTF8_NONE);
}

bool
utf8_is_valid(struct text t)
{
	size_t len;

	while (t.n > 0) {
		len = utf8_len((const unsigned char *)t.p, t.n);
		if (len == 0)
			return (false);
		t.p += len;
		t.n -= len;
	}
	return (true);
}

static bool
is_odd(uint32_t c)
{
	return (c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x061c || c == 0x200e || c == 0x200f ||
		(c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff);
}

static struct text
run(struct text *t, struct text *odd, bool quotes)
{
	const unsigned char *s = (const unsigned char *)t->p;
	struct text shown;
	size_t i, len = 0;

	for (i = 0; i < t->n; i += len) {
		len = 1;
		if (s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' && s[i] != '\\')
			continue; /* most bytes, by far */
		len = utf8_len(s + i, t->n - i);
		if (len == 0 || is_odd(decode(s + i, len)) ||
		    (quotes && (s[i] == '"' || s[i] == '\\')))
			break;
	}
	shown = text_take(t, i);
	*odd = t->n > 0 ? text_take(t, len != 0 ? len : 1) : TEXT_NONE;
	return (shown);
}

struct text
utf8_visible(struct text *t, struct text *odd)
{
	return (run(t, odd, false));
}

struct text
utf8_quotable(struct text *t, struct text *odd)
{
	return (run(t, odd, true));
}
