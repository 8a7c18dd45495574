/* t/unit/proxy-core/laws_client.h -- the clients of laws.c. */
#ifndef LAWS_CLIENT_H
#define LAWS_CLIENT_H

#include "t/unit/proxy-core/laws.h"

static void
a_head(void *arg, const struct proxy_reply *r)
{
	struct ask *a = arg;

	law(a->x != NULL && a->ends == 0, "a head after the end of %u", a->id);
	law(++a->heads == 1, "a second head of %u", a->id);
	law(r->has_body == !a->head_only, "a body where none can be, or none where one is");
}

static void
a_body(void *arg, struct text bytes)
{
	struct ask *a = arg;

	law(a->x != NULL && a->heads == 1 && a->ends == 0, "body bytes out of order of %u", a->id);
	g_string_append_len(a->body, bytes.p, (gssize)bytes.n);
	if (one_in(8)) {
		exchange_pause(a->x);
		a->paused = true;
	}
}

static void
a_room(void *arg)
{
	struct ask *a = arg;

	law(a->x != NULL, "room after the end of %u", a->id);
}

static void
a_end(void *arg, int status, unsigned retry_after)
{
	struct ask *a = arg;
	g_autoptr(GString) want = g_string_new(NULL);

	law(++a->ends == 1 && !a->forgotten, "a second end of %u", a->id);
	law(status == 0 || (a->heads == 0 ? status >= 502 && status <= 504 : status < 0),
	    "%u ended with %d", a->id, status);
	law((status == 503) == (retry_after > 0), "Retry-After %u with %d", retry_after, status);
	if (status == 0 && !a->head_only)
		reply_body(a->id, want);
	if (status == 0)
		law(a->heads == 1 && g_string_equal(a->body, want),
		    "%u got another reply, %zu bytes instead of %zu: %.20s", a->id, a->body->len,
		    want->len, a->body->str);
	trace("request %u ends with %d", a->id, status);
	a->end = status;
	a->slow = a->paused && status == -ETIMEDOUT && a->x->conf.total_ms != 0;
	a->x = NULL;
	w.running--;
}

static void
a_move(void *arg, struct exchange *x)
{
	struct ask *a = arg;

	law(a->x != NULL && a->x != x, "%u moves to the same exchange", a->id);
	law(a->heads == 0 && a->ends == 0, "%u moves after its head", a->id);
	law(a->hedged && a->safe, "a second try of %u", a->id);
	trace("request %u moves to its second try", a->id);
	a->x = x;
	a->waits_in = NULL;
	a->moved = true;
	w.hedges++;
}

static const struct exchange_sink a_sink = {
	.on_head = a_head, .on_body = a_body, .on_room = a_room, .on_end = a_end, .on_moved = a_move
};

static void
a_start(void)
{
	static const char *const methods[] = { "GET", "GET", "GET", "HEAD", "POST", "POST", "PUT" };
	struct exchange_conf conf = { .wait_ms = 500 + below(4000), .read_ms = 500 + below(4000) };
	const char *method = methods[below(G_N_ELEMENTS(methods))];
	struct ask *a = &w.ask[w.nasks];

	if (w.nasks == ASKS || w.running == RUNNING)
		return;
	conf.reply_ms = one_in(3) ? 300 + below(2000) : 0;
	conf.total_ms = one_in(4) ? 500 + below(5000) : 0;
	a->id = ++w.nasks;
	conf.hedge_ms = w.hedge_percent > 0 ? 1 + below(1000) : 0;
	conf.hedge_percent = w.hedge_percent;
	a->hedged = conf.hedge_ms > 0;
	a->req = a_request(method);
	a->safe = a->req.safe;
	conf.next = one_in(2) ? NEXT_error | NEXT_timeout | NEXT_bad : 0;
	conf.next_tries = 1 + below(BACKENDS);
	conf.next_ms = one_in(2) ? 1 + below(8000) : 0;
	a->tries = conf.next != 0 && a->req.idempotent ? conf.next_tries : 1;
	a->head_only = strcmp(method, "HEAD") == 0;
	snprintf(a->query, sizeof(a->query), "id=%06u", a->id);
	snprintf(a->target, sizeof(a->target), "/r?id=%06u", a->id);
	a->req.query = text_of(a->query);
	a->req.target = text_of(a->target);
	a->req.client = 1 + below(CLIENTS);
	a->req.content_length = method[0] == 'P' ? (int64_t)below(100000) : -1;
	a->body_left = a->req.content_length;
	a->body = g_string_new(NULL);
	w.running++;
	trace("client %u starts %s %u", a->req.client, method, a->id);
	law(exchange_start(w.up, &a->req, &conf, &a_sink, a, &a->x) == 0, "no memory");
	law(a->ends == 0, "an end inside exchange_start()");
}

static void
a_feed(struct ask *a)
{
	static char some[40000];
	size_t n = below(sizeof(some)) + 1;

	memset(some, 'x', sizeof(some));
	if (a->body_left <= 0)
		return;
	if (n > (size_t)a->body_left)
		n = (size_t)a->body_left;
	a->body_left -= (int64_t)exchange_body(a->x, (struct text){ some, n });
}

static void
a_resume(struct ask *a)
{
	if (!a->paused)
		return;
	a->paused = false;
	exchange_resume(a->x);
}

static void
a_forget(struct ask *a)
{
	trace("client forgets %u", a->id);
	a->forgotten = true;
	w.running--;
	exchange_forget(&a->x, one_in(2));
	law(a->x == NULL, "exchange_forget() keeps the pointer");
}

static void
a_event(void)
{
	struct ask *a;
	unsigned i;

	if (w.nasks == 0 || one_in(4)) {
		a_start();
		return;
	}
	for (i = 0; i < 20; i++) {
		a = &w.ask[w.nasks - 1 - below(MIN(w.nasks, 2 * RUNNING))];
		if (a->x != NULL)
			break;
	}
	if (a->x == NULL)
		return;
	if (one_in(30))
		a_forget(a);
	else if (a->paused && one_in(2))
		a_resume(a);
	else
		a_feed(a);
}

/* ---------------------------------------------------------------- who waits */

/* a got a socket: no request of its client may have queued before it, in the same pool. */
static void
check_order(const struct ask *a)
{
	const struct ask *b;

	for (b = w.ask; b < w.ask + w.nasks; b++)
		law(b == a || b->moved || b->x == NULL || b->x->state != x_wait ||
			!b->x->wait.waits || b->x->pool != a->waits_in ||
			b->req.client != a->req.client || b->queued_at >= a->queued_at ||
			b->waits_in != a->waits_in,
		    "%u of step %u overtakes %u of step %u", a->id, a->queued_at, b->id,
		    b->queued_at);
}

static void
check_wait(struct ask *a, uint64_t now)
{
	struct exchange *x = a->x;
	bool waits = x != NULL && x->state == x_wait && x->wait.waits;

	if (waits && (a->waits_in != x->pool || a->queued_ns != x->wait.turn.since_ns)) {
		a->waits_in = x->pool;
		a->queued_ns = x->wait.turn.since_ns;
		a->queued_at = w.step;
		a->waits_since_ns = now;
	}
	law(!waits || now <= a->waits_since_ns + (x->conf.wait_ms + 1000) * NS_PER_MS,
	    "%u waits for longer than its deadline", a->id);
	if (waits || a->waits_in == NULL)
		return;
	if (x != NULL && x->lease != NULL && x->pool == a->waits_in && !x->wait.fresh && !a->moved)
		check_order(a);
	a->waits_in = NULL;
}

/* Notes all changes of this step first, so that requests that queued in one step are equal. */
static void
check_waits(void)
{
	struct ask *a;

	for (a = w.ask; a < w.ask + w.nasks; a++)
		check_wait(a, io_now(io));
}

#endif
