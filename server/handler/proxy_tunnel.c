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

static bool
lists(struct text list, struct text name)
{
	struct text member;

	while (text_next(&list, ',', &member))
		if (text_ieq(text_trim(member), name))
			return (true);
	return (false);
}

static bool
says(const struct request *r, struct text field, struct text member)
{
	size_t i;

	for (i = 0; i < r->http.nheaders; i++)
		if (text_ieq(r->http.headers[i].name, field) &&
		    lists(r->http.headers[i].value, member))
			return (true);
	return (false);
}

/* The first protocol of proxy-core.upgrade that the client offers. */
struct text
proxy_upgrade(const struct request *r)
{
	const struct conf_list *allowed = &r->conf->proxy_upgrade;
	size_t i;

	if (allowed->n == 0 || r->http.minor == 0 || r->http.verb != HTTP_GET || r->http.chunked ||
	    r->http.content_length > 0 || !says(r, TEXT("Connection"), TEXT("Upgrade")))
		return (TEXT_NONE);
	for (i = 0; i < allowed->n; i++)
		if (says(r, TEXT("Upgrade"), allowed->v[i]))
			return (allowed->v[i]);
	return (TEXT_NONE);
}

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
