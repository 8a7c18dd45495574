/* server/process/sandbox.c -- the files that the confined server may open, and whether a reload
 * stays within them.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "io/start/notify.h"
#include "io/memory/pressure.h"
#include "io/memory/process_status.h"
#include "server/config/check/homes.h"
#include "server/config/record.h"
#include "server/module/vhost.h"
#include "server/process/impl.h"

struct reach {
	const struct sandbox *sandbox;
	char *why;
	size_t size;
};

static void
add(GArray *paths, const char *path, unsigned rights)
{
	const struct sandbox_path p = { path, rights };

	if (conf_is_set(path))
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

static void
add_copy(GArray *paths, char *path)
{
	static GStringChunk *copies; /* the sandbox is entered once */

	if (copies == NULL)
		copies = g_string_chunk_new(4096);
	if (path != NULL)
		add(paths, g_string_chunk_insert_const(copies, path),
		    SANDBOX_READ | SANDBOX_OPTIONAL);
	g_free(path);
}

struct homes_of {
	GArray *paths;
	const struct conf *conf; /* NULL: not yet */
	const struct config *config;
};

/* A link that leads out of the home would let its user open the sandbox. */
static void
add_home(const char *user, const char *home, void *arg)
{
	const struct homes_of *h = arg;
	char *path = g_build_filename(home, h->conf->userdir_path, NULL);
	char *dir = realpath(home, NULL), *real = realpath(path, NULL);

	if (homes_allowed(h->conf, text_of(user)) && dir != NULL && real != NULL &&
	    g_str_has_prefix(real, dir) && real[strlen(dir)] == '/')
		add_copy(h->paths, g_strdup(real));
	free(dir);
	free(real);
	g_free(path);
}

/* Only the directories that userdir serves, not all that is in the homes. */
static bool
add_homes(const struct conf *c, void *arg)
{
	struct homes_of *h = arg;
	struct source passwd;
	struct homes *homes;

	if (!homes_are_used(c))
		return (true);
	h->conf = c;
	passwd = sources_get(config_sources(h->config), SOURCE_FILE, HOMES_FILE, NULL);
	homes = homes_new(passwd.bytes);
	homes_each(homes, add_home, h);
	homes_free(homes);
	source_free(&passwd);
	return (true);
}

/* Files of users, by setting.  A new file of the same name must be found, so their directory is
 * allowed. */
struct users_file {
	const char *directive, *path;
};
#define USERS_FILES 4u

static void
users_files(const struct conf *c, struct users_file f[USERS_FILES])
{
	f[0] = (struct users_file){ "auth.backend.plain.userfile", c->auth_plain_users };
	f[1] = (struct users_file){ "auth.backend.plain.groupfile", c->auth_groups };
	f[2] = (struct users_file){ "auth.backend.htpasswd.userfile", c->auth_htpasswd };
	f[3] = (struct users_file){ "auth.backend.htdigest.userfile", c->auth_htdigest };
}

static void
add_users(const struct conf *c, GArray *paths)
{
	struct users_file f[USERS_FILES];
	size_t i;

	users_files(c, f);
	for (i = 0; i < USERS_FILES; i++)
		add(paths, f[i].path, SANDBOX_READ | SANDBOX_BESIDE | SANDBOX_OPTIONAL);
}

/* A missing directory is reported when it is opened. */
static bool
add_named(const struct conf *c, void *arg)
{
	size_t i;

	add(arg, c->document_root, SANDBOX_READ | SANDBOX_OPTIONAL);
	for (i = 0; i < c->proxy_x_sendfile_root.n; i++)
		add(arg, c->proxy_x_sendfile_root.v[i].p, SANDBOX_READ | SANDBOX_OPTIONAL);
	for (i = 0; c->cgi_x_sendfile && i < c->cgi_x_sendfile_root.n; i++)
		add(arg, c->cgi_x_sendfile_root.v[i].p, SANDBOX_READ | SANDBOX_OPTIONAL);
	for (i = 0; i < c->proxy_x_tempdir.n; i++)
		add(arg, c->proxy_x_tempdir.v[i].p,
		    SANDBOX_READ | SANDBOX_REMOVE | SANDBOX_OPTIONAL);
	if (c->deflate_types.n != 0)
		add(arg, c->deflate_cache_dir, SANDBOX_READ | SANDBOX_SPOOL | SANDBOX_OPTIONAL);
	add(arg, c->error_prefix, SANDBOX_READ | SANDBOX_BESIDE | SANDBOX_OPTIONAL);
	add_users(c, arg);
	add(arg, c->ssl_challenges, SANDBOX_READ | SANDBOX_OPTIONAL);
	add(arg, c->secdownload_root, SANDBOX_READ | SANDBOX_OPTIONAL);
	for (i = 0; i < c->alias_url.n; i++)
		add(arg, c->alias_url.v[i].value.p, SANDBOX_READ | SANDBOX_OPTIONAL);
	add(arg, c->vhost_root, SANDBOX_READ | SANDBOX_OPTIONAL);
	if (c->evhost_pattern != NULL)
		add_copy(arg, evhost_root(c->evhost_pattern, &i));
	if (c->userdir_active && c->userdir_path != NULL)
		add(arg, c->userdir_basepath, SANDBOX_READ | SANDBOX_OPTIONAL);
	return (true);
}

static bool
finds_links(const struct conf *c, void *found)
{
	*(bool *)found = *(bool *)found || strcmp(c->follow_symlink, "enable") == 0;
	return (true);
}

/* Links may lead anywhere, unless server.sandbox-paths says where. */
static bool
reads_all(const struct config *config)
{
	bool found = false;

	(void)config_each(config, finds_links, &found);
	return (found && config_global(config)->sandbox_paths.n == 0);
}

static GArray *
paths_of(const struct config *config)
{
	const struct conf *c = config_global(config);
	GArray *paths = g_array_new(TRUE, TRUE, sizeof(struct sandbox_path));
	size_t i;

	(void)config_each(config, add_named, paths);
	add(paths, c->ban_file, SANDBOX_READ | SANDBOX_BESIDE | SANDBOX_OPTIONAL);
	(void)config_each(config, add_homes, &(struct homes_of){ paths, NULL, config });
	if (reads_all(config))
		add(paths, "/", SANDBOX_READ);
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

	process_status_open();
	pressure_open();
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
	if (reads_all(config))
		log_event(LOG_WARN, NULL, "sandbox.links",
		    LF_STR("what", "server.follow-symlink = \"enable\": the server may read every "
				   "file that its user may read"),
		    LF_STR("do", "name the directories that links lead to in "
				 "server.sandbox-paths; then it reads no others"));
	return (0);
}

static bool
reaches(const struct reach *r, const char *directive, const char *dir)
{
	if (!conf_is_set(dir) || sandbox_allows(r->sandbox, SANDBOX_READ, dir))
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
	if (!conf_is_set(dir) || sandbox_allows(r->sandbox, SANDBOX_SPOOL, dir))
		return (true);
	snprintf(r->why, r->size,
	    "%s \"%s\": the running server may not write there (server.sandbox); restart it",
	    directive, dir);
	return (false);
}

static bool
reaches_temp(const struct reach *r, const char *dir)
{
	if (!conf_is_set(dir) || sandbox_allows(r->sandbox, SANDBOX_REMOVE, dir))
		return (true);
	snprintf(r->why, r->size,
	    "proxy-core.x-sendfile-tempdir \"%s\": the running server may not remove files there "
	    "(server.sandbox); restart it",
	    dir);
	return (false);
}

static bool
reaches_evhost(const struct reach *r, const struct conf *c)
{
	size_t n;
	char *dir = c->evhost_pattern != NULL ? evhost_root(c->evhost_pattern, &n) : NULL;
	bool ok = reaches(r, "evhost.path-pattern", dir);

	g_free(dir);
	return (ok);
}

static bool
reaches_users(const struct reach *r, const struct conf *c)
{
	struct users_file f[USERS_FILES];
	bool ok = true;
	char *dir;
	size_t i;

	users_files(c, f);
	for (i = 0; ok && i < USERS_FILES; i++) {
		dir = f[i].path != NULL ? g_path_get_dirname(f[i].path) : NULL;
		ok = reaches(r, f[i].directive, dir);
		g_free(dir);
	}
	return (ok);
}

static bool
reaches_named(const struct conf *c, void *arg)
{
	char *pages = c->error_prefix != NULL ? g_path_get_dirname(c->error_prefix) : NULL;
	bool ok = reaches(arg, "server.document-root", c->document_root) &&
		  reaches(arg, "server.errorfile-prefix", pages) && reaches_users(arg, c) &&
		  reaches(arg, "secdownload.document-root", c->secdownload_root);
	size_t i;

	for (i = 0; ok && i < c->proxy_x_sendfile_root.n; i++)
		ok = reaches(arg, "proxy-core.x-sendfile-docroot", c->proxy_x_sendfile_root.v[i].p);
	ok = ok && reaches(arg, "simple-vhost.server-root", c->vhost_root) &&
	     reaches(arg, "userdir.basepath", c->userdir_basepath) && reaches_evhost(arg, c);
	for (i = 0; ok && c->cgi_x_sendfile && i < c->cgi_x_sendfile_root.n; i++)
		ok = reaches(arg, "cgi.x-sendfile-docroot", c->cgi_x_sendfile_root.v[i].p);
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
	char *bans = c->ban_file != NULL ? g_path_get_dirname(c->ban_file) : NULL;
	bool ok = config_each(config, reaches_named, &r) && reaches(&r, "server.ban-file", bans) &&
		  (!reads_all(config) ||
		      reaches(&r, "server.follow-symlink = \"enable\": links to", "/"));
	size_t i;

	g_free(bans);
	for (i = 0; ok && has_application(config) && i < c->upload_dirs.n; i++)
		ok = reaches_spool(&r, "server.upload-dirs", c->upload_dirs.v[i].p);
	return (ok);
}
