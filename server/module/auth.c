/* server/module/auth.c -- auth.*: users and passwords, Basic and Digest.
 *
 *   route --no credentials--> 401
 *     |----checked a moment ago (auth_cache.c)------------------------> goes on
 *     '----> thread (auth_check.c) --granted--> routed again, --------> goes on
 *                  '--refused--> a timer, without anything held --> 401
 *
 * The rule is that of the clean path, so every spelling of a path has the same rule, and so has the
 * name of an index file, the target of a rewrite and that of X-Accel-Redirect.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/must.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/handler.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/request/fault.h"
#include "server/module/auth.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/request/told.h"
#include "server/request/route.h"
#include "server/module/counters.h"
#include "server/worker/base.h"
#include "wire/codec/message.h"

struct auth_try { /* a check, then perhaps the delay of its failure */
	struct io_op op;
	struct request *r; /* NULL: gone */
	struct auth_check *check;
	unsigned char key[AUTH_KEY];
	uint64_t since_ns;
};

struct auth_request {
	/* The rules that allowed the request, the newest first: that of the URL, and that of a
	 * block of existing files.  NULL: none. */
	const struct auth_row *granted[2];
	struct auth_try *try; /* while a thread checks or a timer runs */
};
static REQUEST_SLOT(struct auth_request, mine);

static const struct handler handler_auth;

static void
set_try(struct request *r, struct auth_try *t)
{
	request_slot(r, mine)->try = t;
	request_told(r)->checks_password = t != NULL;
}

/* ---- the rule of a request */

static const struct auth_row *
find(const struct auth_rules *rules, struct text path, bool any_case)
{
	size_t i;

	for (i = 0; i < rules->n; i++)
		if (any_case ? text_istarts(path, rules->rows[i].prefix)
			     : text_starts(path, rules->rows[i].prefix))
			return (&rules->rows[i]);
	return (NULL);
}

/* A servlet container serves "/private/a" for "/private;x/a", so that path counts, too.  False: no
 * memory. */
static bool
rule_of(struct request *r, const struct auth_row **row)
{
	const struct auth_rules *rules = r->site->rules[RULES_auth_require];
	struct text path = request_path(r);

	*row = NULL;
	if (rules == NULL)
		return (true);
	*row = find(rules, path, r->conf->force_lowercase);
	if (*row != NULL || memchr(path.p, ';', path.n) == NULL)
		return (true);
	path = route_without_params(r);
	if (path.p != NULL)
		*row = find(rules, path, r->conf->force_lowercase);
	return (path.p != NULL);
}

static const struct auth_file *
users_of(const struct request *r, enum user_format *format)
{
	static const char *const names[] = { "plain", "htpasswd", "htdigest" };
	const void *const *rules = r->site->rules;
	const struct auth_file *const files[] = { rules[RULES_auth_plain_users],
		rules[RULES_auth_htpasswd], rules[RULES_auth_htdigest] };
	unsigned i;

	for (i = 0; r->conf->auth_backend != NULL && i < NELEM(names); i++)
		if (strcmp(r->conf->auth_backend, names[i]) == 0) {
			*format = (enum user_format)i;
			return (files[i]);
		}
	return (NULL);
}

/* ---- answers */

static struct text
challenge(struct request *r, const struct auth_row *row, bool stale)
{
	struct text t = TEXT_NONE;
	struct buf lines;

	buf_init(&lines, 4096);
	auth_challenge(row, io_wall_s(r->worker->io), stale, &lines);
	if (!lines.failed)
		t = arena_text(&r->arena, (struct text){ lines.n != 0 ? lines.p : "", lines.n });
	buf_free(&lines);
	return (t);
}

static const struct handler *
refuse(struct request *r, const struct auth_row *row, bool stale)
{
	struct text lines = challenge(r, row, stale);

	return (
	    lines.p != NULL ? module_refuses(r, 401, lines) : module_refuses(r, 500, TEXT_NONE));
}

static const struct handler *
malformed(struct request *r, const char *why)
{
	log_limited(10, LOG_WARN, conn_id(r), "auth.malformed", conn_client(r),
	    LF_TEXT("path", request_path(r)), LF_STR("why", why),
	    LF_STR("then", "the client gets 400"));
	return (module_refuses(r, 400, TEXT_NONE));
}

static const struct handler *
unusable(struct request *r, const char *why)
{
	log_limited(1, LOG_ERROR, conn_id(r), "auth.unusable", conn_client(r),
	    LF_TEXT("path", request_path(r)), LF_STR("why", why),
	    LF_STR("then", "the client gets 500"));
	fault_told(r);
	return (module_refuses(r, 500, TEXT_NONE));
}

static void
note_granted(struct request *r, const struct auth_row *row)
{
	struct auth_request *m = request_slot(r, mine);

	m->granted[1] = m->granted[0];
	m->granted[0] = row;
}

static bool
is_granted(const struct request *r, const struct auth_row *row)
{
	const struct auth_request *m = request_slot(r, mine);

	return (row == m->granted[0] || row == m->granted[1]);
}

/* False: no memory. */
static bool
grant(struct request *r, const struct auth_row *row, struct text user, bool digest)
{
	r->user = arena_text(&r->arena, user);
	note_granted(r, row);
	return (r->user.p != NULL &&
		request_variable(r, TEXT("REMOTE_USER"), r->user, VARIABLE_REPLACE) &&
		request_variable(r, TEXT("AUTH_TYPE"), digest ? TEXT("Digest") : TEXT("Basic"),
		    VARIABLE_REPLACE));
}

/* ---- what needs no thread */

/* .p NULL: none; *n: how many there are. */
static struct text
header_of(const struct request *r, unsigned *n)
{
	struct text value = TEXT_NONE;
	unsigned i;

	*n = 0;
	for (i = 0; i < r->http.nheaders; i++)
		if (text_ieq(r->http.headers[i].name, TEXT("Authorization"))) {
			value = r->http.headers[i].value;
			++*n;
		}
	return (value);
}

/* Another rule, file or user gives another key. */
static void
key_of(const struct auth_row *row, const void *users, const struct authorization *a,
    unsigned char key[AUTH_KEY])
{
	const struct text parts[] = { { (const char *)&row, sizeof(row) },
		{ (const char *)&users, sizeof(users) }, a->user, a->password };

	auth_keyed(TEXT_NONE, parts, NELEM(parts), key);
}

static const struct handler *
route_basic(struct request *r, const struct auth_row *row, const struct auth_file *users,
    const struct authorization *a)
{
	unsigned char key[AUTH_KEY];

	key_of(row, users, a, key);
	if (!auth_cache_has(r->worker, key))
		return (&handler_auth);
	return (grant(r, row, a->user, false) ? NULL : module_refuses(r, 500, TEXT_NONE));
}

static const struct handler *
route_digest(struct request *r, const struct auth_row *row, const struct authorization *a)
{
	unsigned algorithm;

	switch (auth_digest_judge(row, a, r->http.target, io_wall_s(r->worker->io), &algorithm)) {
	case DIGEST_STALE: return (refuse(r, row, true));
	case DIGEST_WRONG: return (refuse(r, row, false));
	case DIGEST_BAD:
		return (malformed(r, "a parameter of Digest is missing, or is not the request's"));
	case DIGEST_OK: break;
	}
	return (&handler_auth);
}

static const struct handler *
route_credentials(struct request *r, const struct auth_row *row)
{
	enum user_format format = USERS_PLAIN;
	const struct auth_file *users = users_of(r, &format);
	struct authorization a;
	const struct handler *h;
	struct text value;
	unsigned n;

	if (users == NULL)
		return (unusable(r, "auth.backend, or its file of users, is not set here"));
	if (row->method == AUTH_DIGEST && format == USERS_HTPASSWD)
		return (unusable(r, "Digest needs auth.backend \"htdigest\" or \"plain\""));
	value = header_of(r, &n);
	if (n > 1)
		return (malformed(r, "there are two fields Authorization"));
	if (n == 0)
		return (refuse(r, row, false));
	switch (authorization_read(value, &a)) {
	case AUTHORIZATION_BAD: h = malformed(r, "Authorization cannot be read"); break;
	case AUTHORIZATION_BASIC:
		h = row->method == AUTH_BASIC ? route_basic(r, row, users, &a)
					      : refuse(r, row, false);
		break;
	case AUTHORIZATION_DIGEST:
		h = row->method == AUTH_DIGEST ? route_digest(r, row, &a) : refuse(r, row, false);
		break;
	default: h = refuse(r, row, false);
	}
	explicit_bzero(&a, sizeof(a));
	return (h);
}

/* ---- "method" => "extern" */

static struct text
extern_user(const struct request *r)
{
	const struct request_variables *vars = request_variables(r);
	size_t i;

	for (i = 0; i < vars->n; i++)
		if (text_eq(vars->v[i].name, TEXT("REMOTE_USER")))
			return (vars->v[i].value);
	return (TEXT_NONE);
}

static bool
is_listed(const struct auth_row *row, struct text user)
{
	size_t i;

	for (i = 0; i < row->users.n; i++)
		if (text_eq(row->users.v[i], user))
			return (true);
	return (row->any_user);
}

/* An authorizer names the user.  It is asked first; then the request is routed again. */
static const struct handler *
route_extern(struct request *r, const struct auth_row *row)
{
	struct text user = extern_user(r);

	if (request_awaits_authorizer(r))
		return (NULL);
	if (user.n == 0 || !is_listed(row, user))
		return (refuse(r, row, false));
	r->user = user;
	note_granted(r, row);
	return (NULL);
}

static const struct handler *
route_auth(struct request *r)
{
	const struct auth_row *row;

	if (!rule_of(r, &row))
		return (module_refuses(r, 500, TEXT_NONE));
	if (row == NULL || is_granted(r, row))
		return (NULL);
	if (row->method == AUTH_EXTERN || (r->conf->auth_extern && extern_user(r).n != 0))
		return (route_extern(r, row));
	return (route_credentials(r, row));
}

/* ---- what needs a thread */

static void
try_free(struct auth_try *t)
{
	if (t->check != NULL)
		io_work_put(&t->check->work);
	explicit_bzero(t->key, sizeof(t->key));
	free(t);
}

/* The request is answered: the try is over. */
static struct request *
try_end(struct auth_try *t)
{
	struct request *r = t->r;

	set_try(r, NULL);
	try_free(t);
	if (r->in.left != 0)
		conn_close_after(r);
	return (r);
}

static void
answer(struct auth_try *t, int status)
{
	struct request *r = try_end(t);

	reply_error(r, status);
	conn_replied(r);
}

/* The delay is over. */
static void
delayed(struct io_op *op)
{
	struct auth_try *t = container_of(op, struct auth_try, op);
	const struct auth_row *row;
	struct text lines;
	struct request *r;

	if (t->r == NULL) {
		try_free(t);
		return;
	}
	r = try_end(t);
	lines = rule_of(r, &row) && row != NULL ? challenge(r, row, false) : TEXT_NONE;
	if (lines.p != NULL)
		reply_error_with(r, 401, lines);
	else
		reply_error(r, 500);
	conn_replied(r);
}

static void
failed(struct auth_try *t)
{
	struct request *r = t->r;
	struct worker_base *w = r->worker;
	char remote[64];

	count(w->counts.module, auth_failed);
	log_limited(10, LOG_WARN, conn_id(r), "auth.failed", LF_TEXT("user", t->check->said.user),
	    LF_TEXT("client", conn_remote(r, remote)), LF_TEXT("path", request_path(r)),
	    LF_STR("why", t->check->why != NULL ? t->check->why : "unknown"));
	io_work_put(&t->check->work);
	t->check = NULL;
	op_init(&t->op, IO_TIMER, delayed);
	t->op.deadline_ms = auth_failed_wait(w, r->sender.client, t->since_ns);
	op_submit(w->io, &t->op);
}

static void
broken(struct auth_try *t)
{
	log_limited(1, LOG_ERROR, conn_id(t->r), "auth.unusable", conn_client(t->r),
	    LF_STR("file", t->check->why), LF_ERR("error", t->check->err),
	    LF_STR("then", "the client gets 500"),
	    LF_STR("do", "let the server's user read the file"));
	fault_told(t->r);
	answer(t, 500);
}

static void
granted(struct auth_try *t)
{
	const struct auth_check *k = t->check;
	struct request *r = t->r;
	const uint64_t *age = r->site->rules[RULES_auth_cache];

	if (!k->digest)
		auth_cache_add(r->worker, t->key, age != NULL ? *age : AUTH_CACHE_S);
	if (!grant(r, k->row, k->said.user, k->digest)) {
		answer(t, 500);
		return;
	}
	set_try(r, NULL);
	try_free(t);
	conn_route_again(r);
}

static void
checked(struct io_op *op)
{
	struct auth_try *t = container_of(op, struct auth_try, op);

	if (t->r == NULL) {
		try_free(t);
		return;
	}
	if (op->res != 0) {
		count(t->r->worker->counts.module, auth_busy);
		answer(t, 503);
		return;
	}
	switch (t->check->result) {
	case AUTH_GRANTED: granted(t); break;
	case AUTH_REFUSED: failed(t); break;
	case AUTH_BROKEN: broken(t); break;
	}
}

/* False: no memory. */
static bool
fill(struct request *r, struct auth_check *k, const struct auth_row *row,
    unsigned char key[AUTH_KEY])
{
	const struct auth_file *users = users_of(r, &k->format);
	char remote[64];
	struct text name;
	unsigned n;

	k->digest = authorization_read(header_of(r, &n), &k->said) == AUTHORIZATION_DIGEST;
	k->algorithm = AUTH_MD5;
	k->rules = auth_rules_ref(r->site->rules[RULES_auth_require]);
	k->row = row;
	k->users = auth_file_ref(users);
	k->groups = auth_file_ref(r->site->rules[RULES_auth_groups]);
	name = conn_remote(r, remote);
	k->remote = strndup(name.p, name.n);
	k->method = strndup(r->http.method.p, r->http.method.n);
	if (k->digest)
		(void)auth_digest_judge(row, &k->said, r->http.target, io_wall_s(r->worker->io),
		    &k->algorithm);
	else
		key_of(row, users, &k->said, key);
	return (k->users != NULL && k->remote != NULL && k->method != NULL);
}

static struct auth_try *
try_new(struct request *r)
{
	struct auth_try *t = calloc(1, sizeof(*t));
	const struct auth_row *row;

	if (t == NULL)
		return (NULL);
	t->r = r;
	t->check = auth_check_new();
	if (t->check != NULL && rule_of(r, &row) && row != NULL && fill(r, t->check, row, t->key) &&
	    request_keep(r))
		return (t);
	try_free(t);
	return (NULL);
}

static enum handled
auth_start(struct request *r)
{
	struct auth_try *t;

	if (r->peeks)
		return (HANDLED_NOT_NOW);
	t = try_new(r);
	if (t == NULL) {
		if (r->in.left != 0)
			conn_close_after(r);
		reply_error(r, 500);
		return (HANDLED_REPLY);
	}
	count(r->worker->counts.module, auth_checks);
	set_try(r, t);
	t->since_ns = io_now(r->worker->io);
	op_init(&t->op, IO_WORK, checked);
	t->op.client = r->sender.client;
	t->op.deadline_ms = AUTH_CHECK_MS;
	t->op.work.work = &t->check->work;
	op_submit(r->worker->io, &t->op);
	return (HANDLED_LATER);
}

static void
auth_stop(struct request *r)
{
	struct auth_try *t = request_slot(r, mine)->try;

	if (t == NULL)
		return;
	set_try(r, NULL);
	t->r = NULL;
	op_cancel(r->worker->io, &t->op);
}

static const struct handler handler_auth = {
	.name = "auth",
	.final = true,
	.before_body = true,
	.start = auth_start,
	.stop = auth_stop,
};

/* ---- auth.cache */

static const void *
cache_key(const struct conf *c)
{
	return (c->auth_cache.n != 0 ? c->auth_cache.v : NULL);
}

static void *
cache_make(const struct conf *c, char *err, size_t errsize)
{
	const struct conf_pair *p = c->auth_cache.v;
	uint64_t *age = malloc(sizeof(*age));

	if (age == NULL)
		return (rules_no_memory(err, errsize));
	if (c->auth_cache.n == 1 && text_eq(p->key, TEXT("max-age")) &&
	    text_u64(p->value, age) == 0 && *age <= 3600)
		return (age);
	free(age);
	snprintf(err, errsize, "write ( \"max-age\" => \"SECONDS\" ), at most 3600");
	return (NULL);
}

const struct rules_kind rules_auth_cache = {
	.directive = "auth.cache",
	.key = cache_key,
	.make = cache_make,
	.free = free,
};

static bool
is_used(const struct conf *c)
{
	return (c->auth_require.n != 0);
}

const struct module module_auth = {
	.name = "auth",
	.is_used = is_used,
	.route = route_auth,
	.worker_stop = auth_memory_stop,
};
