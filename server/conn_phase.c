/* server/conn_phase.c -- how many connections wait for what, in the worker's tally.
 *
 * Counted when a connection waits, not at each state: a hot request passes through most of them at once.
 */
#include "server/conn_impl.h"

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
}

void
conn_phase_show(struct conn *c)
{
	enum phase now = c->state->phase;

	if (now == phase_head && c->r == NULL && c->nreq != 0)
		now = phase_idle;
	if (now == c->phase)
		return;
	conn_phase_end(c);
	c->phase = now;
	add(c, 1);
}

void
conn_phase_end(struct conn *c)
{
	add(c, (uint64_t)-1);
}

void
conn_show(const struct request *r)
{
	conn_phase_show(r->conn);
}
