/* server/conn/spread.c -- see spread.h */
#include "base/must.h"
#include "io/io.h"
#include "server/conn/counters.h"
#include "server/conn/handover.h"
#include "server/status/worker_counters.h"
#include "server/conn/spread.h"
#include "server/worker/worker.h"

#define LOOK_MS 100u /* one look serves all that happens in this time */

/* The share is asked again only when it is reached.  It grows by at least SLACK with each answer,
 * or by an eighth, so a worker that fills up with the others asks rarely. */
bool
spread_is_due(struct worker *w)
{
	unsigned n = w->nconns - w->nleaving;

	if (n < w->spread.share || !handover_is_open(w->base.conf.handover))
		return (false);
	w->spread.share = handover_share(w->base.conf.handover, w);
	return (w->spread.share != 0 && n >= w->spread.share);
}

bool
spread_gives(struct worker *w, const struct moved *m)
{
	if (!spread_is_due(w) || !handover_give(w->base.conf.handover, w, m))
		return (false);
	count(w->base.counts.conn, spread);
	spread_look_soon(w);
	return (true);
}

void
spread_begin(struct worker *w)
{
	shared_set(w->spread.asked, false);
	w->spread.share = 0;
	if (!w->draining && spread_is_due(w))
		w->to_drain = w->nconns;
}

static void
look(struct io_op *op)
{
	struct worker *w = container_of(op, struct worker, spread.timer);

	w->spread.timed = false;
	if (w->draining || !handover_is_open(w->base.conf.handover))
		return;
	w->spread.share = 0;
	if (handover_look(w->base.conf.handover, io_now(w->base.io)))
		spread_look_soon(w);
}

void
spread_look_soon(struct worker *w)
{
	if (w->spread.timed || w->draining || w->base.conf.nworkers < 2)
		return;
	w->spread.timed = true;
	w->spread.timer.deadline_ms = LOOK_MS;
	op_submit(w->base.io, &w->spread.timer);
}

void
spread_init(struct worker *w)
{
	op_init(&w->spread.timer, IO_TIMER, look);
}

void
spread_stop(struct worker *w)
{
	if (w->spread.timed)
		op_cancel(w->base.io, &w->spread.timer);
}
