/* io/lent.h -- a receive buffer that is kept for several owners, so that bytes are passed on
 * without a copy.
 *
 *   done() of a RECV --io_lent_keep()--> lent --io_lent_ref()--> piece of a body (body_lend)
 *                                          `---io_lent_drop()     with release io_lent_drop
 *
 * Bounds   counts as held memory of the loop, like the windows of files that senders hold.  Above
 *          the loop's bound (32 MiB) nothing is kept, and the caller copies.
 * Thread   the loop's.
 */
#ifndef IO_LENT_H
#define IO_LENT_H

#include "io/io.h"

struct io_lent;

/* Inside done() of a RECV: its buffer is the lent's from now on, one reference.  NULL: too much is
 * held, or no memory. */
struct io_lent *io_lent_keep(struct io_op *);
struct io_lent *io_lent_ref(struct io_lent *);
void io_lent_drop(void *lent); /* one reference; the last one gives the buffer back */

#endif
