/* server/worker_accept.c -- see worker_accept.h */
#include "server/worker_accept.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/conn/conn.h"

#define PAUSE_MS 500u          /* accepting is tried again after this, or when a connection ends */
#define LEAVING_MAX 16u        /* busy connections are cut while fewer are on their way out */
#define MIXED_MS 600000u       /* WORKER_RECENT addresses within this time: a server that clients reach directly */

struct accepting {
	struct io_sock sock;
	struct io_op op;
	struct worker *w;
	union io_addr peer;
	const char *name;
	bool parked; /* an accept is in flight */
};

/* ---- making room */

/* Those that were sent away hold their descriptors for the rest of the round only. */
static bool
is_full(const struct worker *w)
{
	return (w->nconns - w->nleaving >= w->conf.max_conns);
}

/* Every place is taken by a connection that stays. */
static bool
is_busy(const struct worker *w)
{
	return (w->nconns - w->nleaving - w->room.n >= w->conf.max_conns);
}

static bool
make_room(struct worker *w, const char *why)
{
	struct room_member *m = room_next(&w->room);

	if (m == NULL)
		return (false);
	if (m->kind == ROOM_IDLE)
		count(&w->tally->counters, room_idle);
	else
		count(&w->tally->counters, room_silent);
	conn_make_room(conn_of_member(m), why);
	return (true);
}

static void
cut_busy(struct worker *w)
{
	struct room_member *m = w->nleaving < LEAVING_MAX ? room_next_busy(&w->room) : NULL;

	if (m == NULL)
		return;
	count(&w->tally->counters, room_busy);
	conn_make_room(conn_of_member(m), "one address has most connections, and another address needs a place");
}

/* Clients come from several addresses, so the address that has most is not a proxy through which all of them come (beside
 * it there may be one that watches over the server, and its administrator). */
static bool
is_mixed(const struct worker *w)
{
	uint64_t now = io_now(w->io);
	size_t i;

	for (i = 0; i < WORKER_RECENT; i++)
		if (w->recent[i].seen_ns == 0 || now - w->recent[i].seen_ns > MIXED_MS * NS_PER_MS)
			return (false);
	return (true);
}

/* In the place of the one not seen for longest. */
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
	w->recent[at].seen_ns = io_now(w->io);
}

bool
accept_make_room(struct worker *w, struct client_addr from)
{
	char name[CLIENT_ADDR_MAX];

	note_address(w, from);
	while (is_full(w) && make_room(w, "server.max-connections is reached"))
		;
	if (!is_full(w) || !room_has_majority(&w->room))
		return (true);
	if (!room_is_majority(&w->room, from)) {
		cut_busy(w);
		return (true);
	}
	if (!is_mixed(w))
		return (true);
	count(&w->tally->counters, room_refused);
	log_limited(1, LOG_WARN, NULL, "connection.refused", LF_STR("address", client_addr_name(from, name)), LF_U64("connections", w->nconns),
	    LF_STR("why", "server.max-connections is reached, and this address has more than half of them"));
	return (false);
}

/* A newcomer would find no place.  While one address has most, it is looked at all the same: it may be another's. */
static bool
is_closed(const struct worker *w)
{
	if (!is_busy(w))
		return (false);
	if (!room_has_majority(&w->room) || w->nleaving >= LEAVING_MAX)
		return (true);
	return (!is_mixed(w) && w->nconns - w->nleaving > w->conf.max_conns);
}

/* ---- accepting */

static void
accept_submit(struct accepting *a)
{
	a->parked = true;
	a->op.accept.peer = &a->peer;
	op_submit(a->w->io, &a->op);
}

void
accept_all(struct worker *w)
{
	size_t i;

	for (i = 0; i < w->conf.nlisteners; i++)
		if (!w->accepting[i].parked && !w->draining)
			accept_submit(&w->accepting[i]);
}

static void
accept_resume(struct worker *w)
{
	if (!w->paused || is_closed(w))
		return;
	w->paused = false;
	accept_all(w);
}

static void
pause_over(struct io_op *op)
{
	struct worker *w = container_of(op, struct worker, pause);

	w->pause_timed = false;
	accept_resume(w);
}

/* No descriptor, or no place, and every connection is busy: listen again when one has ended or is idle, or (a descriptor
 * that others give back makes no event) after a while.  Never spins. */
static void
accept_pause(struct worker *w, const char *why)
{
	count(&w->tally->counters, accept_pauses);
	log_limited(1, LOG_WARN, NULL, "accept.paused", LF_STR("why", why), LF_U64("connections", w->nconns));
	w->paused = true;
	if (!w->pause_timed && !is_busy(w)) {
		w->pause_timed = true;
		w->pause.deadline_ms = PAUSE_MS;
		op_submit(w->io, &w->pause);
	}
}

/* It concerns one client: the next accept may well succeed.  Any other failure would come back at once. */
static bool
is_about_client(int64_t err)
{
	switch (-err) {
	case ECONNABORTED:
	case EPROTO:
	case EPERM:
	case ENETDOWN:
	case ENETUNREACH:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case ENONET:
		return (true);
	default:
		return (false);
	}
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
		return ("no descriptors are left; raise server.max-fds or lower server.max-connections");
	if (err == -ENOBUFS || err == -ENOMEM)
		return ("the system has no memory for sockets");
	return ("accepting failed");
}

/* One connection goes, and accepting goes on when it is closed (accept_conn_gone()). */
static void
no_descriptor(struct worker *w, int64_t err)
{
	if (is_about_descriptors(err) && make_room(w, "no descriptors are left"))
		w->paused = true;
	else
		accept_pause(w, accept_failure(err));
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
		; /* nothing more is accepted */
	else if (op->res < 0 && !is_about_client(op->res))
		no_descriptor(w, op->res);
	else if (is_closed(w))
		accept_pause(w, "server.max-connections is reached, and every connection is busy");
	else
		accept_submit(a);
	if (!a->parked)
		io_sock_ignore(w->io, &a->sock);
}

void
accept_conn_gone(struct worker *w)
{
	accept_resume(w);
}

void
accept_room_grew(struct worker *w)
{
	struct room_member *m;

	while (w->room.bytes > w->conf.max_head_bytes && (m = room_next_head(&w->room)) != NULL) {
		count(&w->tally->counters, room_heads);
		conn_make_room(conn_of_member(m), "server.max-unfinished-heads is reached");
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
	w->accepting = calloc(w->conf.nlisteners + 1, sizeof(*w->accepting));
	if (w->accepting == NULL)
		return (-ENOMEM);
	for (i = 0; i < w->conf.nlisteners; i++) {
		struct accepting *a = &w->accepting[i];

		a->w = w;
		a->name = w->conf.listeners[i].name;
		io_sock_init(&a->sock, w->conf.listeners[i].fd);
		op_init(&a->op, IO_ACCEPT, accepted);
		a->op.sock = &a->sock;
	}
	return (0);
}

void
accept_stop(struct worker *w)
{
	size_t i;

	for (i = 0; w->accepting != NULL && i < w->conf.nlisteners; i++)
		if (w->accepting[i].parked)
			op_cancel(w->io, &w->accepting[i].op);
	if (w->pause_timed)
		op_cancel(w->io, &w->pause);
}

bool
accept_parked(const struct worker *w)
{
	size_t i;

	for (i = 0; w->accepting != NULL && i < w->conf.nlisteners; i++)
		if (w->accepting[i].parked)
			return (true);
	return (false);
}
