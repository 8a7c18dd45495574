/* io/notify.h -- tells the service manager how we are, as systemd wants it: a datagram to $NOTIFY_SOCKET.
 *
 * Thread   the first one, at start and end: it may wait for the manager.
 */
#ifndef IO_NOTIFY_H
#define IO_NOTIFY_H

void notify_open(void);                 /* the socket for it; before a sandbox that allows no new one */
void notify_manager(const char *state); /* "READY=1"; nothing happens when nobody asked for it */

#endif
