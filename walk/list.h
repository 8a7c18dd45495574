/* walk/list.h -- paths from a file or from standard input, one per line or each with a NUL
 * after it.
 *
 * A thread of its own reads them, because find(1) at the other end of a pipe may be slow.  Entries
 * that are not paths (too long, a NUL in a line, a URL that leaves its root) are reported and
 * counted.
 */
#ifndef WALK_LIST_H
#define WALK_LIST_H

#include <glib.h>
#include <stddef.h>

#include "walk/conf.h"
#include "walk/queue.h"
#include "walk/state.h"
#include "walk/counters.h"

struct walk_list;

/* Turns one entry (n bytes, without its end) into *path.  0; -ENOENT: it is empty; -EINVAL: it is
 * not a path. */
int walk_list_entry(const struct walk_conf *, const char *entry, size_t n, GString *path);

/* Holds the queue until the list is read.  -errno: the file or its root cannot be opened; *bad
 * names it. */
int walk_list_start(const struct walk_conf *, struct walk_queue *, struct walk_state *,
    struct walk_list **, const char **bad);
void walk_list_counters(const struct walk_list *, struct walk_counters *);
/* part of the file that is read, 0 to 1; 0: unknown */
double walk_list_part(const struct walk_list *);
void walk_list_join(struct walk_list **); /* the queue must be empty */

#endif
