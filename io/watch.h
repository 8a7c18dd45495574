/* io/watch.h -- a small file that others change: a thread reads it at once, and again after each
 * change.
 *
 *   io/watch_set.h --> read --> seen(bytes)
 *
 * It is read at most once a second.
 *
 * Owner    the caller.  bytes are lent to seen().
 * Thread   set and free: one thread.  seen() runs in the thread of the watch, without a lock.
 * Waits    only the thread does.  file_watch_free() leaves it behind if a disk holds it for more
 *          than a second.
 */
#ifndef IO_WATCH_H
#define IO_WATCH_H

#include <stddef.h>

#include "base/text.h"

#define WATCH_GAP_MS 1000

struct file_watch;

/* err: 0, or -errno without bytes: -ENOENT, -EFBIG if the file is longer than max ... */
typedef void file_watch_seen(void *arg, const char *path, struct text bytes, int err);

/* NULL: no memory, thread or descriptor.  No file is watched yet. */
struct file_watch *file_watch_new(size_t max, file_watch_seen *, void *arg);
void file_watch_set(struct file_watch *, const char *path); /* absolute; NULL: none */
/* NULL is allowed.  False: the thread is left behind, and may call seen() later. */
bool file_watch_free(struct file_watch *);

#endif
