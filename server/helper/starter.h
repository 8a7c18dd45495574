/* server/helper/starter.h -- who started this server and waits for the outcome of the start.
 *
 *   --daemon   terminal <-- parent     <==pipe== server
 *   upgrade    old one  <-- supervisor <==pipe== new server      (server/helper/upgrade.c)
 *
 * The pipe takes the messages of the start, then a NUL when the server accepts connections.  Its
 * end without a NUL is a failure, and the exit status says which one.
 *
 * Thread   the main thread, while it is the only one, except starter_ready().
 */
#ifndef SERVER_HELPER_STARTER_H
#define SERVER_HELPER_STARTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

/* "SOCKET:STDERR:UPGRADES:FIRST": descriptors of the new server of an upgrade, whose descriptor 2
 * is the pipe; which upgrade it is, and when the first process started.  An older program writes
 * no more than the descriptors. */
#define STARTER_UPGRADE "ACCEL_SERVER_UPGRADE"

/* Call it first.  From now on stderr writes to the pipe, too, if this is the new server of an
 * upgrade. */
void starter_open(void);
/* In the new server of an upgrade: the socket with what the old one hands over; -1: no upgrade. */
int starter_socket(void);
/* The upgrades since the first of the processes that they replaced, and when that started, seconds
 * since 1970.  A restart, or a crash, begins anew. */
struct starter_chain {
	unsigned upgrades;
	uint64_t first_s;
};
struct starter_chain starter_chain(void);
/* Closes that: the new server is ready, or is not going to be. */
void starter_leave(void);

/* --daemon: forks.  In the server: -1; its standard descriptors are /dev/null.  In the parent:
 * returns the exit status, after the server is ready or has failed. */
int starter_daemonize(void);

void starter_say(struct text); /* one more message; no effect when nobody waits */
/* False: the process that waited is gone. */
bool starter_waits(void);
/* The server accepts connections.  False: the process that waited is gone, so this server must
 * end. */
bool starter_ready(void);
void starter_forget(void); /* in a child of the server */

/* The other end: reads fd until the process pid is ready or has ended; closes fd.  said() takes
 * the messages.  0: ready.  Otherwise the process has ended: its exit status, or 128 and its
 * signal.  At until_ns (0: never) the process is killed. */
int starter_follow(int fd, pid_t pid, uint64_t until_ns, void (*said)(void *arg, struct text),
    void *arg);

#endif
