/* fcgi-stat-accel/sandbox.h -- Landlock: from here on this process reads below its roots, and nowhere else.
 *
 *   roots            files and directories may be read; whatever is mounted below them, now or later, is of them
 *   /proc            may be read: the table of mounts
 *   /dev/null        may be written: pages are read into it
 *   log's directory  files may be made and written: rotation
 *   socket's         files may be removed: at the end
 *
 * No file can be executed and, from Linux 6.7, no TCP socket bound or connected.  Names can still be looked up anywhere:
 * stat() is not confined.
 *
 * Thread   the first one, before it starts others: those inherit it.  There is no way back.
 */
#ifndef FCGI_STAT_ACCEL_SANDBOX_H
#define FCGI_STAT_ACCEL_SANDBOX_H

struct sandbox_conf {
	const char *const *roots;	/* NULL at the end */
	const char *log;		/* file; NULL: none.  It need not exist, its directory must */
	const char *socket;		/* to be removed at the end; NULL: none */
};

/* The version of Landlock's interface, 1 or more.  0: no roots.  -ENOSYS, -EOPNOTSUPP: this kernel has none; or what
 * went wrong with one of the paths.  Nothing is confined but in the first case. */
int  sandbox_enter(const struct sandbox_conf *);

void sandbox_log(int entered);		/* what came of it, as one line */

#endif
