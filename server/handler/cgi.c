/* server/handler/cgi.c -- see cgi.h */
#include "server/handler/cgi.h"

#include <signal.h>

#include "base/arena.h"
#include "base/log.h"
#include "proxy-core/conf.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/request/fault.h"
#include "server/handler/proxy_impl.h"
#include "server/helper/cgi.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "wire/codec/codec.h"
#include "wire/urlpath.h"

#define OWN_VARIABLES 5u     /* the helper is late after this time */
#define CONNECT_MS    10000u /* the helper is this late */
#define RUN_MORE_MS   2000u  /* the worker's deadline comes first: it answers */

/* ---- the programs of a worker */

static struct upstream *
programs_of(struct worker_base *w)
{
	unsigned n = w->conf.nworkers, most = ((unsigned)w->global->cgi_max_programs + n - 1) / n;
	const struct proxy_conf pc = {
		.proto = proto_find("fastcgi"),
		.backends = w->conf.cgi,
		.balancer = "round-robin",
		.max_pool_size = most,
		.max_per_client = (most + 1) / 2,
		.max_waiters = (unsigned)w->global->cgi_max_waiters,
		.connect_ms = CONNECT_MS,
		.idle_ms = CONNECT_MS,
	};

	if (w->cgi == NULL && w->conf.cgi != NULL)
		w->cgi = upstream_new(w->io, w->counts.proxy, &pc);
	return (w->cgi);
}

static const struct cgi_limits *
limits_of(const struct request *r)
{
	static const struct cgi_limits none = { .signal = SIGTERM };
	const struct cgi_limits *l = r->site->rules[RULES_cgi_limits];

	return (l != NULL ? l : &none);
}

/* ---- the request */

static bool
add_number(struct request *r, struct proxy_field *f, const char *name, uint64_t n)
{
	char digits[20];

	*f = (struct proxy_field){ text_of(name),
		arena_text(&r->arena, (struct text){ digits, text_put_u64(digits, n) }) };
	return (f->value.p != NULL);
}

/* What the runner needs to know, after the variables of the request. */
static bool
add_variables(struct relay *rl)
{
	struct request *r = rl->r;
	struct proxy_request *q = &rl->req;
	const struct cgi_limits *l = limits_of(r);
	uint64_t run_ms = 1000 * r->conf->cgi_max_run_time;
	struct proxy_field *v = arena_get(&r->arena, (q->nvariables + OWN_VARIABLES) * sizeof(*v));
	size_t n = q->nvariables;

	if (v == NULL)
		return (false);
	if (n != 0)
		memcpy(v, q->variables, n * sizeof(*v));
	v[n++] = (struct proxy_field){ TEXT(CGI_PROGRAM), cgi_rule_of(r)->value };
	if (r->conf->cgi_x_only)
		v[n++] = (struct proxy_field){ TEXT(CGI_X_ONLY), TEXT("1") };
	if (!add_number(r, &v[n++], CGI_RUN_MS, run_ms != 0 ? run_ms + RUN_MORE_MS : 0) ||
	    !add_number(r, &v[n++], CGI_WRITE_MS, 1000 * l->write_s) ||
	    !add_number(r, &v[n++], CGI_SIGNAL, (uint64_t)l->signal))
		return (false);
	q->variables = v;
	q->nvariables = n;
	return (true);
}

/* RFC 3875, 4.1.18: a client that was asked for a password here has shown it to this server, not to
 * its programs. */
static void
drop_password(struct relay *rl)
{
	struct proxy_request *q = &rl->req;
	struct proxy_field *h = (struct proxy_field *)(uintptr_t)q->headers;
	size_t i, n = 0;
	bool asked = false;

	for (i = 0; i < q->nvariables; i++)
		asked = asked || text_eq(q->variables[i].name, TEXT("REMOTE_USER"));
	for (i = 0; i < q->nheaders; i++)
		if (!asked || h[i].ours || !text_ieq(h[i].name, TEXT("Authorization")))
			h[n++] = h[i];
	q->nheaders = n;
}

static bool
cgi_fill(struct relay *rl, const struct upstream *to)
{
	rl->program = true;
	rl->ends_with_client = limits_of(rl->r)->fin;
	if (!proxy_fill(rl, to))
		return (false);
	rl->req.forward = 0; /* as lighttpd: programs know REMOTE_ADDR and SERVER_NAME */
	drop_password(rl);
	return (add_variables(rl));
}

static struct exchange_conf
times_of(const struct request *r)
{
	return ((struct exchange_conf){
	    .wait_ms = (unsigned)(1000 * r->conf->cgi_wait_timeout),
	    .read_ms = (unsigned)(1000 * limits_of(r)->read_s),
	    .total_ms = (unsigned)(1000 * r->conf->cgi_max_run_time),
	});
}

static enum handled
cgi_start(struct request *r)
{
	struct upstream *u = programs_of(r->worker);
	struct exchange_conf times = times_of(r);

	if (u != NULL)
		return (proxy_begin(r, u, &times, cgi_fill));
	log_limited(1, LOG_ERROR, conn_id(r), "cgi.none", conn_client(r),
	    LF_TEXT("url", r->http.target),
	    LF_STR("why", "there is no helper process that could run the program"),
	    LF_STR("do", "restart the server"));
	fault_told(r);
	if (r->in.left != 0)
		conn_close_after(r);
	reply_error(r, 503);
	return (HANDLED_REPLY);
}

const struct handler handler_cgi = {
	.name = "cgi",
	.reads_body = true,
	.watches = true,
	.taker = &cgi_takes,
	.start = cgi_start,
	.stop = proxy_stop,
};

/* ---- for static.c */

static bool
is_used(const struct conf *c)
{
	return (c->cgi_assign.n != 0);
}

static bool
runs(const struct conf *c, struct text path, bool named)
{
	return (cgi_excluded(c, path) || cgi_excluded(c, urlpath_without_dots(path)) ||
		(!named && cgi_is_all(c)));
}

const struct module module_cgi = {
	.name = "cgi",
	.is_used = is_used,
	.runs = runs,
};
