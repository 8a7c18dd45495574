/* accel-warm/met.h -- directories that were met: with links followed, many names lead to one, and to loops.
 *
 * Thread   the caller's lock.
 */
#ifndef ACCEL_WARM_MET_H
#define ACCEL_WARM_MET_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

GHashTable *walk_met_new(void);
bool walk_met_add(GHashTable *, dev_t, ino_t);	/* false: it is there already */

#endif
