/* server/process/sandbox.c -- the files that the confined server may open, and whether a reload
 * stays within them.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "io/notify.h"
#include "server/process/impl.h"

struct reach {
	const struct sandbox *sandbox;
	char *why;
	size_t size;
};

static bool
is_set(const char *s)
{
	return (s != NULL && s[0] != '\0');
}

static void
add(GArray *paths, const char *path, unsigned rights)
{
	const struct sandbox_path p = { path, rights };

	if (is_set(path))
		g_array_append_val(paths, p);
}

/* Only bodies for applications are spooled: without an application the server writes nothing. */
static bool
finds_application(const struct conf *c, void *found)
{
	*(bool *)found = *(bool *)found || c->proxy_backends.n != 0 || c->cgi_assign.n != 0;
	return (true);
}

static bool
has_application(const struct config *config)
{
	bool found = false;

	(void)config_each(config, finds_application, &found);
	return (found);
}

/* A missing directory is reported when it is opened. */
static bool
add_named(const struct conf *c, void *arg)
{
	size_t i;

	add(arg, c->document_root, SANDBOX_READ | SANDBOX_OPTIONAL);
	for (i = 0; i < c->proxy_x_sendfile_root.n; i++)
		add(arg, c->proxy_x_sendfile_root.v[i].p, SANDBOX_READ | SANDBOX_OPTIONAL);
	for (i = 0; i < c->proxy_x_tempdir.n; i++)
		add(arg, c->proxy_x_tempdir.v[i].p,
		    SANDBOX_READ | SANDBOX_REMOVE | SANDBOX_OPTIONAL);
	if (c->deflate_types.n != 0)
		add(arg, c->deflate_cache_dir, SANDBOX_READ | SANDBOX_SPOOL | SANDBOX_OPTIONAL);
	add(arg, c->error_prefix, SANDBOX_READ | SANDBOX_BESIDE | SANDBOX_OPTIONAL);
	for (i = 0; i < c->alias_url.n; i++)
		add(arg, c->alias_url.v[i].value.p, SANDBOX_READ | SANDBOX_OPTIONAL);
	return (true);
}

static GArray *
paths_of(const struct config *config)
{
	const struct conf *c = config_global(config);
	GArray *paths = g_array_new(TRUE, TRUE, sizeof(struct sandbox_path));
	size_t i;

	(void)config_each(config, add_named, paths);
	for (i = 0; i < c->sandbox_paths.n; i++)
		add(paths, c->sandbox_paths.v[i].p, SANDBOX_READ);
	for (i = 0; has_application(config) && i < c->upload_dirs.n; i++)
		add(paths, c->upload_dirs.v[i].p, SANDBOX_SPOOL | SANDBOX_OPTIONAL);
	add(paths, "/dev/null", SANDBOX_WRITE | SANDBOX_OPTIONAL);
	return (paths);
}

static unsigned
programs_of(const struct conf *c)
{
	bool ring = strcmp(c->network_backend, "io-uring") == 0;

	return (SANDBOX_SERVER | (ring ? SANDBOX_URING : 0));
}

int
process_sandbox(struct process *ps, const struct config *config)
{
	const struct conf *c = config_global(config);
	GArray *paths;
	char why[512];
	int err;

	if (!c->sandbox)
		return (0);
	notify_open();
	paths = paths_of(config);
	err = sandbox_enter(programs_of(c), (const struct sandbox_path *)(void *)paths->data,
	    &ps->sandbox, why, sizeof(why));
	g_array_free(paths, TRUE);
	if (err != 0) {
		log_event(LOG_ERROR, NULL, "sandbox.failed", LF_STR("why", why),
		    LF_STR("do", "correct the path, or set server.sandbox = \"disable\""));
		return (err);
	}
	sandbox_log(&ps->sandbox, true);
	return (0);
}

static bool
reaches(const struct reach *r, const char *directive, const char *dir)
{
	if (!is_set(dir) || sandbox_allows(r->sandbox, SANDBOX_READ, dir))
		return (true);
	snprintf(r->why, r->size,
	    "%s \"%s\": the running server may not read there (server.sandbox); restart it, or "
	    "have the directory or its parent in server.sandbox-paths when it starts",
	    directive, dir);
	return (false);
}

static bool
reaches_spool(const struct reach *r, const char *directive, const char *dir)
{
	if (!is_set(dir) || sandbox_allows(r->sandbox, SANDBOX_SPOOL, dir))
		return (true);
	snprintf(r->why, r->size,
	    "%s \"%s\": the running server may not write there (server.sandbox); restart it",
	    directive, dir);
	return (false);
}

static bool
reaches_temp(const struct reach *r, const char *dir)
{
	if (!is_set(dir) || sandbox_allows(r->sandbox, SANDBOX_REMOVE, dir))
		return (true);
	snprintf(r->why, r->size,
	    "proxy-core.x-sendfile-tempdir \"%s\": the running server may not remove files there "
	    "(server.sandbox); restart it",
	    dir);
	return (false);
}

static bool
reaches_named(const struct conf *c, void *arg)
{
	char *pages = c->error_prefix != NULL ? g_path_get_dirname(c->error_prefix) : NULL;
	bool ok = reaches(arg, "server.document-root", c->document_root) &&
		  reaches(arg, "server.errorfile-prefix", pages);
	size_t i;

	for (i = 0; ok && i < c->proxy_x_sendfile_root.n; i++)
		ok = reaches(arg, "proxy-core.x-sendfile-docroot", c->proxy_x_sendfile_root.v[i].p);
	for (i = 0; ok && i < c->alias_url.n; i++)
		ok = reaches(arg, "alias.url", c->alias_url.v[i].value.p);
	for (i = 0; ok && i < c->proxy_x_tempdir.n; i++)
		ok = reaches_temp(arg, c->proxy_x_tempdir.v[i].p);
	if (ok && c->deflate_types.n != 0)
		ok = reaches_spool(arg, "deflate.cache-dir", c->deflate_cache_dir);
	g_free(pages);
	return (ok);
}

bool
process_sandbox_reaches(const struct process *ps, const struct config *config, char *why,
    size_t size)
{
	const struct conf *c = config_global(config);
	struct reach r = { &ps->sandbox, why, size };
	bool ok = config_each(config, reaches_named, &r);
	size_t i;

	for (i = 0; ok && has_application(config) && i < c->upload_dirs.n; i++)
		ok = reaches_spool(&r, "server.upload-dirs", c->upload_dirs.v[i].p);
	return (ok);
}
