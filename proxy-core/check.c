/* proxy-core/check.c -- see check.h */
#include "proxy-core/check.h"

#include <stdlib.h>
#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/backend_health.h"
#include "proxy-core/exchange_impl.h"

struct check {
	struct list link; /* in upstream.checks */
	struct upstream *u;
	struct pool *pool;
	struct exchange *x;
	struct proxy_request req;
	int status; /* of the head; 0: none came */
};

static void
check_free(struct check *c)
{
	list_del(&c->link);
	free(c);
}

/* ---------------------------------------------------------------- the result */

/* Only one worker checks at a time, so only one writes.  status is our own; 0 means that of the
 * head. */
static void
set_sick(struct check *c, bool sick, int status)
{
	struct backend *b = pool_backend(c->pool);
	bool was = backend_read(b, sick) != 0;

	backend_set_sick(b, sick, status == 0 ? c->status : 0, io_now(c->u->io));
	if (status == 0)
		status = c->status;
	if (was == sick)
		return;
	if (sick)
		log_limited(10, LOG_WARN, NULL, "check.failed", LF_STR("backend", b->name),
		    LF_I64("status", status), LF_STR("then", "no requests until a check passes"));
	else
		log_limited(10, LOG_INFO, NULL, "check.passed", LF_STR("backend", b->name),
		    LF_I64("status", status), LF_STR("then", "it gets requests again"));
}

static void
check_head(void *arg, const struct proxy_reply *r)
{
	((struct check *)arg)->status = r->status;
}

static void
check_body(void *arg, struct text bytes)
{
}

static bool
is_good(const struct check *c)
{
	return (c->req.ping || (c->status >= 200 && c->status < 400));
}

static void
check_ended(void *arg, int status, unsigned retry_after_s)
{
	struct check *c = arg;
	struct backend *b = pool_backend(c->pool);
	uint64_t now = io_now(c->u->io);

	if (status == 0 && is_good(c)) {
		__atomic_store_n(&b->good_ns, now, __ATOMIC_RELAXED);
		set_sick(c, false, 0);
	} else if (status != 503 || pool_pause_left_ms(c->pool, now) > 0) {
		set_sick(c, true, status);
	}
	check_free(c);
}

static const struct exchange_sink check_sink = { .on_head = check_head,
	.on_body = check_body,
	.on_end = check_ended };

/* ---------------------------------------------------------------- asking */

/* "/ping?from=proxy" */
static void
request_fill(struct proxy_request *r, struct text url, const char *backend)
{
	const char *mark = memchr(url.p, '?', url.n);
	size_t n = mark != NULL ? (size_t)(mark - url.p) : url.n;
	bool is_unix = strncmp(backend, "unix:", 5) == 0;

	*r = (struct proxy_request){
		.id = "check",
		.method = TEXT("GET"),
		.target = url,
		.path = { url.p, n },
		.query = mark != NULL ? (struct text){ mark + 1, url.n - n - 1 } : TEXT(""),
		.protocol = TEXT("HTTP/1.1"),
		.host = is_unix ? TEXT("localhost") : text_of(backend),
		.scheme = TEXT("http"),
		.docroot = TEXT(""),
		.script_filename = { url.p, n },
		.remote_addr = TEXT("127.0.0.1"),
		.server_addr = TEXT("127.0.0.1"),
		.server_name = TEXT("localhost"),
		.server_port = 80,
		.content_length = -1,
		.ping = text_eq(url, TEXT("*")),
		.safe = true,
	};
}

static void
check_start(struct upstream *u, struct pool *p)
{
	const struct proxy_conf *pc = &u->members.conf;
	const struct exchange_conf conf = { .wait_ms = pc->check_ms, .total_ms = pc->check_ms };
	struct check *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return;
	list_init(&c->link);
	c->u = u;
	c->pool = p;
	request_fill(&c->req, text_of(pc->check_url), pool_name(p));
	c->req.secret = upstream_secret(u);
	list_add_tail(&u->checks, &c->link);
	if (exchange_check(u, p, &c->req, &conf, &check_sink, c, &c->x) != 0)
		check_free(c);
}

/* True for the one worker that checks this backend now. */
static bool
is_due(struct backend *b, unsigned every_ms, uint64_t now)
{
	uint64_t last = backend_read(b, checked_ns);

	return (now >= last + every_ms * NS_PER_MS &&
		__atomic_compare_exchange_n(&b->checked_ns, &last, now, false, __ATOMIC_RELAXED,
		    __ATOMIC_RELAXED));
}

static bool
is_checking(const struct upstream *u, const struct pool *p)
{
	const struct check *c;

	list_each(c, &u->checks, link)
		if (c->pool == p)
			return (true);
	return (false);
}

/* Claims the check that it returns; NULL: none is due. */
static struct pool *
next_due(const struct upstream *u, uint64_t now)
{
	const struct member *mb;
	size_t i;

	members_each(&u->members, mb, i)
		if (!is_checking(u, mb->pool) &&
		    is_due(pool_backend(mb->pool), u->members.conf.check_ms, now))
			return (mb->pool);
	return (NULL);
}

bool
checks_tick(struct upstream *u, uint64_t now)
{
	bool here = !list_empty(&u->checks);
	struct pool *p;

	if (u->members.conf.check_url == NULL || u->closing)
		return (false);
	/* Each start may change the members.  All checks that are due start in one tick: with one
	 * per tick and a short interval, only the first of many backends would be checked. */
	while ((p = next_due(u, now)) != NULL) {
		check_start(u, p);
		here = true;
	}
	return (here);
}

void
checks_stop(struct upstream *u)
{
	struct check *c;

	list_each(c, &u->checks, link) {
		exchange_forget(&c->x, false);
		check_free(c);
	}
}
