/* server/worker.c -- see worker.h */
#include "server/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "server/conn/conn.h"
#include "wire/http_date.h"
#include "server/reply.h"
#include "server/route.h"
#include "server/worker_accept.h"

#define KEEP_REQUESTS 256u     /* recycled requests */
#define MOVES 32u              /* connections that leave for, or come from, another generation in one round: some 0.3 ms */
#define REQUEST_MEMORY (256u << 10) /* arena of one request: heads, paths, fields for applications */
#define LINE_MAX_BYTES (512u << 10) /* of a log: the longest head, each byte of it escaped as four, fits */

/* ---- requests and the date */

struct request *
worker_request(struct worker *w)
{
	struct list *l = list_pop(&w->requests);
	struct request *r;

	if (l != NULL) {
		w->nrequests--;
		return (list_entry(l, struct request, link));
	}
	r = malloc(sizeof(*r));
	if (r == NULL)
		return (NULL);
	memset(r, 0, offsetof(struct request, lent));
	r->worker = w;
	list_init(&r->link);
	list_init(&r->wait.link);
	r->wait.entry = NULL;
	body_init(&r->body, w->io);
	sender_init(&r->sender, w->io, NULL); /* the connection that takes it puts its socket in */
	arena_init(&r->arena, r->lent, sizeof(r->lent), REQUEST_MEMORY);
	return (r);
}

void
worker_request_back(struct request *r)
{
	struct worker *w = r->worker;

	stat_cancel(&r->wait);
	body_clear(&r->body);
	arena_reset(&r->arena);
	request_drop_spools(r);
	request_use(r, NULL);
	r->conn = NULL;
	r->relay = NULL;
	if (w->nrequests >= KEEP_REQUESTS) {
		free(r);
		return;
	}
	w->nrequests++;
	list_add_head(&w->requests, &r->link);
}

bool
request_keep(struct request *r)
{
	const char *why;
	struct text copy;
	size_t used;
	int status;

	if (r->head_kept || r->head.n == 0)
		return (true);
	copy = arena_text(&r->arena, r->head);
	if (copy.p == NULL)
		return (false);
	r->head = copy;
	r->head_kept = true;
	/* The same bytes give the same answer; now its slices point into the copy. */
	must(http1_head(copy, r->worker->global->max_head, &r->http, &used, &status, &why) == PARSE_DONE);
	return (true);
}

const char *
worker_date(struct worker *w)
{
	uint64_t now = io_wall_s(w->io);

	if (now != w->date_s) {
		w->date_s = now;
		http_date_put(w->date, now);
	}
	return (w->date);
}

/* ---- life */

static int
cache_make(struct worker *w)
{
	const struct conf *c = config_global(w->conf.config);
	struct stat_limits lim = {
		.entries = (uint32_t)c->max_cached_files,
		.fds = w->conf.max_fds,
		.bytes = c->max_cached_bytes,
		.max_file = c->max_cached_size,
		.cache = c->stat_engine == NULL || strcmp(c->stat_engine, "disable") != 0,
		.open_ms = (uint32_t)(1000 * c->open_timeout),
		.idle_ms = (uint32_t)(1000 * c->cache_idle),
	};

	w->stats = stat_cache_new(w->io, &w->tally->counters, &lim);
	return (w->stats != NULL ? 0 : -ENOMEM);
}

int
worker_new(const struct worker_conf *wc, struct io *io, struct worker **wp)
{
	struct worker *w = calloc(1, sizeof(*w));
	int err = 0;

	must(w != NULL);
	w->conf = *wc;
	w->conf.nworkers = wc->nworkers != 0 ? wc->nworkers : 1;
	w->conn_ids = wc->index - w->conf.nworkers + 1; /* the first id is index + 1 */
	buf_init(&w->line, LINE_MAX_BYTES);
	list_init(&w->conns);
	list_init(&w->scopes.list);
	list_init(&w->requests);
	room_init(&w->room);
	w->tally = tally_take(wc->tallies);
	w->io = io != NULL ? io : io_new(&wc->io, &err);
	if (w->io == NULL) {
		tally_return(w->tally);
		free(w);
		return (err);
	}
	io_count_into(w->io, &w->tally->counters);
	err = accept_new(w);
	if (err == 0)
		err = cache_make(w);
	if (err == 0)
		err = route_start(w);
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
each_conn(struct worker *w, void (*fn)(struct conn *))
{
	struct list *l, *tmp;

	list_foreach_safe(l, tmp, &w->conns)
		fn(conn_of_link(l));
}

static void
begin_drain(struct worker *w)
{
	size_t i;

	w->draining = true;
	accept_stop(w);
	w->to_drain = w->nconns;
	stat_cache_shrink(w->stats);
	for (i = 0; i < w->nupstreams; i++)
		if (w->upstreams[i] != NULL)
			upstream_close_idle(w->upstreams[i]);
}

static void
adopt(struct worker *w)
{
	struct moved *m = NULL;
	unsigned n;

	for (n = 0; n < MOVES && w->conf.handover != NULL && (m = handover_take(w->conf.handover, w->io)) != NULL; n++) {
		conn_adopt(w, m);
		free(m);
	}
	if (m != NULL)
		io_wake(w->io); /* there may be more */
}

/* Those at the beginning of the list, which go to its end. */
static void
drain_some(struct worker *w)
{
	struct list *l;
	unsigned n;

	for (n = 0; n < MOVES && w->to_drain > 0 && !list_empty(&w->conns); n++) {
		w->to_drain--;
		l = list_pop(&w->conns);
		list_add_tail(&w->conns, l);
		conn_drain(conn_of_link(l));
	}
	if (w->to_drain > 0)
		io_wake(w->io);
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
	drain_some(w);
	if (mode >= WORKER_CUT && !w->stopping) {
		w->stopping = true;
		if (mode == WORKER_CUT)
			count_add(&w->tally->counters, drain_cut, w->nconns);
		each_conn(w, conn_stop);
	}
}

/* Once a round, not once a request. */
static void
note(struct worker *w)
{
	struct tally *t = w->tally;

	rate_note(&t->requests, io_now(w->io), t->counters.requests);
	rate_note(&t->bytes, io_now(w->io), t->counters.bytes_sent);
	tally_set(t->cached, stat_cache_entries(w->stats));
	tally_set(t->sets, conf_view_sets(w->view));
}

void
worker_round(struct worker *w)
{
	obey(w);
	io_run(w->io);
	note(w);
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	char name[16];
	bool held;

	snprintf(name, sizeof(name), "worker-%u", w->conf.index);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		obey(w);
		if (w->draining && w->nconns == 0)
			break;
		io_run(w->io);
		note(w);
	}
	held = !io_leave(w->io);
	w->held = held;
	__atomic_store_n(&w->ended, 1, __ATOMIC_RELEASE); /* *w is not ours any more */
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
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
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
	io_wake(w->io);
}

bool
worker_ended(const struct worker *w)
{
	return (__atomic_load_n(&w->ended, __ATOMIC_ACQUIRE) != 0);
}

/* The stop has been asked for.  The thread can be joined once it has ended. */
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
	struct list *l;
	size_t i;

	if (w->running)
		thread_end(w);
	w->mode = WORKER_STOP;
	obey(w);
	while (accept_parked(w) || w->nconns != 0)
		io_run(w->io);
	for (i = 0; i < w->nupstreams; i++)
		if (w->upstreams[i] != NULL)
			upstream_free(w->upstreams[i]);
	free(w->upstreams);
	if (w->stats != NULL)
		stat_cache_free(w->stats);
	route_end(w);
	while ((l = list_pop(&w->requests)) != NULL)
		free(list_entry(l, struct request, link));
	for (i = 0; i < PAGES; i++)
		page_free(&w->pages[i]);
	while (io_busy(w->io))
		io_run(w->io);
	io_free(w->io);
	free(w->accepting);
	buf_free(&w->line);
	tally_return(w->tally);
	free(w);
}
