/* base/counter.c -- the table of counters as data, for the status page and the manual. */
#include <stddef.h>
#include "base/counter.h"

const struct counter_info counter_infos[] = {
#define C(name, dotted, doc) {#name, dotted, doc, offsetof(struct counters, name)},
#include "base/counters.def"
#undef C
	{NULL, NULL, NULL, 0},
};

uint64_t
counter_get(const struct counters *c, const struct counter_info *info)
{
	return (__atomic_load_n((const uint64_t *)((const char *)c + info->offset), __ATOMIC_RELAXED));
}
