/* server/module/limits.c -- server.max-requests-per-second-per-address: the first module that a
 * request meets, so a refusal costs no rewrite, no look-up and no application.
 *
 * A request is counted once, even if it is routed again.  server.error-handler does not take a
 * refusal: routed again, the request is refused again.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/meters.h"
#include "server/config/config.h"
#include "server/request/client.h"
#include "server/module/module.h"
#include "server/request/request.h"
#include "server/request/told.h"
#include "server/module/counters.h"
#include "server/worker/base.h"

#define OVER_RATE_MAX 20u /* 429s in a row; then the client has to connect again */

struct limits_request {
	enum { METERED_NOT, METERED_GOES, METERED_REFUSED } metered;
	struct text lines; /* of the refusal */
};
static REQUEST_SLOT(struct limits_request, mine);

static bool
is_used(const struct conf *c)
{
	return (c->address_requests != 0);
}

static const struct handler *
refuse(struct request *r, struct client_addr client, uint64_t wait_ns)
{
	struct limits_request *m = request_slot(r, mine);
	uint64_t seconds = (wait_ns + NS_PER_S - 1) / NS_PER_S;
	char name[CLIENT_ADDR_MAX], line[64];
	int n;

	m->metered = METERED_REFUSED;
	request_told(r)->over_rate = true;
	count(r->worker->counts.module, requests_over_rate);
	if (conn_over_rate(r, true) == OVER_RATE_MAX) {
		count(r->worker->counts.module, over_rate_closed);
		conn_leaves(r);
	}
	log_limited(1, LOG_WARN, conn_id(r), "request.over-rate",
	    LF_STR("address", client_addr_name(client, name)),
	    LF_U64("limit", r->conf->address_requests),
	    LF_STR("why", "server.max-requests-per-second-per-address is reached; the client gets "
			  "429"));
	n = snprintf(line, sizeof(line), "Retry-After: %llu\r\n", (unsigned long long)seconds);
	m->lines = arena_text(&r->arena, (struct text){ line, (size_t)n });
	return (module_refuses(r, 429, m->lines));
}

static const struct handler *
route_limits(struct request *r)
{
	struct limits_request *m = request_slot(r, mine);
	const struct conf *c = r->conf;
	uint64_t burst = c->address_burst != 0 ? c->address_burst : c->address_requests, wait_ns;
	struct client_addr client;

	if (m->metered == METERED_REFUSED)
		return (module_refuses(r, 429, m->lines));
	if (m->metered == METERED_GOES || !conn_metered_client(r, &client))
		return (NULL);
	m->metered = METERED_GOES;
	wait_ns = meters_request(r->worker->conf.meters, client, io_now(r->worker->io),
	    c->address_requests, burst);
	if (wait_ns != 0)
		return (refuse(r, client, wait_ns));
	(void)conn_over_rate(r, false);
	return (NULL);
}

const struct module module_limits = {
	.name = "limits",
	.is_used = is_used,
	.route = route_limits,
};
