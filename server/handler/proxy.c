/* server/handler/proxy.c -- hands a request to an application; see proxy_impl.h
 *
 *   client --> r->upload (server/conn/body.c: the whole body) --exchange_body()--> application
 *                                                                proxy_reply.c <------'
 *
 * A socket of the application is leased when the body is complete, and returned when the reply is
 * complete.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/log.h"
#include "proxy-core/conf.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/config/resources.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/request/request.h"
#include "server/handler/counters.h"
#include "server/worker/base.h"
#include "wire/codec/codec.h"

/* ---- the pools of a block */

/* proxy-core.max-pool-size applies to the whole server: each worker gets its share, at least
 * one. */
static unsigned
pool_share(const struct worker_base *w, uint64_t size)
{
	return (size > 0 ? (unsigned)((size + w->conf.nworkers - 1) / w->conf.nworkers) : 1);
}

/* Uses the values of the block, not those of the first request. */
static struct upstream *
upstream_of_block(const struct worker_base *w, int block, bool authorizer)
{
	struct proxy_conf pc;
	struct conf c;

	config_block(w->conf.config, block, &c);
	pc = (struct proxy_conf){
		.proto = proto_find(authorizer ? c.authorizer_protocol : c.proxy_protocol),
		.backends = resources_backends(w->conf.resources,
		    authorizer ? c.authorizer_number : c.proxy_number),
		.balancer = c.proxy_balancer,
		.secret = c.proxy_secret,
		.max_pool_size = pool_share(w, c.proxy_pool_size),
		.max_keep_alive_requests = (unsigned)c.proxy_keepalive,
		.disable_ms = (unsigned)(1000 * c.proxy_disable_time),
		.max_waiters = c.proxy_backlog != 0 ? (unsigned)c.proxy_max_waiters : 0,
		.connect_ms = (unsigned)(1000 * c.proxy_connect_timeout),
		.check_url = authorizer ? NULL : c.proxy_check_url,
		.check_ms = (unsigned)(1000 * c.proxy_check_interval),
		.idle_ms = (unsigned)(1000 * c.proxy_idle_timeout),
		.balance_factor = (unsigned)c.proxy_balance_factor,
		.max_fails = (unsigned)c.proxy_max_fails,
		.fail_ms = (unsigned)(1000 * c.proxy_fail_timeout),
		.slow_start_ms = (unsigned)(1000 * c.proxy_slow_start),
	};
	return (upstream_new(w->io, w->counts.proxy, &pc));
}

int
proxy_upstream(struct worker_base *w, int block, bool authorizer, struct upstream **u)
{
	size_t place = 2 * (size_t)block + authorizer;
	struct upstream **all;

	if (place >= w->nupstreams) {
		all = realloc(w->upstreams, (place + 1) * sizeof(*all));
		if (all == NULL)
			return (-ENOMEM);
		w->upstreams = all;
		while (w->nupstreams <= place)
			w->upstreams[w->nupstreams++] = NULL;
	}
	if (w->upstreams[place] == NULL)
		w->upstreams[place] = upstream_of_block(w, block, authorizer);
	*u = w->upstreams[place];
	return (*u != NULL ? 0 : -ENOMEM);
}

/* ---- the request body */

REQUEST_SLOT(struct relay *, proxy_relay);

static void
upload_failed(struct relay *rl)
{
	log_limited(1, LOG_ERROR, conn_id(rl->r), "spool.failed",
	    LF_STR("why", "a temporary file cannot be read"),
	    LF_STR("then", rl->has_head ? "cut the client's connection" : "refused"),
	    LF_STR("do", "check the disks of server.upload-dirs"), conn_client(rl->r));
	exchange_forget(&rl->ex, false);
	if (rl->has_head)
		conn_cut(rl->r); /* another head would be a second reply */
	else
		proxy_answer_error(rl, 500);
}

/* Moves collected bytes to the application, as far as it has room. */
static void
feed_body(struct relay *rl)
{
	struct spool *s = rl->r->upload;
	struct spool_bytes b;
	size_t n;

	while (rl->ex != NULL && s != NULL && !spool_empty(s)) {
		b = spool_front(s);
		if (b.len != 0)
			spool_fetch(s);
		if (b.mem.n == 0)
			return; /* upload_moved() goes on */
		n = exchange_body(rl->ex, b.mem);
		if (n == 0)
			return; /* proxy_room() goes on */
		spool_took(s, n);
	}
}

static void
upload_moved(void *arg)
{
	struct relay *rl = arg;

	if (rl->ex == NULL)
		return;
	if (spool_broken(rl->r->upload))
		upload_failed(rl);
	else
		feed_body(rl);
}

void
proxy_room(void *arg)
{
	struct relay *rl = arg;

	if (rl->r->in.streams)
		conn_body_room(rl->r);
	else
		feed_body(rl);
}

void
proxy_moved(void *arg, struct exchange *x)
{
	struct relay *rl = arg;

	rl->ex = x;
}

/* ---- start and stop */

static enum handled
refuse(struct request *r, int status)
{
	reply_error(r, status);
	return (HANDLED_REPLY);
}

static enum handled
too_long(struct request *r)
{
	conn_tell_refused(r, 413,
	    "body longer than server.max-request-size, or than all temporary files may be");
	return (refuse(r, 413));
}

static unsigned
next_bits(const struct conf_list *words)
{
	unsigned bits = 0;
	size_t i;

	for (i = 0; i < words->n; i++)
		bits |= exchange_next_bit(words->v[i]);
	return (bits);
}

struct exchange_conf
proxy_times(const struct conf *c)
{
	return ((struct exchange_conf){
	    .wait_ms = (unsigned)(1000 * c->proxy_wait_timeout),
	    .read_ms = (unsigned)(1000 * c->proxy_read_timeout),
	    .reply_ms = (unsigned)(1000 * c->proxy_reply_timeout),
	    .total_ms = (unsigned)(1000 * c->proxy_total_timeout),
	    .hedge_ms = (unsigned)c->proxy_hedge_after,
	    .hedge_percent = (unsigned)c->proxy_hedge_percent,
	    .next = next_bits(&c->proxy_next),
	    .next_tries = (unsigned)c->proxy_next_tries,
	    .next_ms = (unsigned)(1000 * c->proxy_next_timeout),
	    .debug = c->proxy_debug != 0,
	});
}

enum handled
proxy_begin(struct request *r, struct upstream *u, const struct exchange_conf *conf,
    bool (*fill)(struct relay *, const struct upstream *))
{
	struct relay *rl;

	if (r->peeks)
		return (HANDLED_NOT_NOW);
	if (conn_upload_too_long(r)) {
		conn_close_after(r);
		return (too_long(r));
	}
	if (!request_keep(r) || (rl = arena_get(&r->arena, sizeof(*rl))) == NULL)
		return (refuse(r, 500));
	*rl = (struct relay){ .r = r, .ends_with_client = r->conf->proxy_abort };
	if (!fill(rl, u))
		return (refuse(r, 500));
	if (rl->ends_with_client && conn_client_ended(r))
		return (refuse(r, 503)); /* while its file was looked for */
	if (exchange_start(u, &rl->req, conf, &proxy_sink, rl, &rl->ex) != 0)
		return (refuse(r, 500));
	relay_set(r, rl);
	r->carried = NULL; /* what an application says counts, not who sent the request to it */
	if (r->upload != NULL)
		spool_listen(r->upload, upload_moved, rl);
	feed_body(rl);
	return (HANDLED_LATER);
}

/* The client asks for a tunnel, and has as many as it may. */
static bool
has_all_tunnels(struct request *r)
{
	unsigned max = (unsigned)r->conf->proxy_max_tunnels;
	char client[64];

	if (proxy_upgrade(r).n == 0 || conn_takes_tunnel(r, max))
		return (false);
	count(r->worker->counts.handler, proxy_tunnels_refused);
	log_limited(1, LOG_WARN, conn_id(r), "tunnel.refused",
	    LF_TEXT("client", conn_remote(r, client)), LF_U64("tunnels", max),
	    LF_STR("why", "proxy-core.max-tunnels-per-address is reached; the client gets 429"));
	return (true);
}

static enum handled
proxy_start(struct request *r)
{
	struct exchange_conf conf = proxy_times(r->conf);

	if (!r->peeks && !conn_upload_too_long(r) && !proxy_pin(r, &conf.place))
		return (refuse(r, 502));
	if (!r->peeks && has_all_tunnels(r))
		return (refuse(r, 429));
	return (proxy_begin(r, r->site->upstream, &conf, proxy_fill));
}

void
proxy_stop(struct request *r)
{
	struct relay *rl = relay_of(r);

	if (rl != NULL && rl->ex != NULL)
		exchange_forget(&rl->ex, false);
	if (rl != NULL) {
		proxy_code_stop(rl);
		proxy_temp_stop(rl);
		proxy_pieces_stop(rl);
	}
	static_stop(r);
}

bool
proxy_ends_with_client(const struct request *r)
{
	const struct relay *rl = relay_of(r);

	return (rl != NULL && rl->ends_with_client);
}

static const struct exchange *
exchange_of(const struct request *r)
{
	const struct relay *rl = relay_of(r);

	return (rl != NULL ? rl->ex : NULL);
}

const char *
proxy_state(const struct request *r)
{
	const struct exchange *x = exchange_of(r);

	return (x != NULL ? exchange_state(x) : NULL);
}

const char *
proxy_backend(const struct request *r)
{
	const struct exchange *x = exchange_of(r);

	return (x != NULL ? exchange_backend(x) : "");
}

uint64_t
proxy_progress_ns(const struct request *r)
{
	const struct exchange *x = exchange_of(r);

	return (x != NULL ? exchange_progress_ns(x) : 0);
}

const struct handler handler_proxy = {
	.name = "proxy",
	.reads_body = true,
	.taker = &proxy_takes,
	.start = proxy_start,
	.stop = proxy_stop,
};
