/* server/config/places.c -- see places.h */
#include "server/config/places.h"

#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "io/io.h"
#include "proxy-core/address.h"
#include "proxy-core/exchange.h"
#include "proxy-core/meter.h"
#include "server/reply.h"
#include "server/config/rewrite.h"
#include "server/config/record.h"

#define PAGE_MAX (64u << 10) /* an error page of the administrator's */

/* Keys are strings of the config. */
struct places {
	GHashTable *dirs;     /* -> struct place_dir */
	GHashTable *logs;     /* -> struct logfile, which is not ours */
	GHashTable *pages;    /* -> struct page[PAGES] */
	GHashTable *mimes;    /* by the rows of the map -> struct mime */
	GHashTable *rewrites; /* by the rows of the map -> struct rewrite */
	GPtrArray *meters;    /* of all backends: status pages show them from the start */
};

struct walk {
	struct places *p;
	GHashTable *upstreams;    /* those checked: "BLOCK PROTOCOL" */
	bool sends;               /* some block allows X-Sendfile */
	bool proxies;             /* some block has backends */
	const char *protocol;     /* of some block */
	struct sources *sources;
	places_log_fn *open_log;
	void *arg;
	char *err;
	size_t errsize;
};

static bool
is_set(const char *s)
{
	return (s != NULL && s[0] != '\0');
}

static bool
refuse(struct walk *k, const char *directive, const char *value, const char *why)
{
	snprintf(k->err, k->errsize, "%s \"%s\": %s", directive, value, why);
	return (false);
}

/* ---- one place of each kind */

static void
dir_free(void *place)
{
	struct place_dir *d = place;

	io_root_close(d->root);
	free((char *)d->real.p);
	free(d);
}

static bool
dir_open(struct walk *k, const char *directive, const char *dir)
{
	struct place_dir *d;
	int root, err;
	char *real;

	if (!is_set(dir))
		return (refuse(k, directive, "", "is empty; name a directory"));
	if (g_hash_table_contains(k->p->dirs, dir))
		return (true);
	err = io_root_open(dir, &root);
	if (err != 0)
		return (refuse(k, directive, dir, strerror(-err)));
	d = calloc(1, sizeof(*d));
	real = realpath(dir, NULL);
	if (real == NULL)
		real = strdup(dir);
	must(d != NULL && real != NULL);
	*d = (struct place_dir){root, text_of(real)};
	while (d->real.n > 1 && d->real.p[d->real.n - 1] == '/')
		d->real.n--; /* realpath() leaves none, strdup() may */
	g_hash_table_insert(k->p->dirs, (char *)dir, d);
	return (true);
}

static bool
log_open(struct walk *k, const char *path)
{
	struct logfile *log;

	if (!is_set(path) || k->open_log == NULL || g_hash_table_contains(k->p->logs, path))
		return (true);
	log = k->open_log(k->arg, path);
	if (log == NULL)
		return (refuse(k, "accesslog.filename", path, "cannot be opened"));
	g_hash_table_insert(k->p->logs, (char *)path, log);
	return (true);
}

static void
pages_free(void *pages)
{
	struct page *v = pages;
	size_t i;

	for (i = 0; i < PAGES; i++)
		page_free(&v[i]);
	free(v);
}

/* Read once, so that an error page never has to wait for the disk.  A page that is not there is ours. */
static void
pages_load(struct walk *k, const char *prefix)
{
	struct page *v;
	char path[PATH_MAX];
	struct source page;
	int status, n;

	if (!is_set(prefix) || g_hash_table_contains(k->p->pages, prefix))
		return;
	v = calloc(PAGES, sizeof(*v));
	must(v != NULL);
	for (status = 400; status < PAGES; status++) {
		n = snprintf(path, sizeof(path), "%s%d.html", prefix, status);
		if (n >= (int)sizeof(path))
			break;
		page = sources_get(k->sources, SOURCE_FILE, path, NULL);
		if (page.err == 0 && page.bytes.n <= PAGE_MAX)
			page_make(&v[status], status, page.bytes);
		source_free(&page);
	}
	g_hash_table_insert(k->p->pages, (char *)prefix, v);
}

/* Blocks that say nothing of it have the same rows. */
static const void *
mime_key(const struct conf_map *assign)
{
	return (assign->n != 0 ? assign->v : NULL);
}

static bool
mime_load(struct walk *k, const struct conf_map *assign)
{
	struct source types;
	struct mime *m;

	if (g_hash_table_contains(k->p->mimes, mime_key(assign)))
		return (true);
	types = sources_get(k->sources, SOURCE_FILE, MIME_SYSTEM_FILE, NULL);
	m = mime_new(assign, types.err == 0 ? types.bytes : TEXT_NONE, k->err, k->errsize);
	source_free(&types);
	if (m == NULL)
		return (false);
	g_hash_table_insert(k->p->mimes, (void *)mime_key(assign), m);
	return (true);
}

/* Compiled once, not for each set of conditions: clients choose how often sets are made. */
static bool
rewrite_load(struct walk *k, const char *directive, const struct conf_map *map)
{
	struct rewrite *rw;
	char why[256];

	if (map->n == 0 || g_hash_table_contains(k->p->rewrites, map->v))
		return (true);
	rw = rewrite_new(map, why, sizeof(why));
	if (rw == NULL) {
		snprintf(k->err, k->errsize, "%s: %s", directive, why);
		return (false);
	}
	g_hash_table_insert(k->p->rewrites, map->v, rw);
	return (true);
}

static void
meter_keep(struct meter *m, void *arg)
{
	struct places *p = arg;

	if (m != NULL)
		g_ptr_array_add(p->meters, m);
}

/* A host is looked up once, and its addresses are kept by proxy-core/address.h.  What is no name needs no source. */
static bool
host_known(struct walk *k, const char *spec)
{
	struct address a;
	struct source is;
	int err;

	if (address_parse(spec, &a) == 0)
		return (true);
	is = sources_get(k->sources, SOURCE_HOST, spec, NULL);
	err = is.err;
	if (err == 0)
		err = address_learn(spec, (const struct address *)(const void *)is.bytes.p, is.bytes.n / sizeof(struct address));
	if (err != 0)
		snprintf(k->err, k->errsize, "proxy-core.backends: %s", is.extra != NULL ? is.extra : strerror(-err));
	source_free(&is);
	return (err == 0);
}

static bool
hosts_known(struct walk *k, const struct conf_list *backends)
{
	size_t i;

	for (i = 0; i < backends->n; i++)
		if (!host_known(k, backends->v[i].p))
			return (false);
	return (true);
}

static bool
upstream_ok(struct walk *k, const struct conf *c)
{
	/* The protocol may stand in a block beside that of the backends. */
	const char *protocol = is_set(c->proxy_protocol) ? c->proxy_protocol : k->protocol;
	struct proxy_conf pc = {.protocol = protocol, .balancer = c->proxy_balancer, .nbackends = c->proxy_backends.n,
	    .split_hostnames = c->proxy_split, .number = (unsigned)c->proxy_number};
	const char **backends;
	char why[256] = "";
	size_t i;
	bool ok;

	if (c->proxy_backends.n == 0 ||
	    !g_hash_table_add(k->upstreams, g_strdup_printf("%d %s", c->proxy_block, protocol != NULL ? protocol : "")))
		return (true);
	backends = g_new(const char *, pc.nbackends);
	for (i = 0; i < pc.nbackends; i++)
		backends[i] = c->proxy_backends.v[i].p;
	pc.backends = backends;
	ok = upstream_check(&pc, why, sizeof(why)) == 0;
	if (ok && (ok = hosts_known(k, &c->proxy_backends)))
		upstream_meters(&pc, meter_keep, k->p);
	else if (why[0] != '\0')
		snprintf(k->err, k->errsize, "proxy-core.backends: %s", why); /* which one is said in it */
	g_free(backends);
	return (ok);
}

/* ---- all of them */

static bool
survey(const struct conf *c, void *arg)
{
	struct walk *k = arg;

	k->sends = k->sends || c->proxy_x_sendfile;
	k->proxies = k->proxies || c->proxy_backends.n != 0;
	if (is_set(c->proxy_protocol))
		k->protocol = c->proxy_protocol;
	return (true);
}

static bool
visit(const struct conf *c, void *arg)
{
	struct walk *k = arg;
	size_t i;

	if (!dir_open(k, "server.document-root", c->document_root))
		return (false);
	for (i = 0; k->sends && i < c->proxy_x_sendfile_root.n; i++)
		if (!dir_open(k, "proxy-core.x-sendfile-docroot", c->proxy_x_sendfile_root.v[i].p))
			return (false);
	if (!rewrite_load(k, "proxy-core.rewrite-request", &c->proxy_rewrite_request) ||
	    !rewrite_load(k, "proxy-core.rewrite-response", &c->proxy_rewrite_response))
		return (false);
	for (i = 0; k->proxies && i < c->upload_dirs.n; i++)
		if (!dir_open(k, "server.upload-dirs", c->upload_dirs.v[i].p))
			return (false);
	pages_load(k, c->error_prefix);
	return (mime_load(k, &c->mime_assign) && log_open(k, c->accesslog) && upstream_ok(k, c));
}

/* What is not there shows when it is used. */
static bool
fetch(const struct conf *c, void *arg)
{
	struct walk *k = arg;

	pages_load(k, c->error_prefix);
	(void)(mime_load(k, &c->mime_assign) && hosts_known(k, &c->proxy_backends));
	return (true);
}

static void
tables_make(struct places *p)
{
	p->dirs = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, dir_free);
	p->logs = g_hash_table_new(g_str_hash, g_str_equal);
	p->pages = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, pages_free);
	p->mimes = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)mime_free);
	p->rewrites = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)rewrite_free);
	p->meters = g_ptr_array_new_with_free_func((GDestroyNotify)meter_put);
}

void
places_fetch(const struct config *config)
{
	struct places *p = calloc(1, sizeof(*p));
	char err[512];
	struct walk k = {.p = p, .sources = config_sources(config), .err = err, .errsize = sizeof(err)};

	must(p != NULL);
	tables_make(p);
	config_each(config, fetch, &k);
	places_free(p);
}

struct places *
places_new(const struct config *config, places_log_fn *open_log, void *arg, char *err, size_t errsize)
{
	struct places *p = calloc(1, sizeof(*p));
	struct walk k = {.p = p, .sources = config_sources(config), .open_log = open_log, .arg = arg, .err = err,
	    .errsize = errsize};
	bool ok;

	must(p != NULL);
	tables_make(p);
	k.upstreams = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	ok = config_each(config, survey, &k) && config_each(config, visit, &k);
	g_hash_table_destroy(k.upstreams);
	if (ok)
		return (p);
	places_free(p);
	return (NULL);
}

void
places_free(struct places *p)
{
	if (p == NULL)
		return;
	g_hash_table_destroy(p->dirs);
	g_hash_table_destroy(p->logs);
	g_hash_table_destroy(p->pages);
	g_hash_table_destroy(p->mimes);
	g_hash_table_destroy(p->rewrites);
	g_ptr_array_free(p->meters, TRUE);
	free(p);
}

/* ---- what requests need */

const struct place_dir *
places_dir(const struct places *p, const char *dir)
{
	return (is_set(dir) ? g_hash_table_lookup(p->dirs, dir) : NULL);
}

struct logfile *
places_log(const struct places *p, const char *path)
{
	return (is_set(path) ? g_hash_table_lookup(p->logs, path) : NULL);
}

const struct page *
places_pages(const struct places *p, const char *prefix)
{
	return (is_set(prefix) ? g_hash_table_lookup(p->pages, prefix) : NULL);
}

const struct mime *
places_mime(const struct places *p, const struct conf_map *assign)
{
	return (g_hash_table_lookup(p->mimes, mime_key(assign)));
}

const struct rewrite *
places_rewrite(const struct places *p, const struct conf_map *map)
{
	return (map->n != 0 ? g_hash_table_lookup(p->rewrites, map->v) : NULL);
}
