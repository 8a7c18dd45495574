/* io/tls/staple.c -- an OCSP response, which says that a certificate is not revoked: the server
 * sends it with the certificate, so no client has to ask the authority.
 *
 *   file, as DER --tls_staple_use()--> ex_data of the SSL_CTX --on_status()--> the client
 *
 * The signature is not verified: the client does that, and believes no other.
 */
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "io/tls/impl.h"

/* Those of authorities have 0.3 to 3 kB.  The message of TLS 1.3 has room for 64 kB. */
#define STAPLE_MAX 32768u
#define SKEW_S     300   /* between the clock of the authority and ours */
#define WITHOUT_S  86400 /* from thisUpdate, if there is no nextUpdate: as Firefox */

struct staple {
	const X509 *leaf;         /* one of the SSL_CTX */
	int64_t from_s, before_s; /* since 1970 */
	int n;
	unsigned char der[];
};

static void
staple_free(void *ctx, void *staple, CRYPTO_EX_DATA *all, int nr, long n, void *arg)
{
	free(staple);
}

/* Of the SSL_CTX.  -1: no memory. */
static int
place(void)
{
	static int nr = -1; /* tls_secure_new() runs one at a time */

	if (nr < 0)
		nr = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, staple_free);
	return (nr);
}

/* ---- for a client that asks */

/* NULL: now is within its time. */
static const char *
fault_of_time(const struct staple *p)
{
	int64_t now = (int64_t)(clock_wall_ns() / NS_PER_S);

	if (p->from_s > now + SKEW_S)
		return ("it is not valid yet; look at the clock of this machine");
	return (p->before_s <= now ? "it is over (nextUpdate); fetch the next one" : NULL);
}

/* A client that gets the certificate of another kind gets no response. */
static int
on_status(SSL *ssl, void *staple)
{
	const struct staple *p = staple;
	unsigned char *copy;

	if (SSL_get_certificate(ssl) != p->leaf || fault_of_time(p) != NULL)
		return (SSL_TLSEXT_ERR_NOACK);
	copy = OPENSSL_memdup(p->der, (size_t)p->n);
	if (copy == NULL || SSL_set_tlsext_status_ocsp_resp(ssl, copy, p->n) != 1) {
		OPENSSL_free(copy);
		return (SSL_TLSEXT_ERR_NOACK);
	}
	return (SSL_TLSEXT_ERR_OK);
}

/* ---- reading */

static bool
is_about(const OCSP_SINGLERESP *one, const X509 *x)
{
	OCSP_CERTID *id = (OCSP_CERTID *)(uintptr_t)OCSP_SINGLERESP_get0_id(one);
	unsigned char hash[EVP_MAX_MD_SIZE];
	ASN1_OCTET_STRING *issuer;
	ASN1_INTEGER *serial;
	ASN1_OBJECT *kind;
	const EVP_MD *md;
	unsigned n;

	(void)OCSP_id_get0_info(&issuer, &kind, NULL, &serial, id);
	md = EVP_get_digestbyobj(kind);
	return (ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(x)) == 0 && md != NULL &&
		X509_NAME_digest(X509_get_issuer_name(x), md, hash, &n) == 1 &&
		ASN1_STRING_length(issuer) == (int)n &&
		memcmp(ASN1_STRING_get0_data(issuer), hash, n) == 0);
}

/* What it says about one of the certificates.  NULL: nothing. */
static OCSP_SINGLERESP *
answer_of(SSL_CTX *ctx, OCSP_BASICRESP *all, const X509 **leaf)
{
	int more, i;

	for (more = SSL_CTX_set_current_cert(ctx, SSL_CERT_SET_FIRST); more == 1;
	     more = SSL_CTX_set_current_cert(ctx, SSL_CERT_SET_NEXT)) {
		*leaf = SSL_CTX_get0_certificate(ctx);
		for (i = 0; i < OCSP_resp_count(all); i++)
			if (is_about(OCSP_resp_get0(all, i), *leaf))
				return (OCSP_resp_get0(all, i));
	}
	return (NULL);
}

static const char *
look_at(OCSP_SINGLERESP *one, struct staple *p)
{
	ASN1_GENERALIZEDTIME *from, *before;

	if (OCSP_single_get0_status(one, NULL, NULL, &from, &before) != V_OCSP_CERTSTATUS_GOOD)
		return ("it says that the certificate is revoked, or unknown to the authority");
	p->from_s = (int64_t)tls_seconds(from);
	p->before_s = before != NULL ? (int64_t)tls_seconds(before) : p->from_s + WITHOUT_S;
	return (NULL);
}

static const char *
read_basic(SSL_CTX *ctx, OCSP_BASICRESP *all, struct staple *p)
{
	OCSP_SINGLERESP *one = all != NULL ? answer_of(ctx, all, &p->leaf) : NULL;

	if (one == NULL)
		return ("it is not about a certificate in ssl.pemfile; fetch the one of the new "
			"certificate");
	return (look_at(one, p));
}

static const char *
read_response(SSL_CTX *ctx, struct staple *p)
{
	const unsigned char *at = p->der;
	OCSP_RESPONSE *r = d2i_OCSP_RESPONSE(NULL, &at, p->n);
	OCSP_BASICRESP *all;
	const char *why;

	if (r == NULL || at != p->der + p->n)
		why = "it is no OCSP response; expected DER, as of openssl ocsp -respout";
	else if (OCSP_response_status(r) != OCSP_RESPONSE_STATUS_SUCCESSFUL)
		why = "the responder had no answer; fetch another one";
	else {
		all = OCSP_response_get1_basic(r);
		why = read_basic(ctx, all, p);
		OCSP_BASICRESP_free(all);
	}
	OCSP_RESPONSE_free(r);
	return (why);
}

static const char *
keep(SSL_CTX *ctx, struct staple *p)
{
	if (place() < 0 || SSL_CTX_set_ex_data(ctx, place(), p) != 1)
		return ("not enough memory");
	SSL_CTX_set_tlsext_status_cb(ctx, on_status);
	SSL_CTX_set_tlsext_status_arg(ctx, p);
	return (NULL);
}

const char *
tls_staple_use(SSL_CTX *ctx, struct text der)
{
	struct staple *p;
	const char *why;

	if (der.n > STAPLE_MAX)
		return ("it has more than 32 KiB, so it is no OCSP response");
	p = calloc(1, sizeof(*p) + der.n);
	if (p == NULL)
		return ("not enough memory");
	p->n = (int)der.n;
	memcpy(p->der, der.p, der.n);
	why = read_response(ctx, p);
	if (why == NULL)
		why = keep(ctx, p);
	if (why != NULL)
		free(p);
	else /* kept: a machine may start before its clock is set */
		why = fault_of_time(p);
	ERR_clear_error();
	return (why);
}
