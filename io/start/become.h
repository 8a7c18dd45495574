/* io/start/become.h -- root becomes a user for good: the one place for servers and their programs.
 *
 * Sets the real, effective and saved user and group, and replaces the supplementary groups: those
 * of the user, and gid.
 *
 * Errors   0, or -errno; -ENOTRECOVERABLE: root could come back.  A process that failed may be half
 *          changed and has to end.
 */
#ifndef IO_START_BECOME_H
#define IO_START_BECOME_H

#include <sys/types.h>

#define BECOME_SAME_USER ((uid_t)-1) /* the user stays: only the groups change */

/* The process gets the groups of the user NAME.  NULL: the system looks up the name of uid. */
int become(const char *name, uid_t uid, gid_t gid);

#endif
