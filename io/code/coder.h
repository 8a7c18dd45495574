/* io/code/coder.h -- content codings: gzip, deflate, Brotli, Zstandard, by their libraries.
 *
 *   bytes --coder_step()--> *out      CODE_FLUSH: the client can decode all bytes so far
 *                                     CODE_END:   the last ones
 *
 * Bounds   the memory of one coder is CODER_MEMORY at most, with any settings.
 * Errors   -ENOMEM: the coder cannot go on.
 * Thread   any; one at a time.  A step takes time in proportion to its input, so it is an IO_WORK.
 */
#ifndef IO_CODE_CODER_H
#define IO_CODE_CODER_H

#include "base/buf.h"
#include "wire/http1/accept_encoding.h"

#define CODER_MEMORY (4u << 20)
#define CODER_LEVEL  (-1) /* the level of the library, or one that is fit for a server */

/* Settings: equal settings give equal bytes.  Windows are logarithms; 0: chosen by the coding. */
struct coder_conf {
	uint8_t coding; /* enum coding */
	int8_t level;
	uint8_t window, memory, strategy;
};

enum coder_step { CODE_MORE, CODE_FLUSH, CODE_END };

struct coder;

/* False: a setting of deflate.params is out of its range. */
bool coder_conf_fits(const struct coder_conf *);
/* size: of all bytes, 0: unknown.  NULL: no memory. */
struct coder *coder_new(const struct coder_conf *, uint64_t size);
int coder_step(struct coder *, struct text in, enum coder_step, struct buf *out);
void coder_free(struct coder *); /* NULL is allowed */

#endif
