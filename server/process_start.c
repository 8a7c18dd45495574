/* server/process_start.c -- what is done once, or again at a reload: sockets, limits, user, pid file. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "io/listen.h"
#include "server/process_impl.h"

int
process_inherit(struct process *ps)
{
	int i, n = listen_inherited();

	for (i = 0; i < n && ps->nlisteners < MAX_LISTENERS; i++) {
		struct listener *l = &ps->listeners[ps->nlisteners];

		l->fd = 3 + i;
		if (listen_name(l->fd, l->name) != 0) {
			fprintf(stderr, "accel-server: LISTEN_FDS: descriptor %d is no listening socket\n", l->fd);
			return (-EINVAL);
		}
		ps->nlisteners++;
	}
	ps->inherited = n > 0;
	return (0);
}

static struct listener *
listener_find(struct listener *ls, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(ls[i].name, name) == 0)
			return (&ls[i]);
	return (NULL);
}

static int
listener_open(const struct conf *c, const char *name, struct listener *l)
{
	struct listen_conf lc = {
		.name = name, .backlog = (int)c->backlog,
		.congestion = c->congestion != NULL && c->congestion[0] != '\0' ? c->congestion : NULL,
	};
	int err = listen_open(&lc, &l->fd);

	if (err != 0) {
		log_event(LOG_ERROR, NULL, "listen.failed", LF_STR("address", name), LF_ERR("error", err),
		    LF_STR("do", err == -EADDRINUSE ? "another program listens there: stop it or change server.port"
		        : err == -EACCES ? "ports below 1024 need root or CAP_NET_BIND_SERVICE"
		                         : "see server.bind, server.port and $SERVER[\"socket\"]"));
		return (err);
	}
	snprintf(l->name, sizeof(l->name), "%s", name);
	return (0);
}

/* The sockets a configuration asks for; those that are open already are kept. */
int
process_listen(struct process *ps, const struct config *config)
{
	struct listener now[MAX_LISTENERS];
	const struct conf *c = config_global(config);
	const char *name;
	size_t i, n = 0;
	int err;

	if (ps->inherited)
		return (0);
	for (i = 0; (name = config_listen(config, i)) != NULL; i++) {
		struct listener *old = listener_find(ps->listeners, ps->nlisteners, name);

		if (n == MAX_LISTENERS || listener_find(now, n, name) != NULL)
			continue;
		if (old != NULL)
			now[n++] = *old;
		else if ((err = listener_open(c, name, &now[n])) == 0)
			n++;
		else
			goto failed;
	}
	for (i = 0; i < ps->nlisteners; i++)
		if (listener_find(now, n, ps->listeners[i].name) == NULL)
			listen_close(ps->listeners[i].fd);
	memcpy(ps->listeners, now, n * sizeof(now[0]));
	ps->nlisteners = n;
	return (0);
failed:
	while (n-- != 0)
		if (listener_find(ps->listeners, ps->nlisteners, now[n].name) == NULL)
			listen_close(now[n].fd);
	return (err);
}

unsigned
process_descriptors(const struct conf *c)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0)
		return (1024);
	if (c->max_fds > rl.rlim_max) {
		struct rlimit more = {c->max_fds, c->max_fds};

		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			rl = more;
	}
	rl.rlim_cur = c->max_fds != 0 && c->max_fds < rl.rlim_max ? c->max_fds : rl.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &rl);
	(void)getrlimit(RLIMIT_NOFILE, &rl);
	return (rl.rlim_cur > 1000000 ? 1000000u : (unsigned)rl.rlim_cur);
}

int
process_become(const struct conf *c)
{
	struct group *gr = NULL;
	struct passwd *pw = NULL;

	if (c->groupname != NULL && c->groupname[0] != '\0' && (gr = getgrnam(c->groupname)) == NULL)
		goto unknown;
	if (c->username != NULL && c->username[0] != '\0' && (pw = getpwnam(c->username)) == NULL)
		goto unknown;
	if ((gr == NULL && pw == NULL) || geteuid() != 0)
		return (0);
	if (setgid(gr != NULL ? gr->gr_gid : pw->pw_gid) != 0)
		goto failed;
	if (pw != NULL && (initgroups(pw->pw_name, gr != NULL ? gr->gr_gid : pw->pw_gid) != 0 || setuid(pw->pw_uid) != 0))
		goto failed;
	return (0);
unknown:
	log_event(LOG_ERROR, NULL, "user.unknown", LF_STR("do", "mend server.username or server.groupname"));
	return (-ENOENT);
failed:
	log_event(LOG_ERROR, NULL, "user.failed", LF_ERR("error", -errno));
	return (-EPERM);
}

int
process_pidfile(const struct conf *c)
{
	FILE *f;

	if (c->pid_file == NULL || c->pid_file[0] == '\0')
		return (0);
	f = fopen(c->pid_file, "we");
	if (f == NULL || fprintf(f, "%d\n", (int)getpid()) < 0 || fclose(f) != 0) {
		log_event(LOG_ERROR, NULL, "pidfile.failed", LF_STR("path", c->pid_file), LF_ERR("error", -errno));
		return (-EIO);
	}
	return (0);
}

void
process_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	size_t n;
	int fd;

	if (path == NULL || (n = strlen(path)) >= sizeof(un.sun_path) || n == 0)
		return;
	memcpy(un.sun_path, path, n);
	if (un.sun_path[0] == '@')
		un.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&un,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}
