/* io/tls/sessions.c -- where a session may be resumed: only where the client would see the same
 * certificate, and would have got the same connection by the same settings.
 *
 * A ticket has the cipher and the client of its first handshake, and OpenSSL does not ask again
 * whether those would do.  So a session of one host would carry its weaker cipher, or its client
 * that nobody verified, to another host with the same certificate.
 */
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include "io/tls/impl.h"
#include "io/tls/verifier.h"

#define NAME 32 /* bytes: SHA-256, and SSL_MAX_SID_CTX_LENGTH */

static int slot = -1; /* of an SSL_CTX: its name, for those of its SSLs */

static void
free_name(void *parent, void *name, CRYPTO_EX_DATA *all, int idx, long argl, void *argp)
{
	free(name);
}

bool
tls_sessions_prepare(void)
{
	if (slot < 0)
		slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_name);
	return (slot >= 0);
}

static bool
add(EVP_MD_CTX *md, const void *p, size_t n)
{
	uint64_t length = n;

	return (
	    EVP_DigestUpdate(md, &length, sizeof(length)) == 1 && EVP_DigestUpdate(md, p, n) == 1);
}

static bool
add_string(EVP_MD_CTX *md, const char *s)
{
	return (add(md, s != NULL ? s : "", s != NULL ? strlen(s) + 1 : 0));
}

static bool
add_certificate(EVP_MD_CTX *md, const X509 *x)
{
	unsigned char of[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	return (x != NULL && X509_digest(x, EVP_sha256(), of, &n) == 1 && add(md, of, n));
}

/* Of clients that a command lets OpenSSL verify, the files of authorities are not known here: their
 * sessions are resumed until the next reload. */
static bool
add_commands(EVP_MD_CTX *md, const SSL_CTX *ctx, const struct tls_settings *set)
{
	unsigned char once[NAME];
	bool ok = true;
	size_t i;

	for (i = 0; ok && i < set->ncommands; i++)
		ok =
		    add_string(md, set->commands[i].name) && add_string(md, set->commands[i].value);
	if (ok && SSL_CTX_get_verify_mode(ctx) != SSL_VERIFY_NONE)
		ok = RAND_bytes(once, sizeof(once)) == 1 && add(md, once, sizeof(once));
	return (ok);
}

bool
tls_sessions_name(SSL_CTX *ctx, const struct tls_settings *set)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char *name = malloc(NAME);
	unsigned n = 0;
	bool ok;

	ok = md != NULL && name != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
	     add_certificate(md, SSL_CTX_get0_certificate(ctx)) && add_string(md, set->ciphers) &&
	     add_string(md, set->groups) && add(md, set->dh.p, set->dh.p != NULL ? set->dh.n : 0) &&
	     add(md, &set->clients_order, sizeof(set->clients_order)) &&
	     add_commands(md, ctx, set) && EVP_DigestFinal_ex(md, name, &n) == 1 &&
	     SSL_CTX_set_session_id_context(ctx, name, n) == 1 &&
	     SSL_CTX_set_ex_data(ctx, slot, name) == 1;
	if (!ok)
		free(name);
	EVP_MD_CTX_free(md);
	return (ok);
}

bool
tls_sessions_verified(SSL *ssl, const struct tls_verifier *v)
{
	unsigned char both[NAME + TLS_VERIFIER_ID], name[EVP_MAX_MD_SIZE];
	const void *of = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), slot);
	unsigned n = 0;

	if (of == NULL)
		return (false);
	memcpy(both, of, NAME);
	memcpy(both + NAME, tls_verifier_id(v), TLS_VERIFIER_ID);
	return (EVP_Digest(both, sizeof(both), name, &n, EVP_sha256(), NULL) == 1 &&
		SSL_set_session_id_context(ssl, name, n) == 1);
}
