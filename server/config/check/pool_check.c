/* server/config/check/pool_check.c -- settings of proxy-core pools: each value, and those that
 * must fit each other.  proxy_check.c has what needs the merged settings of a block. */
#include <string.h>
#include "proxy-core/address.h"
#include "proxy-core/backends.h"
#include "proxy-core/balance.h"
#include "server/config/impl.h"

#define WANTED "a number from 1 to 256" /* BACKENDS_WEIGHT_MAX */

static void
unknown_balancer(struct config *cfg, const struct cfg_entry *e)
{
	const struct balancer *b;
	struct buf known, found;

	buf_init(&known, 0);
	buf_init(&found, 512);
	cfg_value_describe(e->value, &found);
	for (b = balancers; b->name != NULL; b++)
		if (b->now == NULL)
			buf_printf(&known, "%s%s", b != balancers ? " " : "", b->name);
	buf_char(&known, '\0');
	cfg_error(cfg, e->value_pos, "%s: expected one of: %s, got %.*s", e->key.p, known.p,
	    (int)found.n, found.p);
	buf_free(&known);
	buf_free(&found);
}

static void
check_balancer(struct config *cfg, const struct cfg_entry *e)
{
	const struct balancer *b = balancer_find(cfg_value_text(cfg, e->value).p);

	if (b == NULL)
		unknown_balancer(cfg, e);
	else if (b->now != NULL)
		cfg_warn(cfg, e->value_pos, "%s: \"%s\" is an old name; write \"%s\"", e->key.p,
		    b->name, b->now);
}

static void
check_addresses(struct config *cfg, const struct cfg_entry *e)
{
	const char *fault, *spec;
	uint32_t i;

	for (i = 0; i < e->value->n; i++) {
		spec = cfg_value_text(cfg, e->value->items[i].value).p;
		fault = address_fault(spec);
		if (fault != NULL)
			cfg_error(cfg, e->value_pos,
			    "%s: \"%s\": %s; an address is unix:/path, unix:@name, host:port, "
			    "a.b.c.d:port or [v6]:port",
			    e->key.p, spec, fault);
	}
}

static void
check_weights(struct config *cfg, const struct cfg_entry *e)
{
	uint64_t w;
	uint32_t i;

	for (i = 0; i < e->value->n; i++) {
		struct text t = cfg_value_text(cfg, e->value->items[i].value);

		if (text_u64(t, &w) != 0 || w < 1 || w > BACKENDS_WEIGHT_MAX)
			cfg_error(cfg, e->value_pos, "%s: expected " WANTED ", got \"%.*s\"",
			    e->key.p, (int)t.n, t.p);
	}
}

static void
check_weight_count(struct config *cfg, const struct cfg_block *b)
{
	const struct cfg_entry *w = cfg_entry_around(b, TEXT("proxy-core.weights")),
			       *list = b->backends;

	if (w != NULL && w->value->n != 0 && w->value->n != list->value->n)
		cfg_error(cfg, w->value_pos,
		    "%s: expected " WANTED
		    " for each of the %u backends of %s:%u, got %u; write it in the block of "
		    "proxy-core.backends",
		    w->key.p, list->value->n, list->pos.file, list->pos.line, w->value->n);
}

static void
check_url(struct config *cfg, const struct cfg_entry *e)
{
	struct text url = cfg_value_text(cfg, e->value);

	if (url.n > 0 && url.p[0] != '/' && !text_eq(url, TEXT("*")))
		cfg_error(cfg, e->value_pos, "%s: expected a path like \"/ping\", got \"%.*s\"",
		    e->key.p, (int)url.n, url.p);
}

void
cfg_pools_check(struct config *cfg)
{
	static const struct {
		const char *name;
		void (*check)(struct config *, const struct cfg_entry *);
	} checks[] = {
		{ "proxy-core.balancer", check_balancer },
		{ "proxy-core.backends", check_addresses },
		{ "proxy-core.authorizer", check_addresses },
		{ "proxy-core.check-url", check_url },
		{ "proxy-core.weights", check_weights },
	};
	const struct cfg_block *b;
	const struct cfg_entry *e;
	unsigned i, j;

	for (i = 0; i < cfg->blocks->len; i++) {
		b = g_ptr_array_index(cfg->blocks, i);
		for (j = 0; j < G_N_ELEMENTS(checks); j++)
			if ((e = cfg_entry_find(b, text_of(checks[j].name))) != NULL)
				checks[j].check(cfg, e);
		if (b->backends != NULL)
			check_weight_count(cfg, b);
	}
}
