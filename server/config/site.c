/* server/config/site.c -- see site.h */
#include "server/config/site.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/must.h"
#include "server/config/places.h"
#include "server/worker.h"

static struct text
without_slashes(struct text dir)
{
	while (dir.n > 1 && dir.p[dir.n - 1] == '/')
		dir.n--;
	return (dir);
}

static int
scope_make(struct site *s, struct stat_scope **sc, const struct place_dir *dir)
{
	uint64_t resolve = IO_BENEATH | (s->conf->follow_symlink ? 0 : IO_NO_SYMLINKS) | (s->conf->noatime ? IO_NOATIME : 0);

	if (dir == NULL)
		return (-ENOENT);
	*sc = scope_get(&s->worker->scopes, s->worker->io, dir->root, resolve, &s->style);
	return (0);
}

static int
send_root_make(struct site *s, struct send_root *root, const char *dir)
{
	const struct place_dir *place = places_dir(s->worker->conf.places, dir);
	int err = scope_make(s, &root->scope, place);

	if (err != 0)
		return (err);
	root->dir = without_slashes(text_of(dir));
	root->real = place->real;
	return (0);
}

/* An empty list of roots means the document root, not "anything". */
static int
send_roots_make(struct site *s)
{
	const struct conf_list *list = &s->conf->proxy_x_sendfile_root;
	size_t i, n = list->n != 0 ? list->n : 1;
	int err;

	if (!s->conf->proxy_x_sendfile)
		return (0);
	s->send_roots = calloc(n, sizeof(*s->send_roots));
	must(s->send_roots != NULL);
	s->nsend_roots = n;
	for (i = 0; i < n; i++) {
		err = send_root_make(s, &s->send_roots[i], list->n != 0 ? list->v[i].p : s->conf->document_root);
		if (err != 0)
			return (err);
	}
	return (0);
}

static int
tables_make(struct site *s)
{
	struct buf tag;

	s->style.etag_parts = (s->conf->etag_inode ? ETAG_INODE : 0) | (s->conf->etag_mtime ? ETAG_MTIME : 0) |
	    (s->conf->etag_size ? ETAG_SIZE : 0) | (s->conf->etag_ctime ? ETAG_CTIME : 0);
	s->style.mime = places_mime(s->worker->conf.places, &s->conf->mime_assign);
	if (s->style.mime == NULL)
		return (-EINVAL);
	s->pages = places_pages(s->worker->conf.places, s->conf->error_prefix);
	s->access = places_log(s->worker->conf.places, s->conf->accesslog);
	buf_init(&tag, 512);
	if (s->conf->server_tag != NULL && s->conf->server_tag[0] != '\0')
		buf_printf(&tag, "Server: %s\r\n", s->conf->server_tag);
	s->style.ranges = s->conf->range_requests;
	s->style.watched = s->conf->cut_changed;
	s->style.tag_line = tag.n != 0 && !tag.failed ? buf_as_text(&tag) : (struct text){"", 0};
	return (0);
}

static enum timing_mode
timing_of(const struct conf *conf)
{
	if (conf->log_timing == NULL)
		return (TIMING_OFF);
	if (strcmp(conf->log_timing, "json") == 0)
		return (TIMING_JSON);
	return (strcmp(conf->log_timing, "enable") == 0 ? TIMING_LINE : TIMING_OFF);
}

/* proxy-core.max-pool-size is for the whole server: each worker has its share, at least one. */
static unsigned
pool_share(const struct worker *w, uint64_t size)
{
	return ((unsigned)((size + w->conf.nworkers - 1) / w->conf.nworkers));
}

static struct proxy_conf
proxy_conf_of(const struct worker *w, const struct conf *c, const char **backends)
{
	size_t i;

	for (i = 0; i < c->proxy_backends.n; i++)
		backends[i] = c->proxy_backends.v[i].p;
	return ((struct proxy_conf){
	    .protocol = c->proxy_protocol,
	    .backends = backends,
	    .nbackends = c->proxy_backends.n,
	    .balancer = c->proxy_balancer,
	    .max_pool_size = pool_share(w, c->proxy_pool_size),
	    .max_keep_alive_requests = (unsigned)c->proxy_keepalive,
	    .disable_time_s = (unsigned)c->proxy_disable_time,
	    .max_waiters = (unsigned)c->proxy_max_waiters,
	    .wait_ms = (unsigned)(1000 * c->proxy_wait_timeout),
	    .connect_ms = (unsigned)(1000 * c->proxy_connect_timeout),
	    .read_ms = (unsigned)(1000 * c->proxy_read_timeout),
	    .split_hostnames = c->proxy_split,
	    .queue = c->proxy_backlog != 0,
	    .debug = (unsigned)c->proxy_debug,
	    .number = (unsigned)c->proxy_number,
	});
}

/* Sites of one block share its pools. */
static int
upstream_get(struct site *s)
{
	struct worker *w = s->worker;
	size_t block = (size_t)s->conf->proxy_block;
	const char **backends;
	struct proxy_conf pc;
	int err = 0;

	if (s->conf->proxy_backends.n == 0 || s->conf->proxy_block < 0)
		return (0);
	if (block >= w->nupstreams) {
		w->upstreams = realloc(w->upstreams, (block + 1) * sizeof(*w->upstreams));
		must(w->upstreams != NULL);
		while (w->nupstreams <= block)
			w->upstreams[w->nupstreams++] = NULL;
	}
	if (w->upstreams[block] == NULL) {
		backends = calloc(s->conf->proxy_backends.n, sizeof(*backends));
		must(backends != NULL);
		pc = proxy_conf_of(w, s->conf, backends);
		w->upstreams[block] = upstream_new(w->io, &w->tally->counters, &pc, &err);
		if (err != 0)
			log_event(LOG_ERROR, NULL, "proxy.unusable", LF_STR("backend", backends[0]), LF_ERR("error", err),
			    LF_STR("do", "set proxy-core.protocol beside proxy-core.backends"));
		free(backends);
	}
	s->upstream = w->upstreams[block];
	return (err);
}

int
site_new(struct worker *w, const struct conf *conf, struct site **sp)
{
	struct site *s = calloc(1, sizeof(*s));
	int err;

	must(s != NULL);
	s->worker = w;
	s->conf = conf;
	s->timing = timing_of(conf);
	s->rewrite_request = places_rewrite(w->conf.places, &conf->proxy_rewrite_request);
	s->rewrite_response = places_rewrite(w->conf.places, &conf->proxy_rewrite_response);
	s->docroot_dir = without_slashes(text_of(conf->document_root));
	err = tables_make(s);
	if (err == 0)
		err = scope_make(s, &s->docroot, places_dir(w->conf.places, conf->document_root));
	if (err == 0)
		err = send_roots_make(s);
	if (err == 0)
		err = upstream_get(s);
	if (err != 0) {
		site_free(s);
		return (err);
	}
	*sp = s;
	return (0);
}

void
site_free(struct site *s)
{
	size_t i;

	stat_scope_put(s->docroot);
	for (i = 0; i < s->nsend_roots; i++)
		stat_scope_put(s->send_roots[i].scope);
	free(s->send_roots);
	if (s->style.tag_line.n != 0)
		free((char *)s->style.tag_line.p);
	free(s);
}
