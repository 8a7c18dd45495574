/* accel-load/streams.c -- see streams.h: places for requests, and what becomes of them. */
#include <stdlib.h>
#include "accel-load/streams_impl.h"

enum { HOT, BESIDE };

/* ---------------------------------------------------------------- places */

static void
place_init(struct stream *s, struct conn *c, bool beside)
{
	s->conn = c;
	s->reading.beside = beside;
	list_init(&s->due);
	list_add_tail(&c->streams->free[beside], &s->link);
}

struct streams *
streams_new(struct conn *c)
{
	const struct load_conf *conf = c->thread->conf;
	unsigned n = conf->streams + conf->beside_streams;
	struct streams *h = calloc(1, sizeof(*h) + n * sizeof(h->place[0]));

	if (h == NULL)
		return (NULL);
	c->streams = h;
	list_init(&h->free[HOT]);
	list_init(&h->free[BESIDE]);
	list_init(&h->waiting);
	for (; h->n < n; h->n++)
		place_init(&h->place[h->n], c, h->n >= conf->streams);
	return (h);
}

void
streams_free(struct streams *h)
{
	if (h == NULL)
		return;
	nghttp2_session_del(h->session);
	for (unsigned i = 0; i < h->n; i++)
		verify_free(&h->place[i].reading.verify);
	free(h);
}

static bool
is_free(const struct stream *s)
{
	return (!list_linked(&s->due));
}

/* ---------------------------------------------------------------- begin */

/* The request gets its place; it is sent by ask_waiting(). */
static void
take(struct conn *c, bool beside, uint64_t at)
{
	struct stream *s = list_entry(list_pop(&c->streams->free[beside]), struct stream, link);
	struct thread *t = c->thread;

	if (beside) {
		s->asked = (struct request){ .scheduled_ns = at };
		s->asked.url = turn_next(&t->beside.turn, t->conf, t->run->beside->n);
		t->beside.outstanding++;
	} else {
		conn_choose(t, &s->asked, at);
		t->started++;
		t->outstanding++;
	}
	count_requests(reading_counts(&s->reading, t), 1);
	c->n++;
	s->id = 0;
	s->heard_ns = t->now;
	s->reading.begun = false;
	list_add_tail(&t->streams[beside], &s->due);
	list_add_tail(&c->streams->waiting, &s->link);
}

/* Closed loops: all places are taken. */
static void
fill(struct conn *c)
{
	struct thread *t = c->thread;
	struct streams *h = c->streams;

	while (t->conf->rate <= 0 && !t->conf->hold && !list_empty(&h->free[HOT]) &&
	       thread_may_start(t))
		take(c, HOT, t->now);
	while (!list_empty(&h->free[BESIDE]) && thread_has_time(t))
		take(c, BESIDE, t->now);
}

static void
ask_waiting(struct conn *c)
{
	struct streams *h = c->streams;
	struct stream *s;

	while (!h->last && !list_empty(&h->waiting)) {
		s = list_entry(h->waiting.next, struct stream, link);
		if (!session_ask(s)) {
			h->last = true; /* it goes on with another connection */
			return;
		}
		list_del(&s->link);
		h->open++;
	}
	h->last |= c->thread->conf->close && h->open > 0;
}

/* With a free place, and not before others: each connection has its turn. */
static void
offer(struct conn *c)
{
	struct thread *t = c->thread;

	if (c->rests || list_linked(&c->link))
		return;
	if (t->conf->hold && c->n == 0 && !c->held)
		conn_next(c);
	else if (!t->conf->hold && !list_empty(&c->streams->free[HOT]))
		list_add_tail(&t->idle, &c->link);
}

void
streams_ask(struct conn *c, uint64_t at)
{
	list_del(&c->link);
	c->used = true;
	take(c, HOT, at);
	fill(c);
	if (c->streams->session != NULL) {
		ask_waiting(c);
		conn_flush(c);
	} else if (c->sock.fd < 0)
		conn_connect(c);
	if (!c->closing && !c->streams->last)
		offer(c);
}

/* ---------------------------------------------------------------- the connection goes on */

static void
rest(struct conn *c)
{
	conn_pause(c);
	list_del(&c->link);
	list_add_tail(&c->thread->resting, &c->link);
}

/* No more requests: closes it after the last answer. */
static void
run_out(struct conn *c)
{
	if (!c->rests)
		list_del(&c->link);
	if (c->streams->open > 0) {
		conn_flush(c);
		return;
	}
	if (c->streams->answered == 0)
		conn_pause(c); /* no busy loop with a server that takes nothing */
	conn_hang_up(c);
}

/* After anything has happened on a connection that is up. */
static void
settle(struct conn *c)
{
	struct streams *h = c->streams;

	if (c->closing)
		return;
	if (h->tired && !c->rests && !h->last)
		rest(c);
	h->tired = false;
	if (!h->last && !c->rests)
		fill(c);
	ask_waiting(c);
	if (h->last) {
		run_out(c);
		return;
	}
	conn_flush(c);
	if (!c->closing)
		offer(c);
}

void
streams_rested(struct conn *c)
{
	settle(c);
}

bool
streams_up(struct conn *c)
{
	if (!session_up(c))
		return (false);
	c->heard_ns = c->thread->now;
	settle(c);
	return (true);
}

void
streams_down(struct conn *c)
{
	struct streams *h = c->streams;

	nghttp2_session_del(h->session);
	h->session = NULL;
	h->heads = NULL;
	h->last = h->goaway_failed = h->tired = false;
	h->open = 0;
	h->answered = 0;
}

void
streams_received(struct conn *c, const char *p, size_t n)
{
	c->heard_ns = c->thread->now;
	if (nghttp2_session_mem_recv(c->streams->session, (const uint8_t *)p, n) < 0)
		conn_fail(c, LOAD_MALFORMED);
	settle(c);
}

/* ---------------------------------------------------------------- the end of a request */

static void
leave(struct stream *s)
{
	struct conn *c = s->conn;
	struct thread *t = c->thread;

	if (s->id != 0)
		c->streams->open--;
	s->id = 0;
	s->reading.begun = false;
	if (c->streams->heads == s)
		c->streams->heads = NULL;
	list_del(&s->due);
	list_del(&s->link);
	list_add_tail(&c->streams->free[s->reading.beside], &s->link);
	c->n--;
	if (s->reading.beside)
		t->beside.outstanding--;
	else
		t->outstanding--;
}

static void
abort_if_due(struct stream *s)
{
	if (!reading_aborts(&s->reading))
		return;
	count_aborted(reading_counts(&s->reading, s->conn->thread), 1);
	session_reset(s);
	leave(s);
}

void
stream_has_head(struct stream *s)
{
	reading_begin(&s->reading, s->conn->thread, &s->asked, stream_url(s), &s->head);
	abort_if_due(s);
}

void
stream_brings(struct stream *s, const char *p, size_t n)
{
	struct thread *t = s->conn->thread;

	s->heard_ns = t->now;
	if (t->conf->silence) {
		list_del(&s->due);
		list_add_tail(&t->streams[s->reading.beside], &s->due);
	}
	reading_body(&s->reading, t, &s->asked, p, n);
	abort_if_due(s);
}

void
stream_answered(struct stream *s)
{
	struct conn *c = s->conn;

	reading_end(&s->reading, c->thread, &s->asked, false);
	c->streams->answered++;
	c->answers += !s->reading.beside;
	leave(s);
}

void
stream_fails(struct stream *s, enum load_error kind)
{
	struct thread *t = s->conn->thread;
	struct counts *counts = reading_counts(&s->reading, t);

	count_error(counts, kind, 1);
	/* Open loop: a failed request counts with its age. */
	if (t->conf->rate > 0 && !s->reading.beside)
		count_failed_latency(counts, clock_between(s->asked.scheduled_ns, t->now));
	s->conn->streams->tired = true;
	leave(s);
}

/* The request was not taken: the next connection asks it again.  Its latency still counts from its
 * begin. */
static void
again(struct stream *s)
{
	struct streams *h = s->conn->streams;

	count_again(reading_counts(&s->reading, s->conn->thread));
	h->open--;
	s->id = 0;
	s->reading.begun = false;
	list_add_tail(&h->waiting, &s->link);
}

void
streams_goaway(struct conn *c, int32_t last_id, bool error)
{
	struct streams *h = c->streams;
	struct stream *s;

	count_goaway(c->thread->counts);
	h->last = true;
	h->goaway_failed |= error;
	for (s = h->place; s < h->place + h->n; s++) {
		if (is_free(s) || s->id <= last_id)
			continue;
		if (error)
			stream_fails(s, LOAD_GOAWAY);
		else
			again(s);
	}
}

static enum load_error
failure_of(const struct streams *h, const struct stream *s, enum load_error kind)
{
	if (kind != LOAD_SHORT && kind != LOAD_RESET)
		return (kind);
	if (h->goaway_failed)
		return (LOAD_GOAWAY);
	return (s->reading.begun ? kind : LOAD_RESET);
}

void
streams_fail(struct conn *c, enum load_error kind)
{
	struct streams *h = c->streams;
	struct stream *s;

	if (c->n == 0)
		count_fault(c->thread->counts, kind);
	for (s = h->place; s < h->place + h->n; s++)
		if (!is_free(s) && (s->id != 0 || h->session == NULL))
			stream_fails(s, failure_of(h, s, kind));
}

/* ---------------------------------------------------------------- time */

static uint64_t
timeout_of(const struct stream *s)
{
	const struct load_conf *conf = s->conn->thread->conf;

	return ((conf->silence ? s->heard_ns : s->asked.scheduled_ns) + conf->timeout_ns);
}

/* If no byte came since the request, the connection is to blame. */
static void
expire(struct stream *s)
{
	struct conn *c = s->conn;

	if (s->id != 0 && c->heard_ns > s->asked.scheduled_ns) {
		session_reset(s);
		stream_fails(s, LOAD_TIMEOUT);
		settle(c);
	} else if (s->id != 0 || (c->streams->session == NULL && !c->closing && !c->rests))
		conn_fail(c, LOAD_TIMEOUT);
	else
		stream_fails(s, LOAD_TIMEOUT); /* it waits for the next connection */
}

static uint64_t
expire_list(struct thread *t, struct list *all)
{
	struct stream *s;

	while (!list_empty(all)) {
		s = list_entry(all->next, struct stream, due);
		if (timeout_of(s) > t->now)
			return (timeout_of(s));
		expire(s);
	}
	return (NEVER);
}

uint64_t
streams_expire(struct thread *t)
{
	uint64_t hot = expire_list(t, &t->streams[HOT]);
	uint64_t beside = expire_list(t, &t->streams[BESIDE]);

	return (hot < beside ? hot : beside);
}

void
streams_count_rest(struct conn *c)
{
	const struct thread *t = c->thread;
	const struct streams *h = c->streams;
	const struct stream *s;
	struct counts *counts;
	uint64_t age;

	for (s = h->place; s < h->place + h->n; s++) {
		if (is_free(s))
			continue;
		counts = reading_counts(&s->reading, t);
		age = clock_between(s->asked.scheduled_ns, t->now);
		count_unanswered(counts, t->conf->rate > 0 && !s->reading.beside ? age : 0);
		if (!s->reading.begun || s->reading.received == 0)
			count_first_byte(counts, age);
	}
}
