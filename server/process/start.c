/* server/process/start.c -- done at the start, or again at a reload: sockets, limits, user, pid
 * file.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "io/io.h"
#include "io/start/become.h"
#include "io/start/listen.h"
#include "server/process/impl.h"
#include "server/helper/starter.h"

int
process_inherit(struct process *ps)
{
	int i, n = listen_inherited();

	if (starter_socket() >= 0)
		return (process_take_over(ps));
	if (n > (int)CFG_LISTENS_MAX) {
		fprintf(stderr,
		    "accel-server: LISTEN_FDS: expected at most %u sockets, got %d; name fewer in "
		    "the socket unit\n",
		    CFG_LISTENS_MAX, n);
		return (-E2BIG);
	}
	for (i = 0; i < n; i++) {
		struct listener *l = &ps->listeners.v[ps->listeners.n];

		l->fd = LISTEN_FIRST + i;
		if (listen_name(l->fd, l->name) != 0) {
			fprintf(stderr,
			    "accel-server: LISTEN_FDS: descriptor %d is not a listening socket\n",
			    l->fd);
			return (-EINVAL);
		}
		ps->listeners.n++;
	}
	ps->inherited = n > 0;
	return (0);
}

static const struct listener *
listener_find(const struct listeners *ls, const char *name)
{
	size_t i;

	for (i = 0; i < ls->n; i++)
		if (strcmp(ls->v[i].name, name) == 0)
			return (&ls->v[i]);
	return (NULL);
}

static int
listener_open(struct process *ps, const char *name, struct listener *l)
{
	char why[HELPER_WHY_MAX];
	int err = helper_listen(ps->helper, name, why);

	if (err >= 0) {
		l->fd = err;
		snprintf(l->name, sizeof(l->name), "%s", name);
		return (0);
	}
	if (err != -ECANCELED)
		log_event(LOG_ERROR, NULL, "listen.failed", LF_STR("address", name),
		    why[0] != '\0' ? LF_STR("error", why) : LF_ERR("error", err),
		    LF_STR("do",
			err == -EADDRINUSE
			    ? "another program listens there: stop it or change server.port"
			: err == -EACCES ? "ports below 1024 need root or CAP_NET_BIND_SERVICE"
			: err == -EPIPE  ? HELPER_LOST " try again"
					 : "see server.bind, server.port and $SERVER[\"socket\"]"));
	return (err);
}

int
process_listen(struct process *ps, const struct config *config, struct listeners *now)
{
	const struct listener *old;
	const char *name;
	size_t i;
	int err;

	if (ps->inherited) {
		*now = ps->listeners;
		return (0);
	}
	now->n = 0;
	/* at most CFG_LISTENS_MAX */
	for (i = 0; (name = config_listen(config, i)) != NULL; i++) {
		if (listener_find(now, name) != NULL)
			continue;
		old = listener_find(&ps->listeners, name);
		if (old != NULL) {
			now->v[now->n++] = *old;
			continue;
		}
		err = listener_open(ps, name, &now->v[now->n]);
		if (err != 0) {
			process_unlisten(ps, now);
			return (err);
		}
		now->n++;
	}
	return (0);
}

static bool
listener_used(const struct process *ps, int fd)
{
	const struct generation *g;
	size_t i;

	list_each(g, &ps->generations, link)
		for (i = 0; i < g->listeners.n; i++)
			if (g->listeners.v[i].fd == fd)
				return (true);
	return (false);
}

void
process_unlisten(struct process *ps, const struct listeners *ls)
{
	size_t i;

	for (i = 0; i < ls->n && !ps->inherited; i++)
		if (!listener_used(ps, ls->v[i].fd))
			io_close_fd(ls->v[i].fd);
}

unsigned
process_descriptors(const struct conf *c)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0)
		return (1024);
	if (c->max_fds > rl.rlim_max) {
		struct rlimit more = { c->max_fds, c->max_fds };

		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			rl = more;
	}
	rl.rlim_cur = c->max_fds != 0 && c->max_fds < rl.rlim_max ? c->max_fds : rl.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &rl);
	(void)getrlimit(RLIMIT_NOFILE, &rl);
	return (rl.rlim_cur > 1000000 ? 1000000u : (unsigned)rl.rlim_cur);
}

static int
unknown(const char *what, const char *name, const char *what_to_do)
{
	log_event(LOG_ERROR, NULL, "user.unknown", LF_STR(what, name), LF_STR("do", what_to_do));
	return (-ENOENT);
}

const char *
process_find_user(const struct conf *c, struct passwd **pw, struct group **gr)
{
	*gr = c->groupname != NULL ? getgrnam(c->groupname) : NULL;
	*pw = c->username != NULL ? getpwnam(c->username) : NULL;
	if (c->groupname != NULL && *gr == NULL)
		return ("server.groupname");
	return (c->username != NULL && *pw == NULL ? "server.username" : NULL);
}

int
process_become(const struct conf *c)
{
	struct group *gr;
	struct passwd *pw;
	const char *wrong = process_find_user(c, &pw, &gr);
	int err = 0;

	if (wrong != NULL && gr == NULL && c->groupname != NULL)
		return (unknown("group", c->groupname, "correct server.groupname"));
	if (wrong != NULL)
		return (unknown("user", c->username, "correct server.username"));
	if (geteuid() != 0)
		return (0);
	if (gr != NULL || pw != NULL)
		err = become(c->username, pw != NULL ? pw->pw_uid : BECOME_SAME_USER,
		    gr != NULL ? gr->gr_gid : pw->pw_gid);
	if (err != 0) {
		log_event(LOG_ERROR, NULL, "user.failed",
		    LF_STR("user", c->username != NULL ? c->username : "-"),
		    LF_STR("group", c->groupname != NULL ? c->groupname : "-"),
		    LF_ERR("error", err),
		    LF_STR("do",
			err == -ENOTRECOVERABLE
			    ? "root could come back: take CAP_SETUID from the ambient capabilities "
			      "and the "
			      "secure bits of the service"
			    : "give root CAP_SETUID and CAP_SETGID, or let the service manager "
			      "change the user and remove the setting"));
		return (-EPERM);
	}
	if (geteuid() == 0)
		log_event(LOG_WARN, NULL, "running.as-root",
		    LF_STR("do", "set server.username, for example to \"www-data\""));
	return (0);
}

void
process_core_files(const struct conf *c)
{
	struct rlimit rl;

	/* a process that changed its user is not dumpable */
	if (!c->core_files || prctl(PR_SET_DUMPABLE, 1) != 0 || getrlimit(RLIMIT_CORE, &rl) != 0)
		return;
	rl.rlim_cur = rl.rlim_max;
	(void)setrlimit(RLIMIT_CORE, &rl);
	if (rl.rlim_max == 0)
		log_event(LOG_WARN, NULL, "core-files.none",
		    LF_STR("why", "the limit of core files is 0"),
		    LF_STR("do", "raise it: LimitCORE= of systemd, or ulimit -H -c"));
}

int
process_pidfile(struct process *ps, const struct conf *c)
{
	int err;

	if (c->pid_file == NULL)
		return (0);
	err = helper_pidfile(ps->helper, c->pid_file);
	if (err == 0)
		ps->pidfile = strdup(c->pid_file);
	else if (err != -ECANCELED)
		log_event(LOG_ERROR, NULL, "pidfile.failed", LF_STR("path", c->pid_file),
		    LF_ERR("error", err), LF_STR("do", process_open_help(err)));
	return (err);
}
