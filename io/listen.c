/* io/listen.c -- listening sockets, at start-up. */
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
#include <sys/un.h>
#include <unistd.h>
#include "base/address.h"
#include "io/listen.h"
#include "io/listen_unix.h"

/* ---------------------------------------------------------------- opening */

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
	if (family == AF_INET6) /* so that 0.0.0.0:80 and [::]:80 can be had side by side */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
}

static int
bind_listen(int fd, const struct addrinfo *ai, const struct listen_conf *lc)
{
	set_options(fd, (sa_family_t)ai->ai_family, lc->both);
	if (lc->congestion != NULL &&
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, lc->congestion, (socklen_t)strlen(lc->congestion)) < 0)
		return (-errno);
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, lc->backlog) < 0)
		return (-errno);
	return (0);
}

static int
listen_one(const struct listen_conf *lc, const struct addrinfo *ai, int *fdp)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd < 0 ? -errno : bind_listen(fd, ai, lc);

	if (err == 0)
		*fdp = fd;
	else if (fd >= 0)
		close(fd);
	return (err);
}

/* 0, or what getaddrinfo(3) says. */
static int
look_up(const struct listen_conf *lc, const struct address_parts *a, struct addrinfo **list)
{
	struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
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

/* A name may have addresses that this machine does not: "localhost" is ::1 where there is no IPv6. */
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
	for (ai = list; ai != NULL && (err == -EADDRNOTAVAIL || err == -EAFNOSUPPORT); ai = ai->ai_next)
		err = listen_one(lc, ai, fdp);
	freeaddrinfo(list);
	return (err);
}

int
listen_open(const struct listen_conf *lc, int *fdp, const char **why)
{
	struct address_parts a;
	int err = address_read_port(text_of(lc->name), &a, why);

	if (err != 0)
		return (err);
	return (a.path.p != NULL ? listen_unix(lc, a.path.p, fdp) : listen_inet(lc, &a, fdp, why));
}

void
listen_refuse(int fd)
{
	int client;

	shutdown(fd, SHUT_RDWR);
	while ((client = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) /* a unix socket keeps those in its queue */
		close(client);
}

void
listen_close(int fd)
{
	close(fd); /* the file of a unix socket stays: a successor may be bound to it already */
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
		listen_adopt(LISTEN_FIRST + i); /* the caller asks for its name and complains */
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
		snprintf(name, LISTEN_NAME_MAX, "%s:%u", inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host)),
		    ntohs(in->sin_port));
	else if (ss.ss_family == AF_INET6)
		snprintf(name, LISTEN_NAME_MAX, "[%s]:%u",
		    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host)), ntohs(in6->sin6_port));
	else if (ss.ss_family == AF_UNIX)
		snprintf(name, LISTEN_NAME_MAX, "unix:%.*s", (int)sizeof(un->sun_path), un->sun_path);
	else
		return (-EAFNOSUPPORT);
	return (0);
}
