/* fcgi-stat-accel/peer.h -- the user at the other end of a unix socket.
 *
 * The kernel notes it at connect(2), so passing on the socket changes nothing. */
#ifndef FCGI_STAT_ACCEL_PEER_H
#define FCGI_STAT_ACCEL_PEER_H

#include <stdbool.h>
#include <sys/types.h>

/* The effective user.  False: there is none, as with TCP. */
bool peer_user(int fd, uid_t *);
/* It has connected as the user of this process. */
bool peer_is_own_user(int fd);
/* Its groups at that time are all among those of this process: it may open no more files. */
bool peer_has_own_groups(int fd);
/* Notes the groups of this process: after root is dropped, before a sandbox. */
void peer_begin(void);

#endif
