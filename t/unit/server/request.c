/* t/unit/server/request.c -- a request of one client leaves nothing to the next one. */
#include "server/conn/requests.h"
#include "server/request/request.h"
#include "t/unit/server/simworker.h"
#include "server/request/spool.h"

#define ZEROED offsetof(struct request, zeroed)

/* Whatever a module leaves in a field of one request. */
UP_TEST("/request/reset", "")
{
	struct request *r;
	size_t i, end = offsetof(struct request, slots) + SLOT_BYTES(request_slots), left = 0;

	r = requests_take(w);
	g_assert_nonnull(r);
	memset((char *)r + ZEROED, 0xff, end - ZEROED);
	r->upload = r->kept = NULL; /* counted: request_drop_spools() releases them */
	r->sender.limit = 1;
	request_reset(r);
	g_assert_true(r->times.hot);
	g_assert_cmpuint(r->sender.limit, ==, 0);
	r->times.hot = false;
	for (i = ZEROED; i < end; i++)
		left += ((const char *)r)[i] != 0;
	g_assert_cmpuint(left, ==, 0);
	requests_give(r);
}
