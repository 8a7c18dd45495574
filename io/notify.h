/* io/notify.h -- reports the state of the program to the service manager, as systemd expects: a
 * datagram to $NOTIFY_SOCKET.
 *
 * Thread   the first one, at start and end: it may wait for the manager.
 */
#ifndef IO_NOTIFY_H
#define IO_NOTIFY_H

/* Opens its socket; call it before a sandbox that allows no new socket. */
void notify_open(void);
void notify_manager(const char *state); /* "READY=1"; no effect without $NOTIFY_SOCKET */

#endif
