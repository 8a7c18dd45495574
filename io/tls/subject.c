/* io/tls/subject.c -- see subject.h */
#include "io/tls/subject.h"

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include "io/tls/facts.h"

#define PREFIX        "SSL_CLIENT_S_DN_"
#define PART_NAME_MAX 64u
#define SERIAL_MAX    128u

static bool
fits(struct text value, size_t max)
{
	return (value.n != 0 && value.n <= max && !text_has_control(value));
}

/* ---- the whole subject */

static void
add_whole(struct tls_draft *d, const X509_NAME *name)
{
	BIO *b = BIO_new(BIO_s_mem());
	struct text all = TEXT_NONE;
	char *p = NULL;

	if (b != NULL && X509_NAME_print_ex(b, name, 0, XN_FLAG_ONELINE) > 0) {
		all.n = (size_t)BIO_get_mem_data(b, &p);
		all.p = p;
	}
	if (fits(all, TLS_SUBJECT_MAX))
		tls_draft_add(d, TEXT("SSL_CLIENT_S_DN"), all);
	BIO_free(b);
}

/* ---- its parts */

static char
upper(char c)
{
	return (c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
}

/* "SSL_CLIENT_S_DN_" and the short name of OpenSSL.  TEXT_NONE: the part has no name that is one of
 * a variable. */
static struct text
name_of(const X509_NAME_ENTRY *e, char buf[PART_NAME_MAX])
{
	int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(e));
	const char *sn = nid != NID_undef ? OBJ_nid2sn(nid) : NULL;
	size_t n = sizeof(PREFIX) - 1, i;

	if (sn == NULL || strlen(sn) > PART_NAME_MAX - n || !text_is_plain(text_of(sn), '_'))
		return (TEXT_NONE);
	memcpy(buf, PREFIX, n);
	for (i = 0; sn[i] != '\0'; i++)
		buf[n++] = upper(sn[i]);
	return ((struct text){ buf, n });
}

static void
add_part(struct tls_draft *d, const X509_NAME_ENTRY *e)
{
	char buf[PART_NAME_MAX];
	struct text name = name_of(e, buf), value;
	unsigned char *utf8 = NULL;
	int n;

	if (name.p == NULL || tls_draft_has(d, name))
		return;
	n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(e));
	value = (struct text){ (char *)utf8, n > 0 ? (size_t)n : 0 };
	/* one that does not fit hides the earlier ones of its name, too */
	tls_draft_add(d, name, fits(value, TLS_SUBJECT_VALUE) ? value : TEXT(""));
	OPENSSL_free(utf8);
}

void
tls_subject_names(struct tls_draft *d, const X509_NAME *name)
{
	int n = X509_NAME_entry_count(name), i;

	add_whole(d, name);
	for (i = n - 1; i >= 0 && n <= (int)TLS_SUBJECT_PARTS; i--)
		add_part(d, X509_NAME_get_entry(name, i));
	ERR_clear_error();
}

/* ---- its number */

static void
add_serial(struct tls_draft *d, const X509 *x)
{
	BIGNUM *bn = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);
	char *hex = bn != NULL ? BN_bn2hex(bn) : NULL;

	if (hex != NULL && fits(text_of(hex), SERIAL_MAX))
		tls_draft_add(d, TEXT("SSL_CLIENT_M_SERIAL"), text_of(hex));
	OPENSSL_free(hex);
	BN_free(bn);
}

void
tls_subject_add(struct tls_draft *d, const X509 *x)
{
	tls_subject_names(d, X509_get_subject_name(x));
	add_serial(d, x);
}
