/* server/status/running.c -- see running.h */
#include "server/status/running.h"

#include <stdlib.h>

#include "base/must.h"
#include "io/io.h"
#include "server/status/worker_counters.h"

struct running_ask { /* one worker's part of a query */
	struct running_query *q;
	struct running_ask *next; /* on the desk */
	struct running_row *row;
	size_t n, all;
	bool answered;
};

struct running_query {
	pthread_mutex_t lock;
	unsigned refs; /* held by the asker, and by each ask that is on a desk */
	unsigned nasks;
	struct running_ask ask[];
};

/* ---- desks */

void
running_desk_init(struct running_desk *d)
{
	*d = (struct running_desk){ 0 };
	pthread_mutex_init(&d->lock, NULL);
}

void
running_desk_open(struct running_desk *d, struct io *io)
{
	pthread_mutex_lock(&d->lock);
	d->io = io;
	pthread_mutex_unlock(&d->lock);
}

static bool
desk_put(struct running_desk *d, struct running_ask *a)
{
	bool works;

	pthread_mutex_lock(&d->lock);
	works = d->io != NULL;
	if (works) {
		a->next = d->first;
		d->first = a;
		__atomic_store_n(&d->asked, true, __ATOMIC_RELAXED);
		io_wake(d->io);
	}
	pthread_mutex_unlock(&d->lock);
	return (works);
}

static struct running_ask *
desk_take_all(struct running_desk *d)
{
	struct running_ask *a;

	pthread_mutex_lock(&d->lock);
	a = d->first;
	d->first = NULL;
	__atomic_store_n(&d->asked, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&d->lock);
	return (a);
}

/* ---- queries */

static void
query_free(struct running_query *q)
{
	unsigned i;

	for (i = 0; i < q->nasks; i++)
		free(q->ask[i].row);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

/* Gives back one reference; the last one frees it. */
static void
query_put(struct running_query *q)
{
	bool last;

	pthread_mutex_lock(&q->lock);
	last = --q->refs == 0;
	pthread_mutex_unlock(&q->lock);
	if (last)
		query_free(q);
}

static void
ask_answer(struct running_ask *a, struct running_row *row, size_t n, size_t all)
{
	struct running_query *q = a->q;

	pthread_mutex_lock(&q->lock);
	a->row = row;
	a->n = n;
	a->all = all;
	a->answered = true;
	pthread_mutex_unlock(&q->lock);
	query_put(q);
}

void
running_answer(struct running_desk *d, struct worker *w, running_fill *fill)
{
	struct running_ask *a, *next;

	for (a = desk_take_all(d); a != NULL; a = next) {
		struct running_row *row = calloc(RUNNING_ROWS, sizeof(*row));
		size_t all = row != NULL ? fill(w, row, RUNNING_ROWS) : 0;

		next = a->next;
		ask_answer(a, row, all < RUNNING_ROWS ? all : RUNNING_ROWS, all);
	}
}

void
running_desk_close(struct running_desk *d)
{
	struct running_ask *a, *next;

	running_desk_open(d, NULL);
	for (a = desk_take_all(d); a != NULL; a = next) {
		next = a->next;
		ask_answer(a, NULL, 0, 0);
	}
}

/* A reference for each ask: it may be answered before the next is asked. */
static void
query_ask(struct running_query *q, struct worker_counters *first)
{
	struct worker_counters *t;
	unsigned i = 0;

	for (t = first; t != NULL; t = t->next) {
		struct running_ask *a = &q->ask[i];

		if (!shared_get(t->used))
			continue;
		a->q = q;
		pthread_mutex_lock(&q->lock);
		q->refs++;
		q->nasks = ++i;
		pthread_mutex_unlock(&q->lock);
		if (!desk_put(&t->desk, a))
			ask_answer(a, NULL, 0, 0);
	}
}

struct running_query *
running_ask(struct counters_list *list)
{
	struct worker_counters *first = worker_counters_first(list), *t;
	struct running_query *q;
	size_t n = 0;

	for (t = first; t != NULL; t = t->next)
		n++;
	q = calloc(1, sizeof(*q) + n * sizeof(q->ask[0]));
	if (q == NULL)
		return (NULL);
	pthread_mutex_init(&q->lock, NULL);
	q->refs = 1;
	query_ask(q, first);
	return (q);
}

bool
running_ready(struct running_query *q)
{
	bool ready = true;
	unsigned i;

	pthread_mutex_lock(&q->lock);
	for (i = 0; i < q->nasks; i++)
		ready = ready && q->ask[i].answered;
	pthread_mutex_unlock(&q->lock);
	return (ready);
}

static int
by_age(const void *a, const void *b)
{
	const struct running_row *x = a, *y = b;

	return (x->since_ns < y->since_ns ? -1 : x->since_ns > y->since_ns);
}

static void
running_collect(struct running_query *q, struct running *r)
{
	unsigned i;

	for (i = 0; i < q->nasks; i++) {
		const struct running_ask *a = &q->ask[i];

		if (!a->answered) {
			r->silent++;
			r->silent_bits |= i < 64 ? 1ull << i : 0;
		} else if (a->n > 0) {
			memcpy(r->row + r->n, a->row, a->n * sizeof(*a->row));
			r->n += a->n;
			r->all += a->all;
		}
	}
}

bool
running_take(struct running_query *q, uint64_t now_ns, struct running *r)
{
	*r = (struct running){ .now_ns = now_ns, .workers = q->nasks };
	r->row = calloc(q->nasks * RUNNING_ROWS + 1, sizeof(*r->row));
	if (r->row != NULL) {
		pthread_mutex_lock(&q->lock);
		running_collect(q, r);
		pthread_mutex_unlock(&q->lock);
		qsort(r->row, r->n, sizeof(*r->row), by_age);
		r->n = r->n < RUNNING_ROWS ? r->n : RUNNING_ROWS;
	}
	query_put(q);
	return (r->row != NULL);
}

void
running_drop(struct running_query *q)
{
	query_put(q);
}

void
running_free(struct running *r)
{
	free(r->row);
	r->row = NULL;
}
