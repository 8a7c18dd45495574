/* io/std.h -- descriptors 0, 1 and 2.
 *
 * Who is started with one of them closed ("2>&-") would get it for the first thing it opens: what is written to standard error
 * would go to a connection, into a state file or an eventfd.  Call it first in main(); 0 or -errno.
 */
#ifndef IO_STD_H
#define IO_STD_H

int io_std_open(void);

#endif
