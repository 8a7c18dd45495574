/* caller.h -- whether the program that waits for an answer was killed, from /proc.  Any thread.
 *
 * FUSE_INTERRUPT alone does not tell: it comes for a signal that has a handler too, then never again,
 * and not at all for those who wait in a direct read or whose asynchronous reads are ended at exit.
 */
#ifndef SLOWFS_CALLER_H
#define SLOWFS_CALLER_H

#include <stdbool.h>
#include <sys/types.h>

pid_t caller_group(pid_t thread);		/* the process of a thread; 0 when there is no such thread */
bool  caller_killed(pid_t thread, pid_t group);	/* being killed, exiting, or gone */

#endif
