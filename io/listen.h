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
#define LISTEN_FIRST 3 /* sd_listen_fds(3) */

struct listen_conf {
	const char *name;       /* as in base/address.h, with a port */
	int backlog;
	const char *congestion; /* TCP_CONGESTION, NULL: the system's */
	bool both;              /* "[::]:80" takes IPv4 as well, and ":80" is IPv6 where there is no IPv4 */
	bool set_mode, set_owner; /* of the file of a unix socket; unset: as umask and user say */
	mode_t mode;
	uid_t uid;              /* (uid_t)-1: unchanged */
	gid_t gid;
};

/* 0, or -errno: *why is a constant text that says more, or NULL.  -EINVAL and -ENAMETOOLONG: the name is no address; a host
 * without addresses is -EADDRNOTAVAIL. */
int listen_open(const struct listen_conf *, int *fdp, const char **why);
/* Sockets passed by the service manager: number, from LISTEN_FIRST on.  Clears the environment variables.  0: none.  One
 * that does not listen counts: listen_name() tells. */
int listen_inherited(void);
/* Makes an inherited socket like those of listen_open(); -errno if fd is no listening socket. */
int listen_adopt(int fd);
/* "ip:port" (v6 in brackets) or "unix:path" of a bound socket; -errno if fd is no listening socket. */
int listen_name(int fd, char name[LISTEN_NAME_MAX]);
void listen_refuse(int fd); /* new clients are refused from now on; accepting gives -EINVAL */
void listen_close(int fd);

#endif
