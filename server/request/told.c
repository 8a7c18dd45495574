/* server/request/told.c -- see told.h */
#include "server/request/told.h"

#include "server/request/request.h"

static REQUEST_SLOT(struct request_told, mine);

struct request_told *
request_told(const struct request *r)
{
	return (request_slot(r, mine));
}
