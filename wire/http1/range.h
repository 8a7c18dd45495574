/* wire/http1/range.h -- the byte ranges of a Range header (RFC 9110, 14.1.2), before the size of
 * the file is known.  Pure, linear.  ranges_select() in wire/http1/validate.h judges the header for
 * a reply: -1 (416, unsatisfiable) if no range has a byte of the file.
 *
 * Units    bytes.  A number that is too large counts as infinite: no file has this many bytes.
 */
#ifndef WIRE_RANGE_H
#define WIRE_RANGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

#define RANGE_TAIL  UINT64_MAX /* value of from: the last `to` bytes */
#define RANGES_MAX  16         /* of one reply; a request for more gets the whole file */
#define RANGE_PARTS 4u         /* of a range_set: what is made warm */

struct range_part {
	/* first byte, and the byte after the last; UINT64_MAX: the end of the file */
	uint64_t from, to;
};

struct range_set {
	unsigned n; /* 0: no bytes */
	struct range_part part[RANGE_PARTS];
};

/* "bytes=SET": its set.  False: another unit, or a space next to the "=", which RFC 9110, 14.1 does
 * not allow. */
bool range_bytes(struct text header, struct text *set);
/* Splits the next range off *set: "5-9", "5-" or "-9".  1: *p has it; 0: no more; -1: malformed. */
int range_next(struct text *set, struct range_part *p);
/* Adds p; before and after, no two of the n parts in out touch.  A joined part is at the place of
 * its first member, so the requested order stays.  Returns the new n, at most n + 1. */
unsigned range_join(struct range_part *out, unsigned n, struct range_part p);
/* "bytes=5-9, -5": its parts, at most the first RANGE_PARTS.  False: malformed, or another unit. */
bool range_set_read(struct text header, struct range_set *);
/* The part within a file of this size; from and to are equal if no byte of it exists. */
struct range_part range_clip(struct range_part, uint64_t size);
/* The first `most` bytes of the union in a file of this size, as sorted parts that do not touch.
 * Returns the number of parts. */
unsigned range_resolve(const struct range_set *, uint64_t size, uint64_t most,
    struct range_part out[RANGE_PARTS]);

#endif
