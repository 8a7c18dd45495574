/* io/tls/pem.c -- certificates and keys, from the text of their files */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include "io/tls/impl.h"
#include "io/tls/kept.h"

#define CHAIN_MAX 16u /* certificates; in a circle each issues the next */

static BIO *
open_text(struct text t)
{
	return (t.n <= INT32_MAX ? BIO_new_mem_buf(t.p != NULL ? t.p : "", (int)t.n) : NULL);
}

int
tls_no_passphrase(char *p, int n, int rw, void *asked)
{
	*(bool *)asked = true;
	return (-1);
}

static X509 *
next_certificate(BIO *b)
{
	bool asked;

	return (PEM_read_bio_X509_AUX(b, NULL, tls_no_passphrase, &asked));
}

bool
tls_pem_at_end(void)
{
	return (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE);
}

static const char no_certificate[] = "no certificate is in the file: expected -----BEGIN "
				     "CERTIFICATE-----";

/* SSL_CTX_set_security_level(3) */
static const char *
why_refused(void)
{
	switch (ERR_GET_REASON(ERR_peek_last_error())) {
	case SSL_R_EE_KEY_TOO_SMALL:
	case SSL_R_CA_KEY_TOO_SMALL:
		return ("a key is too weak; expected RSA of 2048 bits or more, or a curve such as "
			"P-256");
	case SSL_R_CA_MD_TOO_WEAK:
		return ("it is signed with SHA-1 or weaker, which clients refuse; get another "
			"certificate");
	default: return (tls_reason());
	}
}

/* ---- certificates with their keys
 *
 *   RSA certificate, its chain, ECDSA certificate, its chain; and the keys of both
 *
 * A certificate begins a chain if its key is there and is not of the kind of an earlier one.
 */
#define PAIRS_MAX 4u

struct pairs {
	SSL_CTX *ctx;
	EVP_PKEY *key[PAIRS_MAX];
	X509 *leaf[PAIRS_MAX]; /* those of ctx */
	unsigned nkeys, nleaves;
};

/* Blocks of PEM of this name; false: none is left. */
static bool
next_block(BIO *b, const char *name, unsigned char **der, long *n)
{
	bool asked;

	return (PEM_bytes_read_bio(der, n, NULL, name, b, tls_no_passphrase, &asked) == 1);
}

/* Keys that another process keeps; *locked: there is one with a passphrase. */
static void
read_kept(struct pairs *p, struct text text, bool *locked)
{
	BIO *keys = open_text(text), *lost = open_text(text);
	const unsigned char *at;
	unsigned char *der;
	EVP_PKEY *key;
	long n;

	while (keys != NULL && p->nkeys < PAIRS_MAX && next_block(keys, TLS_KEPT_KEY, &der, &n)) {
		at = der;
		key = d2i_PUBKEY(NULL, &at, n);
		if (key != NULL && (key = tls_kept_key(key)) != NULL)
			p->key[p->nkeys++] = key;
		OPENSSL_free(der);
	}
	if (lost != NULL && next_block(lost, TLS_LOCKED_KEY, &der, &n)) {
		*locked = true;
		OPENSSL_free(der);
	}
	BIO_free(keys);
	BIO_free(lost);
}

/* NULL: at least one. */
static const char *
read_keys(struct pairs *p, struct text text)
{
	BIO *b = open_text(text);
	bool asked = false;
	EVP_PKEY *key;

	while (b != NULL && p->nkeys < PAIRS_MAX &&
	       (key = PEM_read_bio_PrivateKey(b, NULL, tls_no_passphrase, &asked)) != NULL)
		p->key[p->nkeys++] = key;
	BIO_free(b);
	read_kept(p, text, &asked);
	if (asked)
		return ("the key has a passphrase, which the server cannot ask for; write it "
			"without one: openssl pkey -in OLD -out NEW");
	return (p->nkeys != 0 ? NULL
			      : "no key that can be read is in the file: expected -----BEGIN "
				"PRIVATE KEY-----");
}

static EVP_PKEY *
key_of(const struct pairs *p, X509 *x)
{
	unsigned i;

	for (i = 0; i < p->nkeys; i++)
		if (X509_check_private_key(x, p->key[i]) == 1)
			return (p->key[i]);
	return (NULL);
}

static bool
is_of_new_kind(const struct pairs *p, X509 *x)
{
	int kind = EVP_PKEY_get_base_id(X509_get0_pubkey(x));
	unsigned i;

	for (i = 0; i < p->nleaves; i++)
		if (EVP_PKEY_get_base_id(X509_get0_pubkey(p->leaf[i])) == kind)
			return (false);
	return (p->nleaves < PAIRS_MAX);
}

/* Takes the certificate. */
static bool
add(struct pairs *p, X509 *x)
{
	bool ok;

	if (p->nleaves != 0 && (key_of(p, x) == NULL || !is_of_new_kind(p, x))) {
		ok = SSL_CTX_add0_chain_cert(p->ctx, x) == 1;
		if (!ok)
			X509_free(x);
		return (ok);
	}
	ok = SSL_CTX_use_certificate(p->ctx, x) == 1;
	if (ok)
		p->leaf[p->nleaves++] = x;
	X509_free(x);
	return (ok);
}

static const char *
read_chains(struct pairs *p, BIO *b)
{
	X509 *x;

	ERR_clear_error();
	while ((x = next_certificate(b)) != NULL)
		if (!add(p, x))
			return (why_refused());
	if (p->nleaves == 0)
		return (tls_pem_at_end() ? no_certificate
					 : "the certificate cannot be read; copy the file again");
	return (tls_pem_at_end()
		    ? NULL
		    : "a certificate after the first one cannot be read; copy the file "
		      "again");
}

static const char *
join(struct pairs *p)
{
	EVP_PKEY *key;
	unsigned i;

	for (i = 0; i < p->nleaves; i++) {
		key = key_of(p, p->leaf[i]);
		if (key == NULL)
			return ("the key does not belong to the certificate in ssl.pemfile");
		if (SSL_CTX_use_PrivateKey(p->ctx, key) != 1)
			return (tls_reason());
	}
	return (NULL);
}

const char *
tls_pem_pairs(SSL_CTX *ctx, struct text chain, struct text key, int *of)
{
	struct pairs p = { .ctx = ctx };
	BIO *chains = open_text(chain);
	const char *why = "not enough memory", *no_key;
	unsigned i;

	*of = TLS_OF_CHAIN;
	if (chains != NULL) {
		no_key = read_keys(&p, key.p != NULL ? key : chain);
		why = read_chains(&p, chains);
		if (why == NULL) {
			*of = TLS_OF_KEY;
			why = no_key != NULL ? no_key : join(&p);
		}
	}
	for (i = 0; i < p.nkeys; i++)
		EVP_PKEY_free(p.key[i]);
	BIO_free(chains);
	ERR_clear_error();
	return (why);
}

void
tls_pem_choose(SSL_CTX *ctx)
{
	X509 *first = NULL, *x;
	int more;

	for (more = SSL_CTX_set_current_cert(ctx, SSL_CERT_SET_FIRST); more == 1;
	     more = SSL_CTX_set_current_cert(ctx, SSL_CERT_SET_NEXT)) {
		x = SSL_CTX_get0_certificate(ctx);
		if (first == NULL ||
		    ASN1_TIME_compare(X509_get0_notAfter(x), X509_get0_notAfter(first)) < 0)
			first = x;
	}
	if (first != NULL)
		(void)SSL_CTX_select_current_cert(ctx, first);
}

/* ---- certificates between it and a root, from a file of authorities */

static bool
is_issuer(X509 *of, X509 *x)
{
	return (X509_check_issued(x, of) == X509_V_OK);
}

/* Not a root: the client has that. */
static X509 *
find_issuer(STACK_OF(X509) * all, X509 *of)
{
	X509 *x;
	int i;

	for (i = 0; i < sk_X509_num(all); i++) {
		x = sk_X509_value(all, i);
		if (is_issuer(of, x) && !is_issuer(x, x))
			return (x);
	}
	return (NULL);
}

/* What lighttpd does: only a certificate that came alone gets others. */
static const char *
complete(SSL_CTX *ctx, STACK_OF(X509) * all)
{
	X509 *x = SSL_CTX_get0_certificate(ctx);
	STACK_OF(X509) *chain = NULL;
	unsigned n;

	(void)SSL_CTX_get0_chain_certs(ctx, &chain);
	if (chain != NULL && sk_X509_num(chain) != 0)
		return (NULL);
	for (n = 0; n < CHAIN_MAX && !is_issuer(x, x) && (x = find_issuer(all, x)) != NULL; n++)
		if (SSL_CTX_add1_chain_cert(ctx, x) != 1)
			return (why_refused());
	return (NULL);
}

static const char *
complete_all(SSL_CTX *ctx, STACK_OF(X509) * all)
{
	const char *why = NULL;
	int more;

	for (more = SSL_CTX_set_current_cert(ctx, SSL_CERT_SET_FIRST); more == 1 && why == NULL;
	     more = SSL_CTX_set_current_cert(ctx, SSL_CERT_SET_NEXT))
		why = complete(ctx, all);
	return (why);
}

static const char *
ca_from(SSL_CTX *ctx, BIO *b)
{
	STACK_OF(X509) *all = sk_X509_new_null();
	const char *why = "not enough memory";
	X509 *x;

	while (all != NULL && (x = next_certificate(b)) != NULL)
		if (sk_X509_push(all, x) == 0) {
			X509_free(x);
			break;
		}
	if (all != NULL)
		why = !tls_pem_at_end()       ? "a certificate cannot be read; copy the file again"
		      : sk_X509_num(all) == 0 ? no_certificate
					      : complete_all(ctx, all);
	sk_X509_pop_free(all, X509_free);
	return (why);
}

/* ---- the rest */

static const char *
dh_from(SSL_CTX *ctx, BIO *b)
{
	EVP_PKEY *params = PEM_read_bio_Parameters(b, NULL);

	if (params == NULL)
		return ("no parameters are in the file: expected -----BEGIN DH PARAMETERS-----");
	if (SSL_CTX_set0_tmp_dh_pkey(ctx, params) == 1)
		return (NULL);
	EVP_PKEY_free(params);
	return ("the parameters are too weak; make better ones: openssl dhparam -out FILE 2048");
}

static const char *
take(SSL_CTX *ctx, struct text pem, const char *(*from)(SSL_CTX *, BIO *))
{
	BIO *b = open_text(pem);
	const char *why = b == NULL ? "not enough memory" : from(ctx, b);

	BIO_free(b);
	ERR_clear_error();
	return (why);
}

const char *
tls_pem_ca(SSL_CTX *ctx, struct text pem)
{
	return (take(ctx, pem, ca_from));
}

const char *
tls_pem_dh(SSL_CTX *ctx, struct text pem)
{
	return (take(ctx, pem, dh_from));
}
