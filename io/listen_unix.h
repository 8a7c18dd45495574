/* io/listen_unix.h -- listening unix sockets, for io/listen.c: the file, its mode and owner, and starters that race for it.  May block.
 *
 * The file of a server that died is taken away.  Two starters that find such a file at the same time take turns by a lock on
 * its directory, so neither can remove the living socket of the other: the second one gets -EADDRINUSE.
 */
#ifndef IO_LISTEN_UNIX_H
#define IO_LISTEN_UNIX_H

#include "io/listen.h"

/* Path is a string of at most ADDRESS_PATH_MAX bytes.  0 or -errno; fd is O_CLOEXEC and O_NONBLOCK. */
int listen_unix(const struct listen_conf *, const char *path, int *fdp);

#endif
