/* fcgi-stat-accel/keeper.h -- a child process that keeps the rights of the start, for the file of a
 * unix socket.
 *
 *   start --> the socket is at PATH.PID      (--replace; otherwise at PATH from the start)
 *   replace:  PATH.PID becomes PATH in one step, and the process that listened at PATH gets USR1
 *   end of this process, also by SIGKILL:  the file is removed, if it is still this socket
 *
 * The confined process could do neither.  The child's only descriptor is one end of a socket pair.
 */
#ifndef FCGI_STAT_ACCEL_KEEPER_H
#define FCGI_STAT_ACCEL_KEEPER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct keeper_conf {
	const char *path;
	const char *temporary; /* NULL: the socket is at path */
	struct stat made;      /* so that the socket of another process is not removed */
	bool stay;             /* after the replacement, to remove the socket at the end */
};

/* A descriptor: closing it ends the child, which removes the socket; or -errno. */
int keeper_start(const struct keeper_conf *);
/* 0 or -errno.  *old: the process that got USR1; 0: there was none; -1: unknown, or not
 * fcgi-stat-accel, and that process goes on.  Waits some seconds at most. */
int keeper_replace(int keeper, pid_t *old);
/* Removes path if it is that socket. */
void keeper_remove(const char *path, const struct stat *made);

#endif
