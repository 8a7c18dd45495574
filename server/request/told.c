/* server/request/told.c -- see told.h */
#include "server/request/told.h"

#include "server/config/site.h"
#include "server/request/request.h"

static REQUEST_SLOT(struct request_told, mine);

struct request_told *
request_told(const struct request *r)
{
	return (request_slot(r, mine));
}

bool
request_awaits_authorizer(const struct request *r)
{
	const struct upstream *authorizer = r->site->authorizer;

	return (authorizer != NULL && authorizer != request_slot(r, mine)->granted);
}
