/* io/start/std_fds.h -- descriptors 0, 1 and 2.
 *
 * A program that is started with one of them closed ("2>&-") would get its number for the first
 * file it opens: messages to standard error would then go to a connection or into a state file.
 */
#ifndef IO_STD_FDS_H
#define IO_STD_FDS_H

#include <stdbool.h>
#include "base/text.h"

/* Opens /dev/null for each one that is closed.  Call it first in main().  0 or -errno. */
int io_open_std_fds(void);

/* True if messages to standard error are lost: it is /dev/null. */
bool io_stderr_is_null(void);

/* The terminal, pipe or file to which spawn-fcgi, which started this process, reports.  Without one
 * (another program started it, this user may not write there) nothing is written. */
void io_spawner_open(void);
void io_spawner_tell(struct text lines);
void io_spawner_close(void);

#endif
