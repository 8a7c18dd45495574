/* proxy-core/balance.h -- which backend takes a request.  Pure but for the turn it remembers. */
#ifndef PROXY_CORE_BALANCE_H
#define PROXY_CORE_BALANCE_H

#include "base/text.h"

#define BALANCE_NONE SIZE_MAX

struct candidate {
	struct text name;
	enum { BACKEND_OUT, BACKEND_UNSURE, BACKEND_UP } state; /* UNSURE only without one UP */
	bool room;     /* a socket is idle or may be opened: no waiting */
	unsigned load; /* busy sockets and waiters */
};

struct balancer {
	const char *name; /* value of proxy-core.balancer */
	const char *doc;
	size_t (*pick)(
	    const struct candidate *, size_t n, size_t turn, struct text host, struct text path);
};

extern const struct balancer balancers[]; /* ends with a NULL name */
const struct balancer *balancer_find(const char *name);

/* Index, or BALANCE_NONE.  *turn is kept between calls. */
size_t balance_pick(const struct balancer *, const struct candidate *, size_t n, size_t *turn,
    struct text host, struct text path);

#endif
