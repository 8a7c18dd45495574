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

void
pace_count_overdue(struct thread *t)
{
	uint64_t at, end = t->now < t->run->end_ns ? t->now : t->run->end_ns;

	for (; t->limit == 0 || t->scheduled < t->limit; t->scheduled++) {
		at = schedule(t, t->scheduled);
		if (at >= end)
			return;
		count_requests(t->counts, 1);
		count_unanswered(t->counts, clock_between(at, t->now));
	}
}
