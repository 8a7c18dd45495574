/* t/unit/io/tls_staple.c -- which OCSP responses are sent with a certificate, and to whom. */
#include <openssl/ocsp.h>
#include <openssl/rsa.h>
#include "t/unit/io/tls_test.h"

#define DAY 86400L

int __real_clock_gettime(clockid_t, struct timespec *);
int __wrap_clock_gettime(clockid_t, struct timespec *);

static long ahead_s; /* of the server's wall clock */

int
__wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int err = __real_clock_gettime(clock, ts);

	if (clock == CLOCK_REALTIME)
		ts->tv_sec += ahead_s;
	return (err);
}

static struct pem pem;
static unsigned char *der;
static int nder;

static struct answer {
	int status;
	long serial, from_s, before_s; /* before_s 0: no nextUpdate */
} good = { V_OCSP_CERTSTATUS_GOOD, 1, -60, DAY };

static void
answer_add(OCSP_BASICRESP *all, X509 *x, const struct answer *a)
{
	ASN1_TIME *from = X509_gmtime_adj(NULL, a->from_s), *revoked = X509_gmtime_adj(NULL, -60);
	ASN1_TIME *before = a->before_s != 0 ? X509_gmtime_adj(NULL, a->before_s) : NULL;
	ASN1_INTEGER *serial = ASN1_INTEGER_new();
	OCSP_CERTID *id;

	ASN1_INTEGER_set(serial, a->serial);
	id = OCSP_cert_id_new(EVP_sha1(), X509_get_subject_name(x), X509_get0_pubkey_bitstr(x),
	    serial);
	g_assert_nonnull(OCSP_basic_add1_status(all, id, a->status, 0, revoked, from, before));
	OCSP_CERTID_free(id);
	ASN1_INTEGER_free(serial);
	ASN1_TIME_free(from);
	ASN1_TIME_free(before);
	ASN1_TIME_free(revoked);
}

/* Of the authority that made pem.  result: of the whole response. */
static void
response_make(int result, const struct answer *a, size_t n)
{
	BIO *b = BIO_new_mem_buf(pem.chain, -1), *k = BIO_new_mem_buf(pem.key, -1);
	X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(k, NULL, NULL, NULL);
	OCSP_BASICRESP *all = OCSP_BASICRESP_new();
	OCSP_RESPONSE *r;
	size_t i;

	for (i = 0; i < n; i++)
		answer_add(all, x, &a[i]);
	g_assert_cmpint(OCSP_basic_sign(all, x, key, EVP_sha256(), NULL, 0), ==, 1);
	r = OCSP_response_create(result, n != 0 ? all : NULL);
	OPENSSL_free(der);
	der = NULL;
	nder = i2d_OCSP_RESPONSE(r, &der);
	g_assert_cmpint(nder, >, 0);
	OCSP_RESPONSE_free(r);
	OCSP_BASICRESP_free(all);
	EVP_PKEY_free(key);
	X509_free(x);
	BIO_free(b);
	BIO_free(k);
}

/* Why the server does not send it; NULL: it does. */
static const char *
use(const void *p, size_t n)
{
	struct tls_settings set = { .chain = of(pem.chain), .key = of(pem.key) };
	struct tls_fault fault;

	set.staple = (struct text){ p, n };
	tls_secure_free(secure);
	secure = tls_secure_new(&set, &fault);
	g_assert_nonnull(secure);
	return (tls_secure_unstapled(secure));
}

static const char *
use_answer(struct answer a)
{
	response_make(OCSP_RESPONSE_STATUS_SUCCESSFUL, &a, 1);
	return (use(der, (size_t)nder));
}

static const char *signatures; /* that the client takes; NULL: all */

/* What a client gets that asks for it, or does not: the response, or nothing. */
static bool
gets(int version, bool asks)
{
	const unsigned char *got = NULL;
	struct io_sock s;
	struct peer p;
	long n;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, version);
	if (asks)
		SSL_set_tlsext_status_type(p.ssl, TLSEXT_STATUSTYPE_ocsp);
	if (signatures != NULL)
		g_assert_cmpint(SSL_set1_sigalgs_list(p.ssl, signatures), ==, 1);
	g_assert_true(shake_hands(&s, &p));
	g_assert_cmpint(shake.res, ==, 0);
	n = SSL_get_tlsext_status_ocsp_resp(p.ssl, &got);
	if (n > 0)
		g_assert_cmpmem(got, (size_t)n, der, (size_t)nder);
	sock_close(&s);
	peer_free(&p);
	return (n > 0);
}

static void
staple_up(void)
{
	tls_up();
	pem_make(&pem);
}

static void
staple_down(void)
{
	OPENSSL_free(der);
	der = NULL;
	tls_down();
}

#define STAPLE_TEST(path) TEST_IN(path, staple_up(), staple_down())

STAPLE_TEST("/tls_staple/a client that asks gets the response")
{
	g_assert_cmpstr(use_answer(good), ==, NULL);
	g_assert_true(gets(TLS1_3_VERSION, true));
	g_assert_true(gets(TLS1_2_VERSION, true));
	g_assert_false(gets(TLS1_3_VERSION, false));
	g_assert_cmpstr(use(NULL, 0), ==, NULL);
	g_assert_false(gets(TLS1_3_VERSION, true));
}

static void
is_left_out(const char *why, const char *what)
{
	g_assert_nonnull(why);
	g_assert_nonnull(strstr(why, what));
	g_assert_false(gets(TLS1_3_VERSION, true));
}

STAPLE_TEST("/tls_staple/what is left out, and why")
{
	const struct answer over = { V_OCSP_CERTSTATUS_GOOD, 1, -2 * DAY, -1 },
			    other = { V_OCSP_CERTSTATUS_GOOD, 2, -60, DAY },
			    early = { V_OCSP_CERTSTATUS_GOOD, 1, 600, DAY },
			    old = { V_OCSP_CERTSTATUS_GOOD, 1, -DAY - 1, 0 },
			    revoked = { V_OCSP_CERTSTATUS_REVOKED, 1, -60, DAY },
			    unknown = { V_OCSP_CERTSTATUS_UNKNOWN, 1, -60, DAY };

	is_left_out(use_answer(over), "it is over");
	is_left_out(use_answer(old), "it is over");
	is_left_out(use_answer(early), "not valid yet");
	is_left_out(use_answer(other), "not about a certificate");
	is_left_out(use_answer(revoked), "revoked");
	is_left_out(use_answer(unknown), "revoked, or unknown");
	response_make(OCSP_RESPONSE_STATUS_TRYLATER, NULL, 0);
	is_left_out(use(der, (size_t)nder), "had no answer");
	response_make(OCSP_RESPONSE_STATUS_SUCCESSFUL, NULL, 0);
	is_left_out(use(der, (size_t)nder), "not about a certificate");
}

STAPLE_TEST("/tls_staple/an authority's clock and a missing nextUpdate")
{
	g_assert_cmpstr(use_answer((struct answer){ V_OCSP_CERTSTATUS_GOOD, 1, 60, DAY }), ==,
	    NULL);
	g_assert_cmpstr(use_answer((struct answer){ V_OCSP_CERTSTATUS_GOOD, 1, -3600, 0 }), ==,
	    NULL);
	g_assert_true(gets(TLS1_3_VERSION, true));
}

/* A copy at its exact length, so that a read after its end is seen. */
static const char *
use_bytes(const void *p, size_t n)
{
	char *copy = g_memdup2(p, MAX(n, 1));
	const char *why = use(copy, n);

	g_free(copy);
	return (why);
}

STAPLE_TEST("/tls_staple/bytes that are not a response")
{
	char *big = g_malloc0(32769);
	int i;

	is_left_out(use_bytes("", 0), "no OCSP response");
	is_left_out(use_bytes(pem.chain, strlen(pem.chain)), "no OCSP response");
	is_left_out(use_bytes(big, 32768), "no OCSP response");
	is_left_out(use_bytes(big, 32769), "more than 32 KiB");
	g_free(big);
	g_assert_cmpstr(use_answer(good), ==, NULL);
	for (i = 0; i < nder; i++)
		g_assert_nonnull(use_bytes(der, (size_t)i));
	der = OPENSSL_realloc(der, (size_t)nder + 1);
	der[nder] = 0;
	g_assert_nonnull(use_bytes(der, (size_t)nder + 1));
}

/* Whatever a byte becomes, the server starts and shakes hands; a signature is not looked at. */
STAPLE_TEST("/tls_staple/any byte is another one")
{
	int i;

	g_assert_cmpstr(use_answer(good), ==, NULL);
	for (i = 0; i < nder; i++) {
		der[i] ^= 0x55;
		(void)use_bytes(der, (size_t)nder);
		if (i % 16 == 0)
			(void)gets(TLS1_3_VERSION, true);
		der[i] ^= 0x55;
	}
}

STAPLE_TEST("/tls_staple/it is sent within its time, whatever the clock was before")
{
	static const struct {
		long ahead_s;
		bool sent;
		const char *why;
	} at[] = { { 0, true, NULL }, { 2 * DAY, false, "it is over" }, { 0, true, NULL },
		{ -2 * DAY, false, "not valid yet" }, { 0, true, NULL } };
	const char *why;
	size_t first, i;

	for (first = 0; first < G_N_ELEMENTS(at); first++) { /* when the file is read */
		ahead_s = at[first].ahead_s;
		why = use_answer(good);
		g_assert_cmpint(why == NULL, ==, at[first].why == NULL);
		if (why != NULL)
			g_assert_nonnull(strstr(why, at[first].why));
		for (i = 0; i < G_N_ELEMENTS(at); i++) {
			ahead_s = at[i].ahead_s;
			g_assert_cmpint(gets(TLS1_3_VERSION, true), ==, at[i].sent);
		}
	}
	ahead_s = 0;
}

STAPLE_TEST("/tls_staple/of several answers the one about the certificate counts")
{
	struct answer three[] = { { V_OCSP_CERTSTATUS_REVOKED, 7, -60, DAY }, good,
		{ V_OCSP_CERTSTATUS_REVOKED, 8, -60, DAY } };

	response_make(OCSP_RESPONSE_STATUS_SUCCESSFUL, three, G_N_ELEMENTS(three));
	g_assert_cmpstr(use(der, (size_t)nder), ==, NULL);
	g_assert_true(gets(TLS1_3_VERSION, true));
}

/* RSA is 2, ECDSA is 1. */
STAPLE_TEST("/tls_staple/with two certificates it goes to clients of the one that it is about")
{
	struct answer a = good;
	struct pem rsa;

	pem_make_of(&rsa, EVP_RSA_gen(2048), 2);
	g_strlcat(pem.chain, rsa.chain, sizeof(pem.chain));
	g_strlcat(pem.key, rsa.key, sizeof(pem.key));
	for (a.serial = 1; a.serial <= 2; a.serial++) {
		g_assert_cmpstr(use_answer(a), ==, NULL);
		signatures = "ECDSA+SHA256";
		g_assert_cmpint(gets(TLS1_3_VERSION, true), ==, a.serial == 1);
		g_assert_cmpint(gets(TLS1_2_VERSION, true), ==, a.serial == 1);
		signatures = "RSA-PSS+SHA256";
		g_assert_cmpint(gets(TLS1_3_VERSION, true), ==, a.serial == 2);
		signatures = NULL;
	}
}

STAPLE_TEST("/tls_staple/a renewed certificate has the response of its own")
{
	struct io_secure *first;

	g_assert_nonnull(use_answer((struct answer){ V_OCSP_CERTSTATUS_GOOD, 9, -60, DAY }));
	first = secure;
	secure = NULL;
	g_assert_cmpstr(use_answer(good), ==, NULL);
	tls_secure_renew(first, secure);
	secure = first;
	g_assert_true(gets(TLS1_3_VERSION, true));
}
