/* fcgi-stat-accel/open_asks.h -- roots on file systems whose open() asks another machine or
 * process, even if the file is in memory.
 *
 * When this program has made a file warm, the web server does not wait for the look-up and the
 * reading, but still waits for the open().  The log and the status page say so at the start.
 *
 * Thread   the first one.
 */
#ifndef FCGI_STAT_ACCEL_OPEN_ASKS_H
#define FCGI_STAT_ACCEL_OPEN_ASKS_H

#include "base/manpage.h"

struct open_asks; /* what was found */

/* Before a sandbox, which hides the names.  roots: NULL at the end; NULL: none were given, and
 * which of the machine's mounts has the site is unknown. */
struct open_asks *open_asks_find(const char *const *roots);
/* Logs a line for each mount; if there are many, only for the first few. */
void open_asks_log(const struct open_asks *);
unsigned open_asks_count(const struct open_asks *);
void open_asks_free(struct open_asks *); /* NULL is allowed */

void open_asks_manual(struct manpage *); /* the table */

#endif
