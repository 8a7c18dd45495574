/* fcgi-stat-accel/listener.h -- where requests come from: one listening socket and who may use it.
 *
 * Found in this order: an address given, the first of LISTEN_FDS, descriptor 0 (spawn-fcgi, or a
 * web server that starts its applications itself).
 */
#ifndef FCGI_STAT_ACCEL_LISTENER_H
#define FCGI_STAT_ACCEL_LISTENER_H

#include <glib.h>
#include <stdbool.h>

#include "fcgi-stat-accel/user.h"
#include "io/io.h"

struct listener;

struct listener_conf {
	const char *address;		/* "unix:PATH" or "HOST:PORT"; NULL: inherited */
	const char *peers;		/* may connect by TCP, with commas; NULL: all */
	const char *const *users;	/* may connect to a unix socket, as root and we may; names or numbers, NULL at the end; NULL: all */
	const struct user *owner;	/* of a unix socket made here, for whom root makes it; NULL: who starts us */
	bool	    allow_any;		/* a wildcard address without peers is meant so */
};

/* 0, or the exit code of sysexits.h with *why set (yours). */
int  listener_start(const struct listener_conf *, struct listener **lp, char **why);

/* Closes it; a unix socket made here is removed. */
void listener_stop(struct listener **);

int  listener_fd(const struct listener *);

/* May who is at the other end of this connection ask us?  Peer is its address, as accept(2) gave it. */
bool listener_welcome(const struct listener *, int fd, const union io_addr *peer);

#endif
