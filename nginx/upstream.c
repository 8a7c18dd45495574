/* nginx/upstream.c -- files of proxy_cache, fastcgi_cache, uwsgi_cache and scgi_cache.
 *
 * The name of such a file is the hash of a key that only the module can make.  So its handler runs
 * first, up to the point where it would look into the cache: with r->aio set an upstream begins
 * nothing.  Then the key is made as nginx makes it, and the file looked up. */
#include "nginx/stat_accel.h"

#if (NGX_HTTP_CACHE)

static ngx_http_file_cache_t *
cache_of(ngx_http_request_t *r, const ngx_http_upstream_t *u)
{
	ngx_http_file_cache_t **caches;
	ngx_str_t name;

	if (u->conf->cache_zone != NULL)
		return (u->conf->cache_zone->data);
	if (u->conf->cache_value == NULL || u->caches == NULL ||
	    ngx_http_complex_value(r, u->conf->cache_value, &name) != NGX_OK)
		return (NULL);
	caches = u->caches->elts;
	for (ngx_uint_t i = 0; i < u->caches->nelts; i++) {
		const ngx_str_t *zone = &caches[i]->shm_zone->shm.name;

		if (zone->len == name.len && ngx_strncmp(zone->data, name.data, name.len) == 0)
			return (caches[i]);
	}
	return (NULL);
}

static ngx_int_t
make_key(ngx_http_request_t *r, ngx_http_upstream_t *u, u_char key[NGX_HTTP_CACHE_KEY_LEN])
{
	ngx_int_t rc = NGX_ERROR;

	if (ngx_http_file_cache_new(r) == NGX_OK && u->create_key(r) == NGX_OK) {
		ngx_http_file_cache_create_key(r);
		ngx_memcpy(key, r->cache->key, NGX_HTTP_CACHE_KEY_LEN);
		rc = NGX_OK;
	}
	r->cache = NULL; /* nginx makes its own */
	return (rc);
}

static const ngx_http_file_cache_node_t *
node_of(const ngx_http_file_cache_t *cache, const u_char key[NGX_HTTP_CACHE_KEY_LEN])
{
	const ngx_rbtree_node_t *node = cache->sh->rbtree.root;
	const ngx_http_file_cache_node_t *found;
	ngx_rbtree_key_t first;
	ngx_int_t order;

	ngx_memcpy(&first, key, sizeof(first));
	while (node != cache->sh->rbtree.sentinel) {
		found = (const ngx_http_file_cache_node_t *)node;
		order = first < node->key ? -1 : first > node->key;
		if (order == 0)
			order = ngx_memcmp(key + sizeof(first), found->key, sizeof(found->key));
		if (order == 0)
			return (found);
		node = order < 0 ? node->left : node->right;
	}
	return (NULL);
}

/* A name that is not in the cache is not looked up, once the cache loader has found all files. */
static bool
will_be_opened(ngx_http_file_cache_t *cache, const u_char key[NGX_HTTP_CACHE_KEY_LEN])
{
	const ngx_http_file_cache_node_t *node;
	bool opened;

	ngx_shmtx_lock(&cache->shpool->mutex);
	node = node_of(cache, key);
	opened = node != NULL ? node->exists : cache->sh->cold != 0;
	ngx_shmtx_unlock(&cache->shpool->mutex);
	return (opened);
}

/* path/c/29/b7f54b2df7773722d382f4809d65029c */
static ngx_int_t
file_of_key(ngx_http_request_t *r, ngx_path_t *path, u_char *key, ngx_str_t *name)
{
	size_t before = path->name.len + 1 + path->len;
	u_char *p;

	name->len = before + 2 * NGX_HTTP_CACHE_KEY_LEN;
	name->data = ngx_pnalloc(r->pool, name->len + 1);
	if (name->data == NULL)
		return (NGX_ERROR);
	ngx_memcpy(name->data, path->name.data, path->name.len);
	p = ngx_hex_dump(name->data + before, key, NGX_HTTP_CACHE_KEY_LEN);
	*p = '\0';
	ngx_create_hashed_filename(path, name->data, name->len);
	return (NGX_OK);
}

/* NGX_DECLINED: no file of a cache. */
static ngx_int_t
cached_name(ngx_http_request_t *r, ngx_str_t *name)
{
	ngx_http_upstream_t *u = r->upstream;
	u_char key[NGX_HTTP_CACHE_KEY_LEN];
	ngx_http_file_cache_t *cache;

	if (u == NULL || !u->conf->cache || u->create_key == NULL ||
	    (r->method & u->conf->cache_methods) == 0)
		return (NGX_DECLINED);
	cache = cache_of(r, u);
	if (cache == NULL || make_key(r, u, key) != NGX_OK || !will_be_opened(cache, key))
		return (NGX_DECLINED);
	return (file_of_key(r, cache->path, key, name));
}

static bool
has_a_body(const ngx_http_request_t *r)
{
#if (NGX_HTTP_V2 || NGX_COMPAT)
	/* the end of the stream may come later */
	if (r->stream != NULL && r->headers_in.content_length_n == 0)
		return (true);
#endif
	return (r->headers_in.content_length_n > 0 || r->headers_in.chunked);
}

/* nginx's handler has run: the request is counted for the upstream.  While it waits, this count is
 * the content phase's. */
static ngx_int_t
begin(ngx_http_request_t *r)
{
	struct accel_ctx *ctx = ngx_http_get_module_ctx(r, ngx_http_stat_accel_module);
	struct accel_conf *conf = ngx_http_get_module_loc_conf(r, ngx_http_stat_accel_module);
	enum accel_kind kind = accel_look(ctx, conf);

	if (kind == ACCEL_COLD)
		return (NGX_DONE);
	r->content_handler = conf->handler;
	if (kind == ACCEL_LATE && conf->late != 0) {
		r->main->count--; /* the upstream's */
		return ((ngx_int_t)conf->late);
	}
	ngx_http_upstream_init(r);
	return (NGX_DONE);
}

/* The file is known. */
static ngx_int_t
begin_again(ngx_http_request_t *r)
{
	r->main->count++;
	return (begin(r));
}

ngx_int_t
accel_upstream_handler(ngx_http_request_t *r)
{
	const struct accel_conf *conf = ngx_http_get_module_loc_conf(r, ngx_http_stat_accel_module);
	struct accel_ctx *ctx = accel_ctx(r);
	ngx_int_t rc;

	if (ctx == NULL)
		return (NGX_HTTP_INTERNAL_SERVER_ERROR);
	if (!conf->enable || has_a_body(r)) {
		r->content_handler = conf->handler;
		return (conf->handler(r));
	}
	r->aio = 1;
	rc = conf->handler(r);
	r->aio = 0;
	if (rc != NGX_DONE)
		return (rc);
	ctx->name = (struct accel_name){ .range = { 0, NGX_MAX_OFF_T_VALUE, false } };
	if (cached_name(r, &ctx->name.path) != NGX_OK) {
		ngx_http_upstream_init(r);
		return (NGX_DONE);
	}
	r->content_handler = begin_again;
	return (begin(r));
}

#else

ngx_int_t
accel_upstream_handler(ngx_http_request_t *r)
{
	const struct accel_conf *conf = ngx_http_get_module_loc_conf(r, ngx_http_stat_accel_module);

	return (conf->handler(r));
}

#endif
