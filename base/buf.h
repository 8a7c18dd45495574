/* base/buf.h -- a growable run of bytes with an upper bound.
 *
 * Owner    the holder of the struct; buf_free() gives the memory back and leaves it empty.
 * Errors   the first append that would pass the bound, or finds no memory, sets .failed; from then
 *          on appends do nothing, so a builder checks once at its end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/text.h"

struct buf {
	char *p;
	size_t n, cap, max; /* max 0: no bound but memory */
	bool failed;
};

void buf_init(struct buf *, size_t max);
void buf_free(struct buf *);
bool buf_reserve(struct buf *, size_t more);
void buf_add(struct buf *, const void *p, size_t n);
void buf_text(struct buf *, struct text t);
void buf_str(struct buf *, const char *s);
void buf_char(struct buf *, char c);
void buf_u64(struct buf *, uint64_t v);
void buf_printf(struct buf *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_drop(struct buf *, size_t n); /* takes n bytes off the front */

/* What base/utf8.h calls odd, `"` and `\`, byte by byte as \xHH: safe in a log line between quotes. */
void buf_log_quoted(struct buf *, struct text t);
void buf_html(struct buf *, struct text t);     /* & < > " ' escaped; what is odd as \xHH */
void buf_urlenc(struct buf *, struct text t);   /* all but unreserved and '/' as %XX */
void buf_json(struct buf *, struct text t);     /* with the quotes; what is odd as \uHHHH, invalid UTF-8 as U+FFFD */

static inline struct text
buf_as_text(const struct buf *b)
{
	return ((struct text){b->p, b->n});
}

#endif
