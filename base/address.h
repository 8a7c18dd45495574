/* base/address.h -- splits an address as users write it.  Nothing is looked up, allocated or
 * opened.
 *
 *   unix:PATH   /PATH   HOST   HOST:PORT   a.b.c.d:PORT   [V6]   [V6]:PORT   :PORT   *:PORT
 *
 * Each piece is a slice of the text.  Any thread.
 */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

#define ADDRESS_PATH_MAX 107 /* longest path of a unix socket, see unix(7) */

struct address_parts {
	struct text path; /* path of a unix socket; .p is NULL for a host */
	struct text host; /* as written, with its brackets; empty in ":80" */
	struct text port; /* .p is NULL if there is none */
	uint16_t port_number;
};

/* 0, or -EINVAL or -ENAMETOOLONG and *fault, a constant text for a message: "expected a port of
 * 0 to 65535 after the host". */
int address_read(struct text t, struct address_parts *, const char **fault);

/* As address_read(), for a socket to listen on: a host needs a port. */
int address_read_port(struct text t, struct address_parts *, const char **fault);

/* Finds the colon between host and port only.  False for a second colon without brackets, and for a
 * port that is not a number.  The port may be empty ("host:"); .p is NULL without a colon. */
bool address_cut(struct text t, struct text *host, struct text *port);

/* the path of "unix:PATH" or "/PATH"; .p is NULL for a host */
struct text address_path(struct text t);
struct text address_bare(struct text host); /* without brackets */
bool address_is_any(struct text host);      /* "", "*" or "0.0.0.0" */
/* True for the same socket to listen on: ":80" is "0.0.0.0:80", but not "[::]:80". */
bool address_same(struct text a, struct text b);

#endif
