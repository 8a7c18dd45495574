/* t/unit/accel-load/report.c -- reports: their numbers and their text. */
#include "accel-load/report.h"

#include <stdlib.h>

#include "base/clock.h"
#include "t/unit/test.h"

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

TEST("/accel-load/report/ends-add-up")
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

static void
has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		g_error("no \"%s\" in:\n%s", part, text);
}

TEST("/accel-load/report/text")
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
