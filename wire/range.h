/* wire/range.h -- parts of a file, as a Range header (RFC 9110, 14.1.2) asks for them before the size is known.  Pure, linear.
 *
 * Units    bytes.  A number too large for us is as good as infinite: no file has that many bytes.
 */
#ifndef WIRE_RANGE_H
#define WIRE_RANGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

#define RANGE_TAIL UINT64_MAX	/* as from: the last `to` bytes */
#define RANGE_PARTS 4u

struct range_part {
	uint64_t from, to;      /* the byte behind the last; UINT64_MAX: the end of the file */
};

struct range_set {
	unsigned n;             /* 0: no bytes at all */
	struct range_part part[RANGE_PARTS];
};

/* "bytes=SET": its set.  False: another unit, or a space on a side of the "=", where RFC 9110, 14.1 allows none. */
bool range_bytes(struct text header, struct text *set);
/* "5-9", "5-", "-9"; false: malformed. */
bool range_read(struct text spec, struct range_part *);
/* "bytes=5-9, -5": its parts; of more than RANGE_PARTS the first.  False: malformed, or not of bytes. */
bool range_set_read(struct text header, struct range_set *);
bool range_set_equal(const struct range_set *, const struct range_set *);
/* The first `most` bytes of the union in a file of this size: sorted, no two touch.  How many parts. */
unsigned range_resolve(const struct range_set *, uint64_t size, uint64_t most, struct range_part out[RANGE_PARTS]);

#endif
