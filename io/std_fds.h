/* io/std_fds.h -- descriptors 0, 1 and 2.
 *
 * A program that is started with one of them closed ("2>&-") would get its number for the first
 * file it opens: messages to standard error would then go to a connection or into a state file.
 */
#ifndef IO_STD_FDS_H
#define IO_STD_FDS_H

/* Opens /dev/null for each one that is closed.  Call it first in main().  0 or -errno. */
int io_open_std_fds(void);

#endif
