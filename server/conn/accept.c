/* server/conn/accept.c -- see accept.h */
#include "server/conn/accept.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/io.h"
#include "server/conn/conn.h"
#include "server/conn/counters.h"
#include "server/conn/eviction.h"
#include "server/status/worker_counters.h"
#include "server/worker/worker.h"

#define PAUSE_MS    500u /* accepting is tried again after this time, or when a connection closes */
#define SEEK_MS     250u /* between two looks for slow connections */
#define WAKING_MAX  16u  /* looked at, for one that leaves */
#define LEAVING_MAX 16u  /* busy connections are cut while fewer than this are closing */
/* WORKER_RECENT addresses within this time: clients reach the server directly */
#define MIXED_MS 600000u

struct accepting {
	struct io_sock sock;
	struct io_op op;
	struct worker *w;
	union io_addr peer;
	const char *name;
	bool parked; /* an accept is in flight */
};

/* ---- making room */

/* Counts connections that other workers have given to this one, too. */
static unsigned
places_taken(const struct worker *w)
{
	return (w->nconns - w->nleaving + shared_get(w->spread.coming));
}

/* Evicted connections hold their descriptors until the end of the round only. */
static bool
is_full(const struct worker *w)
{
	return (places_taken(w) >= w->base.conf.max_conns);
}

/* True if all places are taken by connections that stay. */
static bool
is_busy(const struct worker *w)
{
	return (places_taken(w) >= w->base.conf.max_conns + w->eviction.n);
}

/* A connection that looks idle may have a request that the loop has not read yet: it counts as busy
 * until then.  (Without this one of 3000 kept connections beside a flood was reset.) */
static struct eviction_member *
next_to_leave(struct worker *w)
{
	struct eviction_member *m = eviction_next(&w->eviction);
	unsigned tries;

	for (tries = 0; m != NULL && tries < WAKING_MAX && conn_is_waking(m); tries++) {
		eviction_set(&w->eviction, m, EVICT_BUSY, 0);
		m = eviction_next(&w->eviction);
	}
	return (m);
}

static bool
make_room(struct worker *w, const char *why)
{
	struct eviction_member *m = next_to_leave(w);

	if (m == NULL)
		return (false);
	if (m->kind == EVICT_IDLE)
		count(w->base.counts.conn, room_idle);
	else if (m->kind == EVICT_ENDED)
		count(w->base.counts.conn, room_ended);
	else
		count(w->base.counts.conn, room_silent);
	conn_make_room(m, why);
	return (true);
}

/* The first slow one of the address with most connections; NULL: none is slow, or the last look was
 * a moment ago. */
static struct eviction_member *
next_slow(struct worker *w)
{
	struct eviction_member *m = eviction_next_busy(&w->eviction);
	uint64_t now = io_now(w->base.io);

	if (m == NULL || conn_is_slow(m) || now - w->sought_ns < SEEK_MS * NS_PER_MS)
		return (m != NULL && conn_is_slow(m) ? m : NULL);
	w->sought_ns = now;
	return (conn_seek_slow(eviction_busy(&w->eviction)));
}

/* The address may be a proxy for all clients, which loses only those that are slow. */
static void
cut_slow(struct worker *w)
{
	struct eviction_member *m = w->nleaving < LEAVING_MAX ? next_slow(w) : NULL;

	if (m == NULL)
		return;
	count(w->base.counts.conn, room_slow);
	conn_make_room(m,
	    "one address has more than half of all connections, and this connection of it is slow");
}

static void
cut_busy(struct worker *w)
{
	struct eviction_member *m = w->nleaving < LEAVING_MAX ? next_slow(w) : NULL;

	if (m == NULL && w->nleaving < LEAVING_MAX)
		m = eviction_next_busy(&w->eviction);
	if (m == NULL)
		return;
	count(w->base.counts.conn, room_busy);
	conn_make_room(m,
	    "one address has more than half of all connections, and another address needs a place");
}

/* Clients come from several addresses, so the address with most connections is not a proxy for all
 * of them.  (Besides a proxy there may be a monitoring host and the administrator.) */
static bool
is_mixed(const struct worker *w)
{
	uint64_t now = io_now(w->base.io);
	size_t i;

	for (i = 0; i < WORKER_RECENT; i++)
		if (w->recent[i].seen_ns == 0 || now - w->recent[i].seen_ns > MIXED_MS * NS_PER_MS)
			return (false);
	return (true);
}

/* Replaces the address not seen for longest. */
static void
note_address(struct worker *w, struct client_addr from)
{
	size_t i, at = 0;

	for (i = 0; i < WORKER_RECENT; i++) {
		if (client_addr_same(w->recent[i].addr, from) && w->recent[i].seen_ns != 0) {
			at = i;
			break;
		}
		if (w->recent[i].seen_ns < w->recent[at].seen_ns)
			at = i;
	}
	w->recent[at].addr = from;
	w->recent[at].seen_ns = io_now(w->base.io);
}

bool
accept_make_room(struct worker *w, struct client_addr from)
{
	char name[CLIENT_ADDR_MAX];

	note_address(w, from);
	while (is_full(w) && make_room(w, "server.max-connections is reached"))
		;
	if (!is_full(w) || !eviction_has_majority(&w->eviction))
		return (true);
	if (!eviction_is_majority(&w->eviction, from)) {
		cut_busy(w);
		return (true);
	}
	if (!is_mixed(w)) {
		cut_slow(w);
		return (true);
	}
	count(w->base.counts.conn, room_refused);
	log_limited(1, LOG_WARN, NULL, "connection.refused",
	    LF_STR("address", client_addr_name(from, name)), LF_U64("connections", w->nconns),
	    LF_STR("why",
		"server.max-connections is reached, and this address has more than half of them"));
	return (false);
}

/* True if a new connection would find no place.  While one address has the majority, accepting goes
 * on: the connection may come from another address. */
static bool
is_closed(const struct worker *w)
{
	if (!is_busy(w))
		return (false);
	if (!eviction_has_majority(&w->eviction) || w->nleaving >= LEAVING_MAX)
		return (true);
	return (!is_mixed(w) && w->nconns - w->nleaving > w->base.conf.max_conns);
}

/* ---- accepting */

static void
accept_submit(struct accepting *a)
{
	a->parked = true;
	a->op.accept.peer = &a->peer;
	op_submit(a->w->base.io, &a->op);
}

void
accept_all(struct worker *w)
{
	size_t i;

	for (i = 0; i < w->base.conf.nlisteners; i++)
		if (!w->accepting[i].parked && !w->draining)
			accept_submit(&w->accepting[i]);
}

void
accept_resume(struct worker *w)
{
	if (!w->paused || w->pause_fixed || is_closed(w))
		return;
	w->paused = false;
	accept_all(w);
}

static void
pause_again(struct worker *w)
{
	if (w->pause_timed || w->draining)
		return;
	w->pause_timed = true;
	w->pause.deadline_ms = PAUSE_MS;
	op_submit(w->base.io, &w->pause);
}

/* A connection may become slow while accepting pauses. */
static bool
waits_for_slow(const struct worker *w)
{
	return (is_busy(w) && eviction_has_majority(&w->eviction) && !is_mixed(w));
}

static void
pause_over(struct io_op *op)
{
	struct worker *w = container_of(op, struct worker, pause);

	w->pause_timed = false;
	w->pause_fixed = false;
	accept_resume(w);
	if (!w->paused || !waits_for_slow(w))
		return;
	cut_slow(w);
	pause_again(w);
}

/* No descriptor, or no place, and every connection is busy: stops accepting until one closes or
 * becomes idle.  A timer tries again, because a descriptor that another thread frees makes no
 * event.  If the system refuses accept(2), only the timer ends the pause.  Never spins. */
static void
accept_pause(struct worker *w, const char *why)
{
	count(w->base.counts.conn, accept_pauses);
	log_limited(1, LOG_WARN, NULL, "accept.paused", LF_STR("why", why),
	    LF_U64("connections", w->nconns));
	w->paused = true;
	if (!is_busy(w) || w->pause_fixed || waits_for_slow(w))
		pause_again(w);
}

static bool
is_about_descriptors(int64_t err)
{
	return (err == -EMFILE || err == -ENFILE);
}

static const char *
accept_failure(int64_t err)
{
	if (is_about_descriptors(err))
		return ("no descriptors are left; raise server.max-fds or lower "
			"server.max-connections");
	if (err == -ENOBUFS || err == -ENOMEM)
		return ("the system has no memory for sockets");
	if (err == -EPERM || err == -EACCES)
		return ("a security module or a filter of system calls forbids accept(2)");
	return ("accepting failed");
}

/* Evicts one connection; accepting goes on when it is closed (accept_resume()). */
static void
no_descriptor(struct worker *w, int64_t err)
{
	if (is_about_descriptors(err) && make_room(w, "no descriptors are left"))
		w->paused = true;
	else {
		w->pause_fixed = !is_about_descriptors(err);
		accept_pause(w, accept_failure(err));
	}
}

static void
accepted(struct io_op *op)
{
	struct accepting *a = container_of(op, struct accepting, op);
	struct worker *w = a->w;

	a->parked = false;
	if (op->res >= 0)
		conn_new(w, (int)op->res, &a->peer, a->name);
	if (w->draining)
		; /* accept no more */
	else if (op->res < 0)
		no_descriptor(w, op->res);
	else if (is_closed(w))
		accept_pause(w, "server.max-connections is reached, and every connection is busy");
	else
		accept_submit(a);
	if (!a->parked)
		io_sock_ignore(w->base.io, &a->sock);
}

void
accept_evict_heads(struct worker *w)
{
	struct eviction_member *m;

	while (w->eviction.bytes > w->base.conf.max_head_bytes &&
	       (m = eviction_next_head(&w->eviction)) != NULL) {
		count(w->base.counts.conn, room_heads);
		conn_make_room(m, "server.max-unfinished-head-bytes is reached");
	}
	if (w->nleaving == 0)
		accept_resume(w);
}

/* ---- life */

int
accept_new(struct worker *w)
{
	size_t i;

	op_init(&w->pause, IO_TIMER, pause_over);
	w->accepting = calloc(w->base.conf.nlisteners + 1, sizeof(*w->accepting));
	if (w->accepting == NULL)
		return (-ENOMEM);
	for (i = 0; i < w->base.conf.nlisteners; i++) {
		struct accepting *a = &w->accepting[i];

		a->w = w;
		a->name = w->base.conf.listeners[i].name;
		io_sock_init(&a->sock, w->base.conf.listeners[i].fd);
		op_init(&a->op, IO_ACCEPT, accepted);
		a->op.sock = &a->sock;
	}
	return (0);
}

void
accept_stop(struct worker *w)
{
	size_t i;

	for (i = 0; w->accepting != NULL && i < w->base.conf.nlisteners; i++)
		if (w->accepting[i].parked)
			op_cancel(w->base.io, &w->accepting[i].op);
	if (w->pause_timed)
		op_cancel(w->base.io, &w->pause);
}

bool
accept_parked(const struct worker *w)
{
	size_t i;

	for (i = 0; w->accepting != NULL && i < w->base.conf.nlisteners; i++)
		if (w->accepting[i].parked)
			return (true);
	return (false);
}
