#include "accel-load/report_read.h"

#include <math.h>
#include <stdlib.h>

#include "base/must.h"

struct reader {
	const char *p, *end;
	unsigned depth;
	struct load_result *result;
	struct counts *counts;
	struct report_fault *fault;
};

/* ---------------------------------------------------------------- JSON */

static bool
expected(struct reader *r, const char *why)
{
	if (r->fault->why == NULL)
		*r->fault = (struct report_fault){ r->p, why };
	return (false);
}

static char
peek(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
		r->p++;
	return (r->p < r->end ? *r->p : '\0');
}

static bool
accept(struct reader *r, char c)
{
	if (peek(r) != c || r->p == r->end)
		return (false);
	r->p++;
	return (true);
}

/* The bytes between the quotes; escapes stay as they are. */
static bool
read_string(struct reader *r, struct text *t)
{
	if (!accept(r, '"'))
		return (expected(r, "expected a string"));
	t->p = r->p;
	while (r->p < r->end && *r->p != '"')
		r->p += *r->p == '\\' && r->end - r->p > 1 ? 2 : 1;
	if (r->p >= r->end)
		return (expected(r, "expected the end of a string"));
	t->n = (size_t)(r->p++ - t->p);
	return (true);
}

static struct text
read_word(struct reader *r)
{
	struct text t;

	peek(r);
	t.p = r->p;
	while (r->p < r->end && (byte_is_alnum(*r->p) || memchr("+-.", *r->p, 3) != NULL))
		r->p++;
	t.n = (size_t)(r->p - t.p);
	return (t);
}

static bool
read_u64(struct reader *r, uint64_t max, uint64_t *n)
{
	struct text t = read_word(r);

	if (text_u64(t, n) == 0 && *n <= max)
		return (true);
	r->p = t.p;
	return (expected(r, max == REPORT_NUMBER_MAX ? "expected an integer from 0 to 2^53"
						     : "expected an integer below 2^64"));
}

static bool
read_real(struct reader *r, double *v)
{
	struct text t = read_word(r);
	char digits[32], *end;

	if (t.n > 0 && t.n < sizeof(digits) && byte_is_digit(t.p[0])) {
		memcpy(digits, t.p, t.n);
		digits[t.n] = '\0';
		*v = strtod(digits, &end);
		if (*end == '\0' && isfinite(*v) && *v >= 0 && *v <= REPORT_SECONDS_MAX)
			return (true);
	}
	r->p = t.p;
	return (expected(r, "expected a number from 0 to 1e9"));
}

typedef bool read_member(struct reader *, struct text name, void *arg);

static bool
read_object(struct reader *r, read_member *read, void *arg)
{
	struct text name;

	if (!accept(r, '{'))
		return (expected(r, "expected an object"));
	if (accept(r, '}'))
		return (true);
	do {
		if (!read_string(r, &name))
			return (false);
		if (!accept(r, ':'))
			return (expected(r, "expected \":\""));
		if (!read(r, name, arg))
			return (false);
	} while (accept(r, ','));
	return (accept(r, '}') || expected(r, "expected \",\" or \"}\""));
}

static bool skip_value(struct reader *);

static bool
skip_member(struct reader *r, struct text name, void *arg)
{
	return (skip_value(r));
}

static bool
skip_array(struct reader *r)
{
	must(accept(r, '['));
	if (accept(r, ']'))
		return (true);
	do {
		if (!skip_value(r))
			return (false);
	} while (accept(r, ','));
	return (accept(r, ']') || expected(r, "expected \",\" or \"]\""));
}

static bool
skip_value(struct reader *r)
{
	struct text t;
	bool ok;

	if (r->depth == REPORT_DEPTH)
		return (expected(r, "expected fewer objects within each other"));
	r->depth++;
	switch (peek(r)) {
	case '{': ok = read_object(r, skip_member, NULL); break;
	case '[': ok = skip_array(r); break;
	case '"': ok = read_string(r, &t); break;
	default: ok = read_word(r).n > 0 || expected(r, "expected a value");
	}
	r->depth--;
	return (ok);
}

/* ---------------------------------------------------------------- the report */

/* Members that a report must have once; bits of seen. */
static const char *const top_names[] = { "program", "seconds", "requests", "answered", "failed",
	"aborted", "unanswered", "connects", "held", "body_bytes", "errors", "status", "histograms",
	"client" };
static const char *const time_names[] = { "latency", "first_byte", "connect" };
static const char *const histogram_names[] = { "sum_ns", "max_ns", "buckets" };
static const char *const client_names[] = { "threads", "connections", "never", "least", "cpu_s" };

/* The index of the name, or -1 for a name that is not known; false: it is known and was seen. */
static bool
find_once(struct reader *r, struct text name, const char *const *names, unsigned n, unsigned *seen,
    int *index)
{
	*index = -1;
	for (unsigned i = 0; i < n; i++)
		if (text_eq(name, text_of(names[i])))
			*index = (int)i;
	if (*index >= 0 && (*seen & 1u << *index) != 0)
		return (expected(r, "expected each member once"));
	if (*index >= 0)
		*seen |= 1u << *index;
	return (true);
}

static bool
all_seen(struct reader *r, unsigned seen, unsigned n, const char *why)
{
	return (seen == (1u << n) - 1 || expected(r, why));
}

static bool
read_bucket(struct reader *r, struct histogram_fine *h, int *last)
{
	uint64_t bound = UINT64_MAX;
	const char *at;
	int bucket;

	if (!accept(r, '['))
		return (expected(r, "expected [bound in ns, number]"));
	peek(r);
	at = r->p;
	if (r->end - r->p >= 4 && memcmp(r->p, "null", 4) == 0)
		r->p += 4;
	else if (!read_u64(r, UINT64_MAX, &bound))
		return (false);
	bucket = histogram_fine_bucket(bound);
	if (bucket <= *last) {
		r->p = at;
		return (expected(r, "expected the bound of a bucket, larger than the last one"));
	}
	*last = bucket;
	if (!accept(r, ','))
		return (expected(r, "expected \",\""));
	return (read_u64(r, REPORT_NUMBER_MAX, &h->n[bucket]) &&
		(accept(r, ']') || expected(r, "expected \"]\"")));
}

static bool
read_buckets(struct reader *r, struct histogram_fine *h)
{
	int last = -1;

	if (!accept(r, '['))
		return (expected(r, "expected an array"));
	if (accept(r, ']'))
		return (true);
	do {
		if (!read_bucket(r, h, &last))
			return (false);
	} while (accept(r, ','));
	return (accept(r, ']') || expected(r, "expected \",\" or \"]\""));
}

struct histogram_arg {
	struct histogram_fine *into;
	unsigned seen;
};

static bool
histogram_member(struct reader *r, struct text name, void *arg)
{
	struct histogram_arg *a = arg;
	int i;

	if (!find_once(r, name, histogram_names, NELEM(histogram_names), &a->seen, &i))
		return (false);
	switch (i) {
	case 0: return (read_u64(r, UINT64_MAX, &a->into->sum_ns));
	case 1: return (read_u64(r, UINT64_MAX, &a->into->max_ns));
	case 2: return (read_buckets(r, a->into));
	default: return (skip_value(r));
	}
}

static bool
histograms_member(struct reader *r, struct text name, void *arg)
{
	struct histogram_fine *const times[] = { &r->counts->latency, &r->counts->first_byte,
		&r->counts->connect };
	struct histogram_arg a = { 0 };
	int i;

	if (!find_once(r, name, time_names, NELEM(time_names), arg, &i))
		return (false);
	if (i < 0)
		return (skip_value(r));
	a.into = times[i];
	return (read_object(r, histogram_member, &a) &&
		all_seen(r, a.seen, NELEM(histogram_names), "expected sum_ns, max_ns and buckets"));
}

static bool
error_member(struct reader *r, struct text name, void *arg)
{
	const char *names[LOAD_ERRORS];
	int i;

	for (i = 0; i < LOAD_ERRORS; i++)
		names[i] = load_errors[i].name;
	if (!find_once(r, name, names, LOAD_ERRORS, arg, &i))
		return (false);
	return (i < 0 ? skip_value(r) : read_u64(r, REPORT_NUMBER_MAX, &r->counts->errors[i]));
}

static bool
status_member(struct reader *r, struct text name, void *arg)
{
	uint64_t status;

	if (name.n != 3 || text_u64(name, &status) != 0)
		return (expected(r, "expected a status of three digits"));
	if (r->counts->status[status] != 0)
		return (expected(r, "expected each status once"));
	return (read_u64(r, REPORT_NUMBER_MAX, &r->counts->status[status]));
}

static bool
client_member(struct reader *r, struct text name, void *arg)
{
	uint64_t *const numbers[] = { &r->result->threads, &r->result->connections,
		&r->result->never, &r->result->least };
	int i;

	if (!find_once(r, name, client_names, NELEM(client_names), arg, &i))
		return (false);
	if (i < 0)
		return (skip_value(r));
	if (i < (int)NELEM(numbers))
		return (read_u64(r, REPORT_NUMBER_MAX, numbers[i]));
	return (read_real(r, &r->result->cpu_s));
}

static bool
read_program(struct reader *r)
{
	struct text name;

	return (
	    read_string(r, &name) && (text_eq(name, TEXT("accel-load")) ||
					 expected(r, "expected a report of accel-load --json")));
}

/* The four objects of a report. */
static bool
read_part(struct reader *r, struct text name)
{
	unsigned seen = 0;

	switch (name.p[0]) {
	case 'e':
		return (read_object(r, error_member, &seen) &&
			all_seen(r, seen, LOAD_ERRORS, "expected each kind of error"));
	case 's': return (read_object(r, status_member, NULL));
	case 'h':
		return (read_object(r, histograms_member, &seen) &&
			all_seen(r, seen, NELEM(time_names),
			    "expected latency, first_byte and connect"));
	default:
		return (read_object(r, client_member, &seen) &&
			all_seen(r, seen, NELEM(client_names),
			    "expected threads, connections, never, least and cpu_s"));
	}
}

static bool
top_member(struct reader *r, struct text name, void *arg)
{
	struct counts *c = r->counts;
	uint64_t *const numbers[] = { &c->requests, &c->answered, &c->failed, &c->aborted,
		&c->unanswered, &c->connects, &r->result->held, &c->body_bytes };
	int i;

	if (!find_once(r, name, top_names, NELEM(top_names), arg, &i))
		return (false);
	if (i < 0)
		return (skip_value(r));
	if (i == 0)
		return (read_program(r));
	if (i == 1)
		return (read_real(r, &r->result->seconds));
	if (i < 2 + (int)NELEM(numbers))
		return (read_u64(r, REPORT_NUMBER_MAX, numbers[i - 2]));
	return (read_part(r, name));
}

bool
report_read(struct text *in, struct load_result *result, struct counts *c,
    struct report_fault *fault)
{
	struct reader r = { in->p, in->p + in->n, 0, result, c, fault };
	unsigned seen = 0;
	bool ok;

	*fault = (struct report_fault){ NULL, NULL };
	peek(&r);
	ok = read_object(&r, top_member, &seen) &&
	     all_seen(&r, seen, NELEM(top_names),
		 "expected all members of a report of accel-load --json") &&
	     (c->requests == c->answered + c->failed + c->aborted + c->unanswered ||
		 expected(&r, "expected requests = answered + failed + aborted + unanswered"));
	peek(&r);
	*in = (struct text){ r.p, (size_t)(r.end - r.p) };
	return (ok);
}
