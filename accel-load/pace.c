/* accel-load/pace.c -- see pace.h */
#include "accel-load/conn.h"
#include "accel-load/pace.h"

/* Requests without an answer while connections are made to be held: no listen queue is longer. */
#define HOLD_AT_ONCE 256

static uint64_t
schedule(const struct thread *t, uint64_t n)
{
	double i = (double)n * t->conf->threads + t->nr;

	return (t->run->start_ns + (uint64_t)(i * (double)NS_PER_S / t->conf->rate));
}

uint64_t
pace_start_due(struct thread *t)
{
	const struct load_conf *conf = t->conf;
	uint64_t at = t->now;
	struct conn *c;
	bool connects;

	while (!list_empty(&t->idle) && thread_may_start(t)) {
		if (conf->hold && t->outstanding >= HOLD_AT_ONCE)
			return (NEVER);
		if (conf->rate > 0)
			at = schedule(t, t->scheduled);
		if (at > t->now)
			return (at);
		t->scheduled++;
		c = container_of(t->idle.next, struct conn, link);
		connects = c->sock.fd < 0;
		conn_ask(c, at);
		if (connects)
			return (t->now);
	}
	return (NEVER);
}

/* The first of the requests from n on that is due at or after this time; at most end. */
static uint64_t
first_due(const struct thread *t, uint64_t n, uint64_t end, uint64_t at)
{
	uint64_t middle;

	while (n < end) {
		middle = n + (end - n) / 2;
		if (schedule(t, middle) < at)
			n = middle + 1;
		else
			end = middle;
	}
	return (n);
}

/* The first request that was not due when the run ended. */
static uint64_t
end_of_schedule(const struct thread *t)
{
	uint64_t at = t->now < t->run->end_ns ? t->now : t->run->end_ns;
	double seconds = (double)clock_between(t->run->start_ns, at) / NS_PER_S;
	uint64_t most = (uint64_t)(seconds * t->conf->rate / t->conf->threads) + 2;

	if (t->limit != 0 && most > t->limit)
		most = t->limit;
	return (first_due(t, t->scheduled, most, at));
}

/* Bucket by bucket, as there may be millions of requests. */
void
pace_count_overdue(struct thread *t)
{
	const uint64_t end = end_of_schedule(t);
	uint64_t next, oldest;

	while (t->scheduled < end) {
		oldest = clock_between(schedule(t, t->scheduled), t->now);
		/* Requests that are younger than the bucket are due later. */
		next =
		    first_due(t, t->scheduled + 1, end, t->now - histogram_fine_least(oldest) + 1);
		count_overdue(t->counts, clock_between(schedule(t, next - 1), t->now), oldest,
		    next - t->scheduled);
		t->scheduled = next;
	}
}
