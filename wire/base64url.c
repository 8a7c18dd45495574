/* wire/base64url.c -- see base64url.h */
#include "wire/base64url.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t
base64url_encode(struct text t, char *dst)
{
	uint32_t bits = 0;
	unsigned have = 0;
	size_t i, n = 0;

	for (i = 0; i < t.n; i++) {
		bits = (bits << 8 | (unsigned char)t.p[i]) & 0xffffff;
		for (have += 8; have >= 6; have -= 6)
			dst[n++] = digits[bits >> (have - 6) & 63];
	}
	if (have != 0)
		dst[n++] = digits[bits << (6 - have) & 63];
	return (n);
}

static int
value_of(char c)
{
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return (at != NULL ? (int)(at - digits) : -1);
}

size_t
base64url_decode(struct text t, char *dst)
{
	uint32_t bits = 0;
	unsigned have = 0;
	size_t i, n = 0;
	int value;

	while (t.n != 0 && t.p[t.n - 1] == '=')
		t.n--;
	if (t.n % 4 == 1)
		return (0);
	for (i = 0; i < t.n; i++) {
		value = value_of(t.p[i]);
		if (value < 0)
			return (0);
		bits = (bits << 6 | (uint32_t)value) & 0xffffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			dst[n++] = (char)(bits >> have);
		}
	}
	return (n);
}
