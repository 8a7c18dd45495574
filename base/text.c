/* base/text.c -- slices: compare, split, numbers, hash. */
#include <errno.h>
#include <sys/random.h>
#include "base/clock.h"
#include "base/load.h"
#include "base/must.h"
#include "base/text.h"

#define NEAREST_MAX 64 /* longer words get no suggestion */

bool
text_eq_secret(struct text a, struct text b)
{
	volatile unsigned char differs = 0;
	size_t i;

	if (a.n != b.n)
		return (false);
	for (i = 0; i < a.n; i++)
		differs |= (unsigned char)(a.p[i] ^ b.p[i]);
	return (differs == 0);
}

bool
text_ieq(struct text a, struct text b)
{
	size_t i;

	if (a.n != b.n)
		return (false);
	for (i = 0; i < a.n; i++)
		if (a.p[i] != b.p[i] && byte_lower(a.p[i]) != byte_lower(b.p[i]))
			return (false);
	return (true);
}

bool
text_istarts(struct text t, struct text prefix)
{
	return (text_ieq(text_take(&t, prefix.n), prefix));
}

bool
text_iends(struct text t, struct text suffix)
{
	return (
	    t.n >= suffix.n && text_ieq((struct text){ t.p + t.n - suffix.n, suffix.n }, suffix));
}

bool
text_is_one_of(struct text t, const struct text *names, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (names[i].n == t.n && text_ieq(names[i], t))
			return (true);
	return (false);
}

bool
text_starts(struct text t, struct text prefix)
{
	return (t.n >= prefix.n && (prefix.n == 0 || memcmp(t.p, prefix.p, prefix.n) == 0));
}

bool
text_ends(struct text t, struct text suffix)
{
	return (t.n >= suffix.n &&
		(suffix.n == 0 || memcmp(t.p + t.n - suffix.n, suffix.p, suffix.n) == 0));
}

bool
text_is_plain(struct text t, char extra)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if (!byte_is_alnum(t.p[i]) && t.p[i] != extra)
			return (false);
	return (t.n > 0);
}

bool
text_has_control(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if ((unsigned char)t.p[i] < ' ' || t.p[i] == 127)
			return (true);
	return (false);
}

struct text
text_trim_cr(struct text t)
{
	if (t.n != 0 && t.p[t.n - 1] == '\r')
		t.n--;
	return (t);
}

struct text
text_trim(struct text t)
{
	while (t.n > 0 && (t.p[0] == ' ' || t.p[0] == '\t'))
		text_take(&t, 1);
	while (t.n > 0 && (t.p[t.n - 1] == ' ' || t.p[t.n - 1] == '\t'))
		t.n--;
	return (t);
}

bool
text_next(struct text *rest, char sep, struct text *member)
{
	const char *at;

	if (rest->p == NULL)
		return (false);
	at = rest->n > 0 ? memchr(rest->p, sep, rest->n) : NULL;
	if (at == NULL) {
		*member = *rest;
		*rest = TEXT_NONE;
		return (true);
	}
	*member = (struct text){ rest->p, (size_t)(at - rest->p) };
	rest->n -= member->n + 1;
	rest->p = at + 1;
	return (true);
}

/* ---------------------------------------------------------------- numbers */

int
text_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (c - '0');
	c |= 0x20;
	if (c >= 'a' && c <= 'f')
		return (c - 'a' + 10);
	return (-1);
}

int
text_u64(struct text t, uint64_t *out)
{
	uint64_t v = 0;
	bool over = false;
	unsigned d;
	size_t i;

	if (t.n == 0)
		return (-EINVAL);
	for (i = 0; i < t.n; i++) {
		d = (unsigned char)t.p[i] - (unsigned)'0';
		if (d > 9)
			return (-EINVAL);
		over |= __builtin_mul_overflow(v, 10, &v);
		over |= __builtin_add_overflow(v, d, &v);
	}
	if (over)
		return (-ERANGE);
	*out = v;
	return (0);
}

bool
text_size(struct text t, uint64_t min, uint64_t max, uint64_t *n)
{
	static const char units[] = "kmg";
	const char *unit = t.n > 1 ? strchr(units, byte_lower(t.p[t.n - 1])) : NULL;
	unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
	uint64_t value;

	t.n -= unit != NULL;
	if (text_u64(t, &value) != 0 || value > max >> shift || value << shift < min)
		return (false);
	*n = value << shift;
	return (true);
}

size_t
text_put_u64(char *dst, uint64_t v)
{
	uint64_t left = v;
	size_t n = 1, i;

	while ((left /= 10) != 0)
		n++;
	for (i = n; i > 0; v /= 10)
		dst[--i] = (char)('0' + v % 10);
	return (n);
}

/* ---------------------------------------------------------------- hash
 *
 * Sixteen bytes a step, each step one 64 x 64 -> 128 bit product folded to 64.  Both factors are
 * mixed with a secret, so that a client cannot choose names that share a bucket. */

static uint64_t hash_seed, hash_secret;

/* Runs before main(), so that the hot path needs no check. */
static void __attribute__((constructor)) hash_start(void)
{
	uint64_t r[2];

	if (getrandom(r, sizeof(r), GRND_NONBLOCK) != (ssize_t)sizeof(r)) {
		r[0] = clock_wall_ns() * 0x9e3779b97f4a7c15u;
		r[1] = clock_mono_ns() * 0xbf58476d1ce4e5b9u ^ (uintptr_t)r;
	}
	hash_seed = r[0];
	hash_secret = r[1] | 1; /* never zero: a zero factor would cancel the other factor */
}

static inline uint64_t
hash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return ((uint64_t)m ^ (uint64_t)(m >> 64));
}

uint64_t
text_hash(struct text t)
{
	uint64_t h = hash_seed, a = 0, b = 0;
	const char *p = t.p;
	size_t n = t.n;

	for (; n > 16; n -= 16, p += 16)
		h = hash_mix(load64(p) ^ hash_secret, load64(p + 8) ^ h);
	/* the two loads may overlap; the length distinguishes such texts */
	if (n >= 8) {
		a = load64(p);
		b = load64(p + n - 8);
	} else if (n >= 4) {
		a = load32(p);
		b = load32(p + n - 4);
	} else if (n > 0) {
		a = (uint64_t)(unsigned char)p[0] << 16 | (uint64_t)(unsigned char)p[n / 2] << 8 |
		    (unsigned char)p[n - 1];
	}
	h = hash_mix(a ^ hash_secret, b ^ h);
	return (hash_mix(h ^ hash_secret, t.n ^ 0x9e3779b97f4a7c15u));
}

/* ---------------------------------------------------------------- "did you mean" */

static size_t
min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return (m < c ? m : c);
}

/* Levenshtein distance, one row at a time. */
static size_t
edit_distance(const char *a, size_t an, const char *b, size_t bn)
{
	size_t row[NEAREST_MAX + 1], i, j, diag, up;

	for (j = 0; j <= bn; j++)
		row[j] = j;
	for (i = 1; i <= an; i++) {
		diag = row[0];
		row[0] = i;
		for (j = 1; j <= bn; j++) {
			up = row[j];
			row[j] = min3(up + 1, row[j - 1] + 1,
			    diag + (byte_lower(a[i - 1]) != byte_lower(b[j - 1])));
			diag = up;
		}
	}
	return (row[bn]);
}

const char *
text_nearest(const char *word, const char *const *names)
{
	const char *best = NULL;
	size_t n = strlen(word), len, d, least;

	if (n > NEAREST_MAX)
		return (NULL);
	/* at most a third of the letters, and one more, may be wrong */
	least = n / 3 + 2;
	for (; *names != NULL; names++) {
		len = strlen(*names);
		if (len > NEAREST_MAX)
			continue;
		d = edit_distance(word, n, *names, len);
		if (d < least) {
			least = d;
			best = *names;
		}
	}
	return (best);
}
