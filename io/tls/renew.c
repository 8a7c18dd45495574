/* io/tls/renew.c -- a certificate is replaced while loops use it.
 *
 *   struct tls_secure --> SSL_CTX <-- links, each with a reference
 *                    '--> the next one, from now on
 */
#include <pthread.h>
#include <time.h>
#include "io/tls/impl.h"

/* One for all: it is held for the time of an increment, once for each connection. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

SSL_CTX *
tls_secure_ctx(const struct io_secure *secure)
{
	const struct tls_secure *s = container_of(secure, struct tls_secure, secure);
	SSL_CTX *ctx;

	pthread_mutex_lock(&lock);
	ctx = s->ctx;
	SSL_CTX_up_ref(ctx);
	pthread_mutex_unlock(&lock);
	return (ctx);
}

void
tls_secure_renew(struct io_secure *secure, struct io_secure *from)
{
	struct tls_secure *to = container_of(secure, struct tls_secure, secure);
	struct tls_secure *next = container_of(from, struct tls_secure, secure);
	SSL_CTX *last;

	pthread_mutex_lock(&lock);
	last = to->ctx;
	to->ctx = next->ctx;
	pthread_mutex_unlock(&lock);
	next->ctx = last;
	tls_secure_free(from);
}

uint64_t
tls_seconds(const ASN1_TIME *t)
{
	struct tm tm;

	return (ASN1_TIME_to_tm(t, &tm) == 1 && timegm(&tm) > 0 ? (uint64_t)timegm(&tm) : 0);
}

static uint64_t
end_of(const X509 *x)
{
	return (x != NULL ? tls_seconds(X509_get0_notAfter(x)) : 0);
}

uint64_t
tls_secure_ends_s(const struct io_secure *secure)
{
	SSL_CTX *ctx = tls_secure_ctx(secure);
	uint64_t ends = end_of(SSL_CTX_get0_certificate(ctx));

	SSL_CTX_free(ctx);
	return (ends);
}
