/* server/process/check.c -- -t: what a start of this user would refuse.
 *
 * Each step calls the function that the start calls, or its variant that makes nothing.  An address
 * in use is not a fault: -t runs while the server runs.
 */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "io/file.h"
#include "io/start/listen.h"
#include "io/safe_open.h"
#include "server/config/check/log_names.h"
#include "server/config/resources.h"
#include "server/module/rules.h"
#include "server/process/impl.h"

#define FDS_SPARE 64u /* of a worker, and of the main thread */

static void
note(int *rc, int status)
{
	if (*rc == 0)
		*rc = status;
}

/* of a setting of the whole server */
static void
fault(const struct config *config, int *rc, int status, const char *setting, const char *value,
    const char *why)
{
	struct buf where;

	buf_init(&where, 0);
	config_where(config, config_global(config), setting, &where);
	fprintf(stderr, "%.*s\"%s\": %s\n", (int)where.n, where.p, value, why);
	buf_free(&where);
	note(rc, status);
}

static const char *
listen_fault(int err, const char *why)
{
	if (why != NULL)
		return (why);
	if (err == -EACCES)
		return ("ports below 1024 need root or CAP_NET_BIND_SERVICE, and a file the right "
			"to write to its directory");
	return (strerror(-err));
}

static void
check_listen(const struct config *config, int *rc)
{
	struct listen_conf lc = { .probe = true, .congestion = config_global(config)->congestion };
	struct conf c;
	const char *why;
	size_t i;
	int err;

	for (i = 0; (lc.name = config_listen(config, i)) != NULL; i++) {
		why = NULL;
		config_socket(config, lc.name, &c);
		lc.both = c.v4mapped || !c.set_v6only;
		err = listen_open(&lc, NULL, &why);
		if (err != 0 && err != -EADDRINUSE) {
			fprintf(stderr, "listening on \"%s\": %s\n", lc.name,
			    listen_fault(err, why));
			note(rc, EX_UNAVAILABLE);
		}
	}
}

static void
check_user(const struct config *config, int *rc)
{
	const struct conf *c = config_global(config);
	const char *wrong;
	struct passwd *pw;
	struct group *gr;

	wrong = process_find_user(c, &pw, &gr);
	if (wrong != NULL)
		fault(config, rc, EX_NOPERM, wrong,
		    strcmp(wrong, "server.username") == 0 ? c->username : c->groupname,
		    "does not exist on this machine");
}

static void
check_files(const struct config *config, int *rc)
{
	const struct conf *c = config_global(config);
	const char *log = log_name_error(c);
	char why[SAFE_OPEN_FAULT];
	size_t i;
	int err;

	err = log != NULL ? logfile_check(log) : 0;
	if (err != 0)
		fault(config, rc, EX_CANTCREAT, "server.errorlog", log, safe_open_fault(err, why));
	err = c->pid_file != NULL ? safe_open_check(c->pid_file) : 0;
	if (err != 0)
		fault(config, rc, EX_CANTCREAT, "server.pid-file", c->pid_file,
		    safe_open_fault(err, why));
	for (i = 0; c->sandbox && i < c->sandbox_paths.n; i++)
		if (access(c->sandbox_paths.v[i].p, F_OK) != 0)
			fault(config, rc, EX_CONFIG, "server.sandbox-paths",
			    c->sandbox_paths.v[i].p, strerror(errno));
}

static void
check_backend(const struct config *config, int *rc)
{
	const struct conf *c = config_global(config);
	const char *note;

	if (file_backend_by_name(c->network_backend, &note) == NULL)
		fault(config, rc, EX_CONFIG, "server.network-backend", c->network_backend,
		    "is unknown; accel-server -V lists them");
}

/* In place of process_accesslog(); arg: counts them. */
static int
check_accesslog(void *arg, const char *path, struct logfile **log)
{
	static char any; /* never used: no line is logged */

	++*(unsigned *)arg;
	*log = (struct logfile *)(void *)&any;
	return (logfile_check(path));
}

static unsigned
open_descriptors(void)
{
	GDir *dir = g_dir_open("/proc/self/fd", 0, NULL);
	unsigned n = 0;

	while (dir != NULL && g_dir_read_name(dir) != NULL)
		n++;
	if (dir != NULL)
		g_dir_close(dir);
	return (n);
}

static unsigned
listens(const struct config *config)
{
	unsigned n = 0;

	while (config_listen(config, n) != NULL)
		n++;
	return (n);
}

/* The directories are open at this point, as in a running server. */
static void
check_descriptors(const struct config *config, unsigned logs, unsigned limit, int *rc)
{
	unsigned dirs = open_descriptors(), needed = dirs + logs + listens(config) + FDS_SPARE;

	if (needed <= limit)
		return;
	fprintf(stderr,
	    "%u directories, %u access logs and the rest of the server need %u descriptors, and "
	    "the limit is %u: raise server.max-fds, LimitNOFILE= of systemd or `ulimit -Hn`\n",
	    dirs, logs, needed, limit);
	note(rc, EX_CONFIG);
}

static void
warn_of_resources(const struct resources *resources, const struct config *config)
{
	struct buf warn;

	buf_init(&warn, 0);
	resources_warn(resources, config, &warn);
	fprintf(stderr, "%.*s", (int)warn.n, warn.n != 0 ? warn.p : "");
	buf_free(&warn);
}

static void
check_resources(const struct config *config, int *rc)
{
	unsigned limit = process_descriptors(config_global(config)), logs = 0;
	struct resources *resources;
	char why[512];

	resources = resources_new(config, rules_kinds, check_accesslog, &logs, why, sizeof(why));
	if (resources == NULL) {
		fprintf(stderr, "%s\n", why);
		note(rc, EX_CONFIG);
	} else {
		warn_of_resources(resources, config);
		check_descriptors(config, logs, limit, rc);
	}
	resources_free(resources);
}

int
process_check(const struct config *config)
{
	int rc = 0;

	check_user(config, &rc);
	check_files(config, &rc);
	check_listen(config, &rc);
	check_backend(config, &rc);
	check_resources(config, &rc);
	return (rc);
}
