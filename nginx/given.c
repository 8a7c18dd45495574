/* nginx/given.c -- descriptors that the accelerator or a thread has opened are given to nginx,
 * which opens nothing itself.
 *
 * They go into an open-file cache that this request alone sees: a copy of its location's settings
 * names it.  So all of nginx's modules find them, with every header, and no other request does. */
#include "nginx/stat_accel.h"

#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MAX 64
#define FOR_EVER  86400

/* What the end of a request needs. */
struct given {
	ngx_open_file_cache_t *cache;
	ngx_thread_pool_t *pool;
};

/* Before nginx closes them itself, in the event loop. */
static void
close_all(void *data)
{
	const struct given *g = data;
	ngx_queue_t *all = &g->cache->expire_queue, *i;
	ngx_cached_open_file_t *f;

	for (i = ngx_queue_head(all); i != ngx_queue_sentinel(all); i = ngx_queue_next(i)) {
		f = ngx_queue_data(i, ngx_cached_open_file_t, queue);
		if (f->fd != NGX_INVALID_FILE)
			accel_threads_close(g->pool, f->fd);
		f->fd = NGX_INVALID_FILE;
	}
}

/* A pool's clean-ups run in reverse: nginx's of a file that is open, ours, nginx's of the cache. */
static ngx_open_file_cache_t *
cache_new(ngx_pool_t *pool, ngx_thread_pool_t *threads)
{
	ngx_open_file_cache_t *cache = ngx_open_file_cache_init(pool, NAMES_MAX, FOR_EVER);
	ngx_pool_cleanup_t *c;

	if (cache == NULL)
		return (NULL);
	c = ngx_pool_cleanup_add(pool, sizeof(struct given));
	if (c == NULL)
		return (NULL);
	*(struct given *)c->data = (struct given){ cache, threads };
	c->handler = close_all;
	return (cache);
}

static ngx_int_t
see_cache(struct accel_ctx *ctx)
{
	ngx_http_request_t *r = ctx->r;
	ngx_http_core_loc_conf_t *clcf, *mine;
	void **confs;

	clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
	if (clcf->open_file_cache == ctx->given)
		return (NGX_OK);
	confs = ngx_palloc(r->pool, ngx_http_max_module * sizeof(*confs));
	mine = ngx_palloc(r->pool, sizeof(*mine));
	if (confs == NULL || mine == NULL)
		return (NGX_ERROR);
	*mine = *clcf;
	mine->open_file_cache = ctx->given;
	mine->open_file_cache_valid = FOR_EVER;
	mine->open_file_cache_min_uses = 1;
	mine->open_file_cache_events = 0;
	ngx_memcpy(confs, r->loc_conf, ngx_http_max_module * sizeof(*confs));
	confs[ngx_http_core_module.ctx_index] = mine;
	r->loc_conf = confs;
	return (NGX_OK);
}

static ngx_cached_open_file_t *
file_new(const struct accel_question *q)
{
	ngx_cached_open_file_t *f = ngx_calloc(sizeof(*f), ngx_cycle->log);

	if (f == NULL)
		return (NULL);
	f->name = ngx_alloc(q->name.path.len + 1, ngx_cycle->log);
	if (f->name == NULL) {
		ngx_free(f);
		return (NULL);
	}
	ngx_memcpy(f->name, q->name.path.data, q->name.path.len + 1);
	f->node.key = ngx_crc32_long(q->name.path.data, q->name.path.len);
	f->created = f->accessed = ngx_time();
	f->fd = NGX_INVALID_FILE;
	f->uses = 1;
	f->err = q->err;
	return (f);
}

/* As ngx_open_and_stat_file() notes it.  dup(2) does not ask the file system. */
static void
describe(ngx_cached_open_file_t *f, const struct accel_question *q)
{
	f->is_dir = S_ISDIR(q->st.st_mode);
	f->is_file = S_ISREG(q->st.st_mode);
	f->is_exec = (q->st.st_mode & S_IXUSR) == S_IXUSR;
	f->uniq = q->st.st_ino;
	f->mtime = q->st.st_mtime;
	f->size = q->st.st_size;
	if (f->is_dir)
		return;
	f->fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd == NGX_INVALID_FILE)
		f->err = ngx_errno;
}

static enum accel_kind
kind_of(const ngx_cached_open_file_t *f)
{
	if (f->err != 0)
		return (ACCEL_ABSENT);
	return (f->is_dir ? ACCEL_DIR : ACCEL_FILE);
}

enum accel_kind
accel_given(struct accel_ctx *ctx)
{
	const ngx_cached_open_file_t *f = NULL;

	if (ctx->given != NULL)
		f = accel_opened(ctx->given, &ctx->name.path);
	return (f != NULL && see_cache(ctx) == NGX_OK ? kind_of(f) : ACCEL_COLD);
}

void
accel_give(struct accel_ctx *ctx, const struct accel_question *q)
{
	ngx_cached_open_file_t *f;

	if (ctx->given == NULL)
		ctx->given = cache_new(ctx->r->pool, q->pool);
	if (ctx->given == NULL || see_cache(ctx) != NGX_OK)
		return;
	f = file_new(q);
	if (f == NULL)
		return;
	if (f->err == 0)
		describe(f, q);
	ngx_rbtree_insert(&ctx->given->rbtree, &f->node);
	ctx->given->current++;
	ngx_queue_insert_head(&ctx->given->expire_queue, &f->queue);
	if (f->fd != NGX_INVALID_FILE)
		accel_count(ACCEL_COUNT_given);
}
