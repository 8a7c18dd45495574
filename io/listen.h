/* io/listen.h -- listening sockets: bound, or inherited through LISTEN_FDS.  At start-up; may block.
 *
 * TCP_NODELAY is set on the listener, from which accepted sockets inherit it: no call per connection.
 */
#ifndef IO_LISTEN_H
#define IO_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define LISTEN_NAME_MAX 128

struct listen_conf {
	const char *name;       /* as in base/address.h, with a port */
	int backlog;
	const char *congestion; /* TCP_CONGESTION, NULL: the system's */
	bool set_mode, set_owner; /* of the file of a unix socket; unset: as umask and user say */
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

int listen_open(const struct listen_conf *, int *fdp); /* 0, or -errno (-EINVAL: name cannot be read) */
/* Sockets passed by the service manager: number, fds start at 3.  Clears the environment variables.  0: none. */
int listen_inherited(void);
/* "ip:port" (v6 in brackets) or "unix:path" of a bound socket; -errno if fd is no listening socket. */
int listen_name(int fd, char name[LISTEN_NAME_MAX]);
void listen_refuse(int fd); /* new clients are refused from now on; accepting gives -EINVAL */
void listen_close(int fd);

#endif
