/* io/tls/challenge.c -- see challenge.h */
#include "io/tls/challenge.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "io/read_whole.h"
#include "io/tls/hello.h"
#include "io/tls/impl.h"

/* ---- names */

static bool
is_of_host(char c)
{
	return (
	    (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_');
}

/* lighttpd, too, refuses "/" and a dot in front. */
char *
tls_challenge_path(const char *dir, struct text host)
{
	char *path;
	size_t i;

	if (host.n == 0 || host.p[0] == '.')
		return (strdup(""));
	for (i = 0; i < host.n; i++)
		if (!is_of_host(host.p[i]))
			return (strdup(""));
	return (asprintf(&path, "%s/%.*s", dir, (int)host.n, host.p) > 0 ? path : NULL);
}

/* ---- files */

/* .p for free(); .p NULL: it cannot be read. */
static struct text
read_file(const char *path, const char *suffix, int *err)
{
	char name[PATH_MAX];

	if (snprintf(name, sizeof(name), "%s%s", path, suffix) >= (int)sizeof(name))
		return (TEXT_NONE);
	return (io_read_whole(AT_FDCWD, name, TLS_CHALLENGE_FILE_MAX, err));
}

static void
free_file(struct text t)
{
	if (t.p != NULL)
		OPENSSL_cleanse((char *)(uintptr_t)t.p, t.n);
	free((char *)(uintptr_t)t.p);
}

static const char *
use_files(SSL_CTX *ctx, const char *path)
{
	struct text chain, key;
	const char *why = NULL;
	int of, err = 0;

	if (path[0] == '\0')
		return ("a client that asks for acme-tls/1 has to name a host");
	chain = read_file(path, ".crt.pem", &err);
	key = read_file(path, ".key.pem", &err);
	if (err == -EMFILE || err == -ENFILE)
		why = "no descriptors are left; raise server.max-fds";
	else if (chain.p == NULL || key.p == NULL)
		why = "ssl.acme-tls-1 has no files of this host that can be read";
	else if (tls_pem_pairs(ctx, chain, key, &of) != NULL)
		why =
		    "the files of this host in ssl.acme-tls-1 have to be a certificate and its key";
	free_file(chain);
	free_file(key);
	return (why);
}

/* ---- the handshake */

static int
choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in,
    unsigned int len, void *arg)
{
	static const unsigned char ours[] = "\x0a" TLS_CHALLENGE;

	if (SSL_select_next_proto((unsigned char **)(uintptr_t)out, n, ours, sizeof(ours) - 1, in,
		len) != OPENSSL_NPN_NEGOTIATED)
		return (SSL_TLSEXT_ERR_ALERT_FATAL);
	return (SSL_TLSEXT_ERR_OK);
}

SSL_CTX *
tls_challenge_new(const char *path, const char **why)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (ctx == NULL)
		return (NULL);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	(void)SSL_CTX_set_num_tickets(ctx, 0);
	(void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	*why = use_files(ctx, path);
	return (ctx);
}
