/* fcgi-stat-accel/listener.h -- the listening socket, and who may connect to it.
 *
 * The socket is the first of: the given address, the first of LISTEN_FDS, descriptor 0 (spawn-fcgi,
 * or a web server that starts its applications itself).
 */
#ifndef FCGI_STAT_ACCEL_LISTENER_H
#define FCGI_STAT_ACCEL_LISTENER_H

#include <glib.h>
#include <stdbool.h>

#include "fcgi-stat-accel/user.h"
#include "io/io.h"

struct listener;

struct listener_conf {
	const char *address; /* "unix:PATH" or "HOST:PORT"; NULL: inherited */
	const char *peers;   /* addresses that may connect by TCP, with commas; NULL: all */
	/* Users that may connect to a unix socket, besides root and the user of this process;
	 * names or numbers, NULL at the end; NULL: all. */
	const char *const *users;
	/* Owner of a unix socket that root makes; NULL: the user who starts the program. */
	const struct user *owner;
	/* A wildcard address without peers serves other hosts, too; false: peers on this host. */
	bool allow_any;
	/* A unix socket takes the place of another one in listener_replace(), not at once. */
	bool replace;
};

/* 0, or an exit status of sysexits.h and *why, to be freed by the caller. */
int listener_start(const struct listener_conf *, struct listener **lp, char **why);

/* With conf.replace: the socket gets its path.  0 or -errno; *old as keeper_replace() has it. */
int listener_replace(struct listener *, pid_t *old);

/* Closes the listening socket, and removes a unix socket made here. */
void listener_stop(struct listener **);

int listener_fd(const struct listener *);

/* Logs which peers are served at a wildcard address. */
void listener_log(const struct listener *);

/* True if the peer of this connection may send requests; a refusal is logged, once a second.  Its
 * address is that from accept(2). */
bool listener_welcome(const struct listener *, int fd, const union io_addr *peer);

#endif
