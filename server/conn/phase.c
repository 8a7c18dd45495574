/* server/conn/phase.c -- how many connections wait for what, in the worker's tally, and which of them can make room.
 *
 * Counted when a connection waits, not at each state: a hot request passes through most of them at once.
 */
#include "server/conn/impl.h"
#include "server/worker_accept.h"

static void
add(struct conn *c, uint64_t n)
{
	uint64_t *v = &c->w->tally->phase[c->phase];

	tally_set(*v, *v + n);
}

void
conn_phase_begin(struct conn *c)
{
	c->phase = phase_head;
	add(c, 1);
	room_join(&c->w->room, &c->room, client_addr_of(&c->peer.sa));
}

static enum room_kind
room_kind_of(const struct conn *c)
{
	if (c->closing)
		return (ROOM_NONE);
	if (c->state == &st_linger)
		return (ROOM_IDLE);
	if (c->state != &st_read_head || c->r != NULL)
		return (ROOM_BUSY);
	if (c->in.n != 0)
		return (ROOM_HEAD);
	return (c->nreq != 0 ? ROOM_IDLE : ROOM_SILENT);
}

static void
show_room(struct conn *c)
{
	enum room_kind kind = room_kind_of(c);

	if (kind == c->room.kind && kind != ROOM_HEAD)
		return;
	room_set(&c->w->room, &c->room, kind, (uint32_t)c->own.cap);
	if (kind == ROOM_HEAD || c->w->paused)
		accept_room_grew(c->w);
}

void
conn_phase_show(struct conn *c)
{
	enum phase now = c->state->phase;

	if (now == phase_head && c->r == NULL && c->in.n == 0 && c->nreq != 0)
		now = phase_idle;
	if (now != c->phase) {
		add(c, (uint64_t)-1);
		c->phase = now;
		add(c, 1);
	}
	show_room(c);
}

void
conn_phase_end(struct conn *c)
{
	add(c, (uint64_t)-1);
	room_leave(&c->w->room, &c->room);
}

void
conn_show(const struct request *r)
{
	conn_phase_show(r->conn);
}
