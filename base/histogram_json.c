/* base/histogram_json.c -- see histogram_json.h */
#include <inttypes.h>

#include "base/histogram_json.h"
#include "base/must.h"

void
histogram_json(struct buf *out, const struct histogram *h)
{
	static const struct {
		const char *name;
		double p;
	} all[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}};
	size_t i;

	buf_printf(out, "{\"count\":%" PRIu64 ",\"sum_ns\":%" PRIu64, histogram_count(h), h->sum_ns);
	for (i = 0; i < NELEM(all); i++)
		buf_printf(out, ",\"%s_ns\":%" PRIu64, all[i].name, histogram_percentile(h, all[i].p));
	buf_printf(out, ",\"max_ns\":%" PRIu64 "}", h->max_ns);
}
