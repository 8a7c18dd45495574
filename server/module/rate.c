/* server/module/rate.c -- see rate.h */
#include "server/module/rate.h"

#include <stdlib.h>

#include "base/must.h"
#include "base/list.h"
#include "base/meters.h"
#include "base/rate.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/worker/base.h"

struct rate_share { /* server.kbytes-per-second-per-address; as long as the turns of the sender */
	struct pace_share rate;
	struct meters *meters;
	struct client_addr client;
};
static CONNECTION_SLOT(struct rate_share, mine);

static uint64_t *
find_due(struct pace_share *p)
{
	const struct rate_share *s = container_of(p, struct rate_share, rate);

	return (meters_bytes(s->meters, s->client));
}

/* A proxy sends replies of several clients over one connection: bytes left of one client's turn do
 * not belong to the next client. */
static void
apply_address(struct request *r, struct sender_turn *t)
{
	struct rate_share *m = connection_slot(r, mine);
	struct client_addr client;

	if (r->conf->address_rate == 0 || !conn_metered_client(r, &client))
		return;
	if (!client_addr_same(client, m->client))
		t->left = 0;
	*m = (struct rate_share){
		.rate = { .limit = r->conf->address_rate << 10, .find_due = find_due },
		.meters = r->worker->conf.meters,
		.client = client,
	};
	t->of = &m->rate;
}

/* Replies of several streams go out side by side. */
static void
apply_connection(struct request *r, struct sender_turn *t, uint64_t n)
{
	t->of = conn_share(r);
	t->of->limit = n;
}

void
rate_apply(struct request *r)
{
	uint64_t n = r->conf->connection_rate << 10;
	size_t i;

	for (i = 0; i < SENDER_TURNS; i++)
		r->sender.turns[i].of = NULL;
	if (!rate_is_set(r))
		return;
	if (n != 0 && conn_share(r) != NULL)
		apply_connection(r, &r->sender.turns[2], n);
	else if (n != 0 && (r->sender.limit == 0 || n < r->sender.limit))
		r->sender.limit = (uint32_t)n;
	if (r->conf->server_rate != 0)
		r->sender.turns[0].of = (struct pace_share *)(uintptr_t)r->site->rules[RULES_rate];
	apply_address(r, &r->sender.turns[1]);
}

static const void *
key(const struct conf *c)
{
	return (c->server_rate != 0 ? c->server_rate_at : NULL);
}

static void *
make(const struct conf *c, char *err, size_t errsize)
{
	struct pace_share *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return (rules_no_memory(err, errsize));
	p->limit = c->server_rate << 10;
	return (p);
}

const struct rules_kind rules_rate = {
	.directive = "server.kbytes-per-second",
	.key = key,
	.make = make,
	.free = free,
};
