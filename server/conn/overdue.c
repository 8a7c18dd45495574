/* server/conn/overdue.c -- see overdue.h */
#include "server/conn/overdue.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/conn/impl.h"
#include "server/handler/cgi.h"
#include "server/module/auth.h"
#include "server/module/rate.h"
#include "server/request/told.h"

#define SLACK_MS     10000u /* timers are late on a busy machine */
#define CONNECTS_MAX 4u     /* of one request to an application */
#define ANSWERS_MAX  2u     /* a kept socket that closes without a byte costs one more try */
#define NO_LIMIT     UINT64_MAX
#define MIX          1099511628211u

/* Changes whenever the request moves. */
static uint64_t
trace_of(const struct conn *c)
{
	const struct request *r = c->r;
	const uint64_t v[] = { c->nreq, (uintptr_t)c->state, (uintptr_t)c->handler, r->sent,
		r->sender.sent, r->in.received, r->body_bytes, r->changes, r->steps,
		(uint64_t)r->status, r->proxied, request_told(r)->checks_password, c->in.n,
		proxy_progress_ns(r) };
	uint64_t h = 0;
	size_t i;

	for (i = 0; i < NELEM(v); i++)
		h = (h ^ v[i]) * MIX;
	return (h);
}

/* Deadlines of a program; a limit that is not set does not end it. */
static uint64_t
program_ms(const struct request *r)
{
	uint64_t run_s = r->conf->cgi_max_run_time;

	return (run_s == 0 ? NO_LIMIT : 1000 * (r->conf->cgi_wait_timeout + run_s));
}

static uint64_t
application_ms(const struct request *r)
{
	const struct conf *v = r->conf;
	uint64_t read_s = v->proxy_read_timeout, reply_s = v->proxy_reply_timeout,
		 answer_s = reply_s > read_s ? reply_s : read_s;

	return (1000 * (v->proxy_wait_timeout + CONNECTS_MAX * v->proxy_connect_timeout +
			   ANSWERS_MAX * answer_s));
}

/* The sum of the deadlines that its state waits for. */
static uint64_t
allowed_ms(const struct conn *c)
{
	const struct request *r = c->r;
	const struct conf *v = r->conf != NULL ? r->conf : c->w->base.global;
	uint64_t ms = SLACK_MS + 1000 * c->w->base.global->open_timeout;

	if (c->sending)
		ms += 1000 * v->write_idle;
	if (c->receiving)
		ms += 1000 * v->read_idle;
	if (request_told(r)->checks_password)
		ms += AUTH_CHECK_MS + AUTH_DELAYS_MS;
	if (!r->proxied || r->conf == NULL)
		return (ms);
	if (c->handler == &handler_cgi)
		return (program_ms(r) == NO_LIMIT ? NO_LIMIT : ms + program_ms(r));
	return (ms + application_ms(r));
}

/* Between two requests, or in the middle of a head, it has no request that could be overdue.  A
 * tunnel may be silent as long as its application allows, and a rate makes pauses. */
static bool
is_judged(const struct conn *c)
{
	return (c->r != NULL && !c->closing && c->state != &st_read_head &&
		c->state != &st_linger && !c->tunnel &&
		!(c->sending && (c->r->sender.limit != 0 || rate_is_set(c->r))));
}

static void
give_up(struct conn *c, uint64_t waited_ns)
{
	const struct request *r = c->r;
	const char *app = r->proxied ? proxy_state(r) : NULL;

	count(c->w->base.counts.conn, requests_overdue);
	log_limited(10, LOG_ERROR, conn_id(r), "request.overdue", conn_client(r),
	    LF_TEXT("url", request_path(r)), LF_STR("state", c->state->name),
	    LF_STR("handler", c->handler != NULL ? c->handler->name : "none"),
	    LF_STR("backend", proxy_backend(r)), LF_STR("application", app != NULL ? app : "none"),
	    LF_U64("waited-ms", waited_ns / NS_PER_MS), LF_STR("then", "closed the connection"),
	    LF_STR("do", "report it: a deadline should have ended this request"));
	conn_stop(c);
}

static void
judge(struct conn *c, uint64_t now)
{
	uint64_t trace, allowed;

	if (!is_judged(c))
		return;
	trace = trace_of(c);
	if (trace != c->trace) {
		c->trace = trace;
		c->moved_ns = now;
		return;
	}
	allowed = allowed_ms(c);
	if (allowed != NO_LIMIT && now - c->moved_ns > allowed * NS_PER_MS)
		give_up(c, now - c->moved_ns);
}

static void
judge_all(struct conn *c, uint64_t now)
{
	struct conn *st;

	judge(c, now);
	if (c->h2 == NULL)
		return;
	list_each(st, &c->streams, link)
		judge(st, now);
}

static void
look(struct io_op *op)
{
	struct worker *w = container_of(op, struct worker, overdue.timer);
	struct conn *c;

	w->overdue.timed = false;
	if (w->nconns == 0)
		return;
	if (op->res != -ECANCELED) /* else a connection came after overdue_end() */
		list_each(c, &w->conns, link)
			judge_all(c, io_now(w->base.io));
	overdue_begin(w);
}

void
overdue_init(struct worker *w)
{
	op_init(&w->overdue.timer, IO_TIMER, look);
}

void
overdue_begin(struct worker *w)
{
	if (w->overdue.timed)
		return;
	w->overdue.timed = true;
	w->overdue.timer.deadline_ms = OVERDUE_LOOK_MS;
	op_submit(w->base.io, &w->overdue.timer);
}

void
overdue_end(struct worker *w)
{
	if (w->overdue.timed)
		op_cancel(w->base.io, &w->overdue.timer);
}
