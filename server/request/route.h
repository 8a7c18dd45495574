/* server/request/route.h -- where a request lies, and what changes that; server/route/choose.h says
 * who answers.
 *
 * Thread   the worker's.
 */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "base/match.h"
#include "base/text.h"

struct conf_input;
struct place;
struct request;

#define REROUTES_MAX 10u

/* What a handler replaces before the request is routed again.  .p NULL: stays as it is. */
struct route_change {
	struct text path;  /* decoded and clean, with a NUL after it; in the arena */
	struct text query; /* in the arena */
	/* Set by a rewrite, which has a limit of its own, see struct request.  Empty: any other
	 * change counts as a step. */
	struct text target;
	/* in the form of the parser: a valid name in lower case; in the arena */
	struct text host;
};

/* Changes the request; then the handler returns HANDLED_AGAIN, or calls conn_route_again() later.
 * False: logged; it was routed again REROUTES_MAX times already, and 500 is the answer.  A query
 * and a host are for a request whose head is in the arena (request_keep()). */
bool route_again(struct request *, const struct route_change *);

/* Where another path of a URL lies, for the settings of this request: r->place is as before.  path:
 * clean, with a NUL after it.  0, or the status of a refusal. */
int route_place(struct request *, struct text path, struct place *);
/* The name for file_lookup() of a path below the place.  path begins with a slash, and has a NUL
 * after it if the name needs one.  .p NULL: no memory. */
struct text place_name(struct request *, const struct place *, struct text path);
/* What the condition of a block captures.  The condition holds; the block is that of a conf_map.
 * Matches again.  False: nothing.  *decoded: they are slices of a path without escapes. */
bool route_captures(struct request *, unsigned block, struct text cap[MATCH_CAPTURES],
    bool *decoded);

/* Another handler may answer for the index file of a directory. */
bool route_asks_index(const struct request *);

/* All lines of a field as one, as for applications (RFC 9110, 5.3); .p NULL: there is none.  False:
 * no memory. */
bool route_joined(struct request *, struct text name, const char *sep, struct text *all);

/* The path without ";" and what follows it in each part: what a servlet container serves.  .p NULL:
 * no memory. */
struct text route_without_params(struct request *);

/* Counts, and logs at most once a second, a regular expression that reached a limit.  The request
 * is refused. */
void route_undecided(struct request *, const char *what, struct text where);

/* For server/route/: what conditions compare.  False: no memory. */
bool route_input(struct request *, struct conf_input *, char remote[64]);
/* Sets r->place.  0, or the status of a refusal. */
int route_find_place(struct request *);

#endif
