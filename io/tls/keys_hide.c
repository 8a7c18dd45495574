/* io/tls/keys_hide.c -- takes private keys out of the text of files.
 *
 *   -----BEGIN EC PRIVATE KEY-----        -----BEGIN KEPT KEY-----
 *   MHcCAQEE...                      -->  MFkwEwYH...   (its public half)
 *   -----END EC PRIVATE KEY-----          -----END KEPT KEY-----
 *
 * All other bytes stay.  What looks like a private key and cannot be read is left out: what stays
 * must not have one.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include "io/tls/impl.h"
#include "io/tls/kept.h"

static const struct text begin = { "-----BEGIN ", 11 }, end = { "-----END ", 9 },
			 dashes = { "-----", 5 };

static const char *
find(struct text in, struct text what)
{
	return (in.n != 0 ? memmem(in.p, in.n, what.p, what.n) : NULL);
}

static struct text
from(struct text t, const char *p)
{
	return ((struct text){ p, t.n - (size_t)(p - t.p) });
}

/* After the dashes that end the line at p; the end of the text if there are none. */
static const char *
after_line(struct text t, const char *p)
{
	const char *d = find(from(t, p), dashes);

	return (d != NULL ? d + dashes.n : t.p + t.n);
}

static bool
is_private(struct text label)
{
	static const struct text private = { "PRIVATE KEY", 11 };

	return (find(label, private) != NULL);
}

/* The next block of a private key; .p NULL: there is none. */
static struct text
next_key(struct text t)
{
	const char *p, *label, *last;

	while ((p = find(t, begin)) != NULL) {
		label = p + begin.n;
		t = from(t, label);
		last = after_line(t, label);
		if (!is_private((struct text){ label, (size_t)(last - label) }))
			continue;
		label = find(from(t, last), end);
		last = label != NULL ? after_line(t, label + end.n) : t.p + t.n;
		return ((struct text){ p, (size_t)(last - p) });
	}
	return (TEXT_NONE);
}

static EVP_PKEY *
read_key(struct text block, bool *locked)
{
	BIO *b = BIO_new_mem_buf(block.p, (int)block.n);
	EVP_PKEY *key = NULL;

	if (b != NULL)
		key = PEM_read_bio_PrivateKey(b, NULL, tls_no_passphrase, locked);
	BIO_free(b);
	return (key);
}

static void
put_block(struct buf *out, const char *name, const unsigned char *der, int n)
{
	BIO *b = BIO_new(BIO_s_mem());
	char *p;
	long k;

	if (b != NULL && PEM_write_bio(b, name, "", der, n) > 0 &&
	    (k = BIO_get_mem_data(b, &p)) > 0)
		buf_add(out, p, (size_t)k - 1); /* the text has a newline of its own */
	BIO_free(b);
}

static void
put_public(struct buf *out, EVP_PKEY *key)
{
	unsigned char *der = NULL;
	int n = i2d_PUBKEY(key, &der);

	if (n > 0)
		put_block(out, TLS_KEPT_KEY, der, n);
	OPENSSL_free(der);
}

static int
tell_key(EVP_PKEY *key, enum tls_key_use use, tls_keys_tell *tell, void *arg)
{
	unsigned char told[TLS_KEY_TOLD], *der = told + 1;
	int n = i2d_PrivateKey(key, NULL), err = -EINVAL;

	told[0] = (unsigned char)use;
	if (n > 0 && (size_t)n < sizeof(told) && i2d_PrivateKey(key, &der) == n)
		err = tell(arg, told, (size_t)n + 1);
	explicit_bzero(told, sizeof(told));
	return (err);
}

/* A key goes before the text that needs it. */
static int
hide(struct text block, enum tls_key_use use, struct buf *out, tls_keys_tell *tell, void *arg)
{
	bool locked = false;
	EVP_PKEY *key = read_key(block, &locked);
	int err = 0;

	if (key != NULL) {
		err = tell_key(key, use, tell, arg);
		put_public(out, key);
	} else if (locked)
		put_block(out, TLS_LOCKED_KEY, (const unsigned char *)"", 1);
	else
		buf_add(out, "\n", 1); /* the text on both sides must not become one line */
	EVP_PKEY_free(key);
	ERR_clear_error();
	return (err);
}

int
tls_keys_hide(struct text pem, enum tls_key_use use, struct buf *out, tls_keys_tell *tell,
    void *arg)
{
	struct text block;
	int err = 0;

	while (err == 0 && (block = next_key(pem)).p != NULL) {
		if (!tls_prepare())
			return (-ENOMEM);
		buf_add(out, pem.p, (size_t)(block.p - pem.p));
		err = hide(block, use, out, tell, arg);
		pem = from(pem, block.p + block.n);
	}
	if (err == 0)
		buf_text(out, pem);
	return (err != 0 ? err : out->failed ? -ENOMEM : 0);
}
