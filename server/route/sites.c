/* server/route/sites.c -- see sites.h */
#include "server/route/sites.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "files/hold/hold.h"
#include "proxy-core/exchange.h"
#include "server/config/check/log_names.h"
#include "server/config/config.h"
#include "server/config/resources.h"
#include "server/config/site.h"
#include "server/handler/handler.h"
#include "server/log/debug_log.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/reply/scope.h"
#include "server/request/id.h"
#include "server/worker/base.h"
#include "wire/codec/message.h"
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

static int
send_file_root_make(struct site *s, struct send_file_root *r, const char *dir)
{
	r->root = resources_root(s->worker->conf.resources, dir);
	/* An application may name a path with "..". */
	return (reply_scope_make(s, r->root, true, &r->scope));
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

/* Their files are not looked up, so no scope is made. */
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
	s->debug = debug_log_is_on(s->conf);
	s->wants_head = wants_head(s);
	buf_init(&tag, 512);
	if (s->conf->server_tag != NULL && s->conf->server_tag[0] != '\0')
		buf_printf(&tag, "Server: %s\r\n", s->conf->server_tag);
	s->style.ranges = s->conf->range_requests;
	s->style.watched = s->conf->cut_changed;
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

static int
upstreams_get(struct site *s)
{
	const struct conf *c = s->conf;
	int err = 0;

	if (c->proxy_backends.n != 0)
		err = proxy_upstream(s->worker, c->proxy_block, false, &s->upstream);
	if (err == 0 && c->authorizer.n != 0)
		err = proxy_upstream(s->worker, c->authorizer_block, true, &s->authorizer);
	return (err);
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
	s->ids = request_ids(conf);
	s->docroot_dir = dir_trimmed(text_of(conf->document_root));
	for (i = 0; i < RULES; i++)
		s->rules[i] = resources_rules(w->conf.resources, (unsigned)i, conf);
	modules_of(s);
	err = tables_make(s);
	if (err == 0)
		err = reply_scope_make(s, resources_root(w->conf.resources, conf->document_root),
		    false, &s->docroot);
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

	modules_site_end(s);
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
