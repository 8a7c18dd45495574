/* server/status/worker_counters.c -- see worker_counters.h */
#include "server/status/worker_counters.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"
#include "server/status/counters.h"

#define LINE 64u /* no two workers write to one line of the processor's cache */

void
counters_list_init(struct counters_list *all)
{
	uint64_t now_s = clock_wall_ns() / NS_PER_S;

	*all = (struct counters_list){ .started_ns = clock_mono_ns(),
		.started_wall_s = now_s,
		.first_started_s = now_s,
		.loaded_wall_s = now_s,
		.helper_since_s = now_s };
}

void
counters_list_free(struct counters_list *all)
{
	struct worker_counters *t, *next;

	for (t = all->first; t != NULL; t = next) {
		must(!t->used);
		next = t->next;
		free(t);
	}
	all->first = NULL;
	hosts_free(&all->hosts);
}

static struct worker_counters *
worker_counters_new(struct counters_list *all)
{
	struct both {
		struct worker_counters t;
		struct server_counters events;
	} * both;
	size_t size = (sizeof(*both) + LINE - 1) / LINE * LINE;
	struct worker_counters *t;

	both = aligned_alloc(LINE, size);
	if (both == NULL)
		return (NULL);
	memset(both, 0, size);
	t = &both->t;
	t->events = &both->events;
	running_desk_init(&t->desk);
	t->next = all->first;
	__atomic_store_n(&all->first, t, __ATOMIC_RELEASE);
	return (t);
}

struct worker_counters *
worker_counters_take(struct counters_list *all)
{
	struct worker_counters *t;

	for (t = all->first; t != NULL && t->used; t = t->next)
		;
	if (t == NULL)
		t = worker_counters_new(all);
	if (t != NULL)
		shared_set(t->used, true);
	return (t);
}

void
worker_counters_return(struct worker_counters *t)
{
	shared_set(t->cached, 0);
	shared_set(t->sets, 0);
	shared_set(t->streams, 0);
	shared_set(t->used, false);
}

struct worker_counters *
worker_counters_first(const struct counters_list *all)
{
	return (__atomic_load_n(&all->first, __ATOMIC_ACQUIRE));
}
