#include "fcgi-stat-accel/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/address.h"
#include "fcgi-stat-accel/keeper.h"
#include "io/listen_unix.h"

#define BACKLOG		1024		/* as spawn-fcgi */
#define FIRST_PASSED_FD 3		/* sd_listen_fds(3) */

struct listener {
	int	       fd;
	char	     **peers;		/* by TCP; NULL: everyone */
	uid_t	      *users;		/* by unix socket; NULL: everyone */
	size_t	       n_users;
	char	      *path;		/* of a unix socket made here, else NULL */
	struct stat    made;		/* so that a successor's socket is not removed */
	int	       keeper;		/* its end removes the socket; -1: listen_stop() does */
};

static int
fail(int code, char **why, const char *format, ...) G_GNUC_PRINTF(3, 4);

static int
fail(int code, char **why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	*why = g_strdup_vprintf(format, args);
	va_end(args);
	return (code);
}

static int
code_of(int err)
{
	switch (err) {
	case EACCES:
	case EPERM:
		return (EX_NOPERM);
	case EADDRINUSE:
	case EADDRNOTAVAIL:
		return (EX_UNAVAILABLE);
	case ENOENT:
	case ENOTDIR:
	case EROFS:
		return (EX_CANTCREAT);
	}
	return (EX_OSERR);
}

/* ---------------------------------------------------------------- an address of our own */

/* Owner and group may connect, as with spawn-fcgi.  What root makes for another user, that user cannot remove later. */
static int
listen_path(struct listener *l, const char *path, const struct user *owner)
{
	bool given = owner != NULL && geteuid() == 0;
	const struct listen_unix_conf conf = {
		.path = path, .backlog = BACKLOG, .mode = 0660,
		.uid = given ? owner->uid : (uid_t)-1, .gid = given ? owner->gid : (gid_t)-1,
	};
	int err = listen_unix(&conf, &l->fd);

	if (err != 0)
		return (err);
	l->path = g_strdup(path);
	if (lstat(path, &l->made) < 0)
		return (-errno);
	if (given)
		l->keeper = keeper_start(l->path, &l->made);
	return (given ? MIN(l->keeper, 0) : 0);
}

static int
listen_one(struct listener *l, const struct addrinfo *ai)
{
	const int on = 1;
	int err;

	l->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return (-errno);
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(l->fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(l->fd, BACKLOG) < 0) {
		err = -errno;			/* close() may change errno */
		close(l->fd);
		l->fd = -1;
		return (err);
	}
	return (0);
}

static int
listen_tcp(struct listener *l, const char *host, const char *port, char **why)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_ADDRCONFIG,
	};
	struct addrinfo *list;
	int err;

	err = getaddrinfo(*host != '\0' ? host : NULL, port, &hints, &list);
	if (err != 0)
		return (fail(EX_USAGE, why, "--listen %s:%s: %s", host, port, gai_strerror(err)));
	err = -EADDRNOTAVAIL;
	for (const struct addrinfo *ai = list; ai != NULL && err != 0; ai = ai->ai_next)
		err = listen_one(l, ai);
	freeaddrinfo(list);
	if (err != 0)
		return (fail(code_of(-err), why, "--listen %s:%s: %s", host, port,
		    g_strerror(-err)));
	return (0);
}

static int
listen_host_port(struct listener *l, const struct address_parts *a, char **why)
{
	struct text bare = text_eq(a->host, TEXT("*")) ? TEXT("") : address_bare(a->host);
	char *host = g_strndup(bare.p, bare.n);
	int code = listen_tcp(l, host, a->port.p, why);

	g_free(host);
	return (code);
}

static int
listen_address(struct listener *l, const struct listen_conf *conf, char **why)
{
	struct address_parts parts;
	const char *expected;
	int err = address_read_port(text_of(conf->address), &parts, &expected);

	if (err != 0)
		return (fail(EX_USAGE, why, "--listen %s: expected %s; an address is unix:PATH, HOST:PORT or [V6]:PORT", conf->address,
		    expected));
	if (parts.path.p == NULL)
		return (listen_host_port(l, &parts, why));
	err = listen_path(l, parts.path.p, conf->owner);
	if (err != 0)
		return (fail(code_of(-err), why, "--listen %s: %s", conf->address, g_strerror(-err)));
	return (0);
}

/* ---------------------------------------------------------------- an inherited socket */

static bool
is_listening(int fd)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &len) == 0 && value != 0);
}

/* LISTEN_PID says for whom the descriptors are: variables are inherited further than meant. */
static bool
fds_were_passed(void)
{
	const char *pid = g_getenv("LISTEN_PID"), *fds = g_getenv("LISTEN_FDS");

	return (pid != NULL && fds != NULL && strtol(pid, NULL, 10) == getpid() &&
	    strtol(fds, NULL, 10) > 0);
}

static int
listen_inherited(struct listener *l, char **why)
{
	if (fds_were_passed()) {
		l->fd = FIRST_PASSED_FD;
		if (is_listening(l->fd))
			return (0);
		l->fd = -1;
		return (fail(EX_CONFIG, why, "LISTEN_FDS is set, but descriptor %d is no listening "
		    "socket (with systemd: Accept=no)", FIRST_PASSED_FD));
	}
	if (is_listening(STDIN_FILENO)) {
		l->fd = STDIN_FILENO;
		return (0);
	}
	return (fail(EX_USAGE, why, "nothing to listen on: descriptor 0 is %s, "
	    "not a listening socket.\n"
	    "Start it with\n"
	    "    spawn-fcgi -n -s /run/stat-accel.sock -u www-data -U www-data -- /usr/local/bin/fcgi-stat-accel\n"
	    "or let it listen by itself:\n"
	    "    fcgi-stat-accel --listen unix:/run/stat-accel.sock\n"
	    "See fcgi-stat-accel --help.", isatty(STDIN_FILENO) ? "a terminal" : "something else"));
}

/* ---------------------------------------------------------------- who may connect */

static bool
is_wildcard(int fd)
{
	union io_addr a;
	socklen_t len = sizeof(a);

	if (getsockname(fd, &a.sa, &len) < 0)
		return (false);
	if (a.family == AF_INET)
		return (a.in.sin_addr.s_addr == htonl(INADDR_ANY));
	return (a.family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a.in6.sin6_addr));
}

/* As text, since the list is text; an IPv4 peer of an IPv6 socket as IPv4. */
static bool
peer_text(const union io_addr *a, char *text, socklen_t size)
{
	const struct in6_addr *six = &a->in6.sin6_addr;

	if (a->family == AF_INET)
		return (inet_ntop(AF_INET, &a->in.sin_addr, text, size) != NULL);
	if (IN6_IS_ADDR_V4MAPPED(six))
		return (inet_ntop(AF_INET, &six->s6_addr[12], text, size) != NULL);
	return (inet_ntop(AF_INET6, six, text, size) != NULL);
}

static bool
is_listed_peer(const struct listener *l, const union io_addr *a)
{
	char text[INET6_ADDRSTRLEN];

	return (peer_text(a, text, sizeof(text)) &&
	    g_strv_contains((const char *const *)l->peers, text));
}

/* Who connected, whoever has the socket by now: the kernel noted it then. */
static bool
is_listed_user(const struct listener *l, int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return (false);
	if (who.uid == 0 || who.uid == geteuid())
		return (true);
	for (size_t i = 0; i < l->n_users; i++)
		if (l->users[i] == who.uid)
			return (true);
	return (false);
}

bool
listen_welcome(const struct listener *l, int fd, const union io_addr *peer)
{
	if (peer->family == AF_INET || peer->family == AF_INET6)
		return (l->peers == NULL || is_listed_peer(l, peer));
	return (l->users == NULL || is_listed_user(l, fd));
}

static int
find_users(struct listener *l, const char *const *names, char **why)
{
	if (names == NULL)
		return (0);
	l->users = g_new(uid_t, g_strv_length((char **)names) + 1);
	for (; *names != NULL; names++)
		if (user_number(*names, &l->users[l->n_users++]) != 0)
			return (fail(EX_NOUSER, why, "--peer-user %s: there is no such user", *names));
	return (0);
}

static char **
split_peers(const char *list)
{
	char **peers;

	if (list == NULL || *list == '\0')
		return (NULL);
	peers = g_strsplit(list, ",", -1);
	for (char **p = peers; *p != NULL; p++)
		g_strstrip(*p);
	return (peers);
}

/* ---------------------------------------------------------------- outside */

static int
listen_prepare(struct listener *l, const struct listen_conf *conf, char **why)
{
	const int on = 1;
	int code;

	code = find_users(l, conf->users, why);
	if (code != 0)
		return (code);
	if (conf->address != NULL)
		code = listen_address(l, conf, why);
	else
		code = listen_inherited(l, why);
	if (code != 0)
		return (code);
	if (is_wildcard(l->fd) && l->peers == NULL && !conf->allow_any)
		return (fail(EX_CONFIG, why, "the socket takes connections from everywhere, and "
		    "whoever connects can ask which files exist.\nBind 127.0.0.1 or a unix "
		    "socket, list the web servers in FCGI_WEB_SERVER_ADDRS,\nor say "
		    "--allow-any."));
	if (fcntl(l->fd, F_SETFL, fcntl(l->fd, F_GETFL) | O_NONBLOCK) < 0)
		return (fail(EX_OSERR, why, "fcntl: %s", g_strerror(errno)));
	setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));	/* inherited by what it accepts; a unix socket refuses */
	return (0);
}

int
listen_start(const struct listen_conf *conf, struct listener **lp, char **why)
{
	struct listener *l = g_new0(struct listener, 1);
	int code;

	l->fd = l->keeper = -1;
	l->peers = split_peers(conf->peers);
	code = listen_prepare(l, conf, why);
	if (code != 0)
		listen_stop(&l);
	else
		*lp = l;
	return (code);
}

void
listen_stop(struct listener **lp)
{
	struct listener *l = *lp;

	if (l == NULL)
		return;
	if (l->keeper >= 0)
		close(l->keeper);
	else if (l->path != NULL)
		keeper_remove(l->path, &l->made);
	if (l->fd >= 0)
		close(l->fd);
	g_strfreev(l->peers);
	g_free(l->users);
	g_free(l->path);
	g_free(l);
	*lp = NULL;
}

int
listen_fd(const struct listener *l)
{
	return (l->fd);
}
