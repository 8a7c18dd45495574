/* proxy-core/exchange_tunnel.c -- after 101 Switching Protocols: bytes pass unchanged.
 *
 *   client --exchange_body()--> x->body (64 KiB) --> application
 *   client <--on_body---------- one receive buffer <-- application    waits while paused
 *
 * Each side may end its direction alone.  The socket is never used for another request.
 */
#include <errno.h>
#include "base/clock.h"
#include "proxy-core/exchange_impl.h"

void
tunnel_begin(struct exchange *x)
{
	if (x->state != x_head || !text_ieq(x->head.reply.upgrade, x->req->upgrade)) {
		exchange_broken(x, 502, -EPROTO, "101 to a protocol that was not asked for");
		return;
	}
	x->times.head = x->progress_ns = io_now(x->u->io);
	x->state = x_tunnel;
	x->keep = false;
	x->unsized = true;
	x->body_left = INT64_MAX;
	x->end_framed = false;
	count(x->u->counters, proxy_tunnels);
	backend_add(pool_backend(x->pool), replies, 1);
	x->sink.on_head(x->arg, &x->head.reply);
	reply_head_free(&x->head);
}

void
tunnel_bytes(struct exchange *x, struct text *in)
{
	struct text bytes = text_take(in, in->n);

	x->progress_ns = io_now(x->u->io);
	if (bytes.n > 0)
		x->sink.on_body(x->arg, bytes);
}

/* Both directions have ended. */
static bool
is_over(const struct exchange *x)
{
	return (x->eof && (x->end_framed || x->send_failed));
}

void
tunnel_lost(struct exchange *x, int err)
{
	if (err < 0) {
		exchange_fail(x, err);
		return;
	}
	x->eof = true;
	if (x->sink.on_eof != NULL)
		x->sink.on_eof(x->arg);
	if (x->state == x_tunnel && is_over(x))
		exchange_fail(x, 0);
}

void
tunnel_sent(struct exchange *x)
{
	if (x->body_left > 0 || x->end_framed)
		return;
	x->end_framed = true;
	lease_shutdown(x->lease);
	if (is_over(x))
		exchange_fail(x, 0);
}

/* The deadlines of the client count while its side is full. */
void
tunnel_tick(struct exchange *x, uint64_t now)
{
	uint64_t last = exchange_progress_ns(x);

	if (!x->paused && x->conf.read_ms != 0 && now > last &&
	    now - last >= x->conf.read_ms * NS_PER_MS)
		exchange_fail(x, 0);
}
