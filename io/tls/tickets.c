/* io/tls/tickets.c -- see tickets.h */
#include "io/tls/tickets.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include "base/clock.h"
#include "base/text.h"
#include "io/tls/stek.h"
#include "io/tls/tls.h"

struct keys {
	struct tls_ticket_key key[TLS_TICKET_KEYS]; /* newest first */
};
_Static_assert(TLS_TICKETS_TEXT == 2 * sizeof(struct keys) + 1, "two digits for each byte");

static struct {
	pthread_mutex_t lock;
	struct keys *keys; /* in no core file; NULL: not made yet */
	bool shared;       /* they are of files */
	uint64_t end_s;    /* of files: when the last of them ends; 0: there was none */
} all = { PTHREAD_MUTEX_INITIALIZER, NULL, false, 0 };

void *
tls_ticket_memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return (NULL);
	(void)madvise(p, n, MADV_DONTDUMP);
	return (p);
}

void
tls_ticket_memory_free(void *p, size_t n)
{
	if (p == NULL)
		return;
	OPENSSL_cleanse(p, n);
	munmap(p, n);
}

/* Under the lock, as the next ones.  False: no memory. */
static bool
has_keys(void)
{
	if (all.keys == NULL)
		all.keys = tls_ticket_memory(sizeof(*all.keys));
	return (all.keys != NULL);
}

/* In place of the one with its name, or of the oldest one. */
static void
put_first(const struct tls_ticket_key *k)
{
	struct tls_ticket_key *key = all.keys->key;
	unsigned i = 0;

	while (i < TLS_TICKET_KEYS - 1 && memcmp(key[i].name, k->name, TLS_TICKET_NAME) != 0)
		i++;
	memmove(key + 1, key, i * sizeof(*key));
	key[0] = *k;
}

static bool
has_ended(const struct tls_ticket_key *k, uint64_t now_s)
{
	return (k->end_s != 0 && k->end_s < now_s);
}

static void
forget_ended(void)
{
	struct tls_ticket_key *key = all.keys->key;
	const uint64_t now_s = clock_wall_ns() / NS_PER_S;
	unsigned i, n = 0;

	for (i = 0; i < TLS_TICKET_KEYS; i++)
		if (!has_ended(&key[i], now_s))
			key[n++] = key[i];
	OPENSSL_cleanse(key + n, (TLS_TICKET_KEYS - n) * sizeof(*key));
}

static bool
has_begun(const struct tls_ticket_key *k)
{
	return (k->made_ns != 0 && k->from_s <= clock_wall_ns() / NS_PER_S);
}

static bool
make(struct tls_ticket_key *k, uint64_t now)
{
	*k = (struct tls_ticket_key){ .made_ns = now };
	if (RAND_bytes(k->name, sizeof(k->name)) != 1 || RAND_bytes(k->aes, sizeof(k->aes)) != 1 ||
	    RAND_bytes(k->hmac, sizeof(k->hmac)) != 1)
		return (false);
	return (true);
}

static bool
newest_own(uint64_t now, struct tls_ticket_key *k)
{
	const struct tls_ticket_key *first = all.keys->key;

	if (first->made_ns == 0 || now >= first->made_ns + TLS_TICKET_S * NS_PER_S) {
		if (!make(k, now))
			return (false);
		put_first(k);
	}
	*k = *first;
	return (true);
}

/* OpenSSL writes a broken message of TLS 1.3 for want of a key. */
static bool
newest_shared(uint64_t now, struct tls_ticket_key *k)
{
	unsigned i = 0;

	forget_ended();
	while (i < TLS_TICKET_KEYS && !has_begun(&all.keys->key[i]))
		i++;
	if (i == TLS_TICKET_KEYS)
		return (make(k, now));
	*k = all.keys->key[i];
	return (true);
}

bool
tls_ticket_newest(uint64_t now, struct tls_ticket_key *k)
{
	bool ok;

	pthread_mutex_lock(&all.lock);
	ok = has_keys() && (all.shared ? newest_shared(now, k) : newest_own(now, k));
	pthread_mutex_unlock(&all.lock);
	return (ok);
}

bool
tls_ticket_find(const unsigned char name[TLS_TICKET_NAME], struct tls_ticket_key *k, bool *old)
{
	const struct tls_ticket_key *one;
	unsigned i;
	bool found = false;

	*old = false;
	pthread_mutex_lock(&all.lock);
	if (has_keys())
		forget_ended();
	for (i = 0; i < TLS_TICKET_KEYS && !found && all.keys != NULL; i++) {
		one = &all.keys->key[i];
		found = one->made_ns != 0 && memcmp(one->name, name, TLS_TICKET_NAME) == 0;
		if (found)
			*k = *one;
		else
			*old = *old || has_begun(one);
	}
	pthread_mutex_unlock(&all.lock);
	return (found);
}

/* ---- keys of files */

static void
begin_anew(bool shared)
{
	if (all.shared != shared && all.keys != NULL)
		OPENSSL_cleanse(all.keys, sizeof(*all.keys));
	if (all.shared != shared)
		all.end_s = 0;
	all.shared = shared;
}

static void
note_end(const struct tls_ticket_key *k)
{
	if (all.end_s < k->end_s)
		all.end_s = k->end_s;
}

void
tls_tickets_share(const struct tls_ticket_key *k)
{
	pthread_mutex_lock(&all.lock);
	begin_anew(true);
	if (k != NULL && has_keys()) {
		put_first(k);
		note_end(k);
	}
	pthread_mutex_unlock(&all.lock);
}

void
tls_stek_stop(void)
{
	pthread_mutex_lock(&all.lock);
	begin_anew(false);
	pthread_mutex_unlock(&all.lock);
}

uint64_t
tls_stek_end_s(void)
{
	uint64_t end_s;

	pthread_mutex_lock(&all.lock);
	end_s = all.end_s;
	pthread_mutex_unlock(&all.lock);
	return (end_s);
}

/* ---- to the next process */

static void
put_hex(char *dst, const void *from, size_t n)
{
	static const char digit[] = "0123456789abcdef";
	const unsigned char *p = from;
	size_t i;

	for (i = 0; i < n; i++) {
		*dst++ = digit[p[i] >> 4];
		*dst++ = digit[p[i] & 15];
	}
	*dst = '\0';
}

static bool
take_hex(void *to, const char *from, size_t n)
{
	unsigned char *p = to;
	size_t i;
	int a, b;

	for (i = 0; i < n; i++) {
		a = text_hex_digit(from[2 * i]);
		b = text_hex_digit(from[2 * i + 1]);
		if (a < 0 || b < 0)
			return (false);
		p[i] = (unsigned char)(a << 4 | b);
	}
	return (true);
}

bool
tls_tickets_save(char text[TLS_TICKETS_TEXT])
{
	bool some;

	pthread_mutex_lock(&all.lock);
	some = all.keys != NULL && all.keys->key[0].made_ns != 0;
	if (some)
		put_hex(text, all.keys, sizeof(*all.keys));
	pthread_mutex_unlock(&all.lock);
	return (some);
}

bool
tls_tickets_load(const char *text, uint64_t now)
{
	struct keys keys;
	unsigned i;
	bool ok = strlen(text) == TLS_TICKETS_TEXT - 1 && take_hex(&keys, text, sizeof(keys)) &&
		  keys.key[0].made_ns != 0 && keys.key[0].made_ns <= now;

	pthread_mutex_lock(&all.lock);
	ok = ok && has_keys();
	if (ok) {
		*all.keys = keys;
		all.shared = keys.key[0].end_s != 0;
		all.end_s = 0;
	}
	for (i = 0; ok && i < TLS_TICKET_KEYS; i++)
		note_end(&keys.key[i]);
	pthread_mutex_unlock(&all.lock);
	OPENSSL_cleanse(&keys, sizeof(keys));
	return (ok);
}

/* ---- what OpenSSL calls */

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
	bool ok;

	if (!tls_ticket_newest(clock_mono_ns(), &k))
		return (FAILED);
	memcpy(name, k.name, sizeof(k.name));
	ok = RAND_bytes(iv, 16) == 1 &&
	     EVP_EncryptInit_ex(c, EVP_aes_256_cbc(), NULL, k.aes, iv) == 1 && set_mac(mac, &k);
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
