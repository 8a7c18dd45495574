/* io/tls/context.c -- what a listening socket has: its certificate, its key, its settings. */
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include "io/tls/impl.h"
#include "io/tls/tickets.h"

/* Authenticated ciphers with forward secrecy.  All are strong, so the cheapest comes first; a
 * client that prefers ChaCha20 has no instructions for AES, and gets it. */
#define CIPHERS "ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20"
#define SUITES  "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS  "X25519:P-256:P-384"
/* Keys of RSA of 2048 bits and more, no SHA-1. */
#define SECURITY_LEVEL 2
/* A connection of TLS 1.3 takes one and gets one, so a client that opens as many as last time has
 * enough.  OpenSSL makes two by default; each takes two thirds of a signature with ECDSA. */
#define TICKETS 1

static struct io_secure *
fail(struct tls_secure *s, struct tls_fault *fault, int of, const char *why)
{
	fault->of = of;
	snprintf(fault->why, sizeof(fault->why), "%s", why);
	ERR_clear_error();
	if (s != NULL)
		tls_secure_free(&s->secure);
	return (NULL);
}

/* ---- settings */

/* A client that wants something else only gets no answer to this question. */
static int
choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in,
    unsigned int len, void *arg)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";
	const struct tls_link *l = BIO_get_data(SSL_get_rbio(ssl));
	const unsigned char *ours = l->http2 ? both : both + 3;

	if (SSL_select_next_proto((unsigned char **)(uintptr_t)out, n, ours,
		sizeof(both) - 1 - (size_t)(ours - both), in, len) != OPENSSL_NPN_NEGOTIATED)
		return (SSL_TLSEXT_ERR_NOACK);
	return (SSL_TLSEXT_ERR_OK);
}

/* A connection that ends without an alert is an end: HTTP tells where its bodies end. */
static bool
set_up(SSL_CTX *ctx)
{
	SSL_CTX_set_security_level(ctx, SECURITY_LEVEL);
	SSL_CTX_set_options(ctx,
	    SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_read_ahead(ctx, 1);
	/* Tickets resume a session: the server keeps none. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	tls_tickets_use(ctx);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	return (SSL_CTX_set_num_tickets(ctx, TICKETS) == 1 && SSL_CTX_set_dh_auto(ctx, 1) == 1 &&
		SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
		SSL_CTX_set_cipher_list(ctx, CIPHERS) == 1 &&
		SSL_CTX_set_ciphersuites(ctx, SUITES) == 1 &&
		SSL_CTX_set1_groups_list(ctx, GROUPS) == 1);
}

/* The order of the server counts, as in lighttpd. */
static bool
use_ciphers(SSL_CTX *ctx, const struct tls_settings *set)
{
	if (!set->clients_order)
		SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
	if (set->ciphers == NULL)
		SSL_CTX_set_options(ctx, SSL_OP_PRIORITIZE_CHACHA);
	return (set->ciphers == NULL || SSL_CTX_set_cipher_list(ctx, set->ciphers) == 1);
}

static bool
command(SSL_CONF_CTX *cmds, const struct tls_command *c, char *why, size_t size)
{
	const char *reason;

	if (SSL_CONF_cmd(cmds, c->name, c->value) > 0)
		return (true);
	reason = tls_reason();
	snprintf(why, size, "\"%s\" => \"%s\": %s", c->name, c->value,
	    reason != NULL ? reason : "OpenSSL does not take it");
	return (false);
}

bool
tls_obey(SSL_CTX *ctx, unsigned side, const struct tls_command *c, size_t n,
    struct tls_fault *fault)
{
	SSL_CONF_CTX *cmds = SSL_CONF_CTX_new();
	bool ok = cmds != NULL;
	size_t i;

	fault->of = TLS_OF_COMMANDS;
	snprintf(fault->why, sizeof(fault->why), "not enough memory");
	if (ok) {
		SSL_CONF_CTX_set_flags(cmds, side | SSL_CONF_FLAG_FILE | SSL_CONF_FLAG_SHOW_ERRORS);
		SSL_CONF_CTX_set_ssl_ctx(cmds, ctx);
	}
	for (i = 0; ok && i < n; i++) {
		ERR_clear_error();
		ok = command(cmds, &c[i], fault->why, sizeof(fault->why));
	}
	ok = ok && SSL_CONF_CTX_finish(cmds) == 1;
	SSL_CONF_CTX_free(cmds);
	return (ok);
}

static const struct io_secure calls = { .begin = tls_begin, .try = tls_try };

/* The configuration of OpenSSL (/etc/ssl/openssl.cnf) is not read: that of the server is the only
 * one.  Threads that wait for a disk may be alive when the process exits, so nothing is freed
 * then. */
bool
tls_prepare(void)
{
	return (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) == 1 &&
		tls_sessions_prepare() && tls_bio_prepare() == 0);
}

/* What comes before the certificate, since the level of security judges that.  NULL: all is set. */
static const char *
adjust(SSL_CTX *ctx, const struct tls_settings *set, struct tls_fault *fault)
{
	fault->of = TLS_OF_CIPHERS;
	if (!use_ciphers(ctx, set))
		return ("expected names of ciphers as in ciphers(1), such as "
			"\"ECDHE+AESGCM:ECDHE+CHACHA20\"");
	fault->of = TLS_OF_GROUPS;
	if (set->groups != NULL && SSL_CTX_set1_groups_list(ctx, set->groups) != 1)
		return ("expected names of curves as of OpenSSL, such as \"X25519:P-256:P-384\"");
	fault->of = TLS_OF_DH;
	return (set->dh.p != NULL ? tls_pem_dh(ctx, set->dh) : NULL);
}

struct io_secure *
tls_secure_new(const struct tls_settings *set, struct tls_fault *fault)
{
	struct tls_secure *s = calloc(1, sizeof(*s));
	const char *why;
	int of;

	if (s == NULL || !tls_prepare() || (s->ctx = SSL_CTX_new(TLS_server_method())) == NULL ||
	    !set_up(s->ctx))
		return (fail(s, fault, TLS_OF_CHAIN, "OpenSSL cannot start"));
	s->secure = calls;
	why = adjust(s->ctx, set, fault);
	if (why != NULL)
		return (fail(s, fault, (int)fault->of, why));
	if (!tls_obey(s->ctx, SSL_CONF_FLAG_SERVER, set->commands, set->ncommands, fault)) {
		tls_secure_free(&s->secure);
		return (NULL);
	}
	why = tls_pem_pairs(s->ctx, set->chain, set->key, &of);
	if (why != NULL)
		return (fail(s, fault, of, why));
	why = set->ca.p != NULL ? tls_pem_ca(s->ctx, set->ca) : NULL;
	if (why != NULL)
		return (fail(s, fault, TLS_OF_CA, why));
	if (set->staple.p != NULL)
		s->unstapled = tls_staple_use(s->ctx, set->staple);
	tls_pem_choose(s->ctx);
	if (!tls_sessions_name(s->ctx, set))
		return (fail(s, fault, TLS_OF_CHAIN, "OpenSSL cannot start"));
	return (&s->secure);
}

const char *
tls_secure_unstapled(const struct io_secure *secure)
{
	return (container_of(secure, struct tls_secure, secure)->unstapled);
}

void
tls_secure_free(struct io_secure *secure)
{
	struct tls_secure *s;

	if (secure == NULL)
		return;
	s = container_of(secure, struct tls_secure, secure);
	SSL_CTX_free(s->ctx);
	free(s);
}
