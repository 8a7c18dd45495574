/* proxy-core/exchange_next.c -- which backend gets a request, and which gets it after a failure.
 *
 *   exchange_next() --> balancer --> wait for a socket --> asked --> head of the reply
 *        ^                 no connection |                   |
 *        `-------------------------------'                   | a kept socket was closed:
 *        ^                                                   |    repeat, on a fresh one
 *        `-- go_on: a fault of proxy-core.next-upstream -----'
 *
 * A request that nobody has got goes to the next backend in any case.  One that was sent may have
 * been executed, so it goes on only if its method is idempotent (RFC 9110, 9.2.2), its body is
 * still there, and the client has no byte of an answer.  Each backend gets it once.
 */
#include <errno.h>
#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/backend_health.h"
#include "proxy-core/exchange_impl.h"

/* The status of the reply if no other backend is left. */
static int
status_of(int err)
{
	return (err == -ETIMEDOUT ? 504 : 503);
}

/* ---------------------------------------------------------------- a socket, or none */

static void
exchange_got(struct pool_wait *w, struct lease *l, int err)
{
	struct exchange *x = list_entry(w, struct exchange, wait);
	struct exchange_failure f;

	if (err == 0) {
		x->lease = l;
		x->times.leased = io_now(x->u->io);
		if (x->first_ns == 0)
			x->first_ns = x->times.leased;
		exchange_ask(x);
		return;
	}
	f = exchange_failure(x, err, "connecting failed");
	if (err == -EBUSY)
		f = (struct exchange_failure){ "wait", "the queue is full", err };
	if (err == -ECANCELED)
		f = (struct exchange_failure){ "wait", "its name has other addresses now", err };
	x->failure = status_of(err);
	exchange_next(x, &f);
}

void
exchange_get(struct exchange *x)
{
	x->state = x_wait;
	x->tries++;
	x->wait.got = exchange_got;
	x->wait.unsafe = !x->req->safe;
	x->wait.client = x->req->client;
	x->wait.debug = x->conf.debug;
	x->progress_ns = io_now(x->u->io); /* each try has its whole time */
	x->until_ns = x->progress_ns + x->conf.wait_ms * NS_PER_MS;
	pool_get(x->pool, &x->wait);
}

static void
go_to(struct exchange *x, size_t i)
{
	_Static_assert(BACKENDS_MAX <= 64, "a bit for each");
	x->tried |= 1ull << i;
	x->wait.fresh = false;
	if (x->pool != NULL)
		pool_unhold(x->pool);
	x->pool = x->u->members.slot[i].pool;
	pool_hold(x->pool);
	exchange_get(x);
}

void
exchange_next(struct exchange *x, const struct exchange_failure *f)
{
	static const struct exchange_failure paused = { "wait", "every backend is paused",
		-EHOSTDOWN };
	size_t i = upstream_pick(x->u, x->req, x->tried, x->conf.place);

	if (i == BALANCE_NONE) {
		exchange_refuse(x, x->failure, f != NULL ? f : &paused);
		return;
	}
	if (f != NULL)
		exchange_log_next(x, f);
	go_to(x, i);
}

/* ---------------------------------------------------------------- once more */

/* The whole request is still there, so another backend can get it. */
static bool
can_resend(const struct exchange *x)
{
	bool dropped, body;

	if (x->req == NULL || x->state != x_head)
		return (false);
	body = x->unsized || x->req->content_length > 0;
	dropped = x->body_moved || (x->send_failed && body);
	return (!dropped || exchange_holds_body(x));
}

static void
exchange_reset(struct exchange *x)
{
	count(x->u->counters, proxy_retries);
	exchange_release(x, false);
	if (exchange_holds_body(x))
		exchange_rewind(x);
	reply_head_free(&x->head);
	buf_free(&x->answer);
	x->asked_ns = 0;
}

/* The backend had closed this kept socket, which does not mean that the backend fails. */
bool
exchange_repeat(struct exchange *x, int err)
{
	struct exchange_failure f = exchange_failure(x, err, "the backend closed a kept socket");

	if (!can_resend(x) || x->repeated || !x->req->safe || lease_served(x->lease) == 0 ||
	    lease_heard(x->lease))
		return (false);
	exchange_log_repeat(x, &f);
	exchange_reset(x);
	x->repeated = true;
	x->wait.fresh = true;
	exchange_get(x);
	return (true);
}

/* The application said that it did not execute it. */
void
exchange_refused(struct exchange *x, const char *why)
{
	struct exchange_failure f = exchange_failure(x, -EAGAIN, why);

	x->failure = 503;
	if (!can_resend(x) || x->refused) {
		exchange_broken(x, 503, -ECONNRESET, why);
		return;
	}
	exchange_reset(x);
	x->refused = true;
	exchange_next(x, &f);
}

/* ---------------------------------------------------------------- proxy-core.next-upstream */

unsigned
exchange_next_bit(struct text word)
{
#define N(bit, name, status)           \
	if (text_eq(word, TEXT(name))) \
		return (NEXT_##bit);
	NEXT_FAULTS(N)
#undef N
	return (0); /* "off" */
}

static unsigned
bit_of_status(int status)
{
#define N(bit, name, at)             \
	if (at != 0 && status == at) \
		return (NEXT_##bit);
	NEXT_FAULTS(N)
#undef N
	return (0);
}

static unsigned
bit_of(struct backend_why fault)
{
	switch (fault.fault) {
	case BACKEND_FAULT_timeout: return (NEXT_timeout);
	case BACKEND_FAULT_bad: return (NEXT_bad);
	case BACKEND_FAULT_status: return (bit_of_status(fault.number));
	default: return (NEXT_error);
	}
}

/* The request may be executed twice, and the client has no byte of an answer.  While a second try
 * runs, that one goes on (exchange_hedge.c); a second try itself does not. */
static bool
may_go_on(const struct exchange *x, struct backend_why fault)
{
	return ((x->conf.next & bit_of(fault)) != 0 && can_resend(x) && x->req->idempotent &&
		x->interims == 0 && x->rival == NULL && x->first == NULL);
}

static size_t
next_of(const struct exchange *x)
{
	uint64_t age = io_now(x->u->io) - x->times.start;

	if (x->conf.next_tries != 0 && x->faults >= x->conf.next_tries)
		return (BALANCE_NONE);
	if (x->conf.next_ms != 0 && age >= x->conf.next_ms * NS_PER_MS)
		return (BALANCE_NONE);
	return (upstream_pick(x->u, x->req, x->tried, x->conf.place));
}

bool
exchange_go_on(struct exchange *x, struct backend_why fault, int status,
    const struct exchange_failure *f)
{
	size_t i;

	if (!may_go_on(x, fault))
		return (false);
	x->faults++;
	if ((i = next_of(x)) == BALANCE_NONE) {
		count(x->u->counters, proxy_next_none);
		return (false);
	}
	exchange_log_next(x, f);
	count(x->u->counters, proxy_next);
	backend_add(pool_backend(x->pool), retried, 1);
	x->failure = status;
	exchange_reset(x);
	go_to(x, i);
	return (true);
}

bool
exchange_status_goes_on(struct exchange *x)
{
	int status = x->head.reply.status;
	struct backend_why fault = { BACKEND_FAULT_status, false, status };
	struct exchange_failure f;

	if ((x->conf.next & bit_of_status(status)) == 0)
		return (false);
	f = exchange_failure(x, -EPROTO, "proxy-core.next-upstream has its status");
	backend_fault(pool_backend(x->pool), fault);
	pool_strike(x->pool, fault);
	return (exchange_go_on(x, fault, status, &f));
}
