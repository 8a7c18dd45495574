/* server/conn_drain.c -- connections when their generation ends: idle ones close now, busy ones after their reply. */
#include "server/conn_impl.h"

void
conn_drain(struct conn *c)
{
	if (c->state == &st_read_head && c->in.n == 0 && c->nreq != 0)
		conn_stop(c);
	else
		c->close_after = true;
}
