/* server/config/site.c -- see site.h */
#include "server/config/site.h"

#include <errno.h>
#include <stdlib.h>

#include "files/hold/hold.h"
#include "files/root.h"
#include "io/file.h"
#include "proxy-core/conf.h"
#include "proxy-core/exchange.h"
#include "server/config/check/log_names.h"
#include "server/config/resources.h"
#include "server/module/deflate.h"
#include "server/module/dirlisting.h"
#include "server/module/module.h"
#include "server/reply/scope.h"
#include "server/status/worker_counters.h"
#include "server/worker/base.h"
#include "wire/codec/codec.h"
#include "wire/http1/validate.h"
#include "wire/log_format.h"

/* "/" stays. */
static struct text
dir_trimmed(struct text dir)
{
	while (dir.n > 1 && dir.p[dir.n - 1] == '/')
		dir.n--;
	return (dir);
}

/* server.follow-symlink, for names that a client chooses. */
static uint64_t
links_of(const struct conf *c)
{
	if (strcmp(c->follow_symlink, "enable") == 0)
		return (0);
	return (IO_BENEATH | (strcmp(c->follow_symlink, "disable") == 0 ? IO_NO_SYMLINKS : 0));
}

/* Some files are not sent because of their names: a link must not give them another one. */
static uint64_t
names_of(const struct conf *c)
{
	bool has_list = c->exclude_extensions.n != 0 || c->script_extensions.n != 0 ||
			c->cgi_assign.n != 0 || c->condition_endings->n != 0;

	return (has_list ? IO_REAL_NAME : 0);
}

static int
scope_make(struct site *s, struct file_scope **sc, const struct root *dir, uint64_t links)
{
	uint64_t resolve =
	    IO_LINKS | links | names_of(s->conf) | (s->conf->noatime ? IO_NOATIME : 0);

	if (dir == NULL)
		return (-ENOENT);
	if (io_fd_is_local(dir->fd))
		resolve |= IO_LOCAL;
	*sc = reply_scope_get(s->worker->scopes, s->worker->io, dir->fd, resolve, &s->style);
	return (*sc != NULL ? 0 : -ENOMEM);
}

struct file_scope *
site_scope(struct site *s, const struct root *root)
{
	struct file_scope *sc;
	struct site_root *roots;
	size_t i;

	for (i = 0; i < s->nroots; i++)
		if (s->roots[i].root == root)
			return (s->roots[i].scope);
	roots = realloc(s->roots, (s->nroots + 1) * sizeof(*s->roots));
	if (roots == NULL)
		return (NULL);
	s->roots = roots;
	if (scope_make(s, &sc, root, links_of(s->conf)) != 0)
		return (NULL);
	s->roots[s->nroots++] = (struct site_root){ root, sc };
	return (sc);
}

static int
send_file_root_make(struct site *s, struct send_file_root *r, const char *dir)
{
	r->root = resources_root(s->worker->conf.resources, dir);
	/* An application may name a path with "..". */
	return (scope_make(s, &r->scope, r->root, IO_BENEATH | links_of(s->conf)));
}

/* An empty list of roots means the document root, not "anything". */
static int
send_file_list_make(struct site *s, const struct conf_list *list, struct send_file_root **rootsp,
    size_t *np)
{
	size_t i, n = list->n != 0 ? list->n : 1;
	struct send_file_root *roots = calloc(n, sizeof(*roots));
	int err = 0;

	if (roots == NULL)
		return (-ENOMEM);
	for (i = 0; i < n && err == 0; i++)
		err = send_file_root_make(s, &roots[i],
		    list->n != 0 ? list->v[i].p : s->conf->document_root);
	*rootsp = roots;
	*np = err == 0 ? n : i - 1;
	return (err);
}

static int
send_file_roots_make(struct site *s)
{
	const struct conf *c = s->conf;
	int err = 0;

	if (c->proxy_x_sendfile)
		err = send_file_list_make(s, &c->proxy_x_sendfile_root, &s->send_file_roots,
		    &s->nsend_file_roots);
	if (err == 0 && c->cgi_x_sendfile)
		err =
		    send_file_list_make(s, &c->cgi_x_sendfile_root, &s->cgi_roots, &s->ncgi_roots);
	return (err);
}

/* Their files have no scope: none is kept. */
static int
temp_file_roots_make(struct site *s)
{
	const struct conf_list *list = &s->conf->proxy_x_tempdir;
	size_t i;

	if (!s->conf->proxy_x_sendfile || list->n == 0)
		return (0);
	s->temp_file_roots = calloc(list->n, sizeof(*s->temp_file_roots));
	if (s->temp_file_roots == NULL)
		return (-ENOMEM);
	s->ntemp_file_roots = list->n;
	for (i = 0; i < list->n; i++) {
		s->temp_file_roots[i].root =
		    resources_root(s->worker->conf.resources, list->v[i].p);
		if (s->temp_file_roots[i].root == NULL)
			return (-ENOENT);
	}
	return (0);
}

static bool
wants_head(const struct site *s)
{
	const struct log_format *f = s->rules[RULES_log_format];

	return ((s->access != NULL && f != NULL && f->reply) || s->conf->log_response_header);
}

/* A debug.log-* setting of server/log/debug_log.h is on. */
static bool
wants_debug(const struct conf *c)
{
	return (c->log_request_header || c->log_response_header || c->log_handling ||
		c->log_condition || c->log_cond_cache || c->log_not_found || c->log_on_error);
}

static int
tables_make(struct site *s)
{
	struct buf tag;

	s->style.etag_parts = !s->conf->file_etags ? 0
						   : (s->conf->etag_inode ? ETAG_INODE : 0) |
							 (s->conf->etag_mtime ? ETAG_MTIME : 0) |
							 (s->conf->etag_size ? ETAG_SIZE : 0) |
							 (s->conf->etag_ctime ? ETAG_CTIME : 0);
	s->style.mime = resources_mime(s->worker->conf.resources, &s->conf->mime_assign);
	if (s->style.mime == NULL)
		return (-EINVAL);
	s->pages = resources_pages(s->worker->conf.resources, s->conf->error_prefix);
	s->access = resources_log(s->worker->conf.resources, log_name_access(s->conf));
	s->debug = wants_debug(s->conf);
	s->wants_head = wants_head(s);
	buf_init(&tag, 512);
	if (s->conf->server_tag != NULL && s->conf->server_tag[0] != '\0')
		buf_printf(&tag, "Server: %s\r\n", s->conf->server_tag);
	s->style.ranges = s->conf->range_requests;
	s->style.watched = s->conf->cut_changed;
	deflate_of(s);
	s->style.tag_line = tag.n != 0 && !tag.failed ? buf_as_text(&tag) : (struct text){ "", 0 };
	return (0);
}

static enum timing_format
timing_of(const struct conf *conf)
{
	if (conf->log_timing == NULL)
		return (TIMING_OFF);
	if (strcmp(conf->log_timing, "json") == 0)
		return (TIMING_JSON);
	return (strcmp(conf->log_timing, "enable") == 0 ? TIMING_LINE : TIMING_OFF);
}

/* proxy-core.max-pool-size applies to the whole server: each worker gets its share, at least
 * one. */
static unsigned
pool_share(const struct worker_base *w, uint64_t size)
{
	return (size > 0 ? (unsigned)((size + w->conf.nworkers - 1) / w->conf.nworkers) : 1);
}

/* Uses the values of the block, not those of the first request. */
static struct upstream *
upstream_of_block(const struct worker_base *w, int block, bool authorizer)
{
	struct proxy_conf pc;
	struct conf c;

	config_block(w->conf.config, block, &c);
	pc = (struct proxy_conf){
		.proto = proto_find(authorizer ? c.authorizer_protocol : c.proxy_protocol),
		.backends = resources_backends(w->conf.resources,
		    authorizer ? c.authorizer_number : c.proxy_number),
		.balancer = c.proxy_balancer,
		.secret = c.proxy_secret,
		.max_pool_size = pool_share(w, c.proxy_pool_size),
		.max_keep_alive_requests = (unsigned)c.proxy_keepalive,
		.disable_ms = (unsigned)(1000 * c.proxy_disable_time),
		.max_waiters = c.proxy_backlog != 0 ? (unsigned)c.proxy_max_waiters : 0,
		.connect_ms = (unsigned)(1000 * c.proxy_connect_timeout),
		.check_url = authorizer ? NULL : c.proxy_check_url,
		.check_ms = (unsigned)(1000 * c.proxy_check_interval),
		.idle_ms = (unsigned)(1000 * c.proxy_idle_timeout),
		.balance_factor = (unsigned)c.proxy_balance_factor,
		.max_fails = (unsigned)c.proxy_max_fails,
		.fail_ms = (unsigned)(1000 * c.proxy_fail_timeout),
		.slow_start_ms = (unsigned)(1000 * c.proxy_slow_start),
	};
	return (upstream_new(w->io, &w->counters->events, &pc));
}

/* Sites of one block share its pools.  A block has a place for each of its two lists. */
static int
upstream_get(struct worker_base *w, int block, bool authorizer, struct upstream **u)
{
	size_t place = 2 * (size_t)block + authorizer;
	struct upstream **all;

	if (place >= w->nupstreams) {
		all = realloc(w->upstreams, (place + 1) * sizeof(*all));
		if (all == NULL)
			return (-ENOMEM);
		w->upstreams = all;
		while (w->nupstreams <= place)
			w->upstreams[w->nupstreams++] = NULL;
	}
	if (w->upstreams[place] == NULL)
		w->upstreams[place] = upstream_of_block(w, block, authorizer);
	*u = w->upstreams[place];
	return (*u != NULL ? 0 : -ENOMEM);
}

static int
upstreams_get(struct site *s)
{
	const struct conf *c = s->conf;
	int err = 0;

	if (c->proxy_backends.n != 0)
		err = upstream_get(s->worker, c->proxy_block, false, &s->upstream);
	if (err == 0 && c->authorizer.n != 0)
		err = upstream_get(s->worker, c->authorizer_block, true, &s->authorizer);
	return (err);
}

int
site_upstream(struct worker_base *w, int block, struct upstream **u)
{
	return (upstream_get(w, block, false, u));
}

static unsigned
forward_of(const struct conf_list *list)
{
	unsigned forward = 0;
	size_t i;

	for (i = 0; i < list->n; i++)
		forward |= text_eq(list->v[i], TEXT("forwarded")) ? FORWARD_STANDARD : FORWARD_X;
	return (forward);
}

unsigned
site_ids(const struct conf *c)
{
	unsigned ids = c->traceparent ? IDS_TRACE : 0;
	size_t i;

	for (i = 0; i < c->request_id.n; i++)
		ids |= text_eq(c->request_id.v[i], TEXT("client")) ? IDS_CLIENT : IDS_APPLICATION;
	return (ids);
}

int
site_new(struct worker_base *w, const struct conf *conf, struct site **sp)
{
	struct site *s = calloc(1, sizeof(*s));
	size_t i;
	int err;

	if (s == NULL)
		return (-ENOMEM);
	s->worker = w;
	s->conf = conf;
	s->timing = timing_of(conf);
	s->rewrite_request = resources_rewrite(w->conf.resources, &conf->proxy_rewrite_request);
	s->rewrite_response = resources_rewrite(w->conf.resources, &conf->proxy_rewrite_response);
	s->forward = forward_of(&conf->proxy_forwarded);
	s->ids = site_ids(conf);
	s->docroot_dir = dir_trimmed(text_of(conf->document_root));
	modules_of(conf, &s->modules);
	for (i = 0; i < RULES; i++)
		s->rules[i] =
		    resources_rules(w->conf.resources, (unsigned)i, rules_kinds[i]->key(conf));
	err = tables_make(s);
	if (err == 0)
		err = scope_make(s, &s->docroot,
		    resources_root(w->conf.resources, conf->document_root), links_of(conf));
	if (err == 0)
		err = send_file_roots_make(s);
	if (err == 0)
		err = temp_file_roots_make(s);
	if (err == 0)
		err = upstreams_get(s);
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

	dirlisting_forget(s->worker, s);
	file_scope_put(s->docroot);
	for (i = 0; i < s->nsend_file_roots; i++)
		file_scope_put(s->send_file_roots[i].scope);
	for (i = 0; i < s->ncgi_roots; i++)
		file_scope_put(s->cgi_roots[i].scope);
	free(s->cgi_roots);
	for (i = 0; i < s->nroots; i++)
		file_scope_put(s->roots[i].scope);
	free(s->roots);
	free(s->send_file_roots);
	free(s->temp_file_roots);
	if (s->style.tag_line.n != 0)
		free((char *)s->style.tag_line.p);
	free(s);
}
