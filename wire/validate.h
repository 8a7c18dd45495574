/* wire/validate.h -- entity tags, conditions, ranges (RFC 9110 sections 8.8, 13, 14).  Pure. */
#ifndef WIRE_VALIDATE_H
#define WIRE_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "base/text.h"
#include "wire/http1.h"

#define ETAG_MAX 96 /* W/, quotes, five numbers of 16 digits */
#define RANGES_MAX 16

enum { ETAG_INODE = 1, ETAG_MTIME = 2, ETAG_SIZE = 4, ETAG_CTIME = 8 }; /* etag.use-inode ... */

/* Quoted strong tag from size and times in nanoseconds (and inode); returns its length, 0 when parts is 0.
 * unsettled 0: no other contents will ever have these times.  Else a weak tag (W/"...") that ends with this number, which says when
 * they were looked at: it must not match the strong tag of the contents that stay, as weak tags are compared without their W/. */
size_t etag_make(char dst[ETAG_MAX], const struct statx *, unsigned parts, uint64_t unsettled);

struct validators {
	struct text etag;   /* with quotes; .n 0: none */
	uint64_t mtime_s;   /* 0: none */
	bool date_is_weak;  /* other contents may have the same date: that second is not over, or they are not settled */
};

/* 0: send it; 304; 412.  In the order of RFC 9110 13.2.2. */
int conditions_check(const struct http_request *, const struct validators *);

struct byte_range {
	uint64_t off, len;
};

/* How many ranges to send: 0 = whole file (no, malformed, unit not bytes, If-Range does not match, too many, or the parts
 * together would be longer than the file); 1..RANGES_MAX; -1 = 416.  Overlapping and adjacent ones are joined when
 * more than one is asked for. */
int ranges_select(const struct http_request *, const struct validators *, uint64_t size, struct byte_range out[RANGES_MAX]);

#endif
