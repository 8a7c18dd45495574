/* t/fuzz/fuzz_tls_keys.c -- any bytes as a question to the process with the private keys, as a key
 * for it, and as a file with keys.  The first byte chooses.
 *
 *   0 to 3  a question about that key      4  a whole question
 *   5       a key                          6  a file, in which each @ stands for a private key
 *
 * A key does what its kind is for and no more; no private key stays in a file. */
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include "base/must.h"
#include "io/tls/keys.h"
#include "t/fuzz/fuzz.h"

#define HEAD "\0\0\0\0" /* versions, of a decryption */
#define HASH "0123456789abcdef0123456789abcdef"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\0\3\4\x20\0" HEAD HASH),                   /* ECDSA */
	SEED("\1\1\4\x20\0" HEAD HASH),                   /* RSA, PKCS #1 */
	SEED("\1\2\4\x20\0" HEAD HASH),                   /* ... PSS */
	SEED("\1\5\0\x80\0\3\3\3\3" HASH HASH HASH HASH), /* ... decrypts */
	SEED("\2\5\0\x80\0\3\3\3\3" HASH HASH HASH HASH), /* ... may not */
	SEED("\3\4\0\x04\0" HEAD "text"),                 /* Ed25519 */
	SEED("\3\3\4\x20\0" HEAD HASH),                   /* of another kind */
	SEED("\4" HASH "\3\4\x20\0" HEAD HASH),           /* of no key */
	SEED("\5\1\x30\x77\2\1\1\4\x20" HASH),            /* half a key */
	SEED("\6@"),                                      /* a file */
	SEED("\6-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n@\n@"),
	SEED("\6-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n@"),
	SEED("\6-----BEGIN PRIVATE KEY-----\n@-----BEGIN EC PARAMETERS-----\n"),
	{ NULL, 0 },
};

enum { EC, RSA_ALL, RSA_SIGNS, ED, KINDS, ADD, HIDE };
/* The operations of each, as bits. */
static const unsigned may[KINDS] = {
	[EC] = 1 << TLS_KEY_ECDSA,
	[RSA_ALL] = 1 << TLS_KEY_PKCS1 | 1 << TLS_KEY_PSS | 1 << TLS_KEY_DECRYPT,
	[RSA_SIGNS] = 1 << TLS_KEY_PKCS1 | 1 << TLS_KEY_PSS,
	[ED] = 1 << TLS_KEY_EDDSA,
};

static struct tls_keys *keys, *others; /* others: what the input tells */
static EVP_PKEY *key[KINDS];
static struct buf pem; /* of key[EC] */

static void
learn(unsigned kind)
{
	unsigned char told[TLS_KEY_TOLD], *der = told + 1;
	int n;

	told[0] = kind == RSA_ALL ? TLS_KEY_SIGNS_AND_DECRYPTS : TLS_KEY_SIGNS;
	must(key[kind] != NULL);
	n = i2d_PrivateKey(key[kind], &der);
	must(n > 0 && tls_keys_add(keys, told, (size_t)n + 1) == 0);
}

static void
prepare(void)
{
	BIO *b = BIO_new(BIO_s_mem());
	unsigned i;
	char *p;
	long n;

	keys = tls_keys_new();
	others = tls_keys_new();
	key[EC] = EVP_EC_gen("P-256");
	key[RSA_ALL] = EVP_RSA_gen(1024);
	key[RSA_SIGNS] = EVP_RSA_gen(1024);
	key[ED] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	for (i = 0; i < KINDS; i++)
		learn(i);
	must(PEM_write_bio_PrivateKey(b, key[EC], NULL, NULL, 0, NULL, NULL) == 1);
	n = BIO_get_mem_data(b, &p);
	buf_init(&pem, 0);
	buf_add(&pem, p, (size_t)n);
	BIO_free(b);
}

static void
name(struct tls_key_question *q, EVP_PKEY *of)
{
	unsigned char *der = NULL;
	int n = i2d_PUBKEY(of, &der);

	must(n > 0 && EVP_Digest(der, (size_t)n, q->key, NULL, EVP_sha256(), NULL) == 1);
	OPENSSL_free(der);
}

/* of KINDS: of a key that is not there. */
static void
ask(unsigned of, const struct tls_key_question *q, size_t n)
{
	unsigned char out[TLS_KEY_ANSWER];
	size_t done = tls_keys_answer(keys, q, n, out);
	int32_t res;

	memcpy(&res, out, sizeof(res));
	must(res != 0 && done == sizeof(res) + (res > 0 ? (size_t)res : 0));
	must(res > 0 || res == -EINVAL || res == -ENOENT || res == -EPERM || res == -EIO);
	must(res < 0 || (of < KINDS && q->op < 8 && (may[of] >> q->op & 1) != 0));
	must(res < 0 || res <= EVP_PKEY_get_size(key[of]));
}

static void
question(unsigned of, const uint8_t *p, size_t n)
{
	struct tls_key_question q = { 0 };
	size_t at = of < KINDS ? sizeof(q.key) : 0;

	if (n > sizeof(q) - at)
		n = sizeof(q) - at;
	if (of < KINDS)
		name(&q, key[of]);
	memcpy((char *)&q + at, p, n);
	ask(of, &q, at + n);
}

static int
take(void *arg, const void *told, size_t n)
{
	return (tls_keys_add(keys, told, n));
}

static int
no_passphrase(char *p, int n, int rw, void *arg)
{
	return (-1);
}

static void
file(const uint8_t *p, size_t n)
{
	struct buf in, out;
	EVP_PKEY *found;
	unsigned left = 8; /* that many keys are quick */
	size_t i;
	BIO *b;

	buf_init(&in, 0);
	buf_init(&out, 0);
	for (i = 0; i < n; i++)
		if (p[i] == '@' && left > 0) {
			buf_add(&in, pem.p, pem.n);
			left--;
		} else
			buf_add(&in, p + i, 1);
	must(tls_keys_hide(buf_as_text(&in), TLS_KEY_SIGNS, &out, take, NULL) == 0);
	b = BIO_new_mem_buf(out.n != 0 ? out.p : "", (int)out.n);
	found = PEM_read_bio_PrivateKey(b, NULL, no_passphrase, NULL);
	must(found == NULL);
	BIO_free(b);
	buf_free(&in);
	buf_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (keys == NULL)
		prepare();
	if (n == 0 || p[0] > HIDE)
		return (0);
	if (p[0] == ADD)
		(void)tls_keys_add(others, p + 1, n - 1);
	else if (p[0] == HIDE)
		file(p + 1, n - 1);
	else
		question(p[0], p + 1, n - 1);
	return (0);
}
