/* io/deadline.c -- deadlines of ops: a wheel of ticks, a list for each tick, and a bit for each
 * list that may have ops.
 */
#include <errno.h>
#include "base/clock.h"
#include "io/engine.h"
#include "io/transport.h"

/* The slot is the first tick wholly after the deadline: at most a tick late, never early. */
void
io_arm(struct io_op *op)
{
	struct io_wheel *w = &op->io->wheel;
	uint64_t tick;
	unsigned slot;

	if (op->expires_ns == 0 || list_linked(&op->timer))
		return;
	tick = (op->expires_ns >> WHEEL_SHIFT) + 1;
	if (tick <= w->tick)
		tick = w->tick + 1;
	slot = tick % WHEEL_SLOTS;
	list_add_tail(&w->slot[slot], &op->timer);
	w->bits[slot / 64] |= 1ull << (slot % 64);
}

void
io_arm_again(struct io_op *op)
{
	if (op->deadline_ms == 0)
		return;
	list_del(&op->timer);
	op->expires_ns = op->io->now + op->deadline_ms * NS_PER_MS;
	io_arm(op);
}

static bool
is_excused(struct io_op *op)
{
	const struct io_transport *t = op->sock != NULL ? op->sock->transport : NULL;

	return (t != NULL && t->calls->excuses != NULL && t->calls->excuses(op));
}

static void
expire_slot(struct io *io, unsigned slot)
{
	struct io_wheel *w = &io->wheel;
	struct io_op *op;

	if ((w->bits[slot / 64] & 1ull << (slot % 64)) == 0)
		return;
	list_each(op, &w->slot[slot], timer) {
		if (op->expires_ns > io->now)
			continue; /* due in a later turn of the wheel */
		list_del(&op->timer);
		/* the socket may have a result: try first; park() arms again if there is none */
		if (op->state == OP_PARKED && is_excused(op))
			io_arm_again(op);
		else if (op->state != OP_TRY)
			io_finish_early(op, -ETIMEDOUT);
	}
	if (list_empty(&w->slot[slot]))
		w->bits[slot / 64] &= ~(1ull << (slot % 64));
}

void
io_expire(struct io *io)
{
	struct io_wheel *w = &io->wheel;
	uint64_t tick = io->now >> WHEEL_SHIFT, first;

	if (tick <= w->tick)
		return;
	first = tick - w->tick >= WHEEL_SLOTS ? tick - WHEEL_SLOTS + 1 : w->tick + 1;
	w->tick = tick; /* first: ops that are armed meanwhile belong to the next tick */
	for (; first <= tick; first++)
		expire_slot(io, first % WHEEL_SLOTS);
}

int
io_timeout_ms(struct io *io)
{
	struct io_wheel *w = &io->wheel;
	uint64_t t, wait, word, end = w->tick + WHEEL_SLOTS;
	unsigned slot;

	for (t = w->tick + 1; t <= end; t++) {
		slot = t % WHEEL_SLOTS;
		word = w->bits[slot / 64] >> (slot % 64);
		if (word == 0) {
			t += 63 - slot % 64; /* skips to the end of this word */
			continue;
		}
		t += (uint64_t)__builtin_ctzll(word);
		slot = t % WHEEL_SLOTS;
		if (list_empty(&w->slot[slot])) {
			w->bits[slot / 64] &= ~(1ull << (slot % 64));
			continue;
		}
		t <<= WHEEL_SHIFT;
		wait = t > io->now ? t - io->now : 0;
		return ((int)((wait + NS_PER_MS - 1) / NS_PER_MS));
	}
	return (-1);
}
