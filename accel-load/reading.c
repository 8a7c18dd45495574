/* accel-load/reading.c -- see reading.h */
#include "accel-load/reading.h"

static bool
status_is_right(const struct thread *t, const struct url *u, int status)
{
	unsigned want = u->status != 0 ? u->status : t->conf->status;

	return (want != 0 ? status == (int)want : status / 100 == 2);
}

static const struct verify_conf *
checks_of(const struct reading *g, const struct thread *t)
{
	return (g->status_ok && !g->beside ? t->conf->checks : NULL);
}

static uint64_t
leaves_at(const struct reading *g, struct thread *t, int64_t total)
{
	double percent = g->beside ? 0 : t->conf->abort_percent;

	if (percent <= 0 || (double)(turn_random(&t->turn) % 10000) >= percent * 100)
		return (NEVER);
	return (total > 0 ? turn_random(&t->turn) % (uint64_t)total : 0);
}

void
reading_begin(struct reading *g, struct thread *t, const struct request *r, struct url *u,
    const struct reading_head *head)
{
	const struct verify_conf *checks;

	g->begun = true;
	g->received = 0;
	g->status = head->status;
	g->status_ok = status_is_right(t, u, head->status);
	/* A part begins where it was asked for. */
	g->head_ok = head->status != 206 || (r->length != 0 && head->first == r->offset);
	if (head->total > 0 && g->status_ok && t->conf->range.kind == RANGE_RANDOM)
		__atomic_store_n(&u->size, (uint64_t)head->total, __ATOMIC_RELAXED);
	checks = checks_of(g, t);
	if (checks != NULL)
		verify_begin(&g->verify, checks, u, head->first, head->total);
	g->abort_at = leaves_at(g, t, head->total);
}

void
reading_body(struct reading *g, struct thread *t, const struct request *r, const char *p, size_t n)
{
	struct counts *counts = reading_counts(g, t);

	if (g->received == 0)
		count_first_byte(counts, clock_between(r->scheduled_ns, t->now));
	g->received += n;
	count_body(counts, n);
	if (checks_of(g, t) != NULL)
		verify_bytes(&g->verify, p, n);
}

void
reading_end(struct reading *g, struct thread *t, const struct request *r, bool too_long)
{
	enum load_error how = LOAD_OK;

	if (!g->status_ok)
		how = LOAD_STATUS;
	else if (too_long)
		how = LOAD_LONG;
	else if (!g->head_ok)
		how = LOAD_WRONG;
	else if (checks_of(g, t) != NULL)
		how = verify_end(&g->verify);
	count_answer(reading_counts(g, t), g->status, how, clock_between(r->scheduled_ns, t->now));
	g->begun = false;
}
