/* io/loop/slots.c -- see slots.h */
#include <stdlib.h>
#include "base/must.h"
#include "io/loop/slots.h"

#define SLOTS_FIRST 64u

static bool
slots_grow(struct slots *t)
{
	uint32_t cap = t->cap != 0 ? 2 * t->cap : SLOTS_FIRST;
	struct slot *v = realloc(t->slot, cap * sizeof(*v));

	if (v == NULL)
		return (false);
	if (t->n == 0)
		v[t->n++] = (struct slot){ 0 };
	t->slot = v;
	t->cap = cap;
	return (true);
}

uint32_t
slot_take(struct slots *t, void *what, bool watch)
{
	uint32_t nr = t->free;

	if (nr == 0 && t->n == t->cap && !slots_grow(t))
		return (0);
	if (nr != 0) {
		t->free = t->slot[nr].next_free;
	} else {
		nr = t->n++;
		t->slot[nr].generation = 0;
	}
	t->slot[nr].what = what;
	t->slot[nr].watch = watch;
	return (nr);
}

void
slot_give_back(struct slots *t, uint32_t nr)
{
	struct slot *s = &t->slot[nr];

	must(nr != 0 && s->what != NULL);
	s->what = NULL;
	s->generation++;
	s->next_free = t->free;
	t->free = nr;
}

void
slots_free(struct slots *t)
{
	free(t->slot);
	*t = (struct slots){ 0 };
}
