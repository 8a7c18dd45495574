/* server/config/resources.c -- see resources.h */
#include "server/config/resources.h"

#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "files/root.h"
#include "io/io.h"
#include "io/safe_open.h"
#include "proxy-core/backends.h"
#include "server/config/certificates.h"
#include "server/config/ticket_file.h"
#include "server/config/verifiers.h"
#include "server/config/check/mime.h"
#include "server/config/page.h"
#include "server/module/rules.h"
#include "server/config/check/backend_lists.h"
#include "server/config/check/homes.h"
#include "server/config/check/log_names.h"
#include "server/config/check/rewrite.h"
#include "server/config/check/targets.h"

#define PAGE_MAX (64u << 10) /* of an error page of the administrator */

/* The keys are strings of the config. */
struct resources {
	GHashTable *dirs;     /* -> struct root */
	GHashTable *logs;     /* -> struct logfile, owned by the process */
	GHashTable *pages;    /* -> struct page[PAGES] */
	GHashTable *mimes;    /* by the rows of the map -> struct mime */
	GHashTable *rewrites; /* by the rows of the map -> struct rewrite */
	const struct rules_kind *const *kinds;
	GHashTable *rules[RULES + 1]; /* by kind, by its key -> struct rules_made */
	struct homes *homes;          /* NULL: not used */
	struct targets *targets;      /* NULL: not made yet */
	struct certificates *certificates;
	struct verifiers *verifiers; /* of certificates of clients */
	struct ticket_file *tickets;
	GPtrArray *backends; /* struct backends, by proxy_number; status pages show them, too */
};

struct rules_made {
	const struct rules_kind *kind;
	void *rules;
};

struct opening {
	struct resources *p;
	struct conf_refusal at; /* the values that are looked at now */
	bool sends;             /* a block allows X-Sendfile */
	bool proxies;           /* a block has backends */
	bool met[RULES];        /* in some set of conditions the setting has all that it needs */
	struct sources *sources;
	resources_log_fn *open_log;
	void *arg;
};

static const char no_memory[] = "not enough memory";

/* ---- one of each kind */

static void
dir_free(void *root)
{
	root_close(root);
	free(root);
}

static bool
dir_open(struct opening *k, const char *directive, const char *dir)
{
	struct root *root;
	int err;

	if (!conf_is_set(dir))
		return (config_refuse(&k->at, directive, "is empty; name a directory"));
	if (g_hash_table_contains(k->p->dirs, dir))
		return (true);
	root = malloc(sizeof(*root));
	if (root == NULL)
		return (config_refuse(&k->at, directive, no_memory));
	err = root_open(dir, root);
	if (err != 0) {
		free(root);
		return (config_refuse_value(&k->at, directive, dir, io_root_error(err)));
	}
	g_hash_table_insert(k->p->dirs, (char *)dir, root);
	return (true);
}

static bool
log_open(struct opening *k, const char *path)
{
	char why[SAFE_OPEN_FAULT];
	struct logfile *log;
	int err;

	if (!conf_is_set(path) || k->open_log == NULL || g_hash_table_contains(k->p->logs, path))
		return (true);
	err = k->open_log(k->arg, path, &log);
	if (err != 0)
		return (config_refuse_value(&k->at, "accesslog.filename", path,
		    safe_open_fault(err, why)));
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

/* Read once, so that an error page never waits for the disk.  A missing page is replaced by the
 * built-in one. */
static bool
pages_load(struct opening *k, const char *prefix)
{
	struct page *v;
	char path[PATH_MAX];
	struct source page;
	int status, n;

	if (!conf_is_set(prefix) || g_hash_table_contains(k->p->pages, prefix))
		return (true);
	v = calloc(PAGES, sizeof(*v));
	if (v == NULL)
		return (config_refuse(&k->at, "server.errorfile-prefix", no_memory));
	for (status = 400; status < PAGES; status++) {
		n = snprintf(path, sizeof(path), "%s%d.html", prefix, status);
		if (n >= (int)sizeof(path))
			break;
		page = sources_get(k->sources, SOURCE_FILE, path, NULL);
		if (page.err == 0 && page.bytes.n <= PAGE_MAX)
			page_make(&v[status], status, "text/html", page.bytes);
		source_free(&page);
	}
	g_hash_table_insert(k->p->pages, (char *)prefix, v);
	return (true);
}

/* Blocks that do not set the map have the same rows. */
static const void *
mime_key(const struct conf_map *assign)
{
	return (assign->n != 0 ? assign->v : NULL);
}

static bool
mime_load(struct opening *k, const struct conf_map *assign)
{
	struct source types;
	struct mime *m;
	char why[256];

	if (g_hash_table_contains(k->p->mimes, mime_key(assign)))
		return (true);
	types = sources_get(k->sources, SOURCE_FILE, MIME_SYSTEM_FILE, NULL);
	m = mime_new(assign, types.err == 0 ? types.bytes : TEXT_NONE, why, sizeof(why));
	source_free(&types);
	if (m == NULL)
		return (config_refuse(&k->at, "mimetype.assign", why));
	g_hash_table_insert(k->p->mimes, (void *)mime_key(assign), m);
	return (true);
}

/* Compiled once, not for each set of conditions, because clients can make sets. */
static bool
rewrite_load(struct opening *k, const char *directive, const struct conf_map *map)
{
	struct rewrite *rw;
	char why[256];

	if (map->n == 0 || g_hash_table_contains(k->p->rewrites, map->v))
		return (true);
	rw = rewrite_new(map, why, sizeof(why));
	if (rw == NULL)
		return (config_refuse(&k->at, directive, why));
	g_hash_table_insert(k->p->rewrites, map->v, rw);
	return (true);
}

static void
rules_free(void *made)
{
	struct rules_made *m = made;

	m->kind->free(m->rules);
	free(m);
}

static const char *
lacks(const struct rules_kind *kind, const struct conf *c)
{
	return (kind->lacks != NULL ? kind->lacks(c) : NULL);
}

static bool
rules_load(struct opening *k, unsigned nr, const struct conf *c)
{
	const struct rules_kind *kind = k->p->kinds[nr];
	const void *key = kind->key(c);
	struct rules_made *m;
	char why[256];

	if (key == NULL || g_hash_table_contains(k->p->rules[nr], key))
		return (true);
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return (config_refuse(&k->at, kind->directive, no_memory));
	m->kind = kind;
	m->rules = kind->make(c, why, sizeof(why));
	if (m->rules != NULL && !k->met[nr]) {
		rules_free(m);
		return (config_refuse(&k->at, kind->directive, lacks(kind, c)));
	}
	if (m->rules == NULL) {
		free(m);
		return (config_refuse(&k->at, kind->directive, why));
	}
	g_hash_table_insert(k->p->rules[nr], (void *)(uintptr_t)key, m);
	return (true);
}

static bool
homes_load(struct opening *k, const struct conf *c)
{
	struct source passwd;

	if (!homes_are_used(c) || k->p->homes != NULL)
		return (true);
	passwd = sources_get(k->sources, SOURCE_FILE, HOMES_FILE, NULL);
	if (passwd.err != 0)
		log_event(LOG_WARN, NULL, "userdir.unknown", LF_STR("file", HOMES_FILE),
		    LF_ERR("error", passwd.err),
		    LF_STR("then", "no user has a directory; set userdir.basepath"));
	k->p->homes = homes_new(passwd.bytes);
	source_free(&passwd);
	return (k->p->homes != NULL || config_refuse(&k->at, "userdir.path", no_memory));
}

/* The directories that modules look up names in. */
static bool
visit_places(struct opening *k, const struct conf *c)
{
	if (!homes_load(k, c))
		return (false);
	if (c->userdir_active && c->userdir_path != NULL &&
	    !dir_open(k, "userdir.basepath",
		c->userdir_basepath != NULL ? c->userdir_basepath : "/"))
		return (false);
	return (c->vhost_root == NULL || dir_open(k, "simple-vhost.server-root", c->vhost_root));
}

static void
backends_free(void *list)
{
	backends_put(list);
	g_free(list);
}

/* ---- all of them */

static bool
survey(const struct conf *c, void *arg)
{
	struct opening *k = arg;
	size_t i;

	for (i = 0; i < RULES; i++)
		if (k->p->kinds[i]->key(c) != NULL && lacks(k->p->kinds[i], c) == NULL)
			k->met[i] = true;
	k->sends = k->sends || c->proxy_x_sendfile;
	k->proxies =
	    k->proxies || c->proxy_backends.n != 0 || c->authorizer.n != 0 || c->cgi_assign.n != 0;
	return (true);
}

static bool
visit_proxies(struct opening *k, const struct conf *c)
{
	const char *wrong;
	char why[512];
	size_t i;

	for (i = 0; k->sends && i < c->proxy_x_sendfile_root.n; i++)
		if (!dir_open(k, "proxy-core.x-sendfile-docroot", c->proxy_x_sendfile_root.v[i].p))
			return (false);
	for (i = 0; k->sends && i < c->proxy_x_tempdir.n; i++)
		if (!dir_open(k, "proxy-core.x-sendfile-tempdir", c->proxy_x_tempdir.v[i].p))
			return (false);
	for (i = 0; c->cgi_x_sendfile && i < c->cgi_x_sendfile_root.n; i++)
		if (!dir_open(k, "cgi.x-sendfile-docroot", c->cgi_x_sendfile_root.v[i].p))
			return (false);
	if (!rewrite_load(k, "proxy-core.rewrite-request", &c->proxy_rewrite_request) ||
	    !rewrite_load(k, "proxy-core.rewrite-response", &c->proxy_rewrite_response))
		return (false);
	for (i = 0; k->proxies && i < c->upload_dirs.n; i++)
		if (!dir_open(k, "server.upload-dirs", c->upload_dirs.v[i].p))
			return (false);
	wrong = backend_lists_add(k->p->backends, k->sources, c, why, sizeof(why));
	return (wrong == NULL || config_refuse(&k->at, wrong, why));
}

static bool
visit(const struct conf *c, void *arg)
{
	struct opening *k = arg;
	size_t i;

	k->at.c = c;
	if (!dir_open(k, "server.document-root", c->document_root) || !visit_places(k, c))
		return (false);
	for (i = 0; i < RULES; i++)
		if (!rules_load(k, (unsigned)i, c))
			return (false);
	return (pages_load(k, c->error_prefix) && mime_load(k, &c->mime_assign) &&
		log_open(k, log_name_access(c)) && visit_proxies(k, c));
}

/* A missing directory is reported when it is used. */
static bool
fetch(const struct conf *c, void *arg)
{
	struct opening *k = arg;

	k->at.c = c;
	pages_load(k, c->error_prefix);
	homes_load(k, c);
	if (mime_load(k, &c->mime_assign))
		backend_lists_fetch(k->sources, c);
	return (true);
}

static void
tables_make(struct resources *p)
{
	unsigned i;

	p->dirs = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, dir_free);
	p->logs = g_hash_table_new(g_str_hash, g_str_equal);
	p->pages = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, pages_free);
	p->mimes = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)mime_free);
	p->rewrites = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)rewrite_free);
	for (i = 0; i < RULES; i++)
		p->rules[i] = g_hash_table_new_full(NULL, NULL, NULL, rules_free);
	p->backends = g_ptr_array_new_with_free_func(backends_free);
}

void
resources_fetch(const struct config *config)
{
	struct resources *p = calloc(1, sizeof(*p));
	char err[512];
	struct opening k = { .p = p,
		.at = { .config = config, .err = err, .errsize = sizeof(err) },
		.sources = config_sources(config) };

	if (p == NULL)
		return; /* the server finds the same */
	tables_make(p);
	config_each(config, fetch, &k);
	certificates_fetch(config);
	resources_free(p);
}

struct resources *
resources_new(const struct config *config, const struct rules_kind *const *kinds,
    resources_log_fn *open_log, void *arg, char *err, size_t errsize)
{
	struct opening k = { .at = { .config = config, .err = err, .errsize = errsize },
		.open_log = open_log,
		.arg = arg };
	struct resources *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		snprintf(err, errsize, "%s", no_memory);
		return (NULL);
	}
	tables_make(p);
	p->kinds = kinds;
	p->targets = targets_new(config);
	k.p = p;
	k.sources = config_sources(config);
	if (p->targets == NULL)
		snprintf(err, errsize, "%s", no_memory);
	else if (config_each(config, survey, &k) && config_each(config, visit, &k) &&
		 (p->certificates = certificates_new(config, err, errsize)) != NULL &&
		 (p->verifiers = verifiers_new(config, err, errsize)) != NULL) {
		p->tickets = ticket_file_new(config);
		return (p);
	}
	resources_free(p);
	return (NULL);
}

void
resources_warn(const struct resources *p, const struct config *config, struct buf *out)
{
	certificates_warn(p->certificates, config, out);
	ticket_file_warn(p->tickets, config, out);
}

void
resources_free(struct resources *p)
{
	unsigned i;

	if (p == NULL)
		return;
	g_hash_table_destroy(p->dirs);
	g_hash_table_destroy(p->logs);
	g_hash_table_destroy(p->pages);
	g_hash_table_destroy(p->mimes);
	g_hash_table_destroy(p->rewrites);
	for (i = 0; i < RULES; i++)
		g_hash_table_destroy(p->rules[i]);
	g_ptr_array_free(p->backends, TRUE);
	certificates_free(p->certificates);
	verifiers_free(p->verifiers);
	ticket_file_free(p->tickets);
	targets_free(p->targets);
	homes_free(p->homes);
	free(p);
}

/* ---- look-ups */

const struct root *
resources_root(const struct resources *p, const char *dir)
{
	return (conf_is_set(dir) ? g_hash_table_lookup(p->dirs, dir) : NULL);
}

const char *
resources_home(const struct resources *p, struct text user)
{
	return (homes_find(p->homes, user));
}

const struct io_secure *
resources_secure(const struct resources *p, const struct conf *c)
{
	return (certificates_get(p->certificates, c));
}

struct certificates *
resources_certificates(const struct resources *p)
{
	return (p->certificates);
}

struct tls_verifier *
resources_verifier(const struct resources *p, const struct conf *c)
{
	return (verifiers_get(p->verifiers, c));
}

struct verifiers *
resources_verifiers(const struct resources *p)
{
	return (p->verifiers);
}

struct ticket_file *
resources_tickets(const struct resources *p)
{
	return (p->tickets);
}

struct logfile *
resources_log(const struct resources *p, const char *path)
{
	return (conf_is_set(path) ? g_hash_table_lookup(p->logs, path) : NULL);
}

const struct page *
resources_pages(const struct resources *p, const char *prefix)
{
	return (conf_is_set(prefix) ? g_hash_table_lookup(p->pages, prefix) : NULL);
}

const struct mime *
resources_mime(const struct resources *p, const struct conf_map *assign)
{
	return (g_hash_table_lookup(p->mimes, mime_key(assign)));
}

const struct rewrite *
resources_rewrite(const struct resources *p, const struct conf_map *map)
{
	return (map->n != 0 ? g_hash_table_lookup(p->rewrites, map->v) : NULL);
}

const void *
resources_rules(const struct resources *p, unsigned nr, const struct conf *c)
{
	const void *key = p->kinds[nr]->key(c);
	const struct rules_made *m = key != NULL ? g_hash_table_lookup(p->rules[nr], key) : NULL;

	return (m != NULL ? m->rules : NULL);
}

struct backends *
resources_backends(const struct resources *p, int number)
{
	return ((guint)number < p->backends->len ? g_ptr_array_index(p->backends, (guint)number)
						 : NULL);
}

const struct targets *
resources_targets(const struct resources *p)
{
	return (p->targets);
}
