/* server/module/rate.c -- see rate.h */
#include "server/module/rate.h"

#include <stdlib.h>

#include "base/must.h"
#include "base/rate.h"
#include "server/module/module.h"

void
rate_apply(struct request *r)
{
	uint64_t n = r->conf->connection_rate << 10;

	r->sender.share = NULL;
	if (!rate_is_set(r))
		return;
	if (n != 0 && (r->sender.limit == 0 || n < r->sender.limit))
		r->sender.limit = (uint32_t)n;
	if (r->conf->server_rate != 0)
		r->sender.share = (struct pace_share *)(uintptr_t)r->site->rules[RULES_rate];
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

	(void)err;
	(void)errsize;
	must(p != NULL);
	p->limit = c->server_rate << 10;
	return (p);
}

const struct rules_kind rules_rate = {
	.directive = "server.kbytes-per-second",
	.key = key,
	.make = make,
	.free = free,
};
