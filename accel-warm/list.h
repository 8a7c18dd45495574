/* accel-warm/list.h -- paths from a file or from standard input, one per line or with a NUL behind each.
 *
 * A thread of its own reads them, since find(1) at the other end of a pipe may take its time.  What cannot be a path (too
 * long, a NUL in a line, an URL that leaves its root) is reported and counted.
 */
#ifndef ACCEL_WARM_LIST_H
#define ACCEL_WARM_LIST_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accel-warm/conf.h"
#include "accel-warm/queue.h"
#include "accel-warm/state.h"
#include "accel-warm/tally.h"

struct walk_list;

/* What one entry (n bytes, without its end) means: into *path.  0; -ENOENT: it is empty; -EINVAL: it cannot be a path. */
int walk_list_entry(const struct walk_conf *, const char *entry, size_t n, GString *path);

/* Holds the queue until it is read.  -errno: the file or its root cannot be opened, *bad says which. */
int  walk_list_start(const struct walk_conf *, struct walk_queue *, struct walk_state *, struct walk_list **, const char **bad);
void walk_list_tally(const struct walk_list *, struct walk_tally *);
double walk_list_part(const struct walk_list *);	/* of the file that is read, 0 to 1; 0: not known */
void walk_list_join(struct walk_list **);	/* the queue is empty */

#endif
