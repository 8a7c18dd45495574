/* base/text.h -- bytes with a length: slices of memory of another owner, and small parsers.
 *
 * No function allocates, locks or uses the locale.  A text may contain NUL bytes.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
	const char *p;
	size_t n;
};

#define TEXT(lit) ((struct text){ (lit), sizeof(lit) - 1 })
#define TEXT_NONE ((struct text){ NULL, 0 })

static inline struct text
text_of(const char *s)
{
	return ((struct text){ s, s != NULL ? strlen(s) : 0 });
}

static inline bool
text_eq(struct text a, struct text b)
{
	return (a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0));
}

/* Removes n bytes, or all if there are fewer, from the front and returns them. */
static inline struct text
text_take(struct text *t, size_t n)
{
	struct text taken = { t->p, n < t->n ? n : t->n };

	if (taken.n != 0) /* p may be NULL, to which C adds not even 0 */
		t->p += taken.n;
	t->n -= taken.n;
	return (taken);
}

static inline unsigned char
byte_lower(char c)
{
	return ((unsigned char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c));
}

static inline bool
byte_is_digit(char c)
{
	return (c >= '0' && c <= '9');
}

static inline bool
byte_is_alnum(char c)
{
	char lower = (char)(c | 0x20);

	return (byte_is_digit(c) || (lower >= 'a' && lower <= 'z'));
}

/* The time does not depend on the bytes; it depends on the length. */
bool text_eq_secret(struct text a, struct text b);
bool text_ieq(struct text a, struct text b); /* ignores the case of ASCII letters */
bool text_istarts(struct text t, struct text prefix);
bool text_iends(struct text t, struct text suffix);
/* ignores the case of ASCII letters */
bool text_is_one_of(struct text t, const struct text *names, size_t n);
bool text_starts(struct text t, struct text prefix);
bool text_ends(struct text t, struct text suffix);
/* At least one byte, and all are ASCII letters, digits or extra. */
bool text_is_plain(struct text t, char extra);
bool text_has_control(struct text t);    /* bytes below SP, DEL */
struct text text_trim(struct text t);    /* without SP and HTAB at both ends */
struct text text_trim_cr(struct text t); /* without a CR at its end */

/* Splits off the part before the first SEP; *rest is the part after it.  False if *rest is used
 * up.
 * Empty members are returned, too: "a,,b" has three members, "" has one, TEXT_NONE has none (*rest
 * is TEXT_NONE when it is used up). */
bool text_next(struct text *rest, char sep, struct text *member);

/* Decimal digits only, all of t: 0, -EINVAL (empty, or other bytes) or -ERANGE. */
int text_u64(struct text t, uint64_t *out);
int text_hex_digit(char c); /* 0..15, or -1 */
/* "4096", "64k", "16M", "1g".  False: not a size, or not from min to max; *n is unchanged. */
bool text_size(struct text t, uint64_t min, uint64_t max, uint64_t *n);

/* Writes v in decimal without a NUL; returns the number of bytes (at most 20). */
size_t text_put_u64(char *dst, uint64_t v);

uint64_t text_hash(struct text t); /* fast; a secret per process prevents collision attacks */

/* The nearest of names (NULL at the end) by edit distance, or NULL if none is near. */
const char *text_nearest(const char *word, const char *const *names);

#endif
