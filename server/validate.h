/* server/validate.h -- entity tags, dates, conditions, ranges (RFC 9110 sections 8.8, 13, 14).  Pure. */
#ifndef SERVER_VALIDATE_H
#define SERVER_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "base/text.h"
#include "server/http1.h"

#define ETAG_MAX 64
#define HTTP_DATE_LEN 29
#define RANGES_MAX 16

enum { ETAG_INODE = 1, ETAG_MTIME = 2, ETAG_SIZE = 4 }; /* etag.use-inode ... ; inode off: the same tag on every machine */

/* Quoted strong tag from size and nanosecond mtime (and inode); returns its length, 0 when parts is 0.
 * A file changed less than a second before it was read gets a weak one (W/"..."): two contents within one
 * tick of the file system's clock must not share a strong tag. */
size_t etag_make(char dst[ETAG_MAX], const struct statx *, unsigned parts, uint64_t now_wall_s);
void http_date_put(char dst[HTTP_DATE_LEN + 1], uint64_t unix_s); /* "Sun, 06 Nov 1994 08:49:37 GMT" */
int http_date_parse(struct text, uint64_t *unix_s);               /* the three forms; -EINVAL */

struct validators {
	struct text etag;   /* with quotes; .n 0: none */
	uint64_t mtime_s;   /* 0: none */
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
