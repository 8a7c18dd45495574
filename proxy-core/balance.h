/* proxy-core/balance.h -- chooses the backend of a request.  A balancer is one row in balance.c.
 *
 * Pure, except *turn of the candidates, which belongs to the worker's members (members.h).
 * Candidates are backends that may get the request: alive, not tried yet.
 */
#ifndef PROXY_CORE_BALANCE_H
#define PROXY_CORE_BALANCE_H

#include <stdint.h>
#include "base/text.h"

#define BALANCE_NONE SIZE_MAX

struct candidate {
	struct text name;
	size_t index;
	bool room;       /* a socket is idle or may be opened: no waiting */
	unsigned load;   /* requests that run or wait there, of all workers */
	unsigned weight; /* its share, at least 1 */
	int64_t *turn;   /* kept between calls: how much the backend is behind its share */
};

struct balance_key { /* of the request; factor: of its block */
	struct text host, path;
	struct text client; /* its address */
	unsigned factor;    /* carp: percent of its share that a backend may have; 0: no bound */
};

struct balancer {
	const char *name; /* value of proxy-core.balancer */
	const char *now;  /* NULL, or the name that replaced this old one */
	const char *doc;
	/* which of n > 0 candidates */
	size_t (*pick)(const struct candidate *, size_t n, const struct balance_key *);
};

extern const struct balancer balancers[]; /* ends with a NULL name */
const struct balancer *balancer_find(const char *name);

/* The index of one of n candidates, which are in the order of the configuration, or
 * BALANCE_NONE. */
size_t balance_pick(const struct balancer *, const struct candidate *, size_t n,
    const struct balance_key *);

#endif
