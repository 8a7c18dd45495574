/* proxy-core/exchange.c -- an exchange from its start to its end; see exchange.h. */
#include <errno.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/exchange_impl.h"

#define DRAIN_MS 1000

/* ---------------------------------------------------------------- the end */

void
exchange_destroy(struct exchange *x)
{
	must(x->lease == NULL && !x->wait.waits && x->rival == NULL && x->first == NULL);
	list_del(&x->soon);
	if (x->pool != NULL)
		pool_unhold(x->pool);
	upstream_leave(x->u, &x->link);
	reply_head_free(&x->head);
	buf_free(&x->body);
	buf_free(&x->again);
	buf_free(&x->answer);
	buf_free(&x->note);
	free(x->held);
	free(x);
}

/* A callback runs between these two, and may forget the exchange. */
void
exchange_enter(struct exchange *x)
{
	must(!x->busy);
	x->busy = true;
}

void
exchange_leave(struct exchange *x)
{
	x->busy = false;
	if (x->forgotten)
		exchange_destroy(x);
}

void
exchange_release(struct exchange *x, bool fit)
{
	free(x->held);
	x->held = NULL;
	x->rest = TEXT_NONE;
	if (x->lease != NULL)
		pool_put(&x->lease, fit && x->keep);
}

/* The backend of the last try, or the first of the block if none was asked.  NULL: it has none. */
static struct backend *
blamed(const struct exchange *x)
{
	const struct members *m = &x->u->members;

	if (x->pool != NULL)
		return (pool_backend(x->pool));
	return (m->n > 0 ? pool_backend(m->slot[m->order[0]].pool) : NULL);
}

/* Counts the end as the client sees it.  A second try has no client while the first runs, a check
 * never has one. */
static void
count_end(const struct exchange *x, int status)
{
	struct backend *b = blamed(x);

	if (x->first != NULL || x->wait.check)
		return;
	if (status >= 500)
		count(x->u->counters, proxy_failed);
	if (status >= 500 && b != NULL)
		backend_add(b, own_5xx[x->cause], 1);
	if (status < 0 && b != NULL)
		backend_add(b, cut, 1);
}

void
exchange_end(struct exchange *x, int status)
{
	note_flush(x);
	x->forgotten = true; /* on_end is the last call; exchange_leave() frees */
	x->state = x_ended;
	count_end(x, status);
	x->sink.on_end(x->arg, status, status == 503 ? upstream_retry_after_s(x->u) : 0);
}

/* Before the head: on_end comes in the next round, never inside a call of the caller. */
void
exchange_fail(struct exchange *x, int status)
{
	exchange_release(x, false);
	if (x->forgotten)
		return;
	if (x->state == x_drain) {
		x->forgotten = true;
		return;
	}
	x->state = x_ended;
	x->end_status = hedge_inherits(x) ? 0 : status;
	upstream_next_round(x->u, &x->soon);
}

void
exchange_refuse(struct exchange *x, int status, const struct exchange_failure *f)
{
	x->cause = own_5xx_of(status, f->err, x->state == x_wait);
	exchange_log_reply(x, f, status);
	exchange_fail(x, status);
}

/* The reason, from err and the state of the exchange. */
static struct backend_why
why_of(const struct exchange *x, int err)
{
	if (err == -ETIMEDOUT)
		return ((struct backend_why){ BACKEND_FAULT_timeout, false,
		    (int)((io_now(x->u->io) - x->times.leased) / NS_PER_MS) });
	if (err == -EPROTO)
		return ((struct backend_why){ BACKEND_FAULT_bad, false, -err });
	return ((struct backend_why){ BACKEND_FAULT_hangup, false, -err });
}

/* True if a client waits for a head that the backend owed.  A check counts for itself (check.c). */
static bool
is_strike(const struct exchange *x, int err)
{
	return (
	    x->state == x_head && x->lease != NULL && !x->wait.check && err != -ENOMEM &&
	    (x->asked_ns != 0 || lease_sending(x->lease) || (x->send_failed && x->body_left == 0)));
}

/* 50x before the head of the reply, later a cut of the client's connection. */
void
exchange_broken(struct exchange *x, int status, int err, const char *why)
{
	struct exchange_failure f = exchange_failure(x, err, why);
	struct backend_why fault = why_of(x, err);

	if (x->pool != NULL && err != -ENOMEM)
		pool_failed(x->pool, x->lease, fault);
	if (is_strike(x, err))
		pool_strike(x->pool, fault);
	if (err != -ENOMEM && exchange_go_on(x, fault, status, &f))
		return;
	if (x->state != x_body) {
		exchange_refuse(x, status, &f);
		return;
	}
	exchange_log_cut(x, &f);
	exchange_release(x, false);
	exchange_end(x, err);
}

/* ---------------------------------------------------------------- pause and resume */

void
exchange_next_round(struct list *soon)
{
	struct exchange *x = list_entry(soon, struct exchange, soon);

	exchange_enter(x);
	if (x->state == x_ended)
		exchange_end(x, x->end_status);
	else
		exchange_unhold(x);
	exchange_leave(x);
}

void
exchange_pause(struct exchange *x)
{
	x->paused = true;
}

void
exchange_resume(struct exchange *x)
{
	if (!x->paused)
		return;
	x->paused = false;
	x->progress_ns = io_now(x->u->io); /* the backend did not cause the pause */
	if (x->state != x_body && x->state != x_tunnel)
		return;
	if (x->held != NULL || x->busy)
		upstream_next_round(x->u, &x->soon);
	else if (!x->eof)
		lease_recv(x->lease);
}

/* ---------------------------------------------------------------- for the caller */

struct exchange *
exchange_new(struct upstream *u, const struct proxy_request *req, const struct exchange_conf *conf,
    const struct exchange_sink *sink, void *arg)
{
	struct exchange *x = calloc(1, sizeof(*x) + u->proto->size);

	if (x == NULL)
		return (NULL);
	x->u = u;
	x->req = req;
	x->conf = *conf;
	x->sink = *sink;
	x->arg = arg;
	x->failure = 503;
	x->unsized = req->unsized;
	x->body_left = x->unsized ? INT64_MAX : req->content_length > 0 ? req->content_length : 0;
	x->times.start = io_now(u->io);
	list_init(&x->link);
	list_init(&x->soon);
	buf_init(&x->body, BODY_ROOM);
	buf_init(&x->again, BODY_ROOM);
	buf_init(&x->answer, ANSWER_MAX);
	buf_init(&x->note, NOTE_MAX);
	reply_head_init(&x->head);
	upstream_enter(u, &x->link);
	return (x);
}

int
exchange_start(struct upstream *u, const struct proxy_request *req,
    const struct exchange_conf *conf, const struct exchange_sink *sink, void *arg,
    struct exchange **xp)
{
	struct exchange *x = exchange_new(u, req, conf, sink, arg);

	if (x == NULL)
		return (-ENOMEM);
	count(u->counters, proxy_requests);
	hedge_earn(u, conf);
	*xp = x;
	exchange_next(x, NULL);
	return (0);
}

void
exchange_start_at(struct exchange *x, struct pool *p)
{
	x->tried = UINT64_MAX; /* no other backend is tried */
	x->pool = p;
	pool_hold(p);
	exchange_get(x);
}

int
exchange_check(struct upstream *u, struct pool *p, const struct proxy_request *req,
    const struct exchange_conf *conf, const struct exchange_sink *sink, void *arg,
    struct exchange **xp)
{
	struct exchange *x = exchange_new(u, req, conf, sink, arg);

	if (x == NULL)
		return (-ENOMEM);
	*xp = x;
	x->wait.check = true;
	exchange_start_at(x, p);
	return (0);
}

void
exchange_forget(struct exchange **xp, bool drain)
{
	struct exchange *x = *xp;

	*xp = NULL;
	if (x == NULL || x->forgotten)
		return;
	hedge_cancel(x);
	note_flush(x);
	x->req = NULL;
	x->sink = (struct exchange_sink){ 0 };
	if (drain && x->lease != NULL && x->keep && x->body_left == 0 && !x->send_failed) {
		x->state = x_drain;
		x->until_ns = io_now(x->u->io) + DRAIN_MS * NS_PER_MS;
		upstream_next_round(x->u, &x->soon); /* it may have been paused */
		return;
	}
	if (x->state == x_wait)
		pool_unget(x->pool, &x->wait);
	exchange_release(x, false);
	x->forgotten = true;
	if (!x->busy)
		exchange_destroy(x);
}

const struct proxy_times *
exchange_times(const struct exchange *x)
{
	return (&x->times);
}

uint64_t
exchange_progress_ns(const struct exchange *x)
{
	uint64_t sent = x->lease != NULL ? lease_progress_ns(x->lease) : 0;

	return (x->progress_ns > sent ? x->progress_ns : sent);
}

const char *
exchange_backend(const struct exchange *x)
{
	return (x->pool != NULL ? pool_name(x->pool) : "");
}
