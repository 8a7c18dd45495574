/* io/deadline.c -- deadlines of ops: a wheel of ticks, a list for each, a bit for each that may have one. */
#include <errno.h>
#include "base/clock.h"
#include "io/engine.h"

/* The slot is the first tick that lies wholly behind the deadline: late by at most a tick, never early. */
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

static void
expire_slot(struct io *io, unsigned slot)
{
	struct io_wheel *w = &io->wheel;
	struct list *l, *next;
	struct io_op *op;

	if ((w->bits[slot / 64] & 1ull << (slot % 64)) == 0)
		return;
	list_foreach_safe (l, next, &w->slot[slot]) {
		op = list_entry(l, struct io_op, timer);
		if (op->expires_ns > io->now)
			continue; /* in a later turn of the wheel */
		list_del(l);
		/* A result may be waiting on the socket: try first; park() arms again if there is none. */
		if (op->state != OP_TRY)
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
	w->tick = tick; /* first: what is armed meanwhile belongs to the next tick */
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
			t += 63 - slot % 64; /* to the end of this word */
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
