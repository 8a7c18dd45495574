/* proxy-core/balance.h -- chooses the backend of a request. */
#ifndef PROXY_CORE_BALANCE_H
#define PROXY_CORE_BALANCE_H

#include "base/text.h"

#define BALANCE_NONE SIZE_MAX

struct candidate { /* a backend that may get the request */
	struct text name;
	size_t index;
	bool room;     /* a socket is idle or may be opened: no waiting */
	unsigned load; /* busy sockets and waiters */
};

struct balancer {
	const char *name; /* value of proxy-core.balancer */
	const char *doc;
	/* of n > 0 candidates; next: the one whose turn it is */
	size_t (*pick)(const struct candidate *, size_t n, size_t next, struct text host,
	    struct text path);
};

extern const struct balancer balancers[]; /* ends with a NULL name */
const struct balancer *balancer_find(const char *name);

/* The index of one of n candidates in the order of their indexes, or BALANCE_NONE.  *turn is kept
 * between calls. */
size_t balance_pick(const struct balancer *, const struct candidate *, size_t n, size_t *turn,
    struct text host, struct text path);

#endif
