/* io/tls/inspect.c -- see inspect.h.  A client refuses what is found here, so the server starts. */
#include "io/tls/inspect.h"

#include <glib.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/buf.h"
#include "io/tls/hello.h"
#include "io/tls/impl.h"

#define NAME_MAX_BYTES 128
#define NAMES_SHOWN    8
#define CHAIN_MAX      16

struct inspection {
	tls_tell_fn *tell;
	void *arg;
	time_t now;
	SSL_CTX *ctx; /* with a reference */
	X509 *leaf;
	STACK_OF(X509) * chain; /* those after it; NULL: none */
};

static void __attribute__((format(printf, 2, 3)))
say(const struct inspection *k, const char *fmt, ...)
{
	char line[2560], *p;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (p = line; *p != '\0'; p++) /* the certificate chose some of the bytes */
		if (*p < ' ' || *p > '~')
			*p = '?';
	k->tell(k->arg, line);
}

/* "/CN=x" */
static const char *
name_of(const X509_NAME *name, char buf[NAME_MAX_BYTES])
{
	return (X509_NAME_oneline(name, buf, NAME_MAX_BYTES) != NULL ? buf : "?");
}

static X509 *
nth(const struct inspection *k, int i)
{
	return (i == 0 ? k->leaf : sk_X509_value(k->chain, i - 1));
}

static int
count_of(const struct inspection *k)
{
	return (1 + (k->chain != NULL ? sk_X509_num(k->chain) : 0));
}

/* ---- dates */

static const char *
date_of(const ASN1_TIME *t, char buf[32])
{
	struct tm tm;

	if (ASN1_TIME_to_tm(t, &tm) != 1 || strftime(buf, 32, "%Y-%m-%d %H:%M UTC", &tm) == 0)
		return ("a date that cannot be read");
	return (buf);
}

static void
look_at_dates(const struct inspection *k, X509 *x)
{
	const ASN1_TIME *from = X509_get0_notBefore(x), *to = X509_get0_notAfter(x);
	char name[NAME_MAX_BYTES], date[32];
	time_t soon = k->now + TLS_ENDS_SOON_S, now = k->now;

	(void)name_of(X509_get_subject_name(x), name);
	if (X509_cmp_time(from, &now) > 0)
		say(k, "the certificate of \"%s\" is not valid before %s", name,
		    date_of(from, date));
	else if (X509_cmp_time(to, &now) <= 0)
		say(k, "the certificate of \"%s\" ended at %s; renew it", name, date_of(to, date));
	else if (X509_cmp_time(to, &soon) <= 0)
		say(k, "the certificate of \"%s\" ends at %s; renew it", name, date_of(to, date));
}

/* ---- the chain */

/* A key of an unknown kind issues nothing. */
static bool
has_issued(X509 *of, X509 *x)
{
	EVP_PKEY *key = X509_get0_pubkey(of);

	return (X509_check_issued(of, x) == X509_V_OK && key != NULL && X509_verify(x, key) == 1);
}

static bool
is_root(X509 *x)
{
	return (X509_check_issued(x, x) == X509_V_OK);
}

/* The place of the one that issued the i-th; 0: none is there. */
static int
place_of_issuer(const struct inspection *k, int i)
{
	int j;

	for (j = 1; j < count_of(k); j++)
		if (j != i && has_issued(nth(k, j), nth(k, i)))
			return (j);
	return (0);
}

static void
tell_missing(const struct inspection *k, int i)
{
	char name[NAME_MAX_BYTES], issuer[NAME_MAX_BYTES];

	say(k,
	    "\"%s\" is not followed by the certificate of its issuer \"%s\"; clients that do not "
	    "have that one refuse it",
	    name_of(X509_get_subject_name(nth(k, i)), name),
	    name_of(X509_get_issuer_name(nth(k, i)), issuer));
}

static void
tell_misplaced(const struct inspection *k, int i, int at)
{
	char name[NAME_MAX_BYTES], issuer[NAME_MAX_BYTES];

	say(k,
	    "the order is wrong: \"%s\", which issued \"%s\", is certificate %d of the file, "
	    "expected %d",
	    name_of(X509_get_subject_name(nth(k, at)), issuer),
	    name_of(X509_get_subject_name(nth(k, i)), name), at + 1, i + 2);
}

/* From the certificate towards its root, which may be left out.  What is left over then shows that
 * one between them is missing. */
static void
look_at_order(const struct inspection *k)
{
	int i = 0, at = 0, n = count_of(k);

	while (i < CHAIN_MAX && !is_root(nth(k, i)) && (at = place_of_issuer(k, i)) == i + 1)
		i = at;
	if (i == CHAIN_MAX || is_root(nth(k, i)))
		return;
	if (at != 0)
		tell_misplaced(k, i, at);
	else if (i == 0 || i + 1 < n)
		tell_missing(k, i);
}

static void
begin(struct inspection *k, const struct io_secure *secure, tls_tell_fn *tell, void *arg)
{
	*k = (struct inspection){ .tell = tell, .arg = arg, .ctx = tls_secure_ctx(secure) };
}

/* which: SSL_CERT_SET_FIRST or _NEXT.  A client gets one of them. */
static bool
next(struct inspection *k, long which)
{
	if (SSL_CTX_set_current_cert(k->ctx, which) != 1)
		return (false);
	k->leaf = SSL_CTX_get0_certificate(k->ctx);
	(void)SSL_CTX_get0_chain_certs(k->ctx, &k->chain);
	return (true);
}

static void
end(struct inspection *k)
{
	tls_pem_choose(k->ctx);
	SSL_CTX_free(k->ctx);
	ERR_clear_error();
}

void
tls_inspect(const struct io_secure *secure, int64_t now_s, tls_tell_fn *tell, void *arg)
{
	struct inspection k;
	bool more;
	int i;

	begin(&k, secure, tell, arg);
	k.now = (time_t)now_s;
	for (more = next(&k, SSL_CERT_SET_FIRST); more; more = next(&k, SSL_CERT_SET_NEXT)) {
		for (i = 0; i < count_of(&k); i++)
			look_at_dates(&k, nth(&k, i));
		look_at_order(&k);
	}
	end(&k);
}

/* ---- names */

static void
list_names(X509 *x, struct buf *out)
{
	GENERAL_NAMES *all = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	char name[NAME_MAX_BYTES];
	int i, n = 0;

	for (i = 0; i < sk_GENERAL_NAME_num(all); i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(all, i);

		if (g->type != GEN_DNS || n++ >= NAMES_SHOWN)
			continue;
		buf_printf(out, "%s%.*s", n > 1 ? ", " : "",
		    MIN(ASN1_STRING_length(g->d.dNSName), NAME_MAX_BYTES),
		    (const char *)ASN1_STRING_get0_data(g->d.dNSName));
	}
	if (n > NAMES_SHOWN)
		buf_printf(out, " and %d more", n - NAMES_SHOWN);
	if (n == 0)
		buf_str(out, name_of(X509_get_subject_name(x), name));
	sk_GENERAL_NAME_pop_free(all, GENERAL_NAME_free);
}

static bool
is_for(X509 *x, struct text host)
{
	char name[TLS_NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.*s", (int)host.n, host.p);
	return (X509_check_host(x, name, 0, 0, NULL) == 1 || X509_check_ip_asc(x, name, 0) == 1);
}

static void
tell_host(const struct inspection *k, struct text host, const char *setting)
{
	struct buf names;

	buf_init(&names, 2048);
	list_names(k->leaf, &names);
	say(k, "the certificate is for %.*s, not for %.*s of %s", (int)names.n,
	    names.n != 0 ? names.p : "", (int)host.n, host.p, setting);
	buf_free(&names);
}

void
tls_inspect_host(const struct io_secure *secure, struct text host, const char *setting,
    tls_tell_fn *tell, void *arg)
{
	struct inspection k;
	bool more;

	begin(&k, secure, tell, arg);
	for (more = next(&k, SSL_CERT_SET_FIRST); more; more = next(&k, SSL_CERT_SET_NEXT))
		if (!is_for(k.leaf, host))
			tell_host(&k, host, setting);
	end(&k);
}
