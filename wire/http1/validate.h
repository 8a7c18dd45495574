/* wire/http1/validate.h -- entity tags, conditions, ranges (RFC 9110 sections 8.8, 13, 14).
 * Pure. */
#ifndef WIRE_VALIDATE_H
#define WIRE_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "base/text.h"
#include "wire/http1/http1.h"
#include "wire/http1/range.h"

#define ETAG_MAX 96 /* W/, quotes, five numbers of 16 digits */

enum { ETAG_INODE = 1, ETAG_MTIME = 2, ETAG_SIZE = 4, ETAG_CTIME = 8 }; /* etag.use-inode ... */

/* Returns the length of the tag, with its quotes.  parts 0: no tag, 0.  unsettled 0: a strong tag.
 * unsettled T: a weak tag that ends with T, the time of the check.  T keeps it from matching the
 * later strong tag, because weak comparison ignores W/. */
size_t etag_make(char dst[ETAG_MAX], const struct statx *, unsigned parts, uint64_t unsettled);

struct validators {
	struct text etag; /* with quotes; .n 0: none */
	uint64_t mtime_s; /* 0: none */
	/* Other contents may have the same date: that second has not passed, or they are not
	 * settled. */
	bool date_is_weak;
};

/* 0: send the file; 304; 412.  In the order of RFC 9110 13.2.2. */
int conditions_check(const struct http_request *, const struct validators *);

/* The number of ranges to send: 0 = whole file (no header, malformed, other unit, If-Range does
 * not match, too many, or the parts together would be longer than the file); 1..RANGES_MAX; -1 =
 * unsatisfiable, 416.  Overlapping and adjacent ranges are joined if there are several. */
int ranges_select(const struct http_request *, const struct validators *, uint64_t size,
    struct range_part out[RANGES_MAX]);

#endif
