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

#define FIRST_INHERITED 3

struct address {
	struct sockaddr_storage ss;
	socklen_t len;
};

/* An empty host is any IPv4 address. */
static int
inet_address(const struct address_parts *parts, struct address *a)
{
	struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *ai;
	struct text bare = address_is_any(parts->host) ? TEXT("0.0.0.0") : address_bare(parts->host);
	char *host, port[8];
	int err;

	host = strndup(bare.p, bare.n);
	if (host == NULL)
		return (-ENOMEM);
	snprintf(port, sizeof(port), "%u", parts->port_number);
	err = getaddrinfo(host, port, &hint, &ai);
	free(host);
	if (err != 0)
		return (-EINVAL);
	memcpy(&a->ss, ai->ai_addr, ai->ai_addrlen);
	a->len = ai->ai_addrlen;
	freeaddrinfo(ai);
	return (0);
}

/* ---------------------------------------------------------------- opening */

static void
set_options(int fd, sa_family_t family)
{
	int on = 1;

	if (family != AF_INET && family != AF_INET6)
		return;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (family == AF_INET6) /* so that 0.0.0.0:80 and [::]:80 can be had side by side */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
}

static int
bind_listen(int fd, const struct address *a, const struct listen_conf *lc)
{
	set_options(fd, a->ss.ss_family);
	if (lc->congestion != NULL &&
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, lc->congestion, (socklen_t)strlen(lc->congestion)) < 0)
		return (-errno);
	if (bind(fd, (const struct sockaddr *)&a->ss, a->len) < 0 || listen(fd, lc->backlog) < 0)
		return (-errno);
	return (0);
}

static int
listen_inet(const struct listen_conf *lc, const struct address_parts *parts, int *fdp)
{
	struct address a = {.len = 0};
	int fd, err;

	err = inet_address(parts, &a);
	if (err != 0)
		return (err);
	fd = socket(a.ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return (-errno);
	err = bind_listen(fd, &a, lc);
	if (err != 0) {
		close(fd);
		return (err);
	}
	*fdp = fd;
	return (0);
}

int
listen_open(const struct listen_conf *lc, int *fdp)
{
	struct listen_unix_conf uc = {.backlog = lc->backlog, .mode = LISTEN_MODE_UMASK, .uid = (uid_t)-1, .gid = (gid_t)-1};
	struct address_parts parts;
	const char *expected;
	int err = address_read_port(text_of(lc->name), &parts, &expected);

	if (err != 0)
		return (err);
	if (parts.path.p == NULL)
		return (listen_inet(lc, &parts, fdp));
	uc.path = parts.path.p;
	if (lc->set_owner) {
		uc.uid = lc->uid;
		uc.gid = lc->gid;
	}
	if (lc->set_mode)
		uc.mode = lc->mode;
	return (listen_unix(&uc, fdp));
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
listen_inherited(void)
{
	const char *s = getenv("LISTEN_FDS");
	int i, n = s != NULL && meant_for_us() ? atoi(s) : 0;
	char name[LISTEN_NAME_MAX];
	struct sockaddr_storage ss;
	socklen_t len;

	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDNAMES");
	for (i = 0; i < n; i++) {
		len = sizeof(ss);
		if (listen_name(FIRST_INHERITED + i, name) < 0 ||
		    getsockname(FIRST_INHERITED + i, (struct sockaddr *)&ss, &len) < 0)
			continue; /* the caller asks for its name and complains */
		fcntl(FIRST_INHERITED + i, F_SETFD, FD_CLOEXEC);
		fcntl(FIRST_INHERITED + i, F_SETFL, fcntl(FIRST_INHERITED + i, F_GETFL) | O_NONBLOCK);
		set_options(FIRST_INHERITED + i, ss.ss_family);
	}
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
