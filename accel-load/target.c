/* accel-load/target.c -- see target.h */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include "accel-load/answer.h"
#include "accel-load/http.h"
#include "accel-load/target.h"
#include "base/address.h"
#include "wire/http1/scan.h"

#define HTTP_PORT  80
#define HTTPS_PORT 443

/* ---------------------------------------------------------------- a URL in its parts */

static const char *
split_authority(struct text authority, struct url_parts *u)
{
	struct address_parts a;
	const char *fault;

	if (authority.n == 0 || memchr(authority.p, '@', authority.n) != NULL ||
	    address_path(authority).p != NULL)
		return ("expected http[s]://HOST[:PORT]/PATH, without a user");
	if (address_read(authority, &a, &fault) != 0)
		return (fault);
	if (a.host.n == 0)
		return ("expected a host");
	u->authority = authority;
	u->host = address_bare(a.host);
	u->port = a.port.n != 0 ? a.port_number : u->tls ? HTTPS_PORT : HTTP_PORT;
	return (u->port == 0 ? "expected a port of 1 to 65535 after the host" : NULL);
}

const char *
url_split(struct text url, struct url_parts *u)
{
	const char *end = url.p + url.n, *stop, *fault;

	*u = (struct url_parts){ .path = TEXT("/") };
	if (url.n == 0 || skip_target(url.p, end) != end) {
		stop = url.n > 0 ? memchr(url.p, '#', url.n) : NULL;
		if (stop == NULL || stop == url.p || skip_target(url.p, stop) != stop)
			return (
			    "expected printable ASCII without spaces; other bytes are written %XX");
		end = stop;
		url.n = (size_t)(end - url.p);
	}
	if (url.p[0] == '/') {
		u->path = url;
		return (NULL);
	}
	u->tls = text_istarts(url, TEXT("https://"));
	if (!u->tls && !text_istarts(url, TEXT("http://")))
		return ("expected http[s]://HOST[:PORT]/PATH or /PATH; --urls FILE reads a list");
	text_take(&url, u->tls ? 8 : 7);
	for (stop = url.p; stop < end && *stop != '/' && *stop != '?'; stop++)
		;
	fault = split_authority((struct text){ url.p, (size_t)(stop - url.p) }, u);
	if (stop < end)
		u->path = (struct text){ stop, (size_t)(end - stop) };
	return (
	    fault != NULL || stop == end || *stop == '/' ? fault : "expected / before the query");
}

/* ---------------------------------------------------------------- addresses of this host */

static bool
same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return (false);
	if (a->sa_family == AF_INET)
		return (((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
			((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr);
	return (a->sa_family == AF_INET6 &&
		memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
		    &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
		    sizeof(struct in6_addr)) == 0);
}

static bool
is_loopback(const struct target *t)
{
	if (t->sa.sa_family == AF_INET)
		return (ntohl(t->in.sin_addr.s_addr) >> 24 == 127);
	return (IN6_IS_ADDR_LOOPBACK(&t->in6.sin6_addr));
}

static bool
is_local(const struct target *t)
{
	struct ifaddrs *list, *i;
	bool found = is_loopback(t);

	if (found || getifaddrs(&list) != 0)
		return (found);
	for (i = list; i != NULL && !found; i = i->ifa_next)
		found = i->ifa_addr != NULL && same_address(i->ifa_addr, &t->sa);
	freeifaddrs(list);
	return (found);
}

/* ---------------------------------------------------------------- the list of targets */

static void
name_inet(struct target *t)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (t->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &t->in6.sin6_addr, host, sizeof(host));
		snprintf(t->name, sizeof(t->name), "[%s]:%u", host, ntohs(t->in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &t->in.sin_addr, host, sizeof(host));
		snprintf(t->name, sizeof(t->name), "%s:%u", host, ntohs(t->in.sin_port));
	}
}

/* The first address of a family that --from allows. */
static int
look_up(struct target *t, struct text host, uint16_t port, int family)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM }, *ai;
	char *name = strndup(host.p, host.n), number[8];
	int rc;

	if (name == NULL)
		return (EAI_MEMORY);
	snprintf(number, sizeof(number), "%u", port);
	rc = getaddrinfo(name, number, &hints, &ai);
	free(name);
	if (rc != 0)
		return (rc);
	if (ai->ai_addrlen <= sizeof(t->in6)) {
		memcpy(&t->sa, ai->ai_addr, ai->ai_addrlen);
		t->len = ai->ai_addrlen;
	}
	freeaddrinfo(ai);
	return (t->len != 0 ? 0 : EAI_FAMILY);
}

static int
set_inet(struct target *t, const struct load_conf *conf, struct text host, uint16_t port)
{
	int family = conf->from == NULL ? AF_UNSPEC : strchr(conf->from, ':') ? AF_INET6 : AF_INET;
	int rc = look_up(t, host, port, family);

	if (rc != 0) {
		load_message("%s: %s", t->authority, gai_strerror(rc));
		return (EX_NOHOST);
	}
	name_inet(t);
	t->local = is_local(t);
	return (0);
}

static int
set_unix(struct target *t, struct text path)
{
	if (path.n == 0 || path.n > ADDRESS_PATH_MAX) {
		load_message("%.*s: expected the path of a unix socket, 1 to %d bytes", (int)path.n,
		    path.p, ADDRESS_PATH_MAX);
		return (EX_USAGE);
	}
	t->un.sun_family = AF_UNIX;
	memcpy(t->un.sun_path, path.p, path.n);
	t->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.n + 1);
	t->local = true;
	snprintf(t->name, sizeof(t->name), "unix:%s", t->un.sun_path);
	return (0);
}

static int
set_fields(struct target *t, const struct load_conf *conf)
{
	struct buf b;

	buf_init(&b, 0);
	load_http_fields(conf, t->authority, &b);
	if (b.failed) {
		buf_free(&b);
		load_message("no memory");
		return (EX_OSERR);
	}
	t->fields = b.p; /* freed by target_list_free() */
	t->fields_len = b.n;
	return (0);
}

static int
set_host(struct target *t, struct text host)
{
	t->host = strndup(host.p, host.n);
	if (t->host != NULL)
		return (0);
	load_message("no memory");
	return (EX_OSERR);
}

static struct target *
target_new(struct text authority)
{
	struct target *t = calloc(1, sizeof(*t));

	if (t != NULL && (t->authority = strndup(authority.p, authority.n)) != NULL)
		return (t);
	free(t);
	load_message("no memory");
	return (NULL);
}

static const struct target *
find(const struct target *list, struct text authority, bool tls)
{
	for (; list != NULL; list = list->next)
		if (text_ieq(text_of(list->authority), authority) && (list->host != NULL) == tls)
			return (list);
	return (NULL);
}

static int
add(struct target **list, struct target *t, int code, const struct target **out)
{
	t->next = *list;
	t->nr = *list != NULL ? (*list)->nr + 1 : 0;
	*list = t;
	*out = t;
	return (code);
}

int
target_get(struct target **list, const struct load_conf *conf, const struct url_parts *u,
    const struct target **out)
{
	struct target *t;
	int code;

	if ((*out = find(*list, u->authority, u->tls)) != NULL)
		return (0);
	if ((t = target_new(u->authority)) == NULL)
		return (EX_OSERR);
	code = conf->unix_path != NULL ? set_unix(t, text_of(conf->unix_path))
				       : set_inet(t, conf, u->host, u->port);
	if (code == 0 && u->tls)
		code = set_host(t, u->host);
	if (code == 0)
		code = set_fields(t, conf);
	return (add(list, t, code, out));
}

int
target_get_address(struct target **list, const struct load_conf *conf, const char *address,
    const struct target **out)
{
	struct text all = text_of(address);
	struct address_parts a;
	const char *fault;
	struct target *t;

	if ((*out = find(*list, all, false)) != NULL)
		return (0);
	if (address_read_port(all, &a, &fault) != 0) {
		load_message("%s: %s", address, fault);
		return (EX_USAGE);
	}
	if ((t = target_new(all)) == NULL)
		return (EX_OSERR);
	return (add(list, t,
	    a.path.p != NULL ? set_unix(t, a.path)
			     : set_inet(t, conf, address_bare(a.host), a.port_number),
	    out));
}

void
target_list_free(struct target **list)
{
	struct target *t;

	while ((t = *list) != NULL) {
		*list = t->next;
		free(t->authority);
		free(t->host);
		free(t->fields);
		free(t);
	}
}
