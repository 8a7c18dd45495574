/* io/listen_unix.h -- listening unix sockets: the file, its mode and owner, and starters that race for it.  May block.
 *
 * The file of a server that died is taken away.  Two starters that find such a file at the same time take turns by a lock on
 * its directory, so neither can remove the living socket of the other: the second one gets -EADDRINUSE.
 */
#ifndef IO_LISTEN_UNIX_H
#define IO_LISTEN_UNIX_H

#include <sys/types.h>

#define LISTEN_MODE_UMASK ((mode_t)-1)

struct listen_unix_conf {
	const char *path;
	int backlog;
	mode_t mode; /* of the file; LISTEN_MODE_UMASK: as the umask says */
	uid_t uid;   /* (uid_t)-1: unchanged */
	gid_t gid;
};

int listen_unix(const struct listen_unix_conf *, int *fdp); /* 0 or -errno; fd is O_CLOEXEC and O_NONBLOCK */

#endif
