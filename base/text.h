/* base/text.h -- bytes with a length: slices of buffers of another owner, and small parsers.
 *
 * Nothing here allocates, locks or knows the locale.  A text may hold NUL bytes.
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

#define TEXT(lit) ((struct text){(lit), sizeof(lit) - 1})
#define TEXT_NONE ((struct text){NULL, 0})

static inline struct text
text_of(const char *s)
{
	return ((struct text){s, s != NULL ? strlen(s) : 0});
}

static inline bool
text_eq(struct text a, struct text b)
{
	return (a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0));
}

bool text_ieq(struct text a, struct text b); /* ASCII letters fold */
bool text_starts(struct text t, struct text prefix);
bool text_ends(struct text t, struct text suffix);
struct text text_trim(struct text t); /* without SP and HTAB at both ends */

/* Splits off what stands before the first SEP; *rest is what follows it.  False when *rest is spent.
 * Empty members are returned too ("a,,b" gives three, "" one, TEXT_NONE none: that is what "spent" looks like). */
bool text_next(struct text *rest, char sep, struct text *member);

/* Decimal digits only, all of them: 0 or -EINVAL (anything else in it, or empty) or -ERANGE. */
int text_u64(struct text t, uint64_t *out);
int text_hex64(struct text t, uint64_t *out);
int text_hex_digit(char c); /* 0..15, or -1 */

/* Writes v in decimal, returns the number of bytes (at most 20); no NUL. */
size_t text_put_u64(char *dst, uint64_t v);

uint64_t text_hash(struct text t); /* fast, seeded once per process against collision attacks */

/* Nearest of NAMES (NULL-terminated) by edit distance, or NULL when none is near. */
const char *text_nearest(const char *word, const char *const *names);

#endif
