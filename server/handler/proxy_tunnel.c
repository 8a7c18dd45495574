/* server/handler/proxy_tunnel.c -- connections that switch to another protocol, such as WebSocket.
 *
 *   client --> server/conn/stream.c --> exchange (64 KiB) --> application
 *   client <-- r->body (64 KiB and one receive buffer) <----- application
 *
 * A side that is full stops the other one.  When a side ends its direction, the other one gets that
 * end after the last byte.  The tunnel holds its place in the pool, and in a drain it counts as a
 * request under way.
 */
#include "io/body.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/request/request.h"
#include "wire/http1/http1.h"

#define TUNNEL_BYTES (64u << 10) /* more wait in the application */

void
proxy_tunnel_begin(struct relay *rl, const struct proxy_reply *p)
{
	struct request *r = rl->r;
	struct text lines = proxy_lines(rl, p, NULL);

	if (lines.p == NULL || !reply_switch(r, p->upgrade, lines)) {
		exchange_forget(&rl->ex, false);
		proxy_answer_error(rl, 502);
		return;
	}
	rl->tunnel = true;
	proxy_send_more(rl);
	conn_tunnel(r);
}

void
proxy_tunnel_body(struct relay *rl, struct text t)
{
	struct request *r = rl->r;

	if (!body_copy(&r->body, t)) {
		conn_end(r);
		return;
	}
	if (r->body.left >= TUNNEL_BYTES)
		exchange_pause(rl->ex);
	proxy_send_more(rl);
}

/* The application sends no more.  The client gets the end of the stream after the last byte. */
void
proxy_tunnel_eof(void *arg)
{
	struct relay *rl = arg;

	rl->half = true;
	proxy_send_more(rl);
}
