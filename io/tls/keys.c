/* io/tls/keys.c -- keeps private keys, and answers with what only they can do; see keys.h */
#include "io/tls/keys.h"

#include <errno.h>
#include <glib.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "io/tls/impl.h"
#include "io/tls/kept.h"

#define HEAD offsetof(struct tls_key_question, bytes)

const struct tls_key_hash tls_key_hashes[TLS_KEY_HASHES] = {
	{ NID_undef, 0 },
	{ NID_md5_sha1, 36 },
	{ NID_sha1, 20 },
	{ NID_sha224, 28 },
	{ NID_sha256, 32 },
	{ NID_sha384, 48 },
	{ NID_sha512, 64 },
};

struct key {
	unsigned char id[TLS_KEY_ID];
	EVP_PKEY *pkey;
	bool decrypts;
};

struct tls_keys {
	pthread_mutex_t lock; /* held for a look-up only */
	GHashTable *v;        /* struct key, by id */
	GQueue order;         /* the same: told first, first */
};

/* ---- the table */

static guint
key_hash(gconstpointer key)
{
	guint h;

	memcpy(&h, ((const struct key *)key)->id, sizeof(h));
	return (h);
}

static gboolean
key_same(gconstpointer a, gconstpointer b)
{
	return (memcmp(((const struct key *)a)->id, ((const struct key *)b)->id, TLS_KEY_ID) == 0);
}

static void
key_free(void *key)
{
	EVP_PKEY_free(((struct key *)key)->pkey);
	free(key);
}

struct tls_keys *
tls_keys_new(void)
{
	struct tls_keys *ks = tls_prepare() ? calloc(1, sizeof(*ks)) : NULL;

	if (ks == NULL)
		return (NULL);
	pthread_mutex_init(&ks->lock, NULL);
	ks->v = g_hash_table_new_full(key_hash, key_same, key_free, NULL);
	g_queue_init(&ks->order);
	return (ks);
}

void
tls_keys_free(struct tls_keys *ks)
{
	if (ks == NULL)
		return;
	g_queue_clear(&ks->order);
	g_hash_table_destroy(ks->v);
	pthread_mutex_destroy(&ks->lock);
	free(ks);
}

bool
tls_key_id(EVP_PKEY *key, unsigned char id[TLS_KEY_ID])
{
	unsigned char *der = NULL;
	int n = i2d_PUBKEY(key, &der);
	bool ok = n > 0 && EVP_Digest(der, (size_t)n, id, NULL, EVP_sha256(), NULL) == 1;

	OPENSSL_free(der);
	return (ok);
}

/* Under the lock; takes the key.  One that comes again counts as new. */
static void
put(struct tls_keys *ks, struct key *k)
{
	struct key *is = g_hash_table_lookup(ks->v, k);

	if (is != NULL) {
		is->decrypts = k->decrypts;
		g_queue_remove(&ks->order, is);
		g_queue_push_tail(&ks->order, is);
		key_free(k);
		return;
	}
	if (g_hash_table_size(ks->v) >= TLS_KEYS_MAX)
		g_hash_table_remove(ks->v, g_queue_pop_head(&ks->order));
	g_hash_table_add(ks->v, k);
	g_queue_push_tail(&ks->order, k);
}

int
tls_keys_add(struct tls_keys *ks, const void *told, size_t n)
{
	const unsigned char *p = told, *der = p + 1;
	struct key *k;

	if (n < 2 || n > TLS_KEY_TOLD || (*p != TLS_KEY_SIGNS && *p != TLS_KEY_SIGNS_AND_DECRYPTS))
		return (-EINVAL);
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return (-ENOMEM);
	k->decrypts = *p == TLS_KEY_SIGNS_AND_DECRYPTS;
	k->pkey = d2i_AutoPrivateKey(NULL, &der, (long)n - 1);
	if (k->pkey == NULL || !tls_key_id(k->pkey, k->id)) {
		key_free(k);
		ERR_clear_error();
		return (-EINVAL);
	}
	pthread_mutex_lock(&ks->lock);
	put(ks, k);
	pthread_mutex_unlock(&ks->lock);
	return (0);
}

size_t
tls_keys_count(struct tls_keys *ks)
{
	size_t n;

	pthread_mutex_lock(&ks->lock);
	n = g_hash_table_size(ks->v);
	pthread_mutex_unlock(&ks->lock);
	return (n);
}

/* With a reference. */
static EVP_PKEY *
find(struct tls_keys *ks, const struct tls_key_question *q, bool *decrypts)
{
	struct key asked, *k;
	EVP_PKEY *pkey = NULL;

	memcpy(asked.id, q->key, sizeof(asked.id));
	pthread_mutex_lock(&ks->lock);
	k = g_hash_table_lookup(ks->v, &asked);
	if (k != NULL && EVP_PKEY_up_ref(k->pkey) == 1) {
		pkey = k->pkey;
		*decrypts = k->decrypts;
	}
	pthread_mutex_unlock(&ks->lock);
	return (pkey);
}

/* ---- what a key does */

static bool
is_rsa(const EVP_PKEY *key)
{
	return (EVP_PKEY_is_a(key, "RSA") || EVP_PKEY_is_a(key, "RSA-PSS"));
}

/* What each kind of key is asked for; nothing else, so that a signature is never taken for
 * something else. */
static bool
fits(const EVP_PKEY *key, uint8_t op)
{
	switch (op) {
	case TLS_KEY_DECRYPT:
	case TLS_KEY_PKCS1: return (EVP_PKEY_is_a(key, "RSA"));
	case TLS_KEY_PSS: return (is_rsa(key));
	case TLS_KEY_ECDSA: return (EVP_PKEY_is_a(key, "EC"));
	case TLS_KEY_EDDSA: return (EVP_PKEY_is_a(key, "ED25519") || EVP_PKEY_is_a(key, "ED448"));
	}
	return (false);
}

static bool
pads(EVP_PKEY_CTX *c, uint8_t op)
{
	switch (op) {
	case TLS_KEY_PKCS1: return (EVP_PKEY_CTX_set_rsa_padding(c, RSA_PKCS1_PADDING) > 0);
	case TLS_KEY_PSS:
		return (EVP_PKEY_CTX_set_rsa_padding(c, RSA_PKCS1_PSS_PADDING) > 0 &&
			EVP_PKEY_CTX_set_rsa_pss_saltlen(c, RSA_PSS_SALTLEN_DIGEST) > 0);
	}
	return (true);
}

static bool
sign(EVP_PKEY *key, const struct tls_key_question *q, unsigned char *out, size_t *n)
{
	const struct tls_key_hash *hash = &tls_key_hashes[q->hash];
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new(key, NULL);
	bool ok = c != NULL && EVP_PKEY_sign_init(c) > 0 && pads(c, q->op) &&
		  EVP_PKEY_CTX_set_signature_md(c, EVP_get_digestbynid(hash->nid)) > 0 &&
		  EVP_PKEY_sign(c, out, n, q->bytes, q->n) > 0;

	EVP_PKEY_CTX_free(c);
	return (ok);
}

static bool
sign_bytes(EVP_PKEY *key, const struct tls_key_question *q, unsigned char *out, size_t *n)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	bool ok = c != NULL && EVP_DigestSignInit(c, NULL, NULL, NULL, key) > 0 &&
		  EVP_DigestSign(c, out, n, q->bytes, q->n) > 0;

	EVP_MD_CTX_free(c);
	return (ok);
}

/* The padding is checked here, in constant time: what does not fit gives random bytes, so an asker
 * learns nothing of other messages (Bleichenbacher). */
static bool
decrypt(EVP_PKEY *key, const struct tls_key_question *q, unsigned char *out, size_t *n)
{
	unsigned asked = q->asked, accepted = q->accepted;
	OSSL_PARAM p[] = {
		OSSL_PARAM_construct_uint(OSSL_ASYM_CIPHER_PARAM_TLS_CLIENT_VERSION, &asked),
		OSSL_PARAM_construct_uint(OSSL_ASYM_CIPHER_PARAM_TLS_NEGOTIATED_VERSION, &accepted),
		OSSL_PARAM_construct_end(),
	};
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new(key, NULL);
	bool ok = c != NULL && EVP_PKEY_decrypt_init(c) > 0 &&
		  EVP_PKEY_CTX_set_rsa_padding(c, RSA_PKCS1_WITH_TLS_PADDING) > 0 &&
		  EVP_PKEY_CTX_set_params(c, p) > 0 &&
		  EVP_PKEY_decrypt(c, out, n, q->bytes, q->n) > 0;

	EVP_PKEY_CTX_free(c);
	return (ok);
}

/* Bytes, or -errno. */
static int
answer_with(EVP_PKEY *key, const struct tls_key_question *q, bool decrypts, unsigned char *out)
{
	size_t n = TLS_KEY_BYTES;
	bool ok;

	if (!fits(key, q->op) || (q->op == TLS_KEY_DECRYPT && !decrypts))
		return (-EPERM);
	if (EVP_PKEY_get_size(key) > (int)TLS_KEY_BYTES)
		return (-EPERM);
	if (q->op == TLS_KEY_EDDSA)
		ok = sign_bytes(key, q, out, &n);
	else if (q->op == TLS_KEY_DECRYPT)
		ok = decrypt(key, q, out, &n);
	else
		ok = sign(key, q, out, &n);
	ERR_clear_error();
	return (ok && n <= TLS_KEY_BYTES ? (int)n : -EIO);
}

static bool
is_question(const struct tls_key_question *q, size_t n)
{
	if (n < HEAD || n - HEAD != q->n || q->hash >= TLS_KEY_HASHES)
		return (false);
	if (q->op == TLS_KEY_EDDSA || q->op == TLS_KEY_DECRYPT)
		return (q->n != 0 && q->hash == 0);
	return (q->op >= TLS_KEY_PKCS1 && q->op <= TLS_KEY_ECDSA && q->hash != 0 &&
		q->n == tls_key_hashes[q->hash].n);
}

size_t
tls_keys_answer(struct tls_keys *ks, const void *question, size_t n,
    unsigned char answer[TLS_KEY_ANSWER])
{
	struct tls_key_question q = { 0 };
	bool decrypts = false;
	EVP_PKEY *key = NULL;
	int32_t res = -EINVAL;

	if (n >= HEAD && n <= sizeof(q)) {
		memcpy(&q, question, n);
		if (is_question(&q, n)) {
			key = find(ks, &q, &decrypts);
			res = key == NULL ? -ENOENT
					  : answer_with(key, &q, decrypts, answer + sizeof(res));
		}
	}
	EVP_PKEY_free(key);
	memcpy(answer, &res, sizeof(res));
	return (sizeof(res) + (res > 0 ? (size_t)res : 0));
}
