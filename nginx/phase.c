/* nginx/phase.c -- a request waits until its names are known and in memory.
 *
 *     access -> [names of try_files] -> try_files -> [names of the content] -> static ...
 *                     '-- waits <-- accel_answered()      '-- waits
 *
 * Access rules have run before, so nobody learns from the time of an answer that a file exists.
 * When a request that waits ends, its pool's end takes it out of the question. */
#include "nginx/stat_accel.h"

#define FIRST_PART (256 * 1024)

/* ---------------------------------------------------------------- what is known of a request */

static void
forget(void *data)
{
	struct accel_ctx *ctx = data;

	accel_ask_leave(ctx);
	if (ctx->deadline.timer_set)
		ngx_del_timer(&ctx->deadline);
}

static void
ended(void *data)
{
	accel_count_request(data);
	forget(data);
}

struct accel_ctx *
accel_ctx_find(const ngx_http_request_t *r)
{
	struct accel_ctx *ctx = ngx_http_get_module_ctx(r, ngx_http_stat_accel_module);
	const ngx_pool_cleanup_t *c;

	/* an internal redirect has cleared the module's place */
	for (c = r->pool->cleanup; ctx == NULL && c != NULL; c = c->next)
		if (c->handler == ended && ((struct accel_ctx *)c->data)->r == r)
			ctx = c->data;
	return (ctx);
}

struct accel_ctx *
accel_ctx(ngx_http_request_t *r)
{
	struct accel_ctx *ctx = ngx_http_get_module_ctx(r, ngx_http_stat_accel_module);
	ngx_pool_cleanup_t *c;

	if (ctx != NULL)
		return (ctx);
	ctx = accel_ctx_find(r);
	if (ctx == NULL) {
		c = ngx_pool_cleanup_add(r->pool, sizeof(*ctx));
		if (c == NULL)
			return (NULL);
		ctx = c->data;
		ngx_memzero(ctx, sizeof(*ctx));
		ctx->r = r;
		c->handler = ended;
	}
	forget(ctx); /* post_action redirects a request that waits */
	ctx->phase = ACCEL_BEFORE;
	ctx->answer = ACCEL_COLD;
	ngx_http_set_ctx(r, ctx, ngx_http_stat_accel_module);
	return (ctx);
}

static void
note(struct accel_ctx *ctx, enum accel_status status)
{
	ctx->status = ngx_max(ctx->status, status);
}

/* ---------------------------------------------------------------- waiting */

/* Ends what a client has reset.  One that only sends no more may still read: it is served, as it is
 * without the module.  An event that stays unused does not come again: with poll and select, where
 * it would, nginx has no threads, and a worker with the module does not start. */
static void
watch(ngx_http_request_t *r)
{
	ngx_connection_t *c = r->connection;
	char byte;

#if (NGX_HTTP_V2 || NGX_COMPAT)
	if (r->stream != NULL && !c->error)
		return;
#endif
#if (NGX_QUIC || (NGX_COMPAT && nginx_version >= 1025000))
	if (c->quic != NULL && !c->read->error)
		return;
#endif
	if (!c->error && (recv(c->fd, &byte, 1, MSG_PEEK) >= 0 || ngx_socket_errno == NGX_EAGAIN))
		return;
	c->error = 1;
	ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
}

static void
go_on(struct accel_ctx *ctx, enum accel_kind kind)
{
	ngx_http_request_t *r = ctx->r;
	ngx_connection_t *c = r->connection;

	if (ctx->deadline.timer_set)
		ngx_del_timer(&ctx->deadline);
	ctx->answer = kind;
	ctx->waited += ngx_current_msec - ctx->began;
	if (kind == ACCEL_FAILED)
		ctx->failed = true;
	else
		note(ctx, kind == ACCEL_LATE ? ACCEL_WAS_LATE : ACCEL_WARMED);
	ngx_http_set_log_request(c->log, r);
	r->read_event_handler = ngx_http_block_reading;
	r->write_event_handler = ngx_http_core_run_phases;
	ngx_http_core_run_phases(r);
	ngx_http_run_posted_requests(c);
}

/* post_action redirects a request that waits: what it waited for is of no use any more. */
static bool
is_redirected(const struct accel_ctx *ctx)
{
	return (ngx_http_get_module_ctx(ctx->r, ngx_http_stat_accel_module) != ctx);
}

static void
too_late(ngx_event_t *ev)
{
	struct accel_ctx *ctx = ev->data;

	if (is_redirected(ctx)) {
		accel_ask_leave(ctx);
		return;
	}
	ngx_log_error(NGX_LOG_WARN, ctx->r->connection->log, 0,
	    "stat_accel: \"%V\" was not in memory after %M ms", &ctx->name.path,
	    ngx_current_msec - ctx->began);
	accel_ask_leave(ctx);
	go_on(ctx, ACCEL_LATE);
}

/* Only what is known of the whole file is. */
static bool
is_remembered(const struct accel_conf *conf, const struct accel_name *name)
{
	return (conf->remember != 0 && !name->range.partial && !name->list);
}

/* HEAD sends no byte of the file. */
static bool
may_be_remembered(const struct accel_conf *conf, const struct accel_name *name)
{
	return (is_remembered(conf, name) ||
		(conf->remember != 0 && name->range.to == 0 && !name->list));
}

void
accel_answered(struct accel_ctx *ctx, const struct accel_question *q)
{
	const struct accel_conf *conf =
	    ngx_http_get_module_loc_conf(ctx->r, ngx_http_stat_accel_module);

	if (is_redirected(ctx))
		return;
	if (q->hot && is_remembered(conf, &q->name))
		accel_memory_put(q->key, q->kind, conf->remember);
	if (q->name.open && q->kind != ACCEL_LATE && q->kind != ACCEL_FAILED)
		accel_give(ctx, q);
	go_on(ctx, q->kind);
}

static enum accel_kind
wait_for(struct accel_ctx *ctx, struct accel_conf *conf, uint64_t key)
{
	ngx_http_request_t *r = ctx->r;
	ngx_int_t rc = accel_ask(ctx, conf, &ctx->name, key);

	if (rc == NGX_BUSY) {
		note(ctx, ACCEL_WAS_LATE);
		return (ACCEL_LATE);
	}
	if (rc != NGX_OK) {
		ctx->failed = true;
		return (ACCEL_FAILED);
	}
	ctx->began = ngx_current_msec;
	ctx->deadline.handler = too_late;
	ctx->deadline.data = ctx;
	ctx->deadline.log = r->connection->log;
	ngx_add_timer(&ctx->deadline, conf->deadline);
	r->read_event_handler = watch;
	r->write_event_handler = ngx_http_request_empty_handler;
	return (ACCEL_COLD);
}

/* With disable_symlinks nginx opens each part of a name itself. */
static bool
asks(const struct accel_ctx *ctx, const struct accel_conf *conf)
{
#if (NGX_HAVE_OPENAT)
	const ngx_http_core_loc_conf_t *clcf =
	    ngx_http_get_module_loc_conf(ctx->r, ngx_http_core_module);

	if (clcf->disable_symlinks != NGX_DISABLE_SYMLINKS_OFF)
		return (false);
#endif
	return (conf->open == ACCEL_OPEN_ON ||
		(conf->open == ACCEL_OPEN_AUTO && accel_mount_asks(&ctx->name.path)));
}

/* With `aio threads` nginx's own threads read what it sends: only the first part is needed. */
static bool
sends_in_threads(const ngx_http_request_t *r)
{
#if (NGX_THREADS)
	const ngx_http_core_loc_conf_t *clcf =
	    ngx_http_get_module_loc_conf(r, ngx_http_core_module);

	return (clcf->aio == NGX_HTTP_AIO_THREADS);
#else
	return (false);
#endif
}

static void
limit(struct accel_range *range)
{
	if (range->from >= 0 && range->to > range->from)
		range->to = ngx_min(range->to - range->from, FIRST_PART) + range->from;
}

/* A name whose first part is in memory is remembered apart from those that are there as a whole. */
static uint64_t
key_of(struct accel_ctx *ctx)
{
	uint64_t key = accel_memory_key(&ctx->name.path);

	if (!sends_in_threads(ctx->r))
		return (key);
	limit(&ctx->name.range);
	return (~key);
}

/* ACCEL_COLD: the request waits, and its handler is called again. */
enum accel_kind
accel_look(struct accel_ctx *ctx, struct accel_conf *conf)
{
	uint64_t key = key_of(ctx);
	enum accel_kind kind = ctx->answer;

	if (kind != ACCEL_COLD) {
		ctx->answer = ACCEL_COLD;
		return (kind);
	}
	if (may_be_remembered(conf, &ctx->name)) {
		kind = accel_memory_get(key);
		if (kind != ACCEL_COLD) {
			note(ctx, ACCEL_REMEMBERED);
			return (kind);
		}
	}
	ctx->name.open = !ctx->name.list && asks(ctx, conf);
	if (ctx->name.open) {
		kind = accel_given(ctx);
		return (kind != ACCEL_COLD ? kind : wait_for(ctx, conf, key));
	}
	if (!ctx->name.list && !accel_ask_is_slow(&ctx->name.path)) {
		kind = accel_probe_opened(ctx->r, &ctx->name);
		if (kind == ACCEL_COLD)
			kind = accel_probe(&ctx->name, false);
		if (kind != ACCEL_COLD) {
			note(ctx, ACCEL_HOT);
			if (is_remembered(conf, &ctx->name))
				accel_memory_put(key, kind, conf->remember);
			return (kind);
		}
	}
	return (wait_for(ctx, conf, key));
}

/* ---------------------------------------------------------------- the phases */

/* NGX_AGAIN: it waits.  NGX_DECLINED: nginx goes on. */
static ngx_int_t
names_known(struct accel_ctx *ctx, struct accel_conf *conf)
{
	ngx_http_request_t *r = ctx->r;
	enum accel_kind kind;
	ngx_int_t rc;

	while ((rc = accel_name_next(r, conf, &ctx->names, &ctx->name)) == NGX_OK) {
		kind = accel_look(ctx, conf);
		if (kind == ACCEL_COLD)
			return (NGX_AGAIN);
		if (kind == ACCEL_LATE && conf->late != 0)
			return ((ngx_int_t)conf->late);
		accel_name_seen(&ctx->names, kind);
	}
	return (rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : NGX_DECLINED);
}

static ngx_int_t
content_known(struct accel_ctx *ctx, struct accel_conf *conf)
{
	if (ctx->phase < ACCEL_CONTENT) {
		ctx->phase = ACCEL_CONTENT;
		accel_names_content(&ctx->names, ctx->r);
	}
	return (names_known(ctx, conf));
}

/* The content phase counts a request that waits, and takes this count off again. */
static ngx_int_t
held(ngx_http_request_t *r)
{
	r->main->count++;
	return (NGX_DONE);
}

/* In the place of another module's handler. */
static ngx_int_t
file_handler(ngx_http_request_t *r)
{
	struct accel_ctx *ctx = accel_ctx(r);
	struct accel_conf *conf = ngx_http_get_module_loc_conf(r, ngx_http_stat_accel_module);
	ngx_int_t rc = NGX_DECLINED;

	if (ctx == NULL)
		return (NGX_HTTP_INTERNAL_SERVER_ERROR);
	if (conf->enable)
		rc = content_known(ctx, conf);
	if (rc == NGX_AGAIN)
		return (held(r));
	if (rc != NGX_DECLINED)
		return (rc);
	r->content_handler = conf->handler;
	return (conf->handler(r));
}

/* Ours stands in the place of a content handler that opens files.  It is the location's, because
 * the subrequests of slices and of proxy_cache_background_update begin with it: they pass no phase
 * before. The modules of the handlers have merged this location before, as ours is loaded last.
 * In an "if" a request keeps the handler of the location around it. */
void
accel_stand_in(ngx_conf_t *cf, const struct accel_conf *prev, struct accel_conf *conf)
{
	const struct accel_main_conf *mcf =
	    ngx_http_conf_get_module_main_conf(cf, ngx_http_stat_accel_module);
	ngx_http_core_loc_conf_t *clcf =
	    ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

	if (clcf->noname && clcf->handler == NULL)
		conf->handler = prev->handler;
	for (ngx_uint_t i = 0; conf->enable && clcf->handler != NULL && i < mcf->handlers_n; i++) {
		if (mcf->handlers[i].handler != clcf->handler)
			continue;
		conf->handler = clcf->handler;
		clcf->handler = mcf->handlers[i].kind == ACCEL_HANDLER_FILE
				    ? file_handler
				    : accel_upstream_handler;
	}
}

static ngx_int_t
precontent(ngx_http_request_t *r)
{
	struct accel_conf *conf = ngx_http_get_module_loc_conf(r, ngx_http_stat_accel_module);
	struct accel_ctx *ctx;

	if (!conf->enable || conf->tries == NULL)
		return (NGX_DECLINED);
	ctx = accel_ctx(r);
	if (ctx == NULL)
		return (NGX_ERROR);
	if (ctx->phase < ACCEL_TRY) {
		ctx->phase = ACCEL_TRY;
		accel_names_try(&ctx->names);
	}
	return (names_known(ctx, conf));
}

static bool
opens_a_file(const ngx_http_request_t *r, const struct accel_conf *conf)
{
	return ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD | NGX_HTTP_POST)) != 0 ||
		(conf->dav && (r->method & (NGX_HTTP_PUT | NGX_HTTP_DELETE | NGX_HTTP_COPY |
					       NGX_HTTP_MOVE | NGX_HTTP_MKCOL)) != 0));
}

static ngx_int_t
content(ngx_http_request_t *r)
{
	struct accel_conf *conf = ngx_http_get_module_loc_conf(r, ngx_http_stat_accel_module);
	struct accel_ctx *ctx;
	ngx_int_t rc;

	if (!conf->enable || !opens_a_file(r, conf))
		return (NGX_DECLINED);
	ctx = accel_ctx(r);
	if (ctx == NULL)
		return (NGX_HTTP_INTERNAL_SERVER_ERROR);
	rc = content_known(ctx, conf);
	return (rc == NGX_AGAIN ? held(r) : rc);
}

static ngx_int_t
add(ngx_http_core_main_conf_t *cmcf, ngx_http_phases phase, ngx_http_handler_pt handler)
{
	ngx_http_handler_pt *h = ngx_array_push(&cmcf->phases[phase].handlers);

	if (h == NULL)
		return (NGX_ERROR);
	*h = handler;
	return (NGX_OK);
}

ngx_int_t
accel_phase_init(ngx_conf_t *cf)
{
	ngx_http_core_main_conf_t *cmcf =
	    ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

	/* the handler that is added last is called first */
	if (add(cmcf, NGX_HTTP_PRECONTENT_PHASE, precontent) != NGX_OK ||
	    add(cmcf, NGX_HTTP_CONTENT_PHASE, content) != NGX_OK)
		return (NGX_ERROR);
	return (NGX_OK);
}
