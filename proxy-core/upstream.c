#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/upstream.h"

/* ---------------------------------------------------------------- start-up */

/* "fastcgi, scgi" */
static void
list_protocols(char *dst, size_t size)
{
	size_t i, n = 0;

	for (i = 0; protos[i] != NULL && n < size; i++)
		n += (size_t)snprintf(dst + n, size - n, "%s%s", i > 0 ? ", " : "", protos[i]->name);
}

static int
check_protocol(const struct proxy_conf *c, char *err, size_t errsize)
{
	char known[100];

	if (c->protocol != NULL && proto_find(c->protocol) != NULL)
		return (0);
	list_protocols(known, sizeof(known));
	if (c->protocol == NULL || *c->protocol == '\0')
		snprintf(err, errsize, "proxy-core.protocol is not set; expected one of: %s", known);
	else
		snprintf(err, errsize, "proxy-core.protocol: expected one of: %s; got \"%s\"", known, c->protocol);
	return (-EINVAL);
}

static int
check_balancer(const struct proxy_conf *c, char *err, size_t errsize)
{
	if (c->balancer == NULL || balancer_find(c->balancer) != NULL)
		return (0);
	snprintf(err, errsize,
	    "proxy-core.balancer \"%s\" is unknown; use round-robin, sqf, carp or static",
	    c->balancer);
	return (-EINVAL);
}

int
upstream_check(const struct proxy_conf *c, char *err, size_t errsize)
{
	int rc;

	rc = check_protocol(c, err, errsize);
	if (rc == 0)
		rc = check_balancer(c, err, errsize);
	if (rc == 0 && (c->nbackends == 0 || c->nbackends > ADDRESS_MAX)) {
		snprintf(err, errsize, "proxy-core.backends has %zu entries; 1 to %d are possible",
		    c->nbackends, ADDRESS_MAX);
		rc = -EINVAL;
	}
	return (rc);
}

void
upstream_meters(const struct proxy_conf *c, void (*take)(struct meter *, void *arg), void *arg)
{
	struct address a[ADDRESS_MAX];
	size_t i;
	int k, n;

	for (i = 0; i < c->nbackends; i++) {
		n = address_list(c->backends[i], a, NELEM(a));
		if (n > 1 && !c->split_hostnames)
			take(meter_get(c->number, c->backends[i]), arg);
		else
			for (k = 0; k < n; k++)
				take(meter_get(c->number, a[k].name), arg);
	}
}

/* ---------------------------------------------------------------- life */

static void
upstream_end(struct upstream *u)
{
	size_t i;

	for (i = 0; i < u->npools; i++)
		pool_free(u->pools[i]);
	free(u);
}

static void
upstream_maybe_end(struct upstream *u)
{
	if (u->dying && !u->ticking && !u->kicked && upstream_idle(u))
		upstream_end(u);
}

static void
pool_emptied(void *arg)
{
	upstream_maybe_end(arg);
}

static void
conf_of_pool(struct upstream *u, const struct proxy_conf *c, struct pool_conf *pc)
{
	*pc = (struct pool_conf){
		.max_sockets = c->max_pool_size,
		.max_requests = c->max_keep_alive_requests,
		.max_waiters = c->queue ? c->max_waiters : 0,
		.wait_ms = c->wait_ms,
		.connect_ms = c->connect_ms,
		.disable_ms = c->disable_time_s * 1000,
		.debug = c->debug,
		.number = c->number,
		.emptied = pool_emptied,
		.arg = u,
	};
}

static int
add_pool(struct upstream *u, const char *name, const struct address *a, size_t n,
    const struct pool_conf *pc)
{
	if (u->npools == NELEM(u->pools))
		return (-E2BIG);
	u->pools[u->npools] = pool_new(u->io, u->counters, name, a, n, pc);
	if (u->pools[u->npools] == NULL)
		return (-ENOMEM);
	u->npools++;
	return (0);
}

static int
add_backend(struct upstream *u, const char *spec, bool split, const struct pool_conf *pc)
{
	struct address a[ADDRESS_MAX];
	int i, n, err = 0;

	n = address_list(spec, a, NELEM(a));
	if (n < 0)
		return (n);
	if (!split)
		return (add_pool(u, n == 1 ? a[0].name : spec, a, (size_t)n, pc));
	for (i = 0; i < n && err == 0; i++)
		err = add_pool(u, a[i].name, &a[i], 1, pc);
	return (err);
}

struct upstream *
upstream_new(struct io *io, struct counters *counters, const struct proxy_conf *c, int *err)
{
	struct upstream *u = calloc(1, sizeof(*u));
	struct pool_conf pc;
	size_t i;

	*err = u == NULL ? -ENOMEM : 0;
	if (u == NULL)
		return (NULL);
	u->io = io;
	u->counters = counters;
	u->proto = c->protocol != NULL ? proto_find(c->protocol) : NULL;
	u->balancer = balancer_find(c->balancer != NULL ? c->balancer : balancers[0].name);
	u->read_ms = c->read_ms;
	list_init(&u->exchanges);
	list_init(&u->soon);
	conf_of_pool(u, c, &pc);
	if (u->proto == NULL || u->balancer == NULL || c->nbackends == 0)
		*err = -EINVAL;
	for (i = 0; i < c->nbackends && *err == 0; i++)
		*err = add_backend(u, c->backends[i], c->split_hostnames, &pc);
	if (*err == 0)
		return (u);
	upstream_end(u);
	return (NULL);
}

void
upstream_close_idle(struct upstream *u)
{
	size_t i;

	for (i = 0; i < u->npools; i++)
		pool_close(u->pools[i]);
}

void
upstream_free(struct upstream *u)
{
	if (u == NULL)
		return;
	must(u->nexchanges == 0 && !u->dying);
	upstream_close_idle(u);
	u->dying = true;
	if (u->ticking)
		op_cancel(u->io, &u->tick);
	upstream_maybe_end(u);
}

bool
upstream_idle(const struct upstream *u)
{
	size_t i;

	for (i = 0; i < u->npools; i++)
		if (pool_sockets(u->pools[i]) > 0)
			return (false);
	return (u->nexchanges == 0);
}

/* ---------------------------------------------------------------- time passes */

static void tick_start(struct upstream *u);

static void
tick_exchanges(struct upstream *u)
{
	uint64_t now = io_now(u->io);
	struct list all, *l;

	/* Each goes back before its turn: its callbacks may start, forget and end any of them. */
	list_init(&all);
	list_splice_tail(&all, &u->exchanges);
	while ((l = list_pop(&all)) != NULL) {
		list_add_tail(&u->exchanges, l);
		exchange_tick(l, now);
	}
}

static bool
upstream_active(const struct upstream *u)
{
	size_t i;

	for (i = 0; i < u->npools; i++)
		if (pool_active(u->pools[i]))
			return (true);
	return (u->nexchanges > 0);
}

static void
tick_done(struct io_op *op)
{
	struct upstream *u = list_entry(op, struct upstream, tick);
	size_t i;

	if (!u->dying) {
		for (i = 0; i < u->npools; i++)
			pool_tick(u->pools[i], io_now(u->io));
		tick_exchanges(u);
	}
	u->ticking = false;
	if (!u->dying && upstream_active(u))
		tick_start(u);
	upstream_maybe_end(u);
}

/* An idle worker is not woken for empty pools, and seldom for sockets that are merely kept. */
static void
tick_start(struct upstream *u)
{
	if (u->ticking)
		return;
	u->ticking = true;
	op_init(&u->tick, IO_TIMER, tick_done);
	u->tick.deadline_ms = u->nexchanges > 0 ? POOL_TICK_MS : POOL_STALL_MS;
	op_submit(u->io, &u->tick);
}

static void
kick_done(struct io_op *op)
{
	struct upstream *u = list_entry(op, struct upstream, kick);
	struct list all, *l;

	list_init(&all);
	list_splice_tail(&all, &u->soon);
	u->kicked = false; /* those who come while we are at it need another round */
	while ((l = list_pop(&all)) != NULL)
		exchange_go_on(l);
	upstream_maybe_end(u);
}

void
upstream_soon(struct upstream *u, struct list *soon)
{
	if (!list_linked(soon))
		list_add_tail(&u->soon, soon);
	if (u->kicked)
		return;
	u->kicked = true;
	op_init(&u->kick, IO_TIMER, kick_done);
	u->kick.deadline_ms = 1;
	op_submit(u->io, &u->kick);
	op_cancel(u->io, &u->kick);
}

/* ---------------------------------------------------------------- for exchanges */

void
upstream_enter(struct upstream *u, struct list *exchange)
{
	list_add_tail(&u->exchanges, exchange);
	u->nexchanges++;
	tick_start(u);
}

void
upstream_leave(struct upstream *u, struct list *exchange)
{
	list_del(exchange);
	u->nexchanges--;
}

static struct candidate
candidate_of(const struct pool *p, uint64_t now, bool tried)
{
	struct candidate c = {.name = text_of(pool_name(p)), .state = BACKEND_UP};

	if (tried || pool_pause_left_ms(p, now) > 0)
		c.state = BACKEND_OUT;
	else if (pool_probing(p))
		c.state = BACKEND_UNSURE;
	c.room = pool_room(p, now);
	c.load = pool_load(p);
	return (c);
}

/* Those that may be down are asked only when nobody else is left. */
static void
leave_the_best(struct candidate *c, size_t n)
{
	bool up = false;
	size_t i;

	for (i = 0; i < n; i++)
		up = up || c[i].state == BACKEND_UP;
	for (i = 0; i < n && up; i++)
		if (c[i].state == BACKEND_UNSURE)
			c[i].state = BACKEND_OUT;
}

size_t
upstream_pick(struct upstream *u, struct text host, struct text path, uint64_t tried)
{
	struct candidate c[ADDRESS_MAX];
	uint64_t now = io_now(u->io);
	size_t i;

	for (i = 0; i < u->npools; i++)
		c[i] = candidate_of(u->pools[i], now, tried >> i & 1);
	leave_the_best(c, u->npools);
	return (balance_pick(u->balancer, c, u->npools, &u->turn, host, path));
}

/* When the first of the paused ones is tried again; at least a second. */
unsigned
upstream_retry_after_s(const struct upstream *u)
{
	unsigned ms, least = 0;
	size_t i;

	for (i = 0; i < u->npools; i++) {
		ms = pool_pause_left_ms(u->pools[i], io_now(u->io));
		if (ms > 0 && (least == 0 || ms < least))
			least = ms;
	}
	return (least > 1000 ? (least + 999) / 1000 : 1);
}
