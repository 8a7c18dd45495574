/* io/start/listen.h -- listening sockets: bound, or inherited through LISTEN_FDS.  At start-up; may
 * block.
 *
 * TCP_NODELAY is set on the listener, from which accepted sockets inherit it: no call per
 * connection.
 */
#ifndef IO_LISTEN_H
#define IO_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define LISTEN_NAME_MAX 128
#define LISTEN_FIRST    3 /* see sd_listen_fds(3) */

struct listen_conf {
	const char *name; /* as in base/address.h, with a port */
	int backlog;
	const char *congestion; /* TCP_CONGESTION; NULL: the system's default */
	/* "[::]:80" takes IPv4 too, and ":80" is IPv6 on a machine without IPv4 */
	bool both;
	int defer_s; /* TCP_DEFER_ACCEPT; 0: not set */
	bool probe;  /* only test whether it could listen: bind(2) of TCP; *fdp is not set */
	/* Of the file of a unix socket; false: given by umask and user. */
	bool set_mode, set_owner;
	mode_t mode;
	uid_t uid; /* (uid_t)-1: unchanged */
	gid_t gid;
};

/* 0, or -errno and *why, a constant text with more detail, or NULL.  -EINVAL and -ENAMETOOLONG: not
 * an address. -EADDRNOTAVAIL: a host without addresses. io_close_fd() does not remove the file of
 * a unix socket, because another process may be bound to it already. */
int listen_open(const struct listen_conf *, int *fdp, const char **why);
/* Locks the path of a unix socket against other starting programs of this user, with the file
 * PATH.lock; *lockp is -1 if that cannot be locked.  0, or -EBUSY after 2 s. */
int listen_lock(const char *path, int *lockp);
void listen_unlock(const char *path, int lock); /* also of -1 */
/* The number of sockets that the service manager passed, from LISTEN_FIRST on; 0: none.  Clears
 * the environment variables.  Also counts one that does not listen: listen_name() detects it. */
int listen_inherited(void);
/* Sets up an inherited socket like those of listen_open(); -errno if fd is not a listening
 * socket. */
int listen_adopt(int fd);
/* "ip:port" (IPv6 in brackets) or "unix:path" of a bound socket; -errno if fd is not a listening
 * socket. */
int listen_name(int fd, char name[LISTEN_NAME_MAX]);
void listen_refuse(int fd); /* new clients are refused from now on; accepting fails with -EINVAL */

#endif
