/* server/status/hosts.h -- the hosts whose replies are counted: those that a configuration names.
 *
 *   $HTTP["host"] == "www.example.org"  -->  number 0      the first HOSTS_MAX, in their order all
 *   others                          -->  HOSTS_MAX     one row for all of them
 *
 * A client cannot make a row: it sends any name, and only those of the table have one.  A name
 * keeps its place until the process ends, so a reload does not move a count to another host.
 *
 * Thread   hosts_add(): the main thread; hosts_find() and the names: any.
 */
#ifndef SERVER_STATUS_HOSTS_H
#define SERVER_STATUS_HOSTS_H

#include <stddef.h>
#include <stdint.h>
#include "base/text.h"

#define HOSTS_MAX   100u
#define HOSTS_SLOTS 256u /* a power of two, above HOSTS_MAX */

struct hosts {
	unsigned n;                  /* atomic */
	const char *name[HOSTS_MAX]; /* lower case, without a port */
	uint8_t slot[HOSTS_SLOTS];   /* atomic: number + 1; 0: none */
};

/* In normal form (wire/http1/host.h); a port does not count.  No effect if the table is full, or
 * without memory. */
void hosts_add(struct hosts *, struct text host);
/* The number of the host; HOSTS_MAX: not in the table. */
unsigned hosts_find(const struct hosts *, struct text host);
unsigned hosts_count(const struct hosts *);
/* The row after this one; after the last host it is HOSTS_MAX, that of all others. */
unsigned hosts_next(const struct hosts *, unsigned number);
/* HOSTS_MAX: "(other)"; no host has parentheses */
const char *hosts_name(const struct hosts *, unsigned number);
void hosts_free(struct hosts *);

#endif
