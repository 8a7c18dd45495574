/* base/buf.h -- a growable buffer with an upper bound.
 *
 * Owner    the holder of the struct; buf_free() frees the memory and leaves it empty.
 * Errors   the first append that exceeds the bound, or finds no memory, sets .failed.  Later
 *          appends do nothing, so a builder checks once at its end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/text.h"

struct buf {
	char *p;
	size_t n, cap, max; /* max 0: no bound */
	bool failed;
};

void buf_init(struct buf *, size_t max);
void buf_free(struct buf *);
void buf_add_more(struct buf *, const void *p, size_t n); /* buf_add() without room */
/* Appends n bytes, which the caller writes; NULL: failed. */
char *buf_extend(struct buf *, size_t n);
void buf_u64(struct buf *, uint64_t v);
void buf_printf(struct buf *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_drop(struct buf *, size_t n); /* removes n bytes from the front */

/* Odd characters (base/utf8.h), `"` and `\` byte by byte as \xHH: safe between quotes of a log
 * line. */
void buf_log_quoted(struct buf *, struct text t);
void buf_html(struct buf *, struct text t);   /* & < > " ' escaped, odd characters as \xHH */
void buf_urlenc(struct buf *, struct text t); /* all bytes except unreserved ones and '/' as %XX */
/* With quotes; odd characters as \uHHHH, invalid UTF-8 as U+FFFD. */
void buf_json(struct buf *, struct text t);

/* Inline: a head consists of many short literals, and each is then a few moves. */
static inline void
buf_add(struct buf *b, const void *p, size_t n)
{
	if (n == 0)
		return;
	if (b->failed || n > b->cap - b->n) {
		buf_add_more(b, p, n);
		return;
	}
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

static inline void
buf_text(struct buf *b, struct text t)
{
	buf_add(b, t.p, t.n);
}

static inline void
buf_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

static inline void
buf_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

static inline struct text
buf_as_text(const struct buf *b)
{
	return ((struct text){ b->p, b->n });
}

#endif
