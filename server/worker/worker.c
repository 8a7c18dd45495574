/* server/worker/worker.c -- see worker.h */
#include "base/arena.h"
#include "files/hold/hold.h"
#include "io/body.h"
#include "io/sender.h"
#include "proxy-core/exchange.h"
#include "server/conn/handover.h"
#include "server/request/request.h"
#include "server/worker/worker.h"
#include "server/config/check/trust.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/must.h"
#include "io/memory/pressure.h"
#include "server/conn/accept.h"
#include "server/conn/conn.h"
#include "server/conn/overdue.h"
#include "server/conn/requests.h"
#include "server/conn/spread.h"
#include "server/module/module.h"
#include "server/reply/reply.h"
#include "server/route/choose.h"
#include "server/status/counters.h"

#define IDLE_REQUESTS 16u /* spare requests that are kept while no client has a request */
/* User memory of a connection, measured with 10,000 connections of which half had a request. */
#define CONN_MEMORY 1024u
/* Connections that move to or from another generation in one round: some 0.3 ms. */
#define MOVES 32u
/* of a line of a log: the longest head fits, with each byte escaped as four */
#define LINE_MAX_BYTES (512u << 10)

/* The worker has become quiet. */
static void
drop_spares(struct rest *rest)
{
	struct worker *w = container_of(rest, struct worker, rest);

	requests_drop(w, IDLE_REQUESTS);
}

/* ---- life */

static int
cache_make(struct worker *w)
{
	const struct conf *c = config_global(w->base.conf.config);
	struct file_limits lim = {
		.entries = (uint32_t)c->max_cached_files,
		.fds = w->base.conf.max_fds,
		.bytes = c->max_cached_bytes,
		.max_file = c->max_cached_size,
		.cache = c->stat_engine == NULL || strcmp(c->stat_engine, "disable") != 0,
		.open_ms = (uint32_t)(1000 * c->open_timeout),
		.idle_ms = (uint32_t)(1000 * c->cache_idle),
		.forget_ms = (uint32_t)(1000 * c->cache_forget),
	};

	w->base.files = file_cache_new(w->base.io, &w->base.counters->events->hold, &lim);
	return (w->base.files != NULL ? 0 : -ENOMEM);
}

static int
trusts_make(struct worker *w)
{
	size_t i;

	w->trusts = calloc(w->base.conf.nlisteners + 1, sizeof(struct trust *));
	for (i = 0; w->trusts != NULL && i <= w->base.conf.nlisteners; i++) {
		w->trusts[i] = trust_new(w->base.conf.config,
		    i < w->base.conf.nlisteners ? w->base.conf.listeners[i].name : "");
		if (w->trusts[i] == NULL)
			return (-ENOMEM);
	}
	return (w->trusts != NULL ? 0 : -ENOMEM);
}

static void
trusts_free(struct worker *w)
{
	size_t i;

	for (i = 0; w->trusts != NULL && i <= w->base.conf.nlisteners; i++)
		trust_free(w->trusts[i]);
	free(w->trusts);
}

static void
count_into(struct worker_base *w, struct server_counters *all)
{
	w->counts = (struct room_counters){ .conn = &all->conn,
		.handler = &all->handler,
		.module = &all->module,
		.proxy = &all->proxy,
		.reply = &all->reply,
		.request = &all->request,
		.route = &all->route };
	io_count_into(w->io, &all->io);
}

int
worker_new(const struct worker_conf *wc, struct io *io, struct worker **wp)
{
	struct worker *w = calloc(1, sizeof(*w) + SLOT_BYTES(worker_slots));
	int err = 0;

	if (w == NULL)
		return (-ENOMEM);
	w->base.conf = *wc;
	w->base.verbs = &conn_verbs;
	w->base.pages = w->pages;
	w->base.slots = w->slots;
	w->base.scopes = &w->scopes;
	w->rounds_seen = w->rounds_asked = UINT64_MAX; /* not watched yet */
	w->base.conf.nworkers = wc->nworkers != 0 ? wc->nworkers : 1;
	w->conn_ids = wc->index - w->base.conf.nworkers + 1; /* the first id is index + 1 */
	buf_init(&w->base.line, LINE_MAX_BYTES);
	buf_init(&w->base.lines, LINE_MAX_BYTES);
	list_init(&w->conns);
	list_init(&w->scopes.list);
	list_init(&w->requests);
	eviction_init(&w->eviction);
	w->bans_version = bans_version(wc->bans);
	w->base.counters = worker_counters_take(wc->counters_list);
	w->base.io = w->base.counters == NULL ? NULL : io != NULL ? io : io_new(&wc->io, &err);
	if (w->base.io == NULL) {
		if (w->base.counters != NULL)
			worker_counters_return(w->base.counters);
		free(w);
		return (err != 0 ? err : -ENOMEM);
	}
	count_into(&w->base, w->base.counters->events);
	rest_init(&w->rest, w->base.io, drop_spares);
	running_desk_open(&w->base.counters->desk, w->base.io);
	spread_init(w);
	overdue_init(w);
	err = accept_new(w);
	if (err == 0)
		err = trusts_make(w);
	if (err == 0)
		err = cache_make(w);
	if (err == 0)
		err = route_start(&w->base);
	if (err == 0)
		accept_all(w);
	*wp = w;
	if (err != 0) {
		worker_free(w);
		*wp = NULL;
	}
	return (err);
}

static void
begin_drain(struct worker *w)
{
	size_t i;

	w->draining = true;
	accept_stop(w);
	spread_stop(w);
	w->to_drain = w->nconns;
	file_cache_shrink(w->base.files);
	for (i = 0; i < w->base.nupstreams; i++)
		if (w->base.upstreams[i] != NULL)
			upstream_close_idle(w->base.upstreams[i]);
	if (w->base.cgi != NULL)
		upstream_close_idle(w->base.cgi);
}

static void
adopt(struct worker *w)
{
	struct moved *m = NULL;
	unsigned n;

	for (n = 0; n < MOVES && w->base.conf.handover != NULL &&
		    (m = handover_take(w->base.conf.handover, w)) != NULL;
	     n++) {
		conn_adopt(w, m);
		free(m);
	}
	if (n != 0)
		spread_look_soon(w);
	if (m != NULL)
		io_wake(w->base.io); /* more connections may wait */
}

/* Takes connections from the front of the list and puts them at its end. */
static void
drain_some(struct worker *w)
{
	struct list *l;
	unsigned n;

	for (n = 0; n < MOVES && w->to_drain > 0 && !list_empty(&w->conns); n++) {
		w->to_drain--;
		l = list_pop(&w->conns);
		list_add_tail(&w->conns, l);
		if (w->draining)
			conn_drain(conn_of_link(l));
		else
			conn_spread(conn_of_link(l));
	}
	if (w->to_drain > 0)
		io_wake(w->base.io);
}

static void
obey(struct worker *w)
{
	int mode = __atomic_load_n(&w->mode, __ATOMIC_ACQUIRE);

	adopt(w);
	if (mode >= WORKER_DRAIN && !w->draining)
		begin_drain(w);
	if (mode >= WORKER_HUSH && !w->hushed) {
		w->hushed = true;
		w->to_drain = w->nconns;
	}
	if (shared_get(w->spread.asked))
		spread_begin(w);
	drain_some(w);
	if (mode >= WORKER_CUT && !w->base.stopping) {
		w->base.stopping = true;
		if (mode == WORKER_CUT)
			count_add(w->base.counts.conn, drain_cut, w->nconns);
		conn_stop_all(w);
	}
}

/* Windows come from the disk, so memory may be short: the pressure is looked at, in a thread.  A
 * worker whose files are all in memory never asks. */
static void
memory_note(struct worker *w)
{
	const struct io_counters *c = &w->base.counters->events->io;
	uint64_t reads = c->file_reads + c->loop_waits + c->pages_gone;

	if (reads == w->memory.reads || io_now(w->base.io) < w->memory.due_ns)
		return;
	w->memory.reads = reads;
	w->memory.due_ns = io_now(w->base.io) + MEMORY_LOOK_S * NS_PER_S;
	pressure_ask();
}

/* Done once a round, not once a request. */
static void
counters_note(struct worker *w)
{
	struct worker_counters *t = w->base.counters;

	rate_note(&t->requests, io_now(w->base.io), t->events->conn.requests);
	rate_note(&t->bytes, io_now(w->base.io), t->events->conn.bytes_sent);
	shared_set(t->cached, file_cache_entries(w->base.files));
	shared_set(t->streams, w->nstreams);
	shared_set(t->sets, conf_view_sets(w->base.view));
	rest_note(&w->rest, t->events->conn.requests,
	    file_cache_memory(w->base.files) + (uint64_t)w->nconns * CONN_MEMORY);
	memory_note(w);
	if (shared_get(t->desk.asked))
		running_answer(&t->desk, w, conn_running);
}

void
worker_round(struct worker *w)
{
	obey(w);
	io_run(w->base.io);
	counters_note(w);
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	char name[16];
	bool held;

	snprintf(name, sizeof(name), "worker-%u", w->base.conf.index);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		obey(w);
		if (w->draining && !w->stopped_accepting && !accept_parked(w))
			__atomic_store_n(&w->stopped_accepting, 1, __ATOMIC_RELEASE);
		if (w->stopped_accepting && w->nconns == 0 && !w->overdue.timed)
			break;
		io_run(w->base.io);
		counters_note(w);
		shared_set(w->rounds, w->rounds + 1);
	}
	held = !io_leave(w->base.io);
	w->held = held;
	__atomic_store_n(&w->ended, 1, __ATOMIC_RELEASE); /* from here on *w may be freed */
	while (held)
		pause();
	return (NULL);
}

int
worker_start(struct worker *w)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are for the main thread */
	err = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	w->running = err == 0;
	return (-err);
}

void
worker_tell(struct worker *w, enum worker_mode mode)
{
	if (__atomic_load_n(&w->mode, __ATOMIC_RELAXED) < (int)mode)
		__atomic_store_n(&w->mode, (int)mode, __ATOMIC_RELEASE);
	io_wake(w->base.io);
}

bool
worker_ended(const struct worker *w)
{
	return (__atomic_load_n(&w->ended, __ATOMIC_ACQUIRE) != 0);
}

bool
worker_accepts_no_more(const struct worker *w)
{
	return (worker_ended(w) || __atomic_load_n(&w->stopped_accepting, __ATOMIC_ACQUIRE) != 0);
}

/* The stop was requested.  The thread can be joined when it has ended. */
static void
thread_end(struct worker *w)
{
	while (!worker_ended(w))
		usleep(1000);
	if (w->held)
		pthread_detach(w->thread);
	else
		pthread_join(w->thread, NULL);
}

void
worker_free(struct worker *w)
{
	size_t i;

	if (w->running)
		thread_end(w);
	w->mode = WORKER_STOP;
	obey(w);
	while (accept_parked(w) || w->nconns != 0 || rest_stop(&w->rest))
		io_run(w->base.io);
	handover_forget(w->base.conf.handover, w);
	for (i = 0; i < w->base.nupstreams; i++)
		if (w->base.upstreams[i] != NULL)
			upstream_free(w->base.upstreams[i]);
	free(w->base.upstreams);
	upstream_free(w->base.cgi);
	modules_stop(&w->base);
	if (w->base.files != NULL)
		file_cache_free(w->base.files);
	route_end(&w->base);
	requests_drop(w, 0);
	for (i = 0; i < PAGES; i++)
		page_free(&w->pages[i]);
	while (io_busy(w->base.io))
		io_run(w->base.io);
	running_desk_close(&w->base.counters->desk);
	io_free(w->base.io);
	trusts_free(w);
	free(w->accepting);
	buf_free(&w->base.line);
	buf_free(&w->base.lines);
	bans_view_end(&w->bans);
	worker_counters_return(w->base.counters);
	free(w);
}
