/* base/counter.c -- see counter.h. */
#include <inttypes.h>

#include "base/counter.h"

uint64_t
counter_get(const void *c, const struct counter_info *info)
{
	return (
	    __atomic_load_n((const uint64_t *)((const char *)c + info->offset), __ATOMIC_RELAXED));
}

void
counters_add(void *sum, const void *c, const struct counter_info *info)
{
	for (; info->name != NULL; info++)
		*(uint64_t *)((char *)sum + info->offset) += counter_get(c, info);
}

void
counters_each(const void *c, const struct counter_info *info,
    void (*each)(void *arg, const char *dotted, uint64_t v), void *arg)
{
	for (; info->name != NULL; info++)
		each(arg, info->dotted, counter_get(c, info));
}

void
counters_json(struct buf *out, const void *c, const struct counter_info *info)
{
	const char *before = "\"counters\":{";

	for (; info->name != NULL; info++, before = ",\n")
		buf_printf(out, "%s\"%s\":%" PRIu64, before, info->dotted, counter_get(c, info));
	buf_char(out, '}');
}
