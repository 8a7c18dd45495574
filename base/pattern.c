#include "base/pattern.h"

#include <endian.h>
#include <string.h>

#define WORD  sizeof(uint64_t)
#define ODD   0x9e3779b97f4a7c15ull /* 2^64 by the golden ratio; any odd number with mixed bits */
#define ODD_2 0xbf58476d1ce4e5b9ull

/* Both steps can be undone, so no two words of a file are equal. */
static uint64_t
mix(uint64_t x)
{
	x ^= x >> 31;
	x *= ODD_2;
	return (x ^ x >> 29);
}

/* The word with number i, as it is in memory. */
static uint64_t
word(uint64_t key, uint64_t i)
{
	return (htole64(mix(key + i * ODD)));
}

uint64_t
pattern_key(const char *name, size_t n)
{
	uint64_t key = n;

	for (size_t i = 0; i < n; i++)
		key = mix((key ^ (unsigned char)name[i]) * ODD);
	return (mix(key * ODD));
}

void
pattern_fill(uint64_t key, uint64_t offset, void *buf, size_t n)
{
	const size_t skip = offset % WORD;
	uint64_t i = offset / WORD, w;
	unsigned char *p = buf;
	size_t part;

	if (skip != 0 && n > 0) {
		w = word(key, i++);
		part = n < WORD - skip ? n : WORD - skip;
		memcpy(p, (unsigned char *)&w + skip, part);
		p += part;
		n -= part;
	}
	for (; n >= WORD; n -= WORD, p += WORD) {
		w = word(key, i++);
		memcpy(p, &w, WORD);
	}
	if (n > 0) {
		w = word(key, i);
		memcpy(p, &w, n);
	}
}

/* How many bytes of a part of a word are right. */
static size_t
right_bytes(const unsigned char *p, uint64_t w, size_t from, size_t n)
{
	const unsigned char *want = (const unsigned char *)&w + from;
	size_t i = 0;

	while (i < n && p[i] == want[i])
		i++;
	return (i);
}

size_t
pattern_check(uint64_t key, uint64_t offset, const void *buf, size_t n)
{
	const size_t skip = offset % WORD;
	const unsigned char *const start = buf, *p = start, *const end = start + n;
	uint64_t i = offset / WORD, w, is;
	size_t part, right;

	if (skip != 0) {
		part = n < WORD - skip ? n : WORD - skip;
		right = right_bytes(p, word(key, i++), skip, part);
		p += right;
		if (right < part)
			return (right);
	}
	for (; (size_t)(end - p) >= WORD; p += WORD) {
		w = word(key, i++);
		memcpy(&is, p, WORD);
		if (is != w)
			return ((size_t)(p - start) + right_bytes(p, w, 0, WORD));
	}
	return ((size_t)(p - start) + right_bytes(p, word(key, i), 0, (size_t)(end - p)));
}

bool
pattern_find(const char *path, size_t len, uint64_t offset, const void *bytes, size_t n,
    uint64_t *key)
{
	size_t best = 0, parts = 0, right;
	uint64_t k;

	for (size_t at = len; at-- > 0 && parts < PATTERN_PARTS;) {
		if (at > 0 && path[at - 1] != '/')
			continue;
		k = pattern_key(path + at, len - at);
		right = pattern_check(k, offset, bytes, n);
		parts++;
		if (right < (n < PATTERN_SURE ? n : PATTERN_SURE) || right <= best)
			continue;
		best = right;
		*key = k;
	}
	return (best > 0);
}
