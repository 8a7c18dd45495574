/* accel-load/reading.h -- one answer while it is read: judges it, and counts what it brings.
 *
 *	reading_begin() at its head --> reading_body()... --> reading_end()
 *
 * HTTP/1.1 and FastCGI have one for each connection, HTTP/2 one for each stream.
 */
#ifndef ACCEL_LOAD_READING_H
#define ACCEL_LOAD_READING_H

#include "accel-load/thread.h"
#include "accel-load/verify.h"

/* Embedded; begins with zeros. */
struct reading {
	struct verify verify;
	bool beside; /* one of --beside: not verified, not left */
	bool begun;  /* its head was read */
	bool status_ok, head_ok;
	int status;
	uint64_t received, abort_at; /* bytes of its body; NEVER */
};

struct reading_head {
	int status;
	uint64_t first; /* offset of the body's first byte in the file */
	int64_t total;  /* length of the file; -1: unknown */
};

void reading_begin(struct reading *, struct thread *, const struct request *, struct url *,
    const struct reading_head *);
/* p NULL: the kernel dropped the bytes. */
void reading_body(struct reading *, struct thread *, const struct request *, const char *p,
    size_t n);
void reading_end(struct reading *, struct thread *, const struct request *, bool too_long);

/* --abort: true when the answer is to be left. */
static inline bool
reading_aborts(const struct reading *g)
{
	return (g->begun && g->received >= g->abort_at);
}

static inline struct counts *
reading_counts(const struct reading *g, const struct thread *t)
{
	return (g->beside ? t->beside.counts : t->counts);
}

#endif
