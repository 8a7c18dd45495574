#include "accel-load/report.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/must.h"

#define BUSY_PERCENT 90 /* above it the text says that accel-load itself may be the limit */

static const struct {
	const char *json, *text;
	double share;
} percentiles[] = {
	{ "p50", "p50", .5 },
	{ "p90", "p90", .9 },
	{ "p95", "p95", .95 },
	{ "p99", "p99", .99 },
	{ "p999", "p99.9", .999 },
	{ "p9999", "p99.99", .9999 },
};

struct times {
	const char *json, *text, *classic;
	const struct histogram_fine *of;
};
#define TIMES        4
#define TIMES_BESIDE 2 /* the first two are also those of --beside */
#define TIMES_OF(c)                                                                     \
	{                                                                               \
		{ "latency", "latency", NULL, &(c)->latency },                          \
		    { "first_byte", "first byte", "first-response", &(c)->first_byte }, \
		    { "connect", "connect", "connect", &(c)->connect },                 \
		    { "handshake", "handshake", "handshake", &(c)->handshake },         \
	}

static double
per(double n, double of)
{
	return (of > 0 ? n / of : 0);
}

static double
mean_ns(const struct histogram_fine *h)
{
	return (per((double)h->sum_ns, (double)histogram_fine_count(h)));
}

static double
busy_percent(const struct load_result *r)
{
	return (100 * per(r->cpu_s, r->seconds * (double)r->threads));
}

/* ---------------------------------------------------------------- JSON */

static void
json_times(struct buf *out, const struct times *t)
{
	size_t i;

	buf_printf(out, "\"%s_us\":{\"mean\":%.1f", t->json, mean_ns(t->of) / 1e3);
	for (i = 0; i < NELEM(percentiles); i++)
		buf_printf(out, ",\"%s\":%.1f", percentiles[i].json,
		    (double)histogram_fine_percentile(t->of, percentiles[i].share) / 1e3);
	buf_printf(out, ",\"max\":%.1f},", (double)t->of->max_ns / 1e3);
}

/* [largest value in ns, how many]; null: longer than any bucket. */
static void
json_buckets(struct buf *out, const struct times *t)
{
	const char *comma = "";
	unsigned i;

	buf_printf(out, "\"%s\":{\"sum_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64 ",\"buckets\":[",
	    t->json, t->of->sum_ns, t->of->max_ns);
	for (i = 0; i < HISTOGRAM_FINE_BUCKETS; i++) {
		if (t->of->n[i] == 0)
			continue;
		if (i == HISTOGRAM_FINE_BUCKETS - 1)
			buf_printf(out, "%s[null,%" PRIu64 "]", comma, t->of->n[i]);
		else
			buf_printf(out, "%s[%" PRIu64 ",%" PRIu64 "]", comma,
			    histogram_fine_bound(i), t->of->n[i]);
		comma = ",";
	}
	buf_str(out, "]}");
}

static void
json_errors(struct buf *out, const struct counts *c)
{
	const char *comma = "";
	unsigned i;

	buf_printf(out, "\"errors\":{\"all\":%" PRIu64, count_errors(c));
	for (i = 0; i < LOAD_ERRORS; i++)
		buf_printf(out, ",\"%s\":%" PRIu64, load_errors[i].name, c->errors[i]);
	buf_str(out, "},\"status\":{");
	for (i = 0; i < COUNT_STATUSES; i++) {
		if (c->status[i] == 0)
			continue;
		buf_printf(out, "%s\"%03u\":%" PRIu64, comma, i, c->status[i]);
		comma = ",";
	}
	buf_str(out, "},");
}

/* The first n times, as percentiles and as histograms. */
static void
json_all_times(struct buf *out, const struct counts *c, unsigned n)
{
	const struct times times[TIMES] = TIMES_OF(c);
	unsigned i;

	for (i = 0; i < n; i++)
		json_times(out, &times[i]);
	buf_str(out, "\"histograms\":{");
	for (i = 0; i < n; i++) {
		buf_str(out, i > 0 ? "," : "");
		json_buckets(out, &times[i]);
	}
	buf_str(out, "},");
}

static void
json_beside(struct buf *out, const struct load_result *r)
{
	const struct counts *c = r->beside;

	if (c == NULL)
		return;
	buf_printf(out,
	    "\"beside\":{\"requests\":%" PRIu64 ",\"answered\":%" PRIu64 ",\"failed\":%" PRIu64
	    ",\"aborted\":%" PRIu64 ",\"unanswered\":%" PRIu64 ",\"again\":%" PRIu64
	    ",\"body_bytes\":%" PRIu64 ",",
	    c->requests, c->answered, c->failed, c->aborted, c->unanswered, c->again,
	    c->body_bytes);
	json_errors(out, c);
	json_all_times(out, c, TIMES_BESIDE);
	buf_printf(out, "\"requests_per_s\":%.1f,\"mb_per_s\":%.3f},",
	    per((double)c->answered, r->seconds), per((double)c->body_bytes / 1e6, r->seconds));
}

void
report_json(struct buf *out, const struct load_result *r)
{
	const struct counts *c = r->counts;

	buf_printf(out,
	    "{\"program\":\"accel-load\",\"seconds\":%.6f,\"requests\":%" PRIu64
	    ",\"answered\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"aborted\":%" PRIu64
	    ",\"unanswered\":%" PRIu64 ",\"connects\":%" PRIu64
	    ",\"connects_per_s\":%.1f,\"handshakes\":%" PRIu64 ",\"resumed\":%" PRIu64
	    ",\"goaways\":%" PRIu64 ",\"again\":%" PRIu64 ",\"held\":%" PRIu64
	    ",\"requests_per_s\":%.1f,\"body_bytes\":%" PRIu64 ",\"mb_per_s\":%.3f,",
	    r->seconds, c->requests, c->answered, c->failed, c->aborted, c->unanswered, c->connects,
	    per((double)c->connects, r->seconds), c->handshakes, c->resumed, c->goaways, c->again,
	    r->held, per((double)c->answered, r->seconds), c->body_bytes,
	    per((double)c->body_bytes / 1e6, r->seconds));
	json_errors(out, c);
	json_all_times(out, c, TIMES);
	json_beside(out, r);
	buf_printf(out,
	    "\"client\":{\"threads\":%" PRIu64 ",\"connections\":%" PRIu64 ",\"streams\":%" PRIu64
	    ",\"never\":%" PRIu64 ",\"least\":%" PRIu64 ",\"cpu_s\":%.6f,\"busy_percent\":%.1f}}\n",
	    r->threads, r->connections, r->streams, r->never, r->least, r->cpu_s, busy_percent(r));
}

/* ---------------------------------------------------------------- text */

/* Four digits: 0.042, 1.250, 14.32, 250.1, 12345. */
static void
put_ms(struct buf *out, double ns)
{
	double ms = ns / NS_PER_MS;

	buf_printf(out, "%9.*f", ms < 10 ? 3 : ms < 100 ? 2 : ms < 1000 ? 1 : 0, ms);
}

static void
text_time(struct buf *out, const char *name, const struct histogram_fine *h)
{
	unsigned k;

	if (histogram_fine_count(h) == 0)
		return;
	buf_printf(out, "%-10s", name);
	for (k = 0; k < NELEM(percentiles); k++)
		put_ms(out, (double)histogram_fine_percentile(h, percentiles[k].share));
	put_ms(out, (double)h->max_ns);
	put_ms(out, mean_ns(h));
	buf_char(out, '\n');
}

static void
text_times(struct buf *out, const struct load_result *r)
{
	const struct times times[TIMES] = TIMES_OF(r->counts);
	unsigned i, k;

	buf_printf(out, "\n%-10s", "ms");
	for (k = 0; k < NELEM(percentiles); k++)
		buf_printf(out, "%9s", percentiles[k].text);
	buf_printf(out, "%9s%9s\n", "max", "mean");
	for (i = 0; i < TIMES; i++)
		text_time(out, times[i].text, times[i].of);
	if (r->beside != NULL)
		text_time(out, "beside", &r->beside->latency);
}

/* of: "requests", or those of --beside. */
static void
text_errors(struct buf *out, const struct counts *c, const char *of)
{
	uint64_t all = count_errors(c);
	unsigned i;

	buf_printf(out, "\n%" PRIu64 " errors, %.2f %% of the %s\n", all,
	    100 * per((double)all, (double)c->requests), of);
	for (i = 0; i < LOAD_ERRORS; i++)
		if (c->errors[i] > 0)
			buf_printf(out, "%12" PRIu64 "  %-9s  %s\n", c->errors[i],
			    load_errors[i].name, load_errors[i].meaning);
}

static void
text_all_errors(struct buf *out, const struct load_result *r)
{
	uint64_t beside = r->beside != NULL ? count_errors(r->beside) : 0;

	if (count_errors(r->counts) + beside == 0)
		buf_str(out, "\nno errors\n");
	if (count_errors(r->counts) > 0)
		text_errors(out, r->counts, "requests");
	if (beside > 0)
		text_errors(out, r->beside, "requests beside");
}

static void
text_http2(struct buf *out, const struct load_result *r)
{
	const struct counts *c = r->counts;
	uint64_t again = c->again + (r->beside != NULL ? r->beside->again : 0);

	if (r->beside != NULL)
		buf_printf(out,
		    "%" PRIu64 " requests beside, %" PRIu64
		    " answered: %.1f requests/s, %.2f MB/s\n",
		    r->beside->requests, r->beside->answered,
		    per((double)r->beside->answered, r->seconds),
		    per((double)r->beside->body_bytes / 1e6, r->seconds));
	if (c->goaways > 0)
		buf_printf(out, "%" PRIu64 " GOAWAY, %" PRIu64 " requests asked again\n",
		    c->goaways, again);
}

static void
text_statuses(struct buf *out, const struct counts *c)
{
	const char *before = "\nstatus    ";
	unsigned i;

	for (i = 0; i < COUNT_STATUSES; i++) {
		if (c->status[i] == 0)
			continue;
		buf_printf(out, "%s %03u: %" PRIu64, before, i, c->status[i]);
		before = ",";
	}
	if (before[0] == ',')
		buf_char(out, '\n');
}

static void
text_classic(struct buf *out, const struct load_result *r)
{
	const struct counts *c = r->counts;
	const struct times times[TIMES] = TIMES_OF(c);
	double bytes = (double)c->body_bytes, fetches = (double)c->answered;
	unsigned i;

	buf_printf(out,
	    "\n%" PRIu64 " fetches, %" PRIu64 " max parallel, %g bytes, in %g seconds\n",
	    c->answered, r->connections, bytes, r->seconds);
	buf_printf(out, "%g mean bytes/connection\n%g fetches/sec, %g bytes/sec\n",
	    per(bytes, fetches), per(fetches, r->seconds), per(bytes, r->seconds));
	for (i = c->handshakes > 0 ? TIMES : TIMES - 1; i-- > 1;)
		buf_printf(out, "msecs/%s: %g mean, %g max, %g min\n", times[i].classic,
		    mean_ns(times[i].of) / 1e6, (double)times[i].of->max_ns / 1e6,
		    (double)histogram_fine_percentile(times[i].of, 0) / 1e6);
	if (c->errors[LOAD_TIMEOUT] > 0)
		buf_printf(out, "%" PRIu64 " timeouts\n", c->errors[LOAD_TIMEOUT]);
	buf_printf(out, "%" PRIu64 " bad byte counts\n",
	    c->errors[LOAD_SHORT] + c->errors[LOAD_LONG]);
	if (c->errors[LOAD_WRONG] > 0)
		buf_printf(out, "%" PRIu64 " bad checksums\n", c->errors[LOAD_WRONG]);
	buf_str(out, "HTTP response codes:\n");
	for (i = 0; i < COUNT_STATUSES; i++)
		if (c->status[i] > 0)
			buf_printf(out, "  code %03u -- %" PRIu64 "\n", i, c->status[i]);
}

void
report_text(struct buf *out, const struct load_result *r)
{
	const struct counts *c = r->counts;
	double busy = busy_percent(r);

	buf_printf(out, "%" PRIu64 " requests in %.2f s, %" PRIu64 " answered: %.1f requests/s, ",
	    c->requests, r->seconds, c->answered, per((double)c->answered, r->seconds));
	buf_printf(out, "%.2f MB/s\n", per((double)c->body_bytes / 1e6, r->seconds));
	if (c->aborted > 0)
		buf_printf(out, "%" PRIu64 " left in the middle of the body (--abort)\n",
		    c->aborted);
	if (c->unanswered > 0)
		buf_printf(out, "%" PRIu64 " without an answer at the end\n", c->unanswered);
	if (c->handshakes > 0)
		buf_printf(out,
		    "%" PRIu64 " handshakes of TLS, %" PRIu64 " resumed: %.1f connections/s\n",
		    c->handshakes, c->resumed, per((double)c->handshakes, r->seconds));
	if (r->never > 0 && c->requests >= r->connections)
		buf_printf(out, "%" PRIu64 " connections got no answer\n", r->never);
	text_http2(out, r);
	text_times(out, r);
	text_all_errors(out, r);
	text_statuses(out, c);
	if (busy > BUSY_PERCENT)
		buf_printf(out,
		    "\naccel-load used %.0f %% of its %" PRIu64
		    " threads: it may be the limit; try --threads\n",
		    busy, r->threads);
	if (r->verbose)
		text_classic(out, r);
}
