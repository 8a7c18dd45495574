/* io/tls/client.c -- see client.h
 *
 *   loop     SSL_do_handshake() --> send, park --> ... --> up
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "io/engine.h"
#include "io/tls/client.h"
#include "io/tls/impl.h"

#define TLS_PROTOCOL_MAX 15

struct tls_client {
	struct io_secure secure;
	SSL_CTX *ctx;
	char *host;           /* NULL: none is sent */
	const char *protocol; /* the server must take it; NULL: any */
	SSL_SESSION *last;    /* the newest one that can be resumed; NULL: none */
};

/* ---- the handshake */

/* A copy, because OpenSSL uses a session of TLS 1.3 only once, and others begin while the server's
 * next ticket is on its way. */
static bool
resume(SSL *ssl, const SSL_SESSION *last)
{
	SSL_SESSION *s = SSL_SESSION_dup(last);
	bool ok = s != NULL && SSL_set_session(ssl, s) == 1;

	SSL_SESSION_free(s);
	return (ok);
}

static bool
make(struct tls_client *c, struct tls_link *l)
{
	if (!tls_link_make(l))
		return (false);
	SSL_set_connect_state(l->ssl);
	return ((c->host == NULL || SSL_set_tlsext_host_name(l->ssl, c->host) == 1) &&
		(c->last == NULL || resume(l->ssl, c->last)));
}

/* The first step needs no byte of the server. */
static int
client_begin(struct io *io, struct io_op *op)
{
	struct tls_client *c = container_of((struct io_secure *)(uintptr_t)op->handshake.with,
	    struct tls_client, secure);
	struct tls_link *l;

	must(op->sock->transport == NULL);
	op->handshake.why = NULL;
	op->handshake.writes = false;
	op->handshake.resumed = false;
	SSL_CTX_up_ref(c->ctx);
	l = tls_link_new(c->ctx);
	if (l == NULL)
		return (-ENOMEM);
	op->sock->transport = &l->transport;
	if (!make(c, l))
		return (-ENOMEM);
	l->client = true;
	l->fd = op->sock->fd;
	op->sock->hints |= SOCK_READABLE;
	return (0);
}

static void
step(struct tls_link *l)
{
	int rc;

	ERR_clear_error();
	rc = SSL_do_handshake(l->ssl);
	if (rc == 1)
		l->step = TLS_UP;
	else if (SSL_get_error(l->ssl, rc) == SSL_ERROR_WANT_READ)
		l->step = TLS_SHAKES;
	else {
		l->step = TLS_FAILED;
		l->why = tls_reason();
	}
	ERR_clear_error();
}

static bool
failed(struct io_op *op)
{
	struct tls_link *l = tls_link_of(op->sock);

	if (l->err != 0)
		return (tls_ended(op, l->err, NULL));
	return (l->end ? tls_ended(op, -ECONNRESET, NULL) : tls_ended(op, -EPROTO, l->why));
}

static bool
has_protocol(struct tls_link *l)
{
	const struct tls_client *c = SSL_CTX_get_app_data(SSL_get_SSL_CTX(l->ssl));
	const unsigned char *p;
	unsigned n;

	if (c->protocol == NULL)
		return (true);
	SSL_get0_alpn_selected(l->ssl, &p, &n);
	return (n == strlen(c->protocol) && memcmp(p, c->protocol, n) == 0);
}

/* All that was received has been read. */
static bool
is_up(struct io_op *op)
{
	struct tls_link *l = tls_link_of(op->sock);

	if (!has_protocol(l))
		return (tls_ended(op, -EPROTO, "the server does not take the protocol (ALPN)"));
	if (SSL_has_pending(l->ssl) == 1)
		op->sock->hints |= SOCK_READABLE;
	op->handshake.version = (uint16_t)SSL_version(l->ssl);
	op->handshake.resumed = SSL_session_reused(l->ssl) == 1;
	return (tls_ended(op, 0, NULL));
}

static int
step_and_flush(struct tls_link *l, struct io_sock *s)
{
	if (l->step == TLS_UP)
		return (0);
	l->drained = false;
	l->hung = (s->hints & SOCK_HUNG) != 0;
	step(l);
	if (l->drained)
		s->hints &= (uint8_t)~SOCK_READABLE;
	return (tls_flush(l, s, false));
}

static bool
client_try(struct io *io, struct io_op *op)
{
	struct tls_link *l = tls_link_of(op->sock);
	int err = tls_flush(l, op->sock, false);

	if (err == 0)
		err = step_and_flush(l, op->sock);
	if (l->step == TLS_FAILED)
		return (failed(op));
	if (err != 0 && err != -EAGAIN)
		return (tls_ended(op, err, NULL));
	if (err == 0 && l->step == TLS_UP)
		return (is_up(op));
	return (tls_park(io, op, err != 0));
}

/* ---- settings */

/* Called while bytes are read: TLS 1.3 sends tickets after the handshake. */
static int
new_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls_client *c = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	SSL_SESSION_free(c->last);
	c->last = session;
	return (1); /* it is ours */
}

static char *
name_of(const char *host)
{
	struct in6_addr a;

	if (host == NULL || inet_pton(AF_INET, host, &a) == 1 || inet_pton(AF_INET6, host, &a) == 1)
		return (NULL);
	return (strdup(host));
}

static bool
offer(SSL_CTX *ctx, const char *protocol)
{
	unsigned char list[TLS_PROTOCOL_MAX + 1];
	size_t n = strlen(protocol);

	must(n <= TLS_PROTOCOL_MAX);
	list[0] = (unsigned char)n;
	memcpy(list + 1, protocol, n);
	return (SSL_CTX_set_alpn_protos(ctx, list, (unsigned)n + 1) == 0);
}

/* Old servers with weak keys are loaded, too. */
static bool
set_up(SSL_CTX *ctx, const char *protocol)
{
	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_read_ahead(ctx, 1);
	return (offer(ctx, protocol != NULL ? protocol : "http/1.1"));
}

static void
keep_sessions(struct tls_client *c)
{
	SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(c->ctx, new_session);
}

struct io_secure *
tls_client_new(const struct tls_client_settings *set, struct tls_fault *fault)
{
	struct tls_client *c = calloc(1, sizeof(*c));

	fault->of = TLS_OF_COMMANDS;
	snprintf(fault->why, sizeof(fault->why), "OpenSSL cannot start");
	if (c == NULL)
		return (NULL);
	c->secure = (struct io_secure){ .begin = client_begin, .try = client_try };
	c->host = name_of(set->host);
	c->protocol = set->protocol;
	if (!tls_prepare() || (c->ctx = SSL_CTX_new(TLS_client_method())) == NULL ||
	    SSL_CTX_set_app_data(c->ctx, c) != 1 || !set_up(c->ctx, set->protocol) ||
	    !tls_obey(c->ctx, SSL_CONF_FLAG_CLIENT, set->commands, set->ncommands, fault)) {
		tls_client_free(&c->secure);
		return (NULL);
	}
	if (set->resumes)
		keep_sessions(c);
	return (&c->secure);
}

void
tls_client_free(struct io_secure *secure)
{
	struct tls_client *c;

	if (secure == NULL)
		return;
	c = container_of(secure, struct tls_client, secure);
	SSL_SESSION_free(c->last);
	SSL_CTX_free(c->ctx);
	free(c->host);
	free(c);
}
