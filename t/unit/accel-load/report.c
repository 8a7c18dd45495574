/* t/unit/accel-load/report.c -- reports: their numbers, their text, and their sum. */
#include "accel-load/report.h"

#include <glib.h>
#include <stdlib.h>

#include "accel-load/report_read.h"
#include "base/clock.h"

void
load_message(const char *format, ...)
{
}

/* A run with each kind of end, its durations by the seed. */
static struct counts *
a_run(unsigned seed, unsigned requests)
{
	struct counts *c = counts_new();
	GRand *rand = g_rand_new_with_seed(seed);
	unsigned i;

	count_requests(c, requests + 2);
	count_withdrawn(c, 2);
	for (i = 0; i < requests; i++) {
		uint64_t ns = (uint64_t)(1e9 / g_rand_double_range(rand, 1e-5, 1e6));

		count_connect(c, ns / 10);
		switch (i % 16) {
		case 0: count_error(c, (enum load_error)(i / 16 % LOAD_ERRORS), 1); break;
		case 1: count_aborted(c, 1); break;
		case 2: count_unanswered(c, ns); break;
		case 3: count_answer(c, 404, LOAD_STATUS, ns); break;
		case 4: count_answer(c, 200, LOAD_WRONG, ns); break;
		default:
			count_first_byte(c, ns / 2);
			count_body(c, 100000);
			count_answer(c, 200, LOAD_OK, ns);
		}
	}
	g_rand_free(rand);
	return (c);
}

static struct load_result
result_of(const struct counts *c, double seconds)
{
	return ((struct load_result){ .seconds = seconds,
	    .cpu_s = 0.5,
	    .threads = 2,
	    .connections = 10,
	    .counts = c });
}

static char *
json_of(const struct load_result *r)
{
	struct buf out;
	char *text;

	buf_init(&out, 0);
	report_json(&out, r);
	text = g_strndup(out.p, out.n);
	buf_free(&out);
	return (text);
}

static void
ends_add_up(void)
{
	struct counts *c = a_run(1, 1600);
	uint64_t errors = 0;
	unsigned i;

	g_assert_cmpuint(c->requests, ==, 1600);
	g_assert_cmpuint(c->requests, ==, c->answered + c->failed + c->aborted + c->unanswered);
	for (i = 0; i < LOAD_ERRORS; i++)
		errors += c->errors[i];
	g_assert_cmpuint(errors, ==, count_errors(c));
	g_assert_cmpuint(errors, ==, 300);
	g_assert_cmpuint(c->status[200], ==, 1200);
	g_assert_cmpuint(c->status[404], ==, 100);
	g_assert_cmpuint(c->connects, ==, histogram_fine_count(&c->connect));
	counts_free(c);
}

/* The sum of two reports is the report of both runs, byte by byte. */
static void
sum_of_two(void)
{
	struct counts *a = a_run(1, 1600), *b = a_run(2, 3200), *sum = counts_new(),
		      *both = counts_new();
	struct load_result ra = result_of(a, 3), rb = result_of(b, 5), read = { 0 }, all;
	char *texts[] = { json_of(&ra), json_of(&rb) }, *merged, *one;
	struct report_fault fault;
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct counts *c = counts_new();
		struct text in = text_of(texts[i]);

		g_assert_true(report_read(&in, &read, c, &fault));
		g_assert_cmpuint(in.n, ==, 0);
		g_assert_cmpmem(c, sizeof(*c), i == 0 ? a : b, sizeof(*c));
		counts_add(sum, c);
		counts_free(c);
		g_free(texts[i]);
	}
	counts_add(both, a);
	counts_add(both, b);
	g_assert_cmpmem(sum, sizeof(*sum), both, sizeof(*both));
	all = result_of(sum, 5);
	merged = json_of(&all);
	all.counts = both;
	one = json_of(&all);
	g_assert_cmpstr(merged, ==, one);
	g_free(merged);
	g_free(one);
	counts_free(a);
	counts_free(b);
	counts_free(sum);
	counts_free(both);
}

static void
unreadable(const char *json, const char *why, long at)
{
	struct counts *c = counts_new();
	struct load_result r = { 0 };
	struct text in = text_of(json);
	struct report_fault fault;

	g_assert_false(report_read(&in, &r, c, &fault));
	g_assert_nonnull(strstr(fault.why, why));
	if (at >= 0)
		g_assert_cmpint(fault.at - json, ==, at);
	counts_free(c);
}

/* text with the first FROM replaced by TO */
static char *
changed(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);

	g_assert_nonnull(at);
	return (g_strdup_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from)));
}

static void
bad_reports(void)
{
	static const struct {
		const char *from, *to, *why;
	} rows[] = {
		{ "accel-load", "wrk", "a report of accel-load" },
		{ "\"requests\":16", "\"requests\":17", "expected requests = " },
		{ "\"requests\":16", "\"requests\":-16", "an integer" },
		{ "\"requests\":16", "\"requests\":16.0", "an integer" },
		{ "\"requests\":16", "\"requests\":9007199254740993", "an integer" },
		{ "\"requests\":16", "\"requests\":16,\"requests\":16", "each member once" },
		{ "\"requests\":16,", "", "all members" },
		{ "\"seconds\":3", "\"seconds\":1e400", "a number" },
		{ "\"seconds\":3", "\"seconds\":-3", "a number" },
		{ "\"seconds\":3", "\"seconds\":nan", "a number" },
		{ "\"refused\":", "\"refsued\":", "each kind of error" },
		{ "\"404\":1", "\"404\":1,\"404\":1", "each status once" },
		{ "\"404\":1", "\"4040\":1", "three digits" },
		{ "\"sum_ns\":", "\"sun_ns\":", "sum_ns, max_ns and buckets" },
		{ "\"buckets\":[[", "\"buckets\":[[1001,1],[", "the bound of a bucket" },
		{ "\"buckets\":[[", "\"buckets\":[[null,1],[", "the bound of a bucket" },
		{ "\"buckets\":[[", "\"buckets\":[", "expected [bound" },
		{ "\"buckets\":[[", "\"buckets\":{[", "an array" },
		{ "{\"program\"", "[\"program\"", "an object" },
		{ "{\"program\"", "{\"x\":[[[[[[[[[1]]]]]]]]],\"program\"", "fewer objects" },
		{ "\"client\":{", "\"client\":{\"x", "expected" },
	};
	struct counts *c = a_run(1, 16);
	struct load_result r = result_of(c, 3);
	char *good = json_of(&r), *bad;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		bad = changed(good, rows[i].from, rows[i].to);
		unreadable(bad, rows[i].why, -1);
		g_free(bad);
	}
	unreadable("", "an object", 0);
	unreadable("{\"program\":\"accel-load\" \"", "\",\" or \"}\"", 24);
	/* Each beginning of a report is none. */
	for (i = 0; i < strlen(good) - 2; i++) {
		bad = g_strndup(good, i);
		unreadable(bad, "expected", -1);
		g_free(bad);
	}
	bad = changed(good, "{\"program\"", "{\"x\":[[[[[[1,true,\"\\\"]\"]]]]]],\n\t\"program\"");
	{
		struct counts *other = counts_new();
		struct text in = text_of(bad);
		struct report_fault fault;

		g_assert_true(report_read(&in, &r, other, &fault));
		g_assert_cmpmem(c, sizeof(*c), other, sizeof(*c));
		counts_free(other);
	}
	g_free(bad);
	g_free(good);
	counts_free(c);
}

static void
has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		g_error("no \"%s\" in:\n%s", part, text);
}

static void
text_report(void)
{
	struct counts *c = counts_new();
	struct load_result r = result_of(c, 2);
	struct buf out;
	unsigned i;

	for (i = 1; i <= 100; i++) {
		count_requests(c, 1);
		count_connect(c, NS_PER_MS);
		count_first_byte(c, i * NS_PER_MS);
		count_body(c, 10000);
		count_answer(c, 200, LOAD_OK, i * NS_PER_MS);
	}
	r.verbose = true;
	count_requests(c, 3);
	count_error(c, LOAD_REFUSED, 2);
	count_error(c, LOAD_TIMEOUT, 1);
	buf_init(&out, 0);
	report_text(&out, &r);
	buf_char(&out, '\0');
	has(out.p, "103 requests in 2.00 s, 100 answered: 50.0 requests/s, 0.50 MB/s\n");
	has(out.p, "\nlatency       49.95");
	has(out.p, "\n3 errors, 2.91 % of the requests\n           2  refused    nobody");
	has(out.p, "\nstatus     200: 100\n");
	has(out.p, "\n100 fetches, 10 max parallel, 1e+06 bytes, in 2 seconds\n"
		   "10000 mean bytes/connection\n50 fetches/sec, 500000 bytes/sec\n");
	has(out.p, "msecs/connect: 1 mean, 1 max, 0.9");
	has(out.p, "msecs/first-response: 50.5 mean, 100 max, 0.9");
	has(out.p, "1 timeouts\n0 bad byte counts\nHTTP response codes:\n  code 200 -- 100\n");
	buf_free(&out);
	counts_free(c);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/accel-load/report/ends-add-up", ends_add_up);
	g_test_add_func("/accel-load/report/sum-of-two", sum_of_two);
	g_test_add_func("/accel-load/report/bad-reports", bad_reports);
	g_test_add_func("/accel-load/report/text", text_report);
	return (g_test_run());
}
