/* server/status/counters.c -- see counters.h */
#include "server/status/counters.h"

#include "base/must.h"
#include "server/status/worker_counters.h"

const struct counter_info server_counter_infos[] = {
#define C(room, name, dotted, doc) \
	{ #name, dotted, doc, offsetof(struct server_counters, room.name) },
#include "server/status/counters.def"
#undef C
	{ NULL },
};
/* A second row for a field does not compile, so with the number each field has its own. */
enum {
#define C(room, name, dotted, doc) ROW_##room##_##name,
#include "server/status/counters.def"
#undef C
};
_Static_assert(NELEM(server_counter_infos) - 1 == sizeof(struct server_counters) / sizeof(uint64_t),
    "each counter has a row in counters.def");

void
server_counters_sum(const struct worker_counters *t, struct server_counters *sum)
{
	*sum = (struct server_counters){ 0 };
	for (; t != NULL; t = t->next)
		counters_add(sum, t->events, server_counter_infos);
}
