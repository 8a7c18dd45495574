/* server/conn/banned.c -- clients that server.ban-file names.
 *
 * The peer of a connection is checked when the connection begins, after a header of the PROXY
 * protocol, and again when the list has changed.  The client of a trusted proxy is checked at each
 * request.
 */
#include "base/log.h"
#include "server/conn/impl.h"
#include "server/reply/reply.h"
#include "server/request/request.h"

static bool
is_banned(struct worker *w, const union io_addr *a)
{
	return (bans_has(w->base.conf.bans, &w->bans, a, io_wall_s(w->base.io)));
}

bool
conn_refuses_peer(struct worker *w, const union io_addr *peer)
{
	char name[CLIENT_ADDR_MAX];

	if (shared_get(*w->bans_version) == 0 || !is_banned(w, peer))
		return (false);
	count(w->base.counts.conn, banned);
	log_limited(1, LOG_INFO, NULL, "connection.banned",
	    LF_STR("address", client_addr_text(&peer->sa, name)),
	    LF_STR("why", "server.ban-file names it"), LF_STR("then", "connection closed"));
	return (true);
}

/* The connection of the proxy goes on, unless a body follows. */
static const struct conn_state *
refuse_client(struct conn *c)
{
	static const char why[] = "server.ban-file names the client of this request";
	struct request *r = c->r;
	char name[CLIENT_ADDR_MAX];

	count(c->w->base.counts.conn, requests_banned);
	log_limited(1, LOG_INFO, conn_id(r), "request.banned",
	    LF_STR("address", client_addr_text(&r->client.sa, name)), LF_STR("why", why),
	    LF_STR("then", "the client gets 403"));
	if (r->in.left != 0)
		return (conn_refuse(c, 403, why));
	request_use(r, c->w->base.global);
	reply_error(r, 403);
	return (&st_send);
}

const struct conn_state *
conn_check_bans(struct conn *c)
{
	uint32_t version = shared_get(*c->w->bans_version);

	if (c->bans_seen != version) {
		if (conn_refuses_peer(c->w, &c->peer)) {
			if (c->parent != NULL)
				conn_http2_leave(c->parent);
			return (&st_close);
		}
		c->bans_seen = version;
	}
	if (!c->trusted || !is_banned(c->w, &c->r->client))
		return (NULL);
	return (refuse_client(c));
}
