/* server/helper/work.c -- the work of the helper's children, one request each; may block.  See
 * helper.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/start/listen.h"
#include "io/log/logfile.h"
#include "io/safe_open.h"
#include "server/config/certificates.h"
#include "server/config/config.h"
#include "server/config/control_name.h"
#include "server/config/check/limits.h"
#include "server/config/check/log_names.h"
#include "server/config/resources.h"
#include "server/config/check/spawn.h"
#include "server/helper/impl.h"

#define CONTROL_BACKLOG 8

/* ---------------------------------------------------------------- reading the configuration */

/* 5: the error log, the pid file, the control socket, the user of CGI and the end.  A quarter is
 * for the directories of users. */
_Static_assert(5 + CFG_LOGS_MAX + CFG_LISTENS_MAX + CFG_APPLICATIONS_MAX + CFG_HOSTS_MAX +
		       CFG_PROGRAMS_MAX + HELPER_NAMES_MAX / 4 <
		   HELPER_NAMES_MAX,
    "what limits.h allows fits");
_Static_assert(CFG_NAME_MAX == HELPER_NAME_MAX, "both are the length of a name");

static int guardian = -1; /* of a child that reads the configuration */
static GHashTable *told;  /* the names that this child has told, as GBytes */
/* the reason why the load fails: something that the configuration cannot have */
static const char *untold;

/* Thousands of blocks may have the same log.  A name with other settings is new. */
static bool
is_new(const struct helper_name *n)
{
	if (told == NULL)
		told = g_hash_table_new(g_bytes_hash, g_bytes_equal);
	return (g_hash_table_add(told, g_bytes_new(n, sizeof(*n))));
}

/* The guardian has a name before the server can ask for it, so no death of the helper loses one. */
void
helper_tell(int names, struct helper_name *n, enum helper_kind kind, const char *name)
{
	n->kind = kind;
	if (strlen(name) >= sizeof(n->name)) {
		untold = "a path or an address is longer than 1023 bytes";
		return;
	}
	memset(n->name, 0, sizeof(n->name));
	memcpy(n->name, name, strlen(name));
	if (!is_new(n))
		return;
	if (g_hash_table_size(told) > HELPER_NAMES_MAX) {
		untold = "it names more than 65536 different files, hosts and directories";
		return;
	}
	(void)send(guardian, n, sizeof(*n), MSG_NOSIGNAL);
	if (send(names, n, sizeof(*n), MSG_NOSIGNAL) < 0)
		_exit(1);
}

/* A socket file belongs to the user that the server becomes (root owns it until it is bound), and
 * programs for logs run as that user. */
void
helper_owner_of(const struct conf *c, struct helper_name *n)
{
	const struct passwd *pw = c->username != NULL ? getpwnam(c->username) : NULL;
	const struct group *gr = c->groupname != NULL ? getgrnam(c->groupname) : NULL;

	n->uid = pw != NULL ? pw->pw_uid : (uid_t)-1;
	n->gid = gr != NULL ? gr->gr_gid : pw != NULL ? pw->pw_gid : (gid_t)-1;
	n->set_owner = geteuid() == 0 && (pw != NULL || gr != NULL);
}

static bool
tell_log(const struct conf *c, void *names)
{
	struct helper_name n = { 0 };
	const char *log = log_name_access(c);

	helper_owner_of(c, &n);
	if (log != NULL)
		helper_tell(*(int *)names, &n, HELPER_LOG, log);
	return (true);
}

static void
tell_host_names(const struct conf_list *specs, int names)
{
	struct helper_name n = { 0 };
	struct address a;
	size_t i;

	for (i = 0; i < specs->n; i++)
		if (address_parse(specs->v[i].p, &a) == -ENOENT)
			helper_tell(names, &n, HELPER_RESOLVE, specs->v[i].p);
}

static bool
tell_hosts(const struct conf *c, void *names)
{
	tell_host_names(&c->proxy_backends, *(int *)names);
	tell_host_names(&c->authorizer, *(int *)names);
	return (true);
}

static void
tell_listens(const struct config *config, int names)
{
	const struct conf *c = config_global(config);
	struct helper_name n = { .backlog = (int32_t)c->backlog };
	struct conf socket;
	const char *name;
	size_t i;

	helper_owner_of(c, &n);
	if (c->socket_perms != NULL) {
		n.set_mode = true;
		n.mode = (mode_t)strtoul(c->socket_perms, NULL, 8);
	}
	if (c->congestion != NULL)
		snprintf(n.congestion, sizeof(n.congestion), "%s", c->congestion);
	for (i = 0; (name = config_listen(config, i)) != NULL; i++) {
		config_socket(config, name, &socket);
		n.both = socket.v4mapped || !socket.set_v6only;
		n.defer_s = (int32_t)socket.defer_accept;
		helper_tell(names, &n, HELPER_LISTEN, name);
	}
}

/* Its file belongs to the starter, and nobody else may connect. */
static void
tell_control(const struct conf *c, int names)
{
	struct helper_name n = { .backlog = CONTROL_BACKLOG, .set_mode = true, .mode = 0600 };

	if (control_name(c) != NULL)
		helper_tell(names, &n, HELPER_CONTROL, control_name(c));
}

struct telling {
	int names;
	struct helper_name *n;
};

static bool
tell_applications(const struct conf *c, void *arg)
{
	const struct telling *to = arg;
	char line[SPAWN_LINE_MAX];
	size_t i;

	for (i = 0; i < c->proxy_spawn.n; i++)
		if (spawn_line(&c->proxy_spawn.v[i], line) == NULL)
			helper_tell(to->names, to->n, HELPER_SPAWN, line);
	return (true);
}

static void
tell_certificate(const char *file, void *telling)
{
	const struct telling *to = telling;

	helper_tell(to->names, to->n, HELPER_CERTIFICATE, file);
}

static void
tell_certificates(const struct config *config, int names, uint8_t keys)
{
	struct helper_name n = { .keys = keys, .list = certificates_list(config) };
	struct telling to = { names, &n };

	certificates_files(config, tell_certificate, &to);
}

static void
tell_names(const struct config *config, int names, uint8_t keys)
{
	const struct conf *c = config_global(config);
	struct helper_name n = { .timeout_ms = (uint32_t)c->reload_timeout * 1000 };
	struct telling to = { names, &n };

	helper_owner_of(c, &n);
	if (log_name_error(c) != NULL)
		helper_tell(names, &n, HELPER_LOG, log_name_error(c));
	if (c->pid_file != NULL)
		helper_tell(names, &n, HELPER_PIDFILE, c->pid_file);
	tell_control(c, names);
	config_each(config, tell_log, &names);
	config_each(config, tell_hosts, &names);
	tell_listens(config, names);
	cgi_names_tell(config, names);
	config_each(config, tell_applications, &to);
	tell_certificates(config, names, keys);
	if (untold == NULL)
		helper_tell(names, &n, HELPER_LOAD, "");
}

/* Refuses a configuration whose names do not fit (see untold).  server/config/check/limits.h has
 * refused almost all of these, with file and line; only the directories of users are first known
 * here. */
static int
refuse_names(int reply)
{
	char item[256];

	(void)helper_send(reply, item, sources_put_failure(item, sizeof(item), untold), -1);
	return (0);
}

int
helper_work_load(const struct helper_of *of, int reply, int names)
{
	struct helper_hiding hiding = { .of = of };
	const char *file = of->file;
	struct sources *sources = sources_record(reply);
	struct config *config;
	struct buf err, warn;
	uint64_t memory = 0;

	guardian = of->keep;
	buf_init(&err, 0);
	buf_init(&warn, 0);
	config = config_load(file, sources, &err, &warn);
	if (config == NULL) {
		/* the old sources were freed; the replay finds the same error again */
		sources = sources_record(reply);
	} else {
		hiding.use = certificates_keys(config);
		if (hiding.use != 0) {
			/* before its key: the process that has the key may die */
			tell_certificates(config, names, hiding.use);
			sources_hide(config_sources(config), helper_hide_keys, &hiding);
		}
		resources_fetch(config);
		tell_names(config, names, hiding.use);
		if (untold != NULL)
			return (refuse_names(reply));
		memory = config_memory(config) + 1;
	}
	sources_end(sources, memory);
	return (0);
}

/* ---------------------------------------------------------------- looking up */

int
helper_work_resolve(const char *spec, int reply)
{
	struct helper_addresses answer = { 0 };
	char why[HELPER_WHY_MAX] = "";
	int n = address_lookup(spec, answer.v, why, sizeof(why));

	answer.err = n < 0 ? n : 0;
	if (n < 0)
		memcpy(answer.v, why, sizeof(why));
	return (helper_send(reply, &answer,
		    offsetof(struct helper_addresses, v) +
			(n < 0 ? strlen(why) : (size_t)n * sizeof(answer.v[0])),
		    -1) == 0
		    ? 0
		    : 2);
}

/* ---------------------------------------------------------------- opening */

static int
open_socket(const struct helper_name *n, int *fdp, const char **why)
{
	struct listen_conf lc = {
		.name = n->name,
		.backlog = n->backlog,
		.both = n->both != 0,
		.defer_s = n->defer_s,
		.congestion = n->congestion[0] != '\0' ? n->congestion : NULL,
		.set_mode = n->set_mode,
		.set_owner = n->set_owner,
		.mode = n->mode,
		.uid = n->uid,
		.gid = n->gid,
	};

	return (listen_open(&lc, fdp, why));
}

static int
write_pid(const char *path, pid_t server)
{
	char line[32];
	int n = snprintf(line, sizeof(line), "%d\n", (int)server);
	int fd = safe_open(path, O_WRONLY | O_CREAT, 0644), err = 0;

	if (fd < 0)
		return (fd);
	/* A reader of the file of a running server, which an upgrade replaces, finds the old number
	 * or the new one. */
	if (write(fd, line, (size_t)n) != n || (ftruncate(fd, n) != 0 && errno != EINVAL))
		err = -errno;
	close(fd);
	return (err);
}

int
helper_work_remove_pidfile(const char *path, pid_t server)
{
	int fd = safe_open(path, O_RDONLY, 0);
	char line[32] = "";
	ssize_t n;

	if (fd < 0)
		return (fd);
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (n <= 0 || strtol(line, NULL, 10) != (long)server)
		return (-ESTALE); /* the file of another server */
	return (safe_unlink(path));
}

int
helper_work_open(const struct helper_request *r, const struct helper_name *n, pid_t server,
    int reply)
{
	char answer[sizeof(int32_t) + HELPER_WHY_MAX];
	const char *why = NULL;
	int32_t err = 0;
	int fd = -1;

	switch (r->kind) {
	case HELPER_LOG:
		fd = r->name[0] == '|' ? helper_log_program(n) : logfile_open_fd(r->name);
		err = fd < 0 ? fd : 0;
		break;
	case HELPER_LISTEN:
	case HELPER_CONTROL: err = open_socket(n, &fd, &why); break;
	case HELPER_SPAWN: err = helper_spawn(n, reply, &why); break;
	case HELPER_PIDFILE: err = write_pid(r->name, server); break;
	case HELPER_REMOVE_PIDFILE: err = helper_work_remove_pidfile(r->name, server); break;
	case HELPER_LOAD:
	case HELPER_RESOLVE:
	case HELPER_UPGRADE:
	case HELPER_ACTIVATED:
	case HELPER_RENEW:
	case HELPER_TICKETS:
	case HELPER_KINDS:
	case HELPER_CGI_PROGRAM:
	case HELPER_CGI_ROOT:
	case HELPER_CGI_VARIABLE:
	case HELPER_CGI_USER:
	case HELPER_CERTIFICATE: err = -EINVAL; break;
	}
	memcpy(answer, &err, sizeof(err));
	snprintf(answer + sizeof(err), HELPER_WHY_MAX, "%s", err != 0 && why != NULL ? why : "");
	if (helper_send(reply, answer, sizeof(err) + strlen(answer + sizeof(err)),
		err == 0 ? fd : -1) != 0)
		return (2);
	return (err == 0 ? 0 : 2);
}
