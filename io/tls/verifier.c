/* io/tls/verifier.c -- see verifier.h */
#include "io/tls/verifier.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>
#include "io/tls/facts.h"
#include "io/tls/flight.h"
#include "io/tls/impl.h"
#include "io/tls/subject.h"

/* Bytes of the certificates of a client: eight of RSA 4096.  The whole flight has to fit into what
 * is kept for a step: after half a record the loop cannot tell where the next one begins. */
#define CLIENT_CHAIN_MAX (16u << 10)
_Static_assert(CLIENT_CHAIN_MAX + (2u << 10) <= TLS_FLIGHT_MAX, "and a signature, and Finished");

struct tls_verifier {
	unsigned refs;             /* atomic */
	struct tls_verifier *next; /* under the lock: what takes its place; NULL: nothing */
	X509_STORE *store;
	STACK_OF(X509_NAME) * names; /* in the question to clients */
	bool of_names;               /* ... and one of which has to be the issuer */
	bool enforce, exports, nobody;
	unsigned depth;
	unsigned char id[TLS_VERIFIER_ID]; /* of its contents */
};

/* ---- files */

static const char no_memory[] = "not enough memory";

static bool
add_name(STACK_OF(X509_NAME) * names, const X509 *x)
{
	X509_NAME *name = X509_NAME_dup(X509_get_subject_name(x));

	if (name != NULL && sk_X509_NAME_push(names, name) > 0)
		return (true);
	X509_NAME_free(name);
	return (false);
}

/* store NULL: only the names count.  NULL: all is well. */
static const char *
take_certificates(BIO *b, X509_STORE *store, STACK_OF(X509_NAME) * names)
{
	unsigned n = 0;
	bool ok = true;
	X509 *x;

	while (ok && (x = PEM_read_bio_X509_AUX(b, NULL, NULL, (void *)(uintptr_t) "")) != NULL) {
		ok = (store == NULL || X509_STORE_add_cert(store, x) == 1) &&
		     (names == NULL || add_name(names, x));
		X509_free(x);
		n++;
	}
	if (!ok)
		return (no_memory);
	if (!tls_pem_at_end())
		return ("a certificate cannot be read; copy the file again");
	return (
	    n != 0 ? NULL : "no certificate is in the file: expected -----BEGIN CERTIFICATE-----");
}

static const char *
take_lists(BIO *b, X509_STORE *store)
{
	unsigned n = 0;
	bool ok = true;
	X509_CRL *list;

	while (ok && (list = PEM_read_bio_X509_CRL(b, NULL, NULL, NULL)) != NULL) {
		ok = X509_STORE_add_crl(store, list) == 1;
		X509_CRL_free(list);
		n++;
	}
	if (!ok ||
	    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) != 1)
		return (no_memory);
	if (!tls_pem_at_end())
		return ("a list of revoked certificates cannot be read; copy the file again");
	return (n != 0 ? NULL
		       : "no list of revoked certificates is in the file: expected -----BEGIN X509 "
			 "CRL-----");
}

static const char *
take(struct tls_verifier *v, const struct tls_verifier_settings *set, enum tls_verifier_file of)
{
	struct text pem = set->pem[of];
	const char *why = no_memory;
	BIO *b;

	if (pem.p == NULL && of != VERIFIER_AUTHORITIES)
		return (NULL);
	if (pem.n > INT32_MAX || (b = BIO_new_mem_buf(pem.n != 0 ? pem.p : "", (int)pem.n)) == NULL)
		return (why);
	ERR_clear_error();
	switch (of) {
	case VERIFIER_AUTHORITIES:
		why = take_certificates(b, v->store, v->of_names ? NULL : v->names);
		break;
	case VERIFIER_NAMES: why = take_certificates(b, NULL, v->names); break;
	default: why = take_lists(b, v->store);
	}
	BIO_free(b);
	ERR_clear_error();
	return (why);
}

/* ---- making one */

static bool
add_number(EVP_MD_CTX *md, uint64_t v)
{
	return (EVP_DigestUpdate(md, &v, sizeof(v)) == 1);
}

static bool
make_id(struct tls_verifier *v, const struct tls_verifier_settings *set)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	bool ok = md != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
		  add_number(md, set->enforce) && add_number(md, set->exports) &&
		  add_number(md, set->depth);
	size_t i;

	for (i = 0; ok && i < VERIFIER_FILES; i++)
		ok = add_number(md, set->pem[i].p != NULL ? set->pem[i].n + 1 : 0) &&
		     EVP_DigestUpdate(md, set->pem[i].p, set->pem[i].n) == 1;
	ok = ok && EVP_DigestFinal_ex(md, v->id, NULL) == 1;
	EVP_MD_CTX_free(md);
	return (ok);
}

static struct tls_verifier *
begin(void)
{
	struct tls_verifier *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return (NULL);
	v->refs = 1;
	v->enforce = true;
	v->store = X509_STORE_new();
	v->names = sk_X509_NAME_new_null();
	if (v->store != NULL && v->names != NULL)
		return (v);
	tls_verifier_put(v);
	return (NULL);
}

struct tls_verifier *
tls_verifier_nobody(void)
{
	struct tls_verifier *v = begin();

	if (v != NULL)
		v->nobody = true;
	return (v);
}

struct tls_verifier *
tls_verifier_new(const struct tls_verifier_settings *set, enum tls_verifier_file *of,
    const char **why)
{
	struct tls_verifier *v = begin();

	*of = VERIFIER_AUTHORITIES;
	*why = no_memory;
	if (v == NULL)
		return (NULL);
	v->enforce = set->enforce;
	v->exports = set->exports;
	v->depth = set->depth;
	v->of_names = set->pem[VERIFIER_NAMES].p != NULL;
	if (make_id(v, set)) {
		*why = NULL;
		for (; *of < VERIFIER_FILES; (*of)++)
			if ((*why = take(v, set, *of)) != NULL)
				break;
	}
	if (*why == NULL)
		return (v);
	tls_verifier_put(v);
	return (NULL);
}

/* One for all: it is held for the time of an increment. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct tls_verifier *
tls_verifier_hold(struct tls_verifier *v)
{
	if (v == NULL)
		return (NULL);
	pthread_mutex_lock(&lock);
	if (v->next != NULL)
		v = v->next;
	__atomic_add_fetch(&v->refs, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return (v);
}

void
tls_verifier_renew(struct tls_verifier *v, struct tls_verifier *from)
{
	struct tls_verifier *last;

	pthread_mutex_lock(&lock);
	last = v->next;
	v->next = from;
	pthread_mutex_unlock(&lock);
	tls_verifier_put(last);
}

void
tls_verifier_put(struct tls_verifier *v)
{
	if (v == NULL || __atomic_sub_fetch(&v->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	tls_verifier_put(v->next);
	X509_STORE_free(v->store);
	sk_X509_NAME_pop_free(v->names, X509_NAME_free);
	free(v);
}

bool
tls_verified_by(const struct tls_facts *f, struct tls_verifier *verifier)
{
	struct tls_verifier *v = tls_verifier_hold(verifier);
	bool same = f != NULL && f->verifier != NULL && v != NULL && !v->nobody &&
		    memcmp(f->verifier, v->id, sizeof(v->id)) == 0;

	tls_verifier_put(v);
	return (same);
}

/* ---- in a handshake */

static bool
is_named(const struct tls_verifier *v, const X509 *x)
{
	const X509_NAME *issuer = x != NULL ? X509_get_issuer_name(x) : NULL;
	int i;

	for (i = 0; issuer != NULL && i < sk_X509_NAME_num(v->names); i++)
		if (X509_NAME_cmp(sk_X509_NAME_value(v->names, i), issuer) == 0)
			return (true);
	return (false);
}

/* The error stays in x when the handshake goes on. */
static int
on_certificate(int ok, X509_STORE_CTX *x)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(x, SSL_get_ex_data_X509_STORE_CTX_idx());
	const struct tls_verifier *v = SSL_get_app_data(ssl);
	int depth = X509_STORE_CTX_get_error_depth(x), why = X509_V_OK;

	if (depth > (int)v->depth)
		why = X509_V_ERR_CERT_CHAIN_TOO_LONG;
	else if (depth == 0 && v->of_names && !is_named(v, X509_STORE_CTX_get_current_cert(x)))
		why = X509_V_ERR_CERT_REJECTED;
	if (ok && why != X509_V_OK) {
		X509_STORE_CTX_set_error(x, why);
		ok = 0;
	}
	return (ok || !v->enforce);
}

bool
tls_verifier_apply(const struct tls_verifier *v, SSL *ssl)
{
	STACK_OF(X509_NAME) *names = SSL_dup_CA_list(v->names);
	int mode = SSL_VERIFY_PEER | (v->enforce ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);

	if (names == NULL || SSL_set1_verify_cert_store(ssl, v->store) != 1 ||
	    !tls_sessions_verified(ssl, v)) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return (false);
	}
	SSL_set_client_CA_list(ssl, names);
	SSL_set_app_data(ssl, (void *)(uintptr_t)v);
	SSL_set_verify(ssl, mode, on_certificate);
	SSL_set_verify_depth(ssl, (int)v->depth + 1);
	SSL_set_max_cert_list(ssl, CLIENT_CHAIN_MAX);
	return (true);
}

/* ---- after it */

/* A certificate may have expired since the session began. */
static long
result_of(const SSL *ssl, const X509 *x)
{
	long result = SSL_get_verify_result(ssl);

	if (result == X509_V_OK && x != NULL && X509_cmp_current_time(X509_get0_notAfter(x)) <= 0)
		result = X509_V_ERR_CERT_HAS_EXPIRED;
	return (result);
}

static void
add_certificate(struct tls_draft *d, const X509 *x)
{
	BIO *b = BIO_new(BIO_s_mem());
	char *p = NULL;
	long n;

	if (b != NULL && PEM_write_bio_X509(b, (X509 *)(uintptr_t)x) == 1) {
		n = BIO_get_mem_data(b, &p);
		tls_draft_add(d, TEXT("SSL_CLIENT_CERT"), (struct text){ p, (size_t)n });
	}
	BIO_free(b);
}

const char *
tls_verifier_learn(const struct tls_verifier *v, const SSL *ssl, struct tls_draft *d)
{
	static const struct text name = TEXT("SSL_CLIENT_VERIFY");
	const X509 *x = SSL_get0_peer_certificate(ssl);
	long result = result_of(ssl, x);
	const char *why = X509_verify_cert_error_string(result);
	char failed[128];
	int n;

	if (result != X509_V_OK) {
		n = snprintf(failed, sizeof(failed), "FAILED:%.100s", why);
		tls_draft_add(d, name, (struct text){ failed, (size_t)n });
		return (v->enforce ? why : NULL);
	}
	if (x == NULL) {
		tls_draft_add(d, name, TEXT("NONE"));
		return (v->enforce ? "the client has no certificate" : NULL);
	}
	tls_draft_add(d, name, TEXT("SUCCESS"));
	tls_subject_add(d, x);
	if (v->exports)
		add_certificate(d, x);
	return (NULL);
}

const unsigned char *
tls_verifier_id(const struct tls_verifier *v)
{
	return (v->id);
}
