/* fcgi-stat-accel/keeper.h -- a child of root's that removes the socket when this process has ended, however it ended.
 *
 * After --user this process may not write to the directory of the socket.  The child holds one end of a pipe and nothing else: it has no
 * other descriptor, takes no signal and reads no byte.  At the end of the pipe it removes the path if the same socket is still there.
 */
#ifndef FCGI_STAT_ACCEL_KEEPER_H
#define FCGI_STAT_ACCEL_KEEPER_H

#include <sys/stat.h>

/* A descriptor whose end is ours: it is closed at exit, or by the kernel.  -errno. */
int keeper_start(const char *path, const struct stat *made);

/* Removes path if it is still the socket that was made. */
void keeper_remove(const char *path, const struct stat *made);

#endif
