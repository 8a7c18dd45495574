/* server/conn/phase.c -- counts connections by what they wait for, in the worker's counters, and
 * keeps eviction.h up to date.
 *
 * A connection is counted when it waits, not at each state: a hot request passes through most
 * states at once.
 */
#include "base/log.h"
#include "io/http2/http2.h"
#include "server/conn/impl.h"
#include "server/conn/accept.h"

static void
phase_add(struct conn *c, uint64_t n)
{
	uint64_t *v = &c->w->base.counters->phase[c->phase];

	shared_set(*v, *v + n);
}

void
conn_phase_begin(struct conn *c, struct client_addr from)
{
	c->phase = phase_head;
	phase_add(c, 1);
	eviction_join(&c->w->eviction, &c->eviction, from);
}

static bool
has_no_request(const struct conn *c)
{
	return (c->r == NULL && (c->state == &st_read_head || c->state == &st_proxy_header ||
				    c->state == &st_handshake));
}

static enum eviction_kind
eviction_kind_of(const struct conn *c)
{
	if (c->closing)
		return (EVICT_NONE);
	if (c->state == &st_linger)
		return (EVICT_IDLE);
	if (c->h2 != NULL && c->nstreams == 0 && !http2_is_busy(c->h2))
		return (http2_head_since(c->h2) != 0 ? EVICT_HEAD
			: c->nreq != 0               ? EVICT_IDLE
						     : EVICT_SILENT);
	if (c->ended && c->watching)
		return (EVICT_ENDED);
	if (!has_no_request(c))
		return (EVICT_BUSY);
	if (c->in.n != 0)
		return (EVICT_HEAD);
	return (c->nreq != 0 ? EVICT_IDLE : EVICT_SILENT);
}

static void
show_room(struct conn *c)
{
	enum eviction_kind kind = eviction_kind_of(c);

	if (kind == c->eviction.kind && kind != EVICT_HEAD)
		return;
	eviction_set(&c->w->eviction, &c->eviction, kind,
	    (uint32_t)(c->h2 != NULL ? http2_head_bytes(c->h2) : c->own.cap));
	if (kind == EVICT_HEAD || c->w->paused)
		accept_evict_heads(c->w);
}

void
conn_phase_show(struct conn *c)
{
	enum phase now = c->state->phase;

	if (c->parent != NULL)
		return;
	if (c->state == &st_http2 && c->nstreams == 0)
		now = c->nreq != 0 ? phase_idle : phase_head;
	if (now == phase_head && c->r == NULL && c->in.n == 0 && c->nreq != 0)
		now = phase_idle;
	if (now != c->phase) {
		phase_add(c, (uint64_t)-1);
		c->phase = now;
		phase_add(c, 1);
	}
	show_room(c);
}

void
conn_phase_end(struct conn *c)
{
	phase_add(c, (uint64_t)-1);
	eviction_leave(&c->w->eviction, &c->eviction);
}

bool
conn_is_waking(const struct eviction_member *m)
{
	const struct conn *c =
	    container_of((struct eviction_member *)(uintptr_t)m, struct conn, eviction);

	return (m->kind == EVICT_IDLE && c->state != &st_linger && !io_sock_alive(&c->sock));
}

void
conn_make_room(struct eviction_member *m, const char *why)
{
	static const char *const kinds[] = {
		[EVICT_NONE] = "ending",
		[EVICT_BUSY] = "busy",
		[EVICT_IDLE] = "idle",
		[EVICT_ENDED] = "its client sends no more",
		[EVICT_SILENT] = "silent",
		[EVICT_HEAD] = "in its request head",
	};
	struct conn *c = container_of(m, struct conn, eviction);
	struct worker *w = c->w;
	char name[CLIENT_ADDR_MAX];

	log_limited(1, LOG_WARN, NULL, "connection.made-room", LF_STR("why", why),
	    LF_STR("closed", kinds[c->eviction.kind]),
	    LF_STR("address", client_addr_name(eviction_address(&c->eviction), name)),
	    LF_U64("connections", w->nconns));
	c->leaving = true;
	shared_set(w->nleaving, w->nleaving + 1);
	conn_stop(c);
	conn_phase_show(c);
}

void
conn_tell_state(const struct conn *c)
{
	log_event(LOG_INFO, NULL, "debug.state", LF_U64("connection", c->id),
	    LF_STR("state", c->state->name), LF_STR("means", c->state->doc));
}

void
conn_tell_timeout(const struct conn *c)
{
	if (c->w->base.global->log_timeouts)
		log_event(LOG_INFO, NULL, "debug.timeout", LF_U64("connection", c->id),
		    LF_U64("requests", c->nreq), LF_STR("then", "closed"));
}
