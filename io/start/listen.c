/* io/start/listen.c -- listening sockets, at start-up. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/address.h"
#include "base/must.h"
#include "io/start/listen.h"

/* Of 10 ms: a starting program holds the lock for microseconds. */
#define LOCK_TRIES    200
#define LOCK_NAME_MAX 128 /* a path of a socket, and ".lock" */

/* ---------------------------------------------------------------- TCP */

/* A unix socket refuses. */
static void
set_nodelay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void
set_options(int fd, sa_family_t family, bool both)
{
	int on = 1, v6_only = !both;

	if (family != AF_INET && family != AF_INET6)
		return;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	set_nodelay(fd);
	if (family == AF_INET6) /* so that 0.0.0.0:80 and [::]:80 can both be bound */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
}

static int
bind_listen(int fd, const struct addrinfo *ai, const struct listen_conf *lc)
{
	set_options(fd, (sa_family_t)ai->ai_family, lc->both);
	if (lc->congestion != NULL && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, lc->congestion,
					  (socklen_t)strlen(lc->congestion)) < 0)
		return (-errno);
	if (lc->defer_s > 0 &&
	    setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &lc->defer_s, sizeof(lc->defer_s)) < 0)
		return (-errno);
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0)
		return (-errno);
	return (lc->probe || listen(fd, lc->backlog) == 0 ? 0 : -errno);
}

static int
listen_one(const struct listen_conf *lc, const struct addrinfo *ai, int *fdp)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd < 0 ? -errno : bind_listen(fd, ai, lc);

	if (err == 0 && !lc->probe)
		*fdp = fd;
	else if (fd >= 0)
		close(fd);
	return (err);
}

/* 0, or an error of getaddrinfo(3). */
static int
look_up(const struct listen_conf *lc, const struct address_parts *a, struct addrinfo **list)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct text bare = address_bare(a->host);
	bool none = bare.n == 0 || text_eq(bare, TEXT("*"));
	char *host = !none ? strndup(bare.p, bare.n) : strdup("0.0.0.0"), port[8];
	int rc;

	if (host == NULL)
		return (EAI_MEMORY);
	if (none && lc->both)
		hint.ai_flags |= AI_ADDRCONFIG;
	snprintf(port, sizeof(port), "%u", a->port_number);
	rc = getaddrinfo(none && lc->both ? NULL : host, port, &hint, list);
	free(host);
	return (rc);
}

/* A name may have addresses that this machine lacks: "localhost" is ::1 even without IPv6. */
static int
listen_inet(const struct listen_conf *lc, const struct address_parts *a, int *fdp, const char **why)
{
	const struct addrinfo *ai;
	struct addrinfo *list;
	int err = -EADDRNOTAVAIL, rc = look_up(lc, a, &list);

	if (rc != 0) {
		*why = gai_strerror(rc);
		return (-EADDRNOTAVAIL);
	}
	for (ai = list; ai != NULL && (err == -EADDRNOTAVAIL || err == -EAFNOSUPPORT);
	     ai = ai->ai_next)
		err = listen_one(lc, ai, fdp);
	freeaddrinfo(list);
	return (err);
}

/* ---------------------------------------------------------------- unix sockets
 *
 * The file of a dead server is removed.  A lock makes two starting programs take turns, so that
 * neither removes the living socket of the other: the second one gets -EADDRINUSE.
 *
 *   open PATH.lock --> lock it --> is it still PATH.lock? --yes--> bind, unlink, close
 *        ^                              | no: its holder has removed it
 *        `------------------------------'
 *
 * Only this user can open the file, so no other user can hold the lock.  A directory would not do:
 * each user who may list it may lock it, for ever.
 */

/* Opens the lock file.  -1: only another user could open it.  In /tmp another user may have made
 * it, perhaps as a fifo, or with a lease that would make open(2) wait. */
static int
lock_file(const char *name)
{
	int fd =
	    open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink > 1 ||
			   st.st_uid != geteuid() || (st.st_mode & 077) != 0)) {
		close(fd);
		return (-1);
	}
	return (fd);
}

static bool
is_at(int fd, const char *name)
{
	struct stat st, now;

	return (fstat(fd, &st) == 0 && lstat(name, &now) == 0 && st.st_ino == now.st_ino &&
		st.st_dev == now.st_dev);
}

int
listen_lock(const char *path, int *lockp)
{
	char name[LOCK_NAME_MAX];
	int tries, fd;

	*lockp = -1;
	snprintf(name, sizeof(name), "%s.lock", path);
	for (tries = 0; tries <= LOCK_TRIES; tries++) {
		fd = lock_file(name);
		if (fd < 0)
			return (0);
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(fd, name)) {
			*lockp = fd;
			return (0);
		}
		close(fd);
		usleep(10000);
	}
	return (-EBUSY);
}

void
listen_unlock(const char *path, int lock)
{
	char name[LOCK_NAME_MAX];

	if (lock < 0)
		return;
	snprintf(name, sizeof(name), "%s.lock", path);
	if (is_at(lock, name))
		unlink(name);
	close(lock);
}

/* connect(2) gives the same error for a dead socket and for another kind of file. */
static bool
is_stale(const struct sockaddr_un *un)
{
	struct stat st;
	bool refused;
	int fd;

	if (lstat(un->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return (false);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return (false);
	refused =
	    connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 && errno == ECONNREFUSED;
	close(fd);
	return (refused);
}

/* By descriptor: in a directory of another user the name may be another file by now. */
static int
give_away(const char *path, const struct listen_conf *c)
{
	struct stat st;
	int fd, err = 0;

	if (!c->set_owner)
		return (0);
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		err = -errno;
	else if (!S_ISSOCK(st.st_mode))
		err = -EADDRINUSE;
	else if (fchownat(fd, "", c->uid, c->gid, AT_EMPTY_PATH) != 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return (err);
}

static int
bind_file(int fd, const struct sockaddr_un *un, const struct listen_conf *c)
{
	mode_t mask = c->set_mode ? umask(0777 & ~c->mode) : 0;
	int err = bind(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 ? -errno : 0;

	if (c->set_mode)
		umask(mask);
	return (err);
}

static int
bind_locked(int fd, const struct sockaddr_un *un, const struct listen_conf *c)
{
	int err = bind_file(fd, un, c);

	if (err == -EADDRINUSE && is_stale(un))
		err = unlink(un->sun_path) == 0 ? bind_file(fd, un, c) : -errno;
	if (err == 0)
		err = give_away(un->sun_path, c);
	if (err == 0 && listen(fd, c->backlog) < 0)
		err = -errno;
	return (err);
}

/* Makes the file in its directory, or replaces the file of a dead server. */
static int
probe_unix(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash != NULL)
		slash[slash == dir] = '\0';
	return (faccessat(AT_FDCWD, slash != NULL ? dir : ".", W_OK | X_OK, AT_EACCESS) == 0
		    ? 0
		    : -errno);
}

/* Path has at most ADDRESS_PATH_MAX bytes. */
static int
listen_unix(const struct listen_conf *c, const char *path, int *fdp)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd, lock, err;

	must(strlen(path) < sizeof(un.sun_path));
	strcpy(un.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return (-errno);
	err = listen_lock(path, &lock);
	if (err == 0)
		err = bind_locked(fd, &un, c);
	listen_unlock(path, lock);
	if (err != 0)
		close(fd);
	else
		*fdp = fd;
	return (err);
}

/* ---------------------------------------------------------------- any address */

int
listen_open(const struct listen_conf *lc, int *fdp, const char **why)
{
	struct address_parts a;
	int err = address_read_port(text_of(lc->name), &a, why);

	if (err != 0)
		return (err);
	if (a.path.p == NULL)
		return (listen_inet(lc, &a, fdp, why));
	return (lc->probe ? probe_unix(a.path.p) : listen_unix(lc, a.path.p, fdp));
}

void
listen_refuse(int fd)
{
	int client;

	shutdown(fd, SHUT_RDWR);
	/* a unix socket keeps waiting connections in its queue */
	while ((client = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(client);
}

/* ---------------------------------------------------------------- inherited */

static bool
meant_for_us(void)
{
	const char *pid = getenv("LISTEN_PID");

	return (pid != NULL && strtol(pid, NULL, 10) == (long)getpid());
}

int
listen_adopt(int fd)
{
	char name[LISTEN_NAME_MAX];
	int err = listen_name(fd, name);

	if (err != 0)
		return (err);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return (-errno);
	set_nodelay(fd);
	return (0);
}

int
listen_inherited(void)
{
	const char *s = getenv("LISTEN_FDS");
	int i, n = s != NULL && meant_for_us() ? atoi(s) : 0;

	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDNAMES");
	for (i = 0; i < n; i++)
		/* the caller reports the error after listen_name() */
		listen_adopt(LISTEN_FIRST + i);
	return (n > 0 ? n : 0);
}

int
listen_name(int fd, char name[LISTEN_NAME_MAX])
{
	struct sockaddr_storage ss;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&ss;
	const struct sockaddr_un *un = (const struct sockaddr_un *)&ss;
	socklen_t len = sizeof(int);
	char host[INET6_ADDRSTRLEN];
	int listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0)
		return (-errno);
	if (!listens)
		return (-EINVAL);
	len = sizeof(ss);
	memset(&ss, 0, sizeof(ss));
	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return (-errno);
	if (ss.ss_family == AF_INET)
		snprintf(name, LISTEN_NAME_MAX, "%s:%u",
		    inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host)), ntohs(in->sin_port));
	else if (ss.ss_family == AF_INET6)
		snprintf(name, LISTEN_NAME_MAX, "[%s]:%u",
		    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host)),
		    ntohs(in6->sin6_port));
	else if (ss.ss_family == AF_UNIX)
		snprintf(name, LISTEN_NAME_MAX, "unix:%.*s", (int)sizeof(un->sun_path),
		    un->sun_path);
	else
		return (-EAFNOSUPPORT);
	return (0);
}
