/* t/bench/hload/report.c -- latencies, errors, and the report as text or JSON. */
#include <math.h>
#include <stdio.h>
#include "t/bench/hload/hload.h"

#define U(x)     ((unsigned long long)(x))
#define NELEM(a) (sizeof(a) / sizeof((a)[0]))

/* Latencies in microseconds: exact below 256, then 128 steps per doubling (0.8 %). */
#define HIST_SUB 128
static struct hist {
	uint64_t slot[HIST_SUB * 40];
	uint64_t n, max, sum;
} latency, first;

static unsigned
hist_slot(uint64_t us)
{
	unsigned shift;

	if (us < 2 * HIST_SUB)
		return ((unsigned)us);
	shift = 63 - (unsigned)__builtin_clzll(us) - 7;
	return (shift * HIST_SUB + (unsigned)(us >> shift));
}

static uint64_t
hist_value(unsigned slot)
{
	unsigned shift;

	if (slot < 2 * HIST_SUB)
		return (slot);
	shift = slot / HIST_SUB - 1;
	return ((((uint64_t)slot - shift * HIST_SUB) << shift) + ((1ull << shift) >> 1));
}

static void
hist_add(struct hist *h, uint64_t ns)
{
	uint64_t us = (ns + 500) / 1000;
	unsigned slot = hist_slot(us);

	if (slot >= NELEM(h->slot))
		slot = NELEM(h->slot) - 1;
	h->slot[slot]++;
	h->n++;
	h->sum += us;
	if (us > h->max)
		h->max = us;
}

void
latency_add(uint64_t ns)
{
	hist_add(&latency, ns);
}

void
first_add(uint64_t ns)
{
	hist_add(&first, ns);
}

static uint64_t
hist_quantile(const struct hist *h, double q)
{
	uint64_t want = (uint64_t)ceil(q * (double)h->n), seen = 0;
	unsigned i;

	for (i = 0; i < NELEM(h->slot); i++) {
		seen += h->slot[i];
		if (seen >= want && seen > 0)
			return (hist_value(i) < h->max ? hist_value(i) : h->max);
	}
	return (h->max);
}

uint64_t
errors(void)
{
	return (cnt.connect + cnt.timeout + cnt.reset + cnt.cut + cnt.status + cnt.malformed +
		cnt.wrong);
}

static const struct {
	const char *json, *text;
	double q;
} quantiles[] = {
	{ "p50", "p50", .5 },
	{ "p90", "p90", .9 },
	{ "p99", "p99", .99 },
	{ "p999", "p99.9", .999 },
};

static void
json_times(const char *name, const struct hist *h, const char *end)
{
	printf("\"%s\":{", name);
	for (size_t i = 0; i < NELEM(quantiles); i++)
		printf("\"%s\":%llu,", quantiles[i].json, U(hist_quantile(h, quantiles[i].q)));
	printf("\"max\":%llu,\"mean\":%.1f}%s", U(h->max),
	    h->n > 0 ? (double)h->sum / (double)h->n : 0, end);
}

static void
report_json(double seconds, double rps, double mbs)
{
	printf("{\"requests\":%llu,\"answered\":%llu,\"unanswered\":%llu,\"aborted\":%llu,"
	       "\"errors\":{\"all\":%llu,\"connect\":%llu,\"timeout\":%llu,\"reset\":%llu,"
	       "\"short\":%llu,\"status\":%llu,\"malformed\":%llu,\"wrong\":%llu},"
	       "\"connects\":%llu,\"bytes\":%llu,\"seconds\":%.3f,\"rps\":%.1f,\"mb_per_"
	       "s\":%.3f,",
	    U(cnt.issued), U(cnt.answered), U(cnt.unanswered), U(cnt.aborted), U(errors()),
	    U(cnt.connect), U(cnt.timeout), U(cnt.reset), U(cnt.cut), U(cnt.status),
	    U(cnt.malformed), U(cnt.wrong), U(cnt.connects), U(cnt.bytes), seconds, rps, mbs);
	json_times("latency_us", &latency, ",");
	json_times("first_us", &first, "}\n");
}

static void
report_text(double seconds, double rps, double mbs)
{
	size_t i;

	printf("%llu requests, %llu answered in %.2f s: %.1f req/s, %.2f MB/s, %llu body bytes\n",
	    U(cnt.issued), U(cnt.answered), seconds, rps, mbs, U(cnt.bytes));
	printf("latency ms:");
	for (i = 0; i < NELEM(quantiles); i++)
		printf(" %s %.3f", quantiles[i].text,
		    (double)hist_quantile(&latency, quantiles[i].q) / 1000);
	printf(" max %.3f\n", (double)latency.max / 1000);
	printf("errors %llu: connect %llu timeout %llu reset %llu short %llu status %llu malformed "
	       "%llu "
	       "wrong-bytes %llu; unanswered %llu, aborted %llu\n",
	    U(errors()), U(cnt.connect), U(cnt.timeout), U(cnt.reset), U(cnt.cut), U(cnt.status),
	    U(cnt.malformed), U(cnt.wrong), U(cnt.unanswered), U(cnt.aborted));
}

void
report(double seconds)
{
	(opt.json ? report_json : report_text)(seconds, (double)cnt.answered / seconds,
	    (double)cnt.bytes / seconds / 1e6);
}
