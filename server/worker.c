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
#include "server/conn.h"
#include "server/http_date.h"
#include "server/reply.h"
#include "server/route.h"

#define KEEP_REQUESTS 256u     /* recycled requests */
#define REQUEST_MEMORY (256u << 10) /* arena of one request: heads, paths, fields for applications */
#define LINE_MAX_BYTES (512u << 10) /* of a log: the longest head, each byte of it escaped as four, fits */
#define PAUSE_MS 500u          /* accepting is tried again after this, or when a connection ends */

struct accepting {
	struct io_sock sock;
	struct io_op op;
	struct worker *w;
	union io_addr peer;
	const char *name;
	bool parked; /* an accept is in flight */
};

/* ---- accepting */

static void
accept_submit(struct accepting *a)
{
	a->parked = true;
	a->op.accept.peer = &a->peer;
	io_submit(a->w->io, &a->op);
}

static void
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
	if (!w->paused)
		return;
	w->paused = false;
	accept_all(w);
}

static void
pause_over(struct io_op *op)
{
	struct worker *w = container_of(op, struct worker, pause);

	w->pause_timed = false;
	if (w->nconns < w->conf.max_conns)
		accept_resume(w);
}

/* No descriptor, or no place: listen again when a connection has ended, or (nobody tells us of a descriptor
 * that others gave back) after a while.  Never spins. */
static void
accept_pause(struct worker *w, const char *why)
{
	count(&w->tally->counters, accept_pauses);
	log_limited(1, LOG_WARN, NULL, "accept.paused", LF_STR("why", why), LF_U64("connections", w->nconns));
	w->paused = true;
	if (!w->pause_timed && w->nconns < w->conf.max_conns) {
		w->pause_timed = true;
		w->pause.deadline_ms = PAUSE_MS;
		io_submit(w->io, &w->pause);
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

static const char *
accept_failure(int64_t err)
{
	switch (-err) {
	case EMFILE:
	case ENFILE:
		return ("no descriptors are left; raise server.max-fds or lower server.max-connections");
	case ENOBUFS:
	case ENOMEM:
		return ("the system has no memory for sockets");
	default:
		return ("accepting failed");
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
		return;
	if (op->res < 0 && !is_about_client(op->res))
		accept_pause(w, accept_failure(op->res));
	else if (w->nconns >= w->conf.max_conns)
		accept_pause(w, "server.max-connections is reached");
	else
		accept_submit(a);
}

void
worker_conn_gone(struct worker *w)
{
	if (w->paused && w->nconns < w->conf.max_conns)
		accept_resume(w);
}

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

static int
listen_make(struct worker *w)
{
	size_t i;

	w->accepting = calloc(w->conf.nlisteners + 1, sizeof(*w->accepting));
	if (w->accepting == NULL)
		return (-ENOMEM);
	for (i = 0; i < w->conf.nlisteners; i++) {
		struct accepting *a = &w->accepting[i];

		a->w = w;
		a->name = w->conf.listeners[i].name;
		io_sock_init(&a->sock, w->conf.listeners[i].fd);
		io_op_init(&a->op, IO_ACCEPT, accepted);
		a->op.sock = &a->sock;
	}
	return (0);
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
	io_op_init(&w->pause, IO_TIMER, pause_over);
	w->tally = tally_take(wc->tallies);
	w->io = io != NULL ? io : io_new(&wc->io, &err);
	if (w->io == NULL) {
		tally_return(w->tally);
		free(w);
		return (err);
	}
	io_count_into(w->io, &w->tally->counters);
	err = listen_make(w);
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
	for (i = 0; i < w->conf.nlisteners; i++)
		if (w->accepting[i].parked)
			io_cancel(w->io, &w->accepting[i].op);
	each_conn(w, conn_drain);
	for (i = 0; i < w->nupstreams; i++)
		if (w->upstreams[i] != NULL)
			upstream_close_idle(w->upstreams[i]);
}

static void
obey(struct worker *w)
{
	int mode = __atomic_load_n(&w->mode, __ATOMIC_ACQUIRE);

	if (mode >= WORKER_DRAIN && !w->draining)
		begin_drain(w);
	if (mode == WORKER_STOP && !w->stopping) {
		w->stopping = true;
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
	__atomic_store_n(&w->mode, (int)mode, __ATOMIC_RELEASE);
	io_wake(w->io);
}

bool
worker_ended(const struct worker *w)
{
	return (__atomic_load_n(&w->ended, __ATOMIC_ACQUIRE) != 0);
}

static bool
anything_parked(const struct worker *w)
{
	size_t i;

	for (i = 0; w->accepting != NULL && i < w->conf.nlisteners; i++)
		if (w->accepting[i].parked)
			return (true);
	return (w->nconns != 0);
}

/* Whether it can be joined is known when it has ended, which it was told to. */
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
	if (w->pause_timed)
		io_cancel(w->io, &w->pause);
	while (anything_parked(w))
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
