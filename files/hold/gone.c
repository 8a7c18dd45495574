/* files/hold/gone.c -- names that were dropped to make room, kept as long as their entries would
 * have been kept.
 *
 * If a look-up goes to a disk for such a name, a larger cache would have answered it.  Many such
 * look-ups mean that the cache is too small.  A walk that reads each file once also drops many
 * names, but none of them comes back.
 *
 * A name is a slot: the place and the rest of its hash, and the second in which it went.  A later
 * name may take the slot.  The slots are allocated when the first name goes.
 */
#include "files/hold/impl.h"

#include <stdlib.h>

#include "base/clock.h"

#define SLOTS_OF_ENTRY 4u
#define LEAST_SLOTS    4096u      /* 32 kB: in a table of this size few names share a slot */
#define MOST_SLOTS     (1u << 20) /* 8 MiB */

static uint32_t
now_s(const struct file_cache *fc)
{
	return ((uint32_t)(io_now(fc->io) / NS_PER_S) + 1); /* 0: the slot is empty */
}

static bool
gone_begin(struct gone_names *g, uint64_t entries)
{
	size_t n = LEAST_SLOTS;

	while (n < SLOTS_OF_ENTRY * entries && n < MOST_SLOTS)
		n *= 2;
	g->slot = calloc(n, sizeof(*g->slot));
	g->mask = n - 1;
	return (g->slot != NULL);
}

/* Without memory for the slots nothing is noted. */
void
gone_note(struct file_cache *fc, const struct lookup *l)
{
	struct gone_names *g = &fc->gone;

	if (g->slot == NULL && !gone_begin(g, fc->lim.entries))
		return;
	g->slot[l->hash & g->mask] = (struct gone_name){ (uint32_t)(l->hash >> 32), now_s(fc) };
}

bool
gone_take(struct file_cache *fc, uint64_t hash)
{
	struct gone_names *g = &fc->gone;
	struct gone_name *name;
	bool lately;

	if (g->slot == NULL)
		return (false);
	name = &g->slot[hash & g->mask];
	if (name->at_s == 0 || name->hash != (uint32_t)(hash >> 32))
		return (false);
	lately = fc->lim.forget_ms == 0 || now_s(fc) - name->at_s <= fc->lim.forget_ms / 1000;
	name->at_s = 0;
	return (lately);
}

void
gone_end(struct file_cache *fc)
{
	free(fc->gone.slot);
	fc->gone.slot = NULL;
}
