/* io/tls/kept_key.c -- a key whose private half is in another process, as OpenSSL sees it: a
 * provider with keys (keymgmt), signatures, and the decryption of TLS 1.2 without ECDHE.
 *
 *   SSL_do_handshake() --> EVP_DigestSign() --> digest_sign() --> kept_ask.c --> the other process
 *
 * The provider is in a library context of its own, so nothing else finds it: only keys that
 * tls_kept_key() made lead here.  All that a public half can do is left to OpenSSL's own provider.
 */
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "io/tls/impl.h"
#include "io/tls/kept.h"

struct kept_key {
	EVP_PKEY *pub; /* NULL: not imported yet */
	const char *type;
	unsigned char id[TLS_KEY_ID];
};

/* ---- keymgmt */

static void *
key_new(const char *type)
{
	struct kept_key *k = calloc(1, sizeof(*k));

	if (k != NULL)
		k->type = type;
	return (k);
}

#define KEY_NEW(fn, type)               \
	static void *fn(void *provider) \
	{                               \
		return (key_new(type)); \
	}
KEY_NEW(new_rsa, "RSA")
KEY_NEW(new_pss, "RSA-PSS")
KEY_NEW(new_ec, "EC")
KEY_NEW(new_ed25519, "ED25519")
KEY_NEW(new_ed448, "ED448")

static void
key_free(void *key)
{
	struct kept_key *k = key;

	if (k == NULL)
		return;
	EVP_PKEY_free(k->pub);
	free(k);
}

/* The private half, too, as far as OpenSSL has to know. */
static int
key_has(const void *key, int selection)
{
	return (1);
}

static int
key_match(const void *a, const void *b, int selection)
{
	const struct kept_key *k = a, *other = b;

	return (k->pub != NULL && other->pub != NULL && EVP_PKEY_eq(k->pub, other->pub) == 1);
}

static int
key_import(void *key, int selection, const OSSL_PARAM params[])
{
	struct kept_key *k = key;
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, k->type, NULL);
	bool ok = c != NULL && EVP_PKEY_fromdata_init(c) > 0 &&
		  EVP_PKEY_fromdata(c, &k->pub, EVP_PKEY_PUBLIC_KEY,
		      (OSSL_PARAM *)(uintptr_t)params) > 0 &&
		  tls_key_id(k->pub, k->id);

	EVP_PKEY_CTX_free(c);
	return (ok);
}

/* The private half is not here, so OpenSSL's own provider cannot sign in its place. */
static int
key_export(void *key, int selection, OSSL_CALLBACK *cb, void *arg)
{
	const struct kept_key *k = key;
	OSSL_PARAM *params = NULL;
	int ok;

	if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0 ||
	    EVP_PKEY_todata(k->pub, EVP_PKEY_PUBLIC_KEY, &params) != 1)
		return (0);
	ok = cb(params, arg);
	OSSL_PARAM_free(params);
	return (ok);
}

static const OSSL_PARAM *
key_types(int selection)
{
	static const OSSL_PARAM types[] = {
		OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_N, NULL, 0),
		OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, NULL, 0),
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
		OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
		OSSL_PARAM_END,
	};

	return ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) == 0 ? types : NULL);
}

static int
key_get(void *key, OSSL_PARAM params[])
{
	return (EVP_PKEY_get_params(((struct kept_key *)key)->pub, params));
}

static const OSSL_PARAM *
key_gettable(void *provider)
{
	static const OSSL_PARAM is[] = {
		OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL),
		OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
		OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL),
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_DEFAULT_DIGEST, NULL, 0),
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_MANDATORY_DIGEST, NULL, 0),
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
		OSSL_PARAM_END,
	};

	return (is);
}

static const char *
rsa_does(int operation)
{
	return ("RSA");
}

static const char *
ec_does(int operation)
{
	return (operation == OSSL_OP_SIGNATURE ? "ECDSA" : NULL);
}

static const char *
ed25519_does(int operation)
{
	return ("ED25519");
}

static const char *
ed448_does(int operation)
{
	return ("ED448");
}

#define FN(id, fn)                         \
	{                                  \
		(id), (void (*)(void))(fn) \
	}
#define KEYMGMT(make, does)                                                                     \
	{                                                                                       \
		FN(OSSL_FUNC_KEYMGMT_NEW, make), FN(OSSL_FUNC_KEYMGMT_FREE, key_free),          \
		    FN(OSSL_FUNC_KEYMGMT_HAS, key_has), FN(OSSL_FUNC_KEYMGMT_MATCH, key_match), \
		    FN(OSSL_FUNC_KEYMGMT_IMPORT, key_import),                                   \
		    FN(OSSL_FUNC_KEYMGMT_IMPORT_TYPES, key_types),                              \
		    FN(OSSL_FUNC_KEYMGMT_EXPORT, key_export),                                   \
		    FN(OSSL_FUNC_KEYMGMT_EXPORT_TYPES, key_types),                              \
		    FN(OSSL_FUNC_KEYMGMT_GET_PARAMS, key_get),                                  \
		    FN(OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, key_gettable),                        \
		    FN(OSSL_FUNC_KEYMGMT_QUERY_OPERATION_NAME, does),                           \
		{                                                                               \
			0, NULL                                                                 \
		}                                                                               \
	}
static const OSSL_DISPATCH rsa_keys[] = KEYMGMT(new_rsa, rsa_does);
static const OSSL_DISPATCH pss_keys[] = KEYMGMT(new_pss, rsa_does);
static const OSSL_DISPATCH ec_keys[] = KEYMGMT(new_ec, ec_does);
static const OSSL_DISPATCH ed25519_keys[] = KEYMGMT(new_ed25519, ed25519_does);
static const OSSL_DISPATCH ed448_keys[] = KEYMGMT(new_ed448, ed448_does);

/* ---- one operation: a signature, or a decryption */

struct use {
	const struct kept_key *key; /* OpenSSL holds it meanwhile */
	int padding;
	uint8_t hash; /* a row of tls_key_hashes */
	unsigned asked, accepted;
};

static void *
use_new(void *provider)
{
	return (calloc(1, sizeof(struct use)));
}

static void *
use_new_to_sign(void *provider, const char *properties)
{
	return (use_new(provider));
}

static void
use_free(void *use)
{
	free(use);
}

static void *
use_dup(void *use)
{
	struct use *u = malloc(sizeof(*u));

	if (u != NULL)
		*u = *(struct use *)use;
	return (u);
}

static bool
set_padding(struct use *u, const OSSL_PARAM *p)
{
	static const char *const names[] = { [RSA_PKCS1_PADDING] = OSSL_PKEY_RSA_PAD_MODE_PKCSV15,
		[RSA_PKCS1_PSS_PADDING] = OSSL_PKEY_RSA_PAD_MODE_PSS };
	size_t i;

	if (p->data_type != OSSL_PARAM_UTF8_STRING)
		return (OSSL_PARAM_get_int(p, &u->padding) == 1);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i] != NULL && strcmp(p->data, names[i]) == 0) {
			u->padding = (int)i;
			return (true);
		}
	return (false);
}

/* In TLS the salt is as long as the digest. */
static bool
is_salt_of_digest(const struct use *u, const OSSL_PARAM *p)
{
	int n;

	if (p->data_type == OSSL_PARAM_UTF8_STRING)
		return (strcmp(p->data, OSSL_PKEY_RSA_PSS_SALT_LEN_DIGEST) == 0 ||
			atoi(p->data) == tls_key_hashes[u->hash].n);
	return (OSSL_PARAM_get_int(p, &n) == 1 &&
		(n == RSA_PSS_SALTLEN_DIGEST || n == tls_key_hashes[u->hash].n));
}

static int
use_set(void *use, const OSSL_PARAM params[])
{
	struct use *u = use;
	const OSSL_PARAM *p;
	bool ok = true;

	if (params == NULL)
		return (1);
	if ((p = OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_PAD_MODE)) != NULL)
		ok = set_padding(u, p);
	if ((p = OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_RSA_PSS_SALTLEN)) != NULL)
		ok = ok && is_salt_of_digest(u, p);
	p = OSSL_PARAM_locate_const(params, OSSL_ASYM_CIPHER_PARAM_TLS_CLIENT_VERSION);
	if (p != NULL)
		ok = ok && OSSL_PARAM_get_uint(p, &u->asked) == 1;
	p = OSSL_PARAM_locate_const(params, OSSL_ASYM_CIPHER_PARAM_TLS_NEGOTIATED_VERSION);
	if (p != NULL)
		ok = ok && OSSL_PARAM_get_uint(p, &u->accepted) == 1;
	return (ok);
}

static const OSSL_PARAM *
use_settable(void *use, void *provider)
{
	static const OSSL_PARAM is[] = {
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_PAD_MODE, NULL, 0),
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_RSA_PSS_SALTLEN, NULL, 0),
		OSSL_PARAM_uint(OSSL_ASYM_CIPHER_PARAM_TLS_CLIENT_VERSION, NULL),
		OSSL_PARAM_uint(OSSL_ASYM_CIPHER_PARAM_TLS_NEGOTIATED_VERSION, NULL),
		OSSL_PARAM_END,
	};

	return (is);
}

static int
ask(const struct use *u, struct tls_key_question *q, unsigned char *out, size_t *n, size_t size)
{
	int k;

	memcpy(q->key, u->key->id, sizeof(q->key));
	k = tls_keys_ask(q, out, size);
	if (k < 0)
		return (0);
	*n = (size_t)k;
	return (1);
}

/* ---- signatures */

static uint8_t
hash_named(const char *name)
{
	const EVP_MD *md = EVP_get_digestbyname(name);
	int nid = md != NULL ? EVP_MD_get_type(md) : NID_undef;
	uint8_t i;

	for (i = 1; i < TLS_KEY_HASHES; i++)
		if (tls_key_hashes[i].nid == nid && nid != NID_undef)
			return (i);
	return (0);
}

static bool
is_eddsa(const struct kept_key *k)
{
	return (k->type[0] == 'E' && k->type[1] == 'D');
}

static bool
is_rsa(const struct kept_key *k)
{
	return (k->type[0] == 'R');
}

static int
sign_begin(void *use, const char *digest, void *key, const OSSL_PARAM params[])
{
	struct use *u = use;

	if (key != NULL)
		u->key = key;
	if (u->key == NULL || u->key->pub == NULL)
		return (0);
	u->hash = digest != NULL && !is_eddsa(u->key) ? hash_named(digest) : 0;
	u->padding =
	    strcmp(u->key->type, "RSA-PSS") == 0 ? RSA_PKCS1_PSS_PADDING : RSA_PKCS1_PADDING;
	return ((u->hash != 0 || is_eddsa(u->key)) && use_set(u, params));
}

static uint8_t
op_of(const struct use *u)
{
	if (is_eddsa(u->key))
		return (TLS_KEY_EDDSA);
	if (!is_rsa(u->key))
		return (TLS_KEY_ECDSA);
	return (u->padding == RSA_PKCS1_PSS_PADDING ? TLS_KEY_PSS : TLS_KEY_PKCS1);
}

/* sig NULL: only its length is asked for. */
static int
digest_sign(void *use, unsigned char *sig, size_t *n, size_t size, const unsigned char *p,
    size_t np)
{
	const struct use *u = use;
	struct tls_key_question q = { .op = op_of(u), .hash = u->hash };
	unsigned k = 0;

	if (sig == NULL) {
		*n = (size_t)EVP_PKEY_get_size(u->key->pub);
		return (1);
	}
	if (u->hash != 0) {
		if (EVP_Digest(p, np, q.bytes, &k, EVP_get_digestbynid(tls_key_hashes[u->hash].nid),
			NULL) != 1)
			return (0);
		np = k;
	} else if (np <= sizeof(q.bytes))
		memcpy(q.bytes, p, np);
	else
		return (0);
	q.n = (uint16_t)np;
	return (ask(u, &q, sig, n, size));
}

static const OSSL_DISPATCH signs[] = {
	FN(OSSL_FUNC_SIGNATURE_NEWCTX, use_new_to_sign),
	FN(OSSL_FUNC_SIGNATURE_FREECTX, use_free),
	FN(OSSL_FUNC_SIGNATURE_DUPCTX, use_dup),
	FN(OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT, sign_begin),
	FN(OSSL_FUNC_SIGNATURE_DIGEST_SIGN, digest_sign),
	FN(OSSL_FUNC_SIGNATURE_SET_CTX_PARAMS, use_set),
	FN(OSSL_FUNC_SIGNATURE_SETTABLE_CTX_PARAMS, use_settable),
	{ 0, NULL },
};

/* ---- decryption */

static int
decrypt_begin(void *use, void *key, const OSSL_PARAM params[])
{
	struct use *u = use;

	u->key = key;
	u->padding = RSA_PKCS1_PADDING;
	return (use_set(u, params));
}

static int
decrypt(void *use, unsigned char *out, size_t *n, size_t size, const unsigned char *in, size_t k)
{
	const struct use *u = use;
	struct tls_key_question q = { .op = TLS_KEY_DECRYPT,
		.n = (uint16_t)k,
		.asked = (uint16_t)u->asked,
		.accepted = (uint16_t)u->accepted };

	if (u->padding != RSA_PKCS1_WITH_TLS_PADDING || k > sizeof(q.bytes))
		return (0);
	if (out == NULL) {
		*n = SSL_MAX_MASTER_KEY_LENGTH;
		return (1);
	}
	memcpy(q.bytes, in, k);
	return (ask(u, &q, out, n, size));
}

static const OSSL_DISPATCH decrypts[] = {
	FN(OSSL_FUNC_ASYM_CIPHER_NEWCTX, use_new),
	FN(OSSL_FUNC_ASYM_CIPHER_FREECTX, use_free),
	FN(OSSL_FUNC_ASYM_CIPHER_DUPCTX, use_dup),
	FN(OSSL_FUNC_ASYM_CIPHER_DECRYPT_INIT, decrypt_begin),
	FN(OSSL_FUNC_ASYM_CIPHER_DECRYPT, decrypt),
	FN(OSSL_FUNC_ASYM_CIPHER_SET_CTX_PARAMS, use_set),
	FN(OSSL_FUNC_ASYM_CIPHER_SETTABLE_CTX_PARAMS, use_settable),
	{ 0, NULL },
};

/* ---- the provider */

#define OURS "provider=accel-keys"

static const OSSL_ALGORITHM keys_of[] = {
	{ "RSA", OURS, rsa_keys, NULL },
	{ "RSA-PSS", OURS, pss_keys, NULL },
	{ "EC", OURS, ec_keys, NULL },
	{ "ED25519", OURS, ed25519_keys, NULL },
	{ "ED448", OURS, ed448_keys, NULL },
	{ NULL, NULL, NULL, NULL },
};
static const OSSL_ALGORITHM signs_of[] = {
	{ "RSA", OURS, signs, NULL },
	{ "ECDSA", OURS, signs, NULL },
	{ "ED25519", OURS, signs, NULL },
	{ "ED448", OURS, signs, NULL },
	{ NULL, NULL, NULL, NULL },
};
static const OSSL_ALGORITHM decrypts_of[] = {
	{ "RSA", OURS, decrypts, NULL },
	{ NULL, NULL, NULL, NULL },
};

static const OSSL_ALGORITHM *
operations(void *provider, int operation, int *no_cache)
{
	*no_cache = 0;
	switch (operation) {
	case OSSL_OP_KEYMGMT: return (keys_of);
	case OSSL_OP_SIGNATURE: return (signs_of);
	case OSSL_OP_ASYM_CIPHER: return (decrypts_of);
	}
	return (NULL);
}

static int
provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out,
    void **provider)
{
	static const OSSL_DISPATCH calls[] = {
		FN(OSSL_FUNC_PROVIDER_QUERY_OPERATION, operations),
		{ 0, NULL },
	};

	*out = calls;
	*provider = (void *)(uintptr_t)handle;
	return (1);
}

/* NULL: OpenSSL cannot start.  Lives as long as the process. */
static OSSL_LIB_CTX *
library(void)
{
	static OSSL_LIB_CTX *lib;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (lib == NULL && (lib = OSSL_LIB_CTX_new()) != NULL &&
	    (OSSL_PROVIDER_add_builtin(lib, "accel-keys", provider_init) != 1 ||
		OSSL_PROVIDER_load(lib, "accel-keys") == NULL)) {
		OSSL_LIB_CTX_free(lib);
		lib = NULL;
	}
	pthread_mutex_unlock(&lock);
	return (lib);
}

static EVP_PKEY *
from_public(OSSL_LIB_CTX *lib, EVP_PKEY *pub)
{
	OSSL_PARAM *params = NULL;
	EVP_PKEY *key = NULL;
	EVP_PKEY_CTX *c;

	if (EVP_PKEY_todata(pub, EVP_PKEY_PUBLIC_KEY, &params) != 1)
		return (NULL);
	c = EVP_PKEY_CTX_new_from_name(lib, EVP_PKEY_get0_type_name(pub), NULL);
	if (c == NULL || EVP_PKEY_fromdata_init(c) <= 0 ||
	    EVP_PKEY_fromdata(c, &key, EVP_PKEY_PUBLIC_KEY, params) <= 0)
		key = NULL;
	EVP_PKEY_CTX_free(c);
	OSSL_PARAM_free(params);
	return (key);
}

EVP_PKEY *
tls_kept_key(EVP_PKEY *pub)
{
	OSSL_LIB_CTX *lib = library();
	EVP_PKEY *key = lib != NULL ? from_public(lib, pub) : NULL;

	EVP_PKEY_free(pub);
	return (key);
}
