/* server/status/tally.c -- see tally.h */
#include "server/status/tally.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"

#define LINE 64u /* no two workers write to one line of the processor's cache */

void
tallies_init(struct tallies *all)
{
	*all = (struct tallies){.started_ns = clock_mono_ns(), .started_wall_s = clock_wall_ns() / NS_PER_S};
}

void
tallies_free(struct tallies *all)
{
	struct tally *t, *next;

	for (t = all->first; t != NULL; t = next) {
		must(!t->used);
		next = t->next;
		free(t);
	}
	all->first = NULL;
}

static struct tally *
tally_new(struct tallies *all)
{
	size_t size = (sizeof(struct tally) + LINE - 1) / LINE * LINE;
	struct tally *t = aligned_alloc(LINE, size);

	must(t != NULL);
	memset(t, 0, size);
	t->next = all->first;
	__atomic_store_n(&all->first, t, __ATOMIC_RELEASE);
	return (t);
}

struct tally *
tally_take(struct tallies *all)
{
	struct tally *t;

	for (t = all->first; t != NULL && t->used; t = t->next)
		;
	if (t == NULL)
		t = tally_new(all);
	tally_set(t->used, true);
	return (t);
}

void
tally_return(struct tally *t)
{
	tally_set(t->cached, 0);
	tally_set(t->sets, 0);
	tally_set(t->used, false);
}

struct tally *
tally_first(const struct tallies *all)
{
	return (__atomic_load_n(&all->first, __ATOMIC_ACQUIRE));
}

bool
tally_used(const struct tally *t)
{
	return (tally_get(t->used));
}
