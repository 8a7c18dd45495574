/* io/rest.c -- see rest.h */
#include "io/rest.h"

#include <errno.h>

#include "base/heap.h"
#include "io/engine.h"

#define REST_MS 1000u
/* Fewer requests between two timers: the loop is quiet. */
#define QUIET 100u
/* This many requests since the last trim may have left holes. */
#define WORTH 1000u
/* A trim of a busy loop is worth its cost if the memory in use fell by this many bytes, and by a
 * quarter. */
#define FELL (4u << 20)
/* A trim of a quiet loop is worth its cost after a fall of this many bytes.  Names are forgotten
 * after the trim that followed their requests. */
#define FELL_QUIET (512u << 10)

static void time_rest(struct rest *);

static void
trim(struct io_work *w)
{
	(void)w;
	heap_trim();
}

static void
never(struct io_work *w)
{
	(void)w;
}

/* One for all loops: a trim that runs when its loop ends needs nothing of that loop. */
static struct io_work trimmer = { .run = trim, .free = never, .refs = 1 };

static void
trimmed(struct io_op *op)
{
	struct rest *r = container_of(op, struct rest, op);

	r->trimming = false;
}

static bool
has_fallen(const struct rest *r)
{
	return (r->high > r->memory + r->high / 4 + FELL);
}

static bool
has_fallen_a_little(const struct rest *r)
{
	return (r->high > r->memory + FELL_QUIET);
}

static bool
is_worth_it(const struct rest *r, bool quiet)
{
	return (
	    has_fallen(r) || (quiet && (r->done - r->trimmed >= WORTH || has_fallen_a_little(r))));
}

static void
give_back(struct rest *r)
{
	r->trimmed = r->done;
	r->high = r->memory;
	r->trims++;
	if (r->drop != NULL)
		r->drop(r);
	io_drop_spares(r->io);
	r->trimming = true;
	op_init(&r->op, IO_WORK, trimmed);
	r->op.work.work = &trimmer;
	op_submit(r->io, &r->op);
}

static void
looked(struct io_op *op)
{
	struct rest *r = container_of(op, struct rest, timer);
	bool quiet = r->done - r->seen < QUIET;

	r->timed = false;
	if (op->res != -ETIMEDOUT || r->stopped)
		return;
	r->seen = r->done;
	if (!r->trimming && is_worth_it(r, quiet))
		give_back(r);
	else if (!quiet)
		time_rest(r);
}

static void
time_rest(struct rest *r)
{
	r->timed = true;
	op_init(&r->timer, IO_TIMER, looked);
	r->timer.deadline_ms = REST_MS;
	op_submit(r->io, &r->timer);
}

void
rest_init(struct rest *r, struct io *io, void (*drop)(struct rest *))
{
	*r = (struct rest){ .io = io, .drop = drop };
}

void
rest_note(struct rest *r, uint64_t done, uint64_t memory)
{
	r->done = done;
	r->memory = memory;
	if (memory > r->high)
		r->high = memory;
	if (!r->timed && !r->stopped && (done - r->seen >= QUIET || has_fallen_a_little(r)))
		time_rest(r);
}

bool
rest_stop(struct rest *r)
{
	r->stopped = true;
	if (r->timed)
		op_cancel(r->io, &r->timer);
	if (r->trimming)
		op_cancel(r->io, &r->op);
	return (r->timed || r->trimming);
}
