/* wire/codec/pieces.h -- the value of X-Sendfile2: pieces of files, sent one after the other.
 * Pure.
 *
 *   /srv/a%20b 0-99, /srv/c 100-      bytes 0 to 99 of "/srv/a b", then all of /srv/c after 99
 */
#ifndef WIRE_PIECES_H
#define WIRE_PIECES_H

#include <stdint.h>
#include "base/text.h"

#define PIECES_MAX 32u

struct piece {
	struct text path;  /* percent-encoded, a slice of the value */
	uint64_t from, to; /* to: after the last byte; UINT64_MAX: the end of the file */
};

/* Returns the number of pieces, or -EINVAL (no such value, or too many pieces). */
int pieces_read(struct text value, struct piece v[PIECES_MAX]);

#endif
