/* server/site.c -- see site.h */
#include "server/site.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/must.h"
#include "server/reply.h"
#include "server/rewrite.h"
#include "server/worker.h"

#define PAGE_MAX (64u << 10) /* an error page of the administrator's */

static struct text
without_slashes(struct text dir)
{
	while (dir.n > 1 && dir.p[dir.n - 1] == '/')
		dir.n--;
	return (dir);
}

static int
scope_open(struct site *s, struct stat_scope *sc, const char *dir)
{
	int err = io_root_open(dir, &sc->root);

	if (err != 0) {
		log_event(LOG_ERROR, NULL, "root.unusable", LF_STR("directory", dir), LF_ERR("error", err),
		    LF_STR("do", "create it, or mend server.document-root or proxy-core.x-sendfile-docroot"));
		sc->root = -1;
		return (err);
	}
	sc->id = ++s->worker->scope_ids;
	sc->resolve = IO_BENEATH | (s->conf->follow_symlink ? 0 : IO_NO_SYMLINKS) | (s->conf->noatime ? IO_NOATIME : 0);
	sc->prepare = reply_prepare;
	sc->owner = s;
	return (0);
}

static int
send_root_open(struct site *s, struct send_root *root, const char *dir)
{
	char *real = realpath(dir, NULL);

	root->dir = without_slashes(text_of(dir));
	root->real = real != NULL ? text_of(real) : root->dir;
	return (scope_open(s, &root->scope, dir));
}

/* An empty list of roots means the document root, not "anything". */
static int
send_roots_open(struct site *s)
{
	const struct conf_list *list = &s->conf->proxy_x_sendfile_root;
	size_t i, n = list->n != 0 ? list->n : 1;
	int err;

	if (!s->conf->proxy_x_sendfile)
		return (0);
	s->send_roots = calloc(n, sizeof(*s->send_roots));
	must(s->send_roots != NULL);
	for (i = 0; i < n; i++)
		s->send_roots[i].scope.root = -1;
	s->nsend_roots = n;
	for (i = 0; i < n; i++) {
		err = send_root_open(s, &s->send_roots[i], list->n != 0 ? list->v[i].p : s->conf->document_root);
		if (err != 0)
			return (err);
	}
	return (0);
}

static int
tables_make(struct site *s)
{
	const struct conf *global = s->worker->global;
	char err[256];
	struct buf tag;

	s->etag_parts = (s->conf->etag_inode ? ETAG_INODE : 0) | (s->conf->etag_mtime ? ETAG_MTIME : 0) |
	    (s->conf->etag_size ? ETAG_SIZE : 0);
	if (global != NULL && global->derived != NULL && s->conf->mime_assign.v == global->mime_assign.v)
		s->mime = ((struct site *)global->derived)->mime;
	else {
		s->own_mime = true;
		s->mime = mime_new(&s->conf->mime_assign, MIME_SYSTEM_FILE, err, sizeof(err));
	}
	if (s->mime == NULL) {
		log_event(LOG_ERROR, NULL, "mime.unusable", LF_STR("why", err));
		return (-EINVAL);
	}
	buf_init(&tag, 512);
	if (s->conf->server_tag != NULL && s->conf->server_tag[0] != '\0')
		buf_printf(&tag, "Server: %s\r\n", s->conf->server_tag);
	s->tag_line = tag.n != 0 && !tag.failed ? buf_as_text(&tag) : (struct text){"", 0};
	return (0);
}

/* server.errorfile-prefix: read once, so that an error page never has to wait for the disk. */
static void
pages_load(struct site *s)
{
	char path[PATH_MAX];
	struct buf html;
	int status;

	if (s->conf->error_prefix == NULL || s->conf->error_prefix[0] == '\0')
		return;
	s->pages = calloc(PAGES, sizeof(*s->pages));
	must(s->pages != NULL);
	for (status = 400; status < PAGES; status++) {
		int n = snprintf(path, sizeof(path), "%s%d.html", s->conf->error_prefix, status);

		buf_init(&html, 0);
		if (n < (int)sizeof(path) && io_slurp(path, PAGE_MAX, &html) == 0)
			page_make(&s->pages[status], status, buf_as_text(&html));
		buf_free(&html);
	}
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
	char why[256];
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
		err = upstream_check(&pc, why, sizeof(why));
		if (err != 0)
			log_event(LOG_ERROR, NULL, "proxy.unusable", LF_STR("why", why));
		else
			w->upstreams[block] = upstream_new(w->io, &w->counters, &pc, &err);
		free(backends);
	}
	s->upstream = w->upstreams[block];
	return (err);
}

static int
rewrites_make(struct site *s)
{
	const struct conf *c = s->conf;
	char why[256];

	if (c->proxy_rewrite_request.n != 0 &&
	    (s->rewrite_request = rewrite_new(&c->proxy_rewrite_request, why, sizeof(why))) == NULL)
		log_event(LOG_ERROR, NULL, "rewrite.unusable", LF_STR("directive", "proxy-core.rewrite-request"), LF_STR("why", why));
	else if (c->proxy_rewrite_response.n != 0 &&
	    (s->rewrite_response = rewrite_new(&c->proxy_rewrite_response, why, sizeof(why))) == NULL)
		log_event(LOG_ERROR, NULL, "rewrite.unusable", LF_STR("directive", "proxy-core.rewrite-response"), LF_STR("why", why));
	else
		return (0);
	return (-EINVAL);
}

int
site_new(struct worker *w, const struct conf *conf, struct site **sp)
{
	struct site *s = calloc(1, sizeof(*s));
	int err;

	must(s != NULL);
	s->worker = w;
	s->conf = conf;
	s->docroot.root = -1;
	s->docroot_dir = without_slashes(text_of(conf->document_root));
	s->timing = timing_of(conf);
	if (conf->accesslog != NULL && conf->accesslog[0] != '\0')
		s->access = w->conf.access_log(w->conf.arg, conf->accesslog);
	pages_load(s);
	err = tables_make(s);
	if (err == 0)
		err = scope_open(s, &s->docroot, conf->document_root);
	if (err == 0)
		err = send_roots_open(s);
	if (err == 0)
		err = rewrites_make(s);
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

	if (s->docroot.root >= 0)
		io_root_close(s->docroot.root);
	for (i = 0; i < s->nsend_roots; i++) {
		if (s->send_roots[i].real.p != s->send_roots[i].dir.p)
			free((char *)s->send_roots[i].real.p);
		if (s->send_roots[i].scope.root >= 0)
			io_root_close(s->send_roots[i].scope.root);
	}
	free(s->send_roots);
	rewrite_free(s->rewrite_request);
	rewrite_free(s->rewrite_response);
	for (i = 0; s->pages != NULL && i < PAGES; i++)
		page_free(&s->pages[i]);
	free(s->pages);
	if (s->own_mime && s->mime != NULL)
		mime_free(s->mime);
	if (s->tag_line.n != 0)
		free((char *)s->tag_line.p);
	free(s);
}
