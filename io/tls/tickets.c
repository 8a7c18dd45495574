/* io/tls/tickets.c -- see tickets.h */
#include "io/tls/tickets.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>
#include "base/clock.h"

static struct {
	pthread_mutex_t lock;
	struct tls_ticket_key key[TLS_TICKET_KEYS]; /* newest first */
} all = { PTHREAD_MUTEX_INITIALIZER, { { { 0 } } } };

static bool
make(struct tls_ticket_key *k, uint64_t now)
{
	if (RAND_bytes(k->name, sizeof(k->name)) != 1 || RAND_bytes(k->aes, sizeof(k->aes)) != 1 ||
	    RAND_bytes(k->hmac, sizeof(k->hmac)) != 1)
		return (false);
	k->made_ns = now;
	return (true);
}

static bool
newest_locked(uint64_t now)
{
	struct tls_ticket_key next;

	if (all.key[0].made_ns != 0 && now < all.key[0].made_ns + TLS_TICKET_S * NS_PER_S)
		return (true);
	if (!make(&next, now))
		return (false);
	memmove(all.key + 1, all.key, sizeof(all.key) - sizeof(all.key[0]));
	all.key[0] = next;
	OPENSSL_cleanse(&next, sizeof(next));
	return (true);
}

bool
tls_ticket_newest(uint64_t now, struct tls_ticket_key *k)
{
	bool ok;

	pthread_mutex_lock(&all.lock);
	ok = newest_locked(now);
	*k = all.key[0];
	pthread_mutex_unlock(&all.lock);
	return (ok);
}

bool
tls_ticket_find(const unsigned char name[TLS_TICKET_NAME], struct tls_ticket_key *k, bool *old)
{
	unsigned i;
	bool found = false;

	pthread_mutex_lock(&all.lock);
	for (i = 0; i < TLS_TICKET_KEYS && !found; i++) {
		found =
		    all.key[i].made_ns != 0 && memcmp(all.key[i].name, name, TLS_TICKET_NAME) == 0;
		*old = i != 0;
		*k = all.key[i];
	}
	pthread_mutex_unlock(&all.lock);
	return (found);
}

static bool
set_mac(EVP_MAC_CTX *mac, struct tls_ticket_key *k)
{
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, k->hmac, sizeof(k->hmac)),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){ "SHA256" }, 0),
		OSSL_PARAM_construct_end(),
	};

	return (EVP_MAC_CTX_set_params(mac, params) == 1);
}

/* What the callback of OpenSSL returns. */
enum { FAILED = -1, UNKNOWN = 0, KNOWN = 1, RENEW = 2 };

static int
seal(unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *c, EVP_MAC_CTX *mac)
{
	struct tls_ticket_key k;
	bool ok = tls_ticket_newest(clock_mono_ns(), &k) && RAND_bytes(iv, 16) == 1;

	memcpy(name, k.name, sizeof(k.name));
	ok = ok && EVP_EncryptInit_ex(c, EVP_aes_256_cbc(), NULL, k.aes, iv) == 1 &&
	     set_mac(mac, &k);
	OPENSSL_cleanse(&k, sizeof(k));
	return (ok ? KNOWN : FAILED);
}

/* again: the client gets a new ticket. */
static int
open_sealed(unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *c, EVP_MAC_CTX *mac, bool again)
{
	struct tls_ticket_key k;
	bool old, ok;

	if (!tls_ticket_find(name, &k, &old))
		return (UNKNOWN);
	ok = EVP_DecryptInit_ex(c, EVP_aes_256_cbc(), NULL, k.aes, iv) == 1 && set_mac(mac, &k);
	OPENSSL_cleanse(&k, sizeof(k));
	return (!ok ? FAILED : old || again ? RENEW : KNOWN);
}

/* A client of TLS 1.3 uses a ticket only once, so that nobody can tell that both connections are
 * its own. */
static int
ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *c, EVP_MAC_CTX *mac,
    int enc)
{
	if (enc)
		return (seal(name, iv, c, mac));
	return (open_sealed(name, iv, c, mac, SSL_version(ssl) == TLS1_3_VERSION));
}

void
tls_tickets_use(SSL_CTX *ctx)
{
	SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, ticket);
	SSL_CTX_set_timeout(ctx, TLS_TICKET_S);
}
