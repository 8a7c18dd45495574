/* accel-load/thread.c -- see thread.h */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "accel-load/conn.h"
#include "accel-load/pace.h"
#include "accel-load/secure.h"
#include "accel-load/streams.h"

/* What this thread gets of n. */
static uint64_t
share(uint64_t n, const struct load_conf *conf, unsigned nr)
{
	return (n / conf->threads + (nr < n % conf->threads));
}

static bool
counts_begin(const struct load_conf *conf, struct counts **now, struct counts **warming,
    struct counts **counted)
{
	*now = *counted = counts_new();
	if (conf->warm_ns != 0)
		*now = *warming = counts_new();
	return (*now != NULL && *counted != NULL);
}

static bool
begin_asks(struct thread *t)
{
	const struct run *run = t->run;
	struct beside *b = &t->beside;

	t->asks = asks_new(run->conf, run->urls->targets);
	turn_begin(&b->turn, run->conf, t->nr);
	return (t->asks != NULL && (run->conf->beside == NULL || counts_begin(run->conf, &b->counts,
								     &b->warming, &b->counted)));
}

struct thread *
thread_new(const struct run *run, unsigned nr, int *err)
{
	const struct io_conf none = { .pools = NULL };
	struct thread *t = calloc(1, sizeof(*t));
	bool good;

	*err = -ENOMEM;
	if (t == NULL)
		return (NULL);
	t->run = run;
	t->conf = run->conf;
	t->nr = nr;
	t->round = 1;
	t->limit =
	    share(run->conf->hold ? run->conf->connections : run->conf->fetches, run->conf, nr);
	t->nconns = (unsigned)share(run->conf->connections, run->conf, nr);
	list_init(&t->idle);
	list_init(&t->resting);
	list_init(&t->running);
	list_init(&t->ending);
	list_init(&t->streams[0]);
	list_init(&t->streams[1]);
	turn_begin(&t->turn, run->conf, nr);
	good = counts_begin(run->conf, &t->counts, &t->warming, &t->counted);
	if (run->conf->http2)
		good &= begin_asks(t);
	t->conns = calloc(t->nconns, sizeof(*t->conns));
	for (unsigned i = 0; t->conns != NULL && i < t->nconns; i++)
		good &= conn_init(&t->conns[i], t);
	if (good && t->conns != NULL)
		t->io = io_new(&none, err);
	if (t->io != NULL)
		return (t);
	thread_free(t);
	return (NULL);
}

void
thread_free(struct thread *t)
{
	io_free(t->io);
	for (unsigned i = 0; t->conns != NULL && i < t->nconns; i++)
		conn_free(&t->conns[i]);
	free(t->conns);
	secure_close(t->run->urls->targets, &t->secure);
	asks_free(t->asks);
	counts_free(t->warming);
	counts_free(t->counted);
	counts_free(t->beside.warming);
	counts_free(t->beside.counted);
	free(t);
}

/* ---------------------------------------------------------------- the loop */

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return (a < b ? a : b);
}

static uint64_t
timeout_of(const struct conn *c)
{
	const struct load_conf *conf = c->thread->conf;

	return ((conf->silence ? c->heard_ns : c->asked[c->first].scheduled_ns) + conf->timeout_ns);
}

/* Ends requests and closes that take too long.  Returns the time of the next one. */
static uint64_t
expire(struct thread *t)
{
	uint64_t next = NEVER;
	struct conn *c;

	list_each(c, &t->running, due) {
		if (timeout_of(c) > t->now) {
			next = timeout_of(c);
			break;
		}
		conn_fail(c, LOAD_TIMEOUT);
	}
	list_each(c, &t->ending, due) {
		if (c->end_ns > t->now)
			return (earlier(next, c->end_ns));
		conn_fail(c, LOAD_TIMEOUT); /* the server announced the end, but does not close */
	}
	return (next);
}

static uint64_t
wake_rested(struct thread *t)
{
	struct conn *c;

	list_each(c, &t->resting, link) {
		if (c->rest_ns > t->now)
			return (c->rest_ns);
		conn_rested(c);
	}
	return (NEVER);
}

static bool
over(const struct thread *t)
{
	return (t->now >= t->run->end_ns || __atomic_load_n(&t->stop, __ATOMIC_RELAXED));
}

static bool
all_done(const struct thread *t)
{
	return (t->limit != 0 && t->started >= t->limit && t->outstanding == 0);
}

static void
tell_done(struct thread *t, unsigned rounds)
{
	const uint64_t one = 1;

	if (t->done >= rounds)
		return;
	__atomic_store_n(&t->done, rounds, __ATOMIC_RELEASE);
	if (write(t->run->over_fd, &one, sizeof(one)) < 0)
		return; /* it is full of others' */
}

/* --hold: the connections are asked once more. */
static void
begin_rounds(struct thread *t)
{
	unsigned rounds = __atomic_load_n(&t->run->rounds, __ATOMIC_RELAXED);

	t->limit += (uint64_t)(rounds - t->round) * t->nconns;
	t->round = rounds;
	for (unsigned i = 0; i < t->nconns; i++)
		conn_release(&t->conns[i]);
}

static void
switch_counts(struct counts **now, struct counts *next, uint64_t outstanding)
{
	count_withdrawn(*now, (unsigned)outstanding);
	*now = next;
	count_requests(*now, (unsigned)outstanding);
}

/* Requests under way count as those that come.  Returns the time at which the warm-up ends. */
static uint64_t
end_warm_up(struct thread *t)
{
	if (t->counts == t->counted)
		return (NEVER);
	if (t->now < t->run->warm_ns)
		return (t->run->warm_ns);
	switch_counts(&t->counts, t->counted, t->outstanding);
	if (t->beside.counts != NULL)
		switch_counts(&t->beside.counts, t->beside.counted, t->beside.outstanding);
	t->warm_cpu_ns = clock_process_cpu_ns();
	return (NEVER);
}

static void
loop(struct thread *t)
{
	uint64_t wake;

	t->now = clock_mono_ns();
	while (!over(t)) {
		if (t->round != __atomic_load_n(&t->run->rounds, __ATOMIC_RELAXED))
			begin_rounds(t);
		if (all_done(t)) {
			if (!t->conf->hold)
				return;
			tell_done(t, t->round);
		}
		wake = end_warm_up(t);
		wake = earlier(wake, earlier(expire(t), wake_rested(t)));
		wake = earlier(wake, streams_expire(t));
		wake = earlier(wake, pace_start_due(t));
		io_wake_at(t->io, earlier(wake, t->run->end_ns));
		io_run(t->io);
		t->now = io_now(t->io);
	}
}

/* ---------------------------------------------------------------- the end */

/* Open loop: requests without an answer count with their age.  A closed loop ends in the middle of
 * many requests, whose age shows only that their first byte took at least this long. */
static void
count_rest(struct thread *t)
{
	const struct request *r;
	struct conn *c;

	t->least = NEVER;
	for (unsigned i = 0; i < t->nconns; i++) {
		c = &t->conns[i];
		t->never += c->used && c->answers == 0;
		t->least = earlier(t->least, c->answers);
		if (c->streams != NULL) {
			streams_count_rest(c);
			continue;
		}
		for (unsigned k = 0; k < c->n; k++) {
			r = &c->asked[(c->first + k) % t->conf->pipeline];
			count_unanswered(t->counts,
			    t->conf->rate > 0 ? clock_between(r->scheduled_ns, t->now) : 0);
		}
		if (c->n > 0 && !(c->reading.begun && c->reading.received > 0))
			count_first_byte(t->counts,
			    clock_between(c->asked[c->first].scheduled_ns, t->now));
	}
	if (t->conf->rate > 0)
		pace_count_overdue(t);
}

static void
close_all(struct thread *t)
{
	t->stopping = true;
	for (unsigned i = 0; i < t->nconns; i++)
		conn_end(&t->conns[i]);
	while (io_busy(t->io))
		io_run(t->io);
}

static void *
thread_main(void *arg)
{
	struct thread *t = arg;

	prctl(PR_SET_TIMERSLACK, 1); /* the open loop starts requests by the clock */
	loop(t);
	t->now = t->ended_ns = clock_mono_ns();
	count_rest(t);
	close_all(t);
	tell_done(t, UINT_MAX);
	return (NULL);
}

int
thread_start(struct thread *t)
{
	return (-pthread_create(&t->id, NULL, thread_main, t));
}

void
thread_stop(struct thread *t)
{
	__atomic_store_n(&t->stop, true, __ATOMIC_RELAXED);
	io_wake(t->io);
}

void
thread_join(struct thread *t)
{
	pthread_join(t->id, NULL);
}
