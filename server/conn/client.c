/* server/conn/client.c -- the peer of a connection and the client of a request, for logs,
 * conditions and applications.
 *
 *   peer     the other end of the connection, or what it said by the PROXY protocol
 *   client   the peer; or, if the peer is trusted, the address in its field about the client.  A
 *            proxy sends requests of several clients over one connection, so each request has its
 *            own.
 */
#include <errno.h>

#include "base/log.h"
#include "io/tls/facts.h"
#include "server/conn/clients.h"
#include "server/conn/impl.h"
#include "server/request/id.h"
#include "server/request/request.h"
#include "wire/forwarded.h"

#define NUMBER_MAX 32u

/* id: of at least NUMBER_MAX bytes. */
static size_t
put_number(char *id, const struct request *r)
{
	size_t n = 0;

	id[n++] = 'c';
	n += text_put_u64(id + n, r->conn->id);
	id[n++] = '.';
	n += text_put_u64(id + n, r->conn->nreq);
	id[n] = '\0';
	return (n);
}

static __thread char logged_id[NUMBER_MAX + 1 + REQUEST_ID_MAX + 1];

const char *
conn_request_number(const struct request *r)
{
	(void)put_number(logged_id, r);
	return (logged_id);
}

const char *
conn_request_id(const struct request *r)
{
	struct text id = request_id((struct request *)(uintptr_t)r);
	size_t n = put_number(logged_id, r);

	logged_id[n++] = LOG_ID_REQUEST;
	memcpy(logged_id + n, id.p, id.n);
	logged_id[n + id.n] = '\0';
	return (logged_id);
}

struct text
conn_request_remote(const struct request *r, char buf[64])
{
	return (text_of(client_addr_text(&r->client.sa, buf)));
}

struct log_field
conn_request_client(const struct request *r)
{
	static __thread char client[64];

	return (LF_TEXT("client", conn_remote(r, client)));
}

#define BEGINNING 64

/* A head that cannot be read has no target; its first bytes tell a TLS client from a bad one.  The
 * head is gone when the reply is on its way (conn_send()), and the path is not. */
static struct log_field
asked_for(const struct request *r)
{
	struct text in = { r->conn->in.p, r->conn->in.n }, line;

	if (r->http.target.n != 0)
		return (LF_TEXT("url", r->http.target));
	if (r->path != NULL)
		return (LF_TEXT("path", request_path(r)));
	if (in.n == 0 || !text_next(&in, '\n', &line))
		line = TEXT("");
	line = text_trim_cr(line);
	return (LF_TEXT("begins", line.n > BEGINNING ? text_take(&line, BEGINNING) : line));
}

void
conn_request_tell_refused(const struct request *r, int status, const char *why)
{
	log_limited(10, LOG_INFO, conn_id(r), "request.refused", conn_client(r),
	    LF_U64("status", (unsigned)status), LF_STR("why", why), asked_for(r));
}

static uint16_t
port_of(const union io_addr *a)
{
	return (a->family == AF_INET    ? ntohs(a->in.sin_port)
		: a->family == AF_INET6 ? ntohs(a->in6.sin6_port)
					: 0);
}

uint16_t
conn_request_remote_port(const struct request *r)
{
	return (port_of(&r->client));
}

struct text
conn_request_peer(const struct request *r, char buf[64])
{
	return (text_of(client_addr_text(&r->conn->peer.sa, buf)));
}

bool
conn_request_named_client(const struct request *r, struct client_addr *client)
{
	struct ip ip;

	if (!ip_of_sockaddr(&r->client.sa, &ip) ||
	    (r->conn->trusted && trust_hop(r->conn->trust, &ip)))
		return (false);
	*client = client_addr_of(&r->client.sa);
	return (true);
}

bool
conn_request_metered_client(const struct request *r, struct client_addr *client)
{
	return (conn_named_client(r, client) && r->worker->conf.meters != NULL);
}

/* Behind a trusted proxy the next request may be one of another client. */
unsigned
conn_request_over_rate(struct request *r, bool over)
{
	struct conn *c = r->conn->parent != NULL ? r->conn->parent : r->conn;

	c->over_rate = over && !c->trusted ? c->over_rate + 1 : 0;
	return (c->over_rate);
}

struct pace_share *
conn_request_share(const struct request *r)
{
	return (r->conn->parent != NULL ? &r->conn->parent->pace : NULL);
}

bool
conn_request_takes_tunnel(const struct request *r, unsigned max)
{
	struct clients *all = r->worker->conf.tunnels;
	struct conn *c = r->conn;
	struct client_addr client;

	if (c->tunneler != NULL) /* of an earlier request, perhaps of another client */
		clients_give(all, &c->tunneler);
	return (all == NULL || !conn_named_client(r, &client) ||
		clients_take(all, client, max, &c->tunneler) != -EUSERS);
}

uint64_t
conn_request_passed(const struct request *r)
{
	return (r->sent + r->in.received + (r->conn->sending ? r->sender.sent : 0));
}

bool
conn_request_client_ended(const struct request *r)
{
	return (r->conn->ended);
}

bool
conn_request_claims(const struct request *r, const struct text **v, size_t *n)
{
	const struct trust *t = r->conn->trust;

	*v = t->fields.v;
	*n = t->fields.n;
	return (r->conn->trusted);
}

bool
conn_request_trusted(const struct request *r)
{
	return (r->conn->trusted);
}

struct text
conn_request_scheme(const struct request *r)
{
	return (r->https ? TEXT("https") : TEXT("http"));
}

const struct tls_facts *
conn_request_facts(const struct request *r)
{
	return (io_sock_facts(&r->conn->sock));
}

struct text
conn_request_listener(const struct request *r)
{
	return (text_of(r->conn->listener));
}

uint32_t
conn_request_requests(const struct request *r)
{
	return (r->conn->nreq);
}

/* That of the connection: a stream has no address. */
static const struct io_sock *
sock_of(const struct request *r)
{
	return (r->conn->parent != NULL ? &r->conn->parent->sock : &r->conn->sock);
}

/* The listener may have the address of all interfaces. */
struct text
conn_request_local(const struct request *r, char buf[64])
{
	union io_addr a;

	if (!io_sock_local(sock_of(r), &a) || a.family == AF_UNIX)
		return (TEXT_NONE);
	return (text_of(client_addr_text(&a.sa, buf)));
}

uint16_t
conn_request_local_port(const struct request *r)
{
	union io_addr a;

	return (io_sock_local(sock_of(r), &a) ? port_of(&a) : 0);
}

/* ---- the client of a request */

void
conn_addr_set(union io_addr *a, const struct ip *ip, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	if (ip_is_v4(ip)) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons(port);
		memcpy(&a->in.sin_addr, ip->b + 12, 4);
	} else {
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_port = htons(port);
		memcpy(&a->in6.sin6_addr, ip->b, 16);
	}
}

/* Requests wait in one row per address, so all connections of one client share its turn.  On a
 * unix socket all clients share a row, and are served in the order of arrival. */
static void
client_is(struct request *r, const union io_addr *a)
{
	r->client = *a;
	r->sender.client = client_addr_key(client_addr_of(&a->sa));
}

void
conn_client_reset(struct conn *c)
{
	client_is(c->r, &c->peer);
	c->r->https = c->tls;
}

/* The number of the last field of that name before the n-th, plus one; 0: none. */
static size_t
last_before(const struct http_request *h, size_t n, struct text name)
{
	while (n > 0 && !text_ieq(h->headers[n - 1].name, name))
		n--;
	return (n);
}

static bool
is_standard(struct text name)
{
	return (text_ieq(name, TEXT("Forwarded")));
}

/* Reads all lines of the field; false: there is none. */
static bool
walk(const struct http_request *h, struct text name, struct forwarded_walk *w)
{
	size_t n = last_before(h, h->nheaders, name);

	if (n == 0)
		return (false);
	for (; n > 0; n = last_before(h, n - 1, name))
		(is_standard(name) ? forwarded_elements : forwarded_addresses)(w,
		    h->headers[n - 1].value);
	if (!is_standard(name)) {
		n = last_before(h, h->nheaders, TEXT("X-Forwarded-Proto"));
		w->found.scheme =
		    n != 0 ? forwarded_proto(h->headers[n - 1].value) : SCHEME_UNKNOWN;
	}
	return (true);
}

void
conn_client_find(struct conn *c)
{
	struct forwarded_walk w = { .trusts = trust_hop, .arg = c->trust };
	const struct conf_list *names = &c->trust->fields;
	union io_addr client;
	size_t i;

	for (i = 0; i < names->n && !walk(&c->r->http, names->v[i], &w); i++)
		;
	if (w.found.has_addr) {
		conn_addr_set(&client, &w.found.addr, w.found.port);
		client_is(c->r, &client);
	}
	if (w.found.scheme != SCHEME_UNKNOWN)
		c->r->https = w.found.scheme == SCHEME_HTTPS;
}
