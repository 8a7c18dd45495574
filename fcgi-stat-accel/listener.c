#include "fcgi-stat-accel/listener.h"
#include "fcgi-stat-accel/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/address.h"
#include "base/client_addr.h"
#include "base/log.h"
#include "fcgi-stat-accel/peer.h"
#include "io/start/listen.h"

#define BACKLOG 1024 /* the default of spawn-fcgi */

struct listener {
	int fd;
	char **peers; /* by TCP; NULL: every address */
	uid_t *users; /* by unix socket; NULL: every user */
	size_t n_users;
	bool everywhere; /* a wildcard address */
	bool local;      /* by TCP, only peers on this host */
	/* for the log: which peers are served, and which option changes that */
	const char *serves, *change;
	char *path;       /* of a unix socket made here; otherwise NULL */
	struct stat made; /* so that the socket of another process is not removed */
	/* its temporary path until listener_replace(); NULL: there is none */
	char *temporary;
	int keeper; /* closing it removes the socket; -1: listener_stop() removes it */
	bool stay;  /* the keeper stays to the end */
};

static int fail(int code, char **why, const char *format, ...) G_GNUC_PRINTF(3, 4);

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
	case EPERM: return (EX_NOPERM);
	case EADDRINUSE:
	case EADDRNOTAVAIL: return (EX_UNAVAILABLE);
	case ENOENT:
	case ENOTDIR:
	case EROFS: return (EX_CANTCREAT);
	}
	return (EX_OSERR);
}

/* ---------------------------------------------------------------- the socket */

/* A user cannot remove a socket that root made for it in a directory of root. */
static int
keep_path(struct listener *l, const struct listener_conf *conf, const char *path, bool given)
{
	struct keeper_conf k = { .path = path, .temporary = l->temporary, .stay = given };

	l->path = g_strdup(path);
	if (lstat(l->temporary != NULL ? l->temporary : path, &l->made) < 0)
		return (-errno);
	k.made = l->made;
	l->stay = given;
	if (given || conf->replace)
		l->keeper = keeper_start(&k);
	return (given || conf->replace ? MIN(l->keeper, 0) : 0);
}

/* Owner and group may connect to a unix socket, as with spawn-fcgi. */
static int
listen_address(struct listener *l, const struct listener_conf *conf, char **why)
{
	bool given = conf->owner != NULL && geteuid() == 0;
	const char *path = address_path(text_of(conf->address)).p, *text;
	char *name = path != NULL && conf->replace
			 ? g_strdup_printf("unix:%s.%d", path, (int)getpid())
			 : g_strdup(conf->address);
	const struct listen_conf lc = {
		.name = name,
		.backlog = BACKLOG,
		.both = true,
		.set_mode = true,
		.mode = 0660,
		.set_owner = given,
		.uid = given ? conf->owner->uid : (uid_t)-1,
		.gid = given ? conf->owner->gid : (gid_t)-1,
	};
	int err = listen_open(&lc, &l->fd, &text);

	if (path != NULL && conf->replace)
		l->temporary = g_strdup(address_path(text_of(name)).p);
	g_free(name);
	if (err == 0 && path != NULL)
		err = keep_path(l, conf, path, given);
	if (err == 0)
		return (0);
	if (text == NULL)
		return (
		    fail(code_of(-err), why, "--listen %s: %s", conf->address, g_strerror(-err)));
	return (
	    fail(EX_USAGE, why, "--listen %s: %s; an address is unix:PATH, HOST:PORT or [V6]:PORT",
		conf->address, text));
}

/* A socket of the service manager, or descriptor 0. */
static int
take_inherited(struct listener *l, char **why)
{
	bool passed = listen_inherited() > 0;
	int fd = passed ? LISTEN_FIRST : STDIN_FILENO;

	if (listen_adopt(fd) == 0) {
		l->fd = fd;
		return (0);
	}
	if (passed)
		return (fail(EX_CONFIG, why,
		    "LISTEN_FDS is set, but descriptor %d is not a listening socket (with systemd: "
		    "Accept=no)",
		    fd));
	return (fail(EX_USAGE, why,
	    "nothing to listen on: descriptor 0 is %s, not a listening socket.\n"
	    "Start it with\n"
	    "    spawn-fcgi -n -s /run/stat-accel.sock -u www-data -U www-data "
	    "-- " STAT_ACCEL_BINDIR "/fcgi-stat-accel\n"
	    "or let it listen by itself:\n"
	    "    fcgi-stat-accel --listen unix:/run/stat-accel.sock\n"
	    "See fcgi-stat-accel --help.",
	    isatty(STDIN_FILENO) ? "a terminal" : "something else"));
}

/* ---------------------------------------------------------------- permission to connect */

static bool
takes_every_address(int fd)
{
	char name[LISTEN_NAME_MAX];
	struct text host, port;

	if (listen_name(fd, name) != 0 || !address_cut(text_of(name), &host, &port))
		return (false);
	return (address_is_any(host) || text_eq(host, TEXT("[::]")));
}

/* Compares text, because the list is text.  An IPv4 peer of an IPv6 socket is written as IPv4. */
static bool
is_listed_peer(const struct listener *l, const char *peer)
{
	return (g_strv_contains((const char *const *)l->peers, peer));
}

/* The kernel lets no other host use an address of this one.  A peer in another network namespace (a
 * container behind a bridge) has an address of its own: it is another host. */
static bool
is_on_this_host(int fd, const char *peer)
{
	char text[CLIENT_ADDR_MAX];
	union io_addr own;
	socklen_t len = sizeof(own);

	if (g_str_has_prefix(peer, "127.") || strcmp(peer, "::1") == 0)
		return (true);
	return (getsockname(fd, &own.sa, &len) == 0 &&
		strcmp(client_addr_text(&own.sa, text), peer) == 0);
}

static bool
is_listed_user(const struct listener *l, int fd)
{
	uid_t user;

	if (!peer_user(fd, &user))
		return (false);
	if (user == 0 || user == geteuid())
		return (true);
	for (size_t i = 0; i < l->n_users; i++)
		if (l->users[i] == user)
			return (true);
	return (false);
}

static bool
is_welcome_address(const struct listener *l, int fd, const char *peer)
{
	if (l->peers != NULL)
		return (is_listed_peer(l, peer));
	return (!l->local || is_on_this_host(fd, peer));
}

bool
listener_welcome(const struct listener *l, int fd, const union io_addr *peer)
{
	char text[CLIENT_ADDR_MAX];
	const char *name = client_addr_text(&peer->sa, text);
	bool tcp = peer->family == AF_INET || peer->family == AF_INET6;
	bool welcome =
	    tcp ? is_welcome_address(l, fd, name) : l->users == NULL || is_listed_user(l, fd);

	if (!welcome)
		log_limited(1, LOG_WARN, NULL, "peer.refused", LF_STR("peer", name),
		    LF_STR("served", l->serves), LF_STR("change", l->change));
	return (welcome);
}

void
listener_log(const struct listener *l)
{
	char name[LISTEN_NAME_MAX];

	if (l->everywhere && listen_name(l->fd, name) == 0)
		log_event(LOG_INFO, NULL, "listen.everywhere", LF_STR("address", name),
		    LF_STR("served", l->serves), LF_STR("change", l->change));
}

static int
find_users(struct listener *l, const char *const *names, char **why)
{
	if (names == NULL)
		return (0);
	l->users = g_new(uid_t, g_strv_length((char **)names) + 1);
	for (; *names != NULL; names++)
		if (user_number(*names, &l->users[l->n_users++]) != 0)
			return (fail(EX_NOUSER, why,
			    "--peer-user: expected an existing user, got \"%s\"", *names));
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

/* Every client that connects can ask which files exist.  spawn-fcgi -p PORT binds a wildcard
 * address, so such an address alone does not mean that other hosts were meant. */
static void
choose_peers(struct listener *l, bool allow_any)
{
	l->everywhere = takes_every_address(l->fd);
	l->local = l->everywhere && l->peers == NULL && !allow_any;
	l->change = "FCGI_WEB_SERVER_ADDRS";
	if (l->users != NULL) {
		l->serves = "users of --peer-user";
		l->change = "--peer-user";
	} else if (l->peers != NULL) {
		l->serves = "addresses of FCGI_WEB_SERVER_ADDRS";
	} else if (l->local) {
		l->serves = "peers on this host, containers and network namespaces are others";
		l->change = "--allow-any, or addresses in FCGI_WEB_SERVER_ADDRS";
	} else {
		l->serves = "everyone";
	}
}

/* ---------------------------------------------------------------- outside */

static int
listener_prepare(struct listener *l, const struct listener_conf *conf, char **why)
{
	int code;

	code = find_users(l, conf->users, why);
	if (code != 0)
		return (code);
	if (conf->address != NULL)
		code = listen_address(l, conf, why);
	else
		code = take_inherited(l, why);
	if (code != 0)
		return (code);
	choose_peers(l, conf->allow_any);
	return (0);
}

int
listener_start(const struct listener_conf *conf, struct listener **lp, char **why)
{
	struct listener *l = g_new0(struct listener, 1);
	int code;

	l->fd = l->keeper = -1;
	l->peers = split_peers(conf->peers);
	code = listener_prepare(l, conf, why);
	if (code != 0)
		listener_stop(&l);
	else
		*lp = l;
	return (code);
}

void
listener_stop(struct listener **lp)
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
	g_free(l->temporary);
	g_free(l);
	*lp = NULL;
}

int
listener_fd(const struct listener *l)
{
	return (l->fd);
}

int
listener_replace(struct listener *l, pid_t *old)
{
	int err = keeper_replace(l->keeper, old);

	if (err == 0 && !l->stay) {
		close(l->keeper);
		l->keeper = -1;
	}
	return (err);
}
