/* caller.h -- whether the program that waits for an answer was killed, from /proc.  Any thread.
 *
 * FUSE_INTERRUPT alone does not say so.  It also comes for a signal that has a handler, and then
 * never again.  It does not come for a direct read, nor for asynchronous reads that end at exit.
 */
#ifndef SLOWFS_CALLER_H
#define SLOWFS_CALLER_H

#include <stdbool.h>
#include <sys/types.h>

/* the process of a thread; 0 when there is no such thread */
pid_t caller_group(pid_t thread);
bool caller_killed(pid_t thread, pid_t group); /* being killed, exiting, or gone */

#endif
