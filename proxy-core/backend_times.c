/* proxy-core/backend_times.c -- see backend_times.h */
#include "proxy-core/backend_times.h"

#include <stdlib.h>

#include "proxy-core/backend.h"

const char *const backend_stage_names[BACKEND_NSTAGES] = {
#define S(field, name) name,
	BACKEND_STAGES(S)
#undef S
};

static struct backend_times *
times_first(const struct backend *b)
{
	return (__atomic_load_n(&b->times, __ATOMIC_ACQUIRE));
}

static bool
times_claim(struct backend_times *t)
{
	return (!__atomic_test_and_set(&t->used, __ATOMIC_ACQUIRE));
}

static void
times_push(struct backend *b, struct backend_times *t)
{
	t->next = times_first(b);
	while (!__atomic_compare_exchange_n(&b->times, &t->next, t, false, __ATOMIC_ACQ_REL,
	    __ATOMIC_ACQUIRE))
		;
}

struct backend_times *
backend_times_take(struct backend *b)
{
	struct backend_times *t;

	for (t = times_first(b); t != NULL; t = t->next)
		if (times_claim(t))
			return (t);
	if ((t = calloc(1, sizeof(*t))) == NULL)
		return (NULL);
	t->used = true;
	times_push(b, t);
	return (t);
}

void
backend_times_return(struct backend_times *t)
{
	__atomic_clear(&t->used, __ATOMIC_RELEASE);
}

void
backend_times_sum(const struct backend *b, enum backend_stage s, struct histogram *into)
{
	const struct backend_times *t;

	for (t = times_first(b); t != NULL; t = t->next)
		histogram_merge(into, &t->stage[s]);
}
