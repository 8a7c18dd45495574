/* io/start/notify.h -- reports the state of the program to the service manager, as systemd expects:
 * a datagram to $NOTIFY_SOCKET.
 *
 * Thread   the first one.  It waits for the manager for 0.2 s at most; then the report is lost.
 */
#ifndef IO_NOTIFY_H
#define IO_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Opens its socket; call it before a sandbox that allows no new socket. */
void notify_open(void);
/* "READY=1", or several lines; no effect without $NOTIFY_SOCKET */
void notify_manager(const char *state);
void notify_reloading(void); /* the next READY=1 ends it */
/* True if $NOTIFY_SOCKET names a manager. */
bool notify_is_heard(void);
/* The manager restarts the program if no WATCHDOG=1 comes for this long; 0: it does not watch. */
uint64_t notify_watchdog_ns(void);

#endif
