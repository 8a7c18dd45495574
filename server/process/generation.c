/* server/process/generation.c -- one configuration with its workers and pools; see process.c. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "io/memory/memory.h"
#include "io/disk/pools.h"
#include "io/file.h"
#include "server/config/resources.h"
#include "server/config/ticket_file.h"
#include "server/conn/bans.h"
#include "server/conn/handover.h"
#include "server/module/rules.h"
#include "server/process/impl.h"
#include "server/worker/base.h"
#include "server/worker/worker.h"

#define OWN_FDS 16u /* logs, sockets, loops, roots */

unsigned
generation_workers(const struct conf *c)
{
	cpu_set_t set;

	if (c->max_worker != 0)
		return ((unsigned)c->max_worker);
	return (sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1);
}

/* The default: connections get two thirds of the descriptors that the server does not need itself,
 * open files a fifth, applications and look-ups the rest.  If clients could take all descriptors,
 * every re-check of a file would fail, and files in memory would get 503. */
static unsigned
connections_of(unsigned fds)
{
	return (fds > 2 * OWN_FDS ? fds - fds / 3 - OWN_FDS : fds / 4 + 1);
}

/* Operations of a loop in the kernel at a time: the configured number, divided among the workers,
 * because each has a loop. */
static struct io_conf
io_conf_of(const struct generation *g, const struct file_backend *backend)
{
	const struct conf *c = config_global(g->config);
	const struct io_pools_conf *pc = &g->pools_conf;
	unsigned n = g->nworkers;

	return ((struct io_conf){
	    .pools = g->pools,
	    .backend = backend,
	    .chunk = (uint32_t)c->network_chunk,
	    .stat_jobs = (pc->stat_threads + n - 1) / n,
	    .read_jobs = ((unsigned)c->read_jobs + n - 1) / n,
	    .per_device = (pc->per_device + n - 1) / n,
	    .max_queue = pc->max_queue,
	    .stuck_ms = pc->stuck_ms,
	});
}

static struct worker_conf
worker_conf_of(struct process *ps, struct generation *g, unsigned fds,
    const struct file_backend *backend)
{
	const struct conf *c = config_global(g->config);
	unsigned conns =
	    c->max_connections != 0 ? (unsigned)c->max_connections : connections_of(fds);

	return ((struct worker_conf){
	    .config = g->config,
	    .resources = g->resources,
	    .listeners = g->listeners.v,
	    .nlisteners = g->listeners.n,
	    .io = io_conf_of(g, backend),
	    .max_conns = (conns + g->nworkers - 1) / g->nworkers,
	    .max_fds = fds / 5 / g->nworkers + 1,
	    .nworkers = g->nworkers,
	    .max_head_bytes = c->max_head_bytes / g->nworkers,
	    .counters_list = &ps->counters_list,
	    .clients = ps->clients,
	    .tunnels = ps->tunnels,
	    .bans = ps->bans,
	    .meters = ps->meters,
	    .handover = ps->handover,
	    .cgi = ps->cgi.n != 0 ? &ps->cgi : NULL,
	});
}

static bool
may_free(const struct worker *w)
{
	return (w != NULL && (!w->running || worker_ended(w)));
}

/* So a generation with one long download costs one worker, not all of them. */
void
generation_free_ended(struct generation *g)
{
	unsigned i;

	for (i = 0; i < g->nworkers; i++) {
		if (!may_free(g->workers[i]))
			continue;
		worker_free(g->workers[i]);
		g->workers[i] = NULL;
	}
}

void
generation_free(struct generation *g)
{
	unsigned i;

	for (i = 0; g->workers != NULL && i < g->nworkers; i++)
		if (g->workers[i] != NULL)
			worker_free(g->workers[i]);
	resolve_end(g);
	if (g->pools != NULL)
		io_pools_free(g->pools, 500);
	resources_free(g->resources);
	config_free(g->config);
	free(g->workers);
	free(g);
}

void
generation_tell(struct generation *g, enum worker_mode mode)
{
	unsigned i;

	for (i = 0; i < g->nworkers; i++)
		if (g->workers[i] != NULL)
			worker_tell(g->workers[i], mode);
}

void
generation_adopts(struct process *ps, struct generation *g)
{
	handover_open(ps->handover, g->workers, g->nworkers, g->listeners.v, g->listeners.n);
}

bool
generation_ended(const struct generation *g)
{
	unsigned i;

	for (i = 0; i < g->nworkers; i++)
		if (g->workers[i] != NULL && !may_free(g->workers[i]))
			return (false);
	return (true);
}

static bool
runs_programs(const struct conf *c, void *found)
{
	*(bool *)found = *(bool *)found || c->cgi_assign.n != 0;
	return (true);
}

/* Status pages show it from the first configuration with programs on. */
static int
cgi_make(struct process *ps, const struct config *config)
{
	const struct address *a = ps->helper != NULL ? helper_cgi(ps->helper) : NULL;
	bool found = false;

	(void)config_each(config, runs_programs, &found);
	return (found && a != NULL && ps->cgi.n == 0 ? backends_add(&ps->cgi, "cgi", a, 1, 1) : 0);
}

static void
add_host(void *hosts, struct text host)
{
	hosts_add(hosts, host);
}

static int
workers_make(struct process *ps, struct generation *g, unsigned fds)
{
	const struct conf *c = config_global(g->config);
	const char *note = NULL;
	const struct file_backend *backend = file_backend_by_name(c->network_backend, &note);
	struct worker_conf wc;
	unsigned i;
	int err = 0;

	if (backend == NULL) {
		log_event(LOG_ERROR, NULL, "backend.unknown", LF_STR("name", c->network_backend),
		    LF_STR("do", "accel-server -V lists what server.network-backend may be"));
		return (-EINVAL);
	}
	if (note != NULL)
		log_event(LOG_WARN, NULL, "backend.replaced", LF_STR("asked", c->network_backend),
		    LF_STR("used", backend->name), LF_STR("why", note));
	wc = worker_conf_of(ps, g, fds, backend);
	for (i = 0; i < g->nworkers && err == 0; i++) {
		wc.index = i;
		err = worker_new(&wc, NULL, &g->workers[i]);
	}
	if (err == 0 && io_fallback_why(g->workers[0]->base.io) != NULL)
		log_event(LOG_WARN, NULL, "backend.fallback", LF_STR("asked", backend->name),
		    LF_STR("used", io_backend(g->workers[0]->base.io)->name),
		    LF_STR("why", io_fallback_why(g->workers[0]->base.io)));
	for (i = 0; i < g->nworkers && err == 0 && !ps->opt->one; i++)
		err = worker_start(g->workers[i]);
	if (err != 0)
		generation_tell(g, WORKER_STOP);
	return (err);
}

static void
warn_of_resources(const struct generation *g)
{
	struct buf warn;

	buf_init(&warn, 0);
	resources_warn(g->resources, g->config, &warn);
	process_say(LOG_WARN, "config.warning", buf_as_text(&warn));
	buf_free(&warn);
}

static int
resources_make(struct process *ps, struct generation *g)
{
	char why[512];

	g->resources =
	    resources_new(g->config, rules_kinds, process_accesslog, ps, why, sizeof(why));
	if (g->resources != NULL) {
		warn_of_resources(g);
		return (0);
	}
	if (ps->draining)
		return (-ECANCELED);
	log_event(LOG_ERROR, NULL, "config.unusable", LF_STR("why", why));
	return (-EINVAL);
}

/* Only sockets that the configuration names have certificates.  One that a service manager passes
 * may get ssl.engine from a pattern: it must not speak plain text. */
static int
listener_secure(const struct generation *g, struct listener *l)
{
	char why[512];
	struct conf c;

	config_socket(g->config, l->name, &c);
	l->secure = c.ssl_engine ? resources_secure(g->resources, &c) : NULL;
	l->verifier = resources_verifier(g->resources, &c);
	l->challenges = conf_is_set(c.ssl_challenges) ? c.ssl_challenges : NULL;
	if (!c.ssl_engine || l->secure != NULL)
		return (0);
	snprintf(why, sizeof(why),
	    "ssl.engine is enabled for \"%s\", a socket that no setting names; write its lines "
	    "into a block of $SERVER[\"socket\"] == \"%s\"",
	    l->name, l->name);
	log_event(LOG_ERROR, NULL, "config.unusable", LF_STR("why", why));
	return (-EINVAL);
}

/* Listening sockets stay open over reloads, their certificates do not. */
static int
listeners_secure(struct generation *g)
{
	int err = 0;
	size_t i;

	for (i = 0; i < g->listeners.n && err == 0; i++)
		err = listener_secure(g, &g->listeners.v[i]);
	return (err);
}

/* Shares the pools of the newest generation if the settings are equal.  Otherwise the pools of that
 * generation shrink while it drains. */
static int
pools_make(struct process *ps, struct generation *g)
{
	struct generation *last = process_newest(ps);

	if (last == NULL || memcmp(&last->pools_conf, &g->pools_conf, sizeof(g->pools_conf)) != 0)
		return (io_pools_new(&g->pools_conf, &g->pools));
	g->pools = io_pools_share(last->pools);
	return (0);
}

/* Threads fill it. */
static unsigned
hotset_mib(const struct conf *c)
{
	if (c->read_threads == 0)
		return (0);
	return ((unsigned)(io_memory_limit() / 100 * c->hotset_percent >> 20));
}

void
process_start_failed(int err)
{
	const char *what_to_do = "the line before this one has the reason";

	if (err == -ENOMEM)
		what_to_do = "give the program more memory, or lower server.max-worker";
	else if (err == -EMFILE || err == -ENFILE)
		what_to_do = "raise server.max-fds and LimitNOFILE=, or lower server.max-worker";
	else if (err == -EAGAIN)
		what_to_do = "no thread can be started: raise TasksMax= of the unit or ulimit -u";
	log_event(LOG_ERROR, NULL, "start.failed", LF_ERR("error", err), LF_STR("do", what_to_do));
}

int
generation_start(struct process *ps, struct config *config, const struct listeners *ls,
    unsigned fds)
{
	const struct conf *c = config_global(config);
	struct generation *g = calloc(1, sizeof(*g));
	const struct generation *last = process_newest(ps);
	struct io_pools_conf pc = {
		.stat_threads = (unsigned)c->stat_threads,
		.read_threads = (unsigned)c->read_threads,
		.per_device = (unsigned)c->threads_per_device,
		.max_queue = (unsigned)c->max_queue,
		.stuck_ms = 1000 * (unsigned)c->open_timeout,
		.tls_per_client = (unsigned)c->max_handshakes_per_address,
		.hotset_mib = hotset_mib(c),
	};
	int err;

	if (g == NULL) {
		process_start_failed(-ENOMEM);
		config_free(config);
		process_unlisten(ps, ls);
		return (-ENOMEM);
	}
	list_init(&g->link);
	g->config = config;
	g->listeners = *ls;
	g->pools_conf = pc;
	g->nworkers = generation_workers(c);
	g->workers = calloc(g->nworkers, sizeof(struct worker *));
	err = g->workers == NULL ? -ENOMEM : resources_make(ps, g);
	config_forget_sources(config);
	if (err == 0)
		err = listeners_secure(g);
	if (err == 0)
		err = cgi_make(ps, config);
	if (err == 0)
		err = pools_make(ps, g);
	if (err == 0)
		bans_set(ps->bans, c->ban_file);
	if (err == 0)
		ticket_file_use(resources_tickets(g->resources));
	if (err == 0) /* before the first request */
		config_hosts(config, add_host, &ps->counters_list.hosts);
	if (err == 0)
		err = workers_make(ps, g, fds);
	if (err != 0) {
		if (err != -ECANCELED)
			process_start_failed(err);
		generation_free(g);
		process_drop_accesslogs(ps);
		process_unlisten(ps, ls);
		return (err);
	}
	if (last != NULL && last->pools != g->pools)
		io_pools_shrink(last->pools);
	resolve_begin(g);
	list_add_tail(&ps->generations, &g->link);
	ps->nstarted++;
	ps->fds = fds;
	ps->listeners = *ls;
	process_renew_begin(ps);
	return (0);
}
