/* io/watch_set.h -- files that others change: tells when one of them may have changed.
 *
 *   inotify of their directories --> an event with a name of ours
 *   stat(2), every WATCH_LOOK_MS --> another file, size or time
 *
 * So replacing a file by rename(2) is noticed, and one that comes or goes.  What happens on another
 * machine, or after a symbolic link, is noticed within WATCH_LOOK_MS.
 *
 * Owner    the caller.
 * Thread   one; it may wait for a disk.
 */
#ifndef IO_WATCH_SET_H
#define IO_WATCH_SET_H

#include <stdbool.h>
#include <stddef.h>

#define WATCH_LOOK_MS 30000
#define WATCH_BUSY_MS 100 /* the caller's pause after events of other files */

struct watch_set;

/* Absolute paths, which it copies.  NULL: no memory. */
struct watch_set *watch_set_new(char *const *paths, size_t n);
void watch_set_free(struct watch_set *); /* NULL is allowed, here and below: no files */
/* Looks at each file.  True: one of them has changed since the last call; so is the first one. */
bool watch_set_changed(struct watch_set *);
int watch_set_fd(const struct watch_set *); /* to poll for watch_set_events(); -1: none */
/* How long to wait for events before the next look; -1: no end. */
int watch_set_look_ms(const struct watch_set *);
/* True: a file of the set may have changed.  False: pause, or thousands of changes of other files
 * take a processor. */
bool watch_set_events(struct watch_set *);

#endif
