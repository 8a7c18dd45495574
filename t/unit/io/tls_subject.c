/* t/unit/io/tls_subject.c -- the subject of a client's certificate as facts: which parts there are,
 * and what hostile ones become. */
#include <stdlib.h>
#include "io/tls/facts.h"
#include "io/tls/subject.h"
#include "io/tls/verifier.h"
#include "t/unit/test.h"

static X509_NAME *subject;

static void
add(const char *field, int kind, const char *value, int n)
{
	g_assert_cmpint(X509_NAME_add_entry_by_txt(subject, field, kind,
			    (const unsigned char *)value, n, -1, 0),
	    ==, 1);
}

static struct tls_facts *
facts(void)
{
	struct tls_facts *f;
	struct tls_draft d;

	tls_draft_init(&d);
	tls_subject_names(&d, subject);
	f = tls_facts_new(&d, 0, 0);
	g_assert_nonnull(f);
	return (f);
}

static void
is(const char *name, const char *value)
{
	struct tls_facts *f = facts();
	struct text t = tls_fact(f, text_of(name));

	if (value == NULL)
		g_assert_null(t.p);
	else
		g_assert_cmpmem(t.p, t.n, value, strlen(value));
	free(f);
}

#define SUBJECT_TEST(path) TEST_IN(path, subject = X509_NAME_new(), X509_NAME_free(subject))

SUBJECT_TEST("/tls_subject/parts")
{
	add("C", MBSTRING_UTF8, "DE", -1);
	add("OU", MBSTRING_UTF8, "one", -1);
	add("OU", MBSTRING_UTF8, "two", -1);
	add("emailAddress", MBSTRING_UTF8, "a@x", -1);
	add("CN", MBSTRING_UTF8, "M\xc3\xbcller", -1);
	is("SSL_CLIENT_S_DN", "C = DE, OU = one, OU = two, emailAddress = a@x, CN = M\\C3\\BCller");
	is("SSL_CLIENT_S_DN_C", "DE");
	is("SSL_CLIENT_S_DN_OU", "two"); /* the last one, as in lighttpd */
	is("SSL_CLIENT_S_DN_EMAILADDRESS", "a@x");
	is("SSL_CLIENT_S_DN_CN", "M\xc3\xbcller");
	is("SSL_CLIENT_S_DN_O", NULL);
}

SUBJECT_TEST("/tls_subject/other alphabets of ASN.1 become UTF-8")
{
	add("CN", V_ASN1_BMPSTRING, "\0a\x20\xac", 4);
	add("O", V_ASN1_T61STRING, "M\xfc", 2);
	is("SSL_CLIENT_S_DN_CN", "a\xe2\x82\xac");
	is("SSL_CLIENT_S_DN_O", "M\xc3\xbc");
}

SUBJECT_TEST("/tls_subject/bytes that would end a name")
{
	add("CN", MBSTRING_UTF8, "first", -1);
	add("CN", V_ASN1_UTF8STRING, "admin\0.example", 14);
	add("O", V_ASN1_IA5STRING, "a\nHTTP_X=b", -1);
	add("OU", V_ASN1_UTF8STRING, "\xff\xfe", 2);
	is("SSL_CLIENT_S_DN_CN", ""); /* and not "first" */
	is("SSL_CLIENT_S_DN_O", "");
	is("SSL_CLIENT_S_DN_OU", "");
}

SUBJECT_TEST("/tls_subject/bounds")
{
	char value[TLS_SUBJECT_MAX + 1];
	unsigned i;

	memset(value, 'x', sizeof(value));
	add("O", V_ASN1_UTF8STRING, value, TLS_SUBJECT_VALUE);
	add("CN", V_ASN1_UTF8STRING, "me", 2);
	is("SSL_CLIENT_S_DN_CN", "me");
	value[TLS_SUBJECT_VALUE] = '\0';
	is("SSL_CLIENT_S_DN_O", value);
	value[TLS_SUBJECT_VALUE] = 'x';
	add("O", V_ASN1_UTF8STRING, value, TLS_SUBJECT_VALUE + 1);
	is("SSL_CLIENT_S_DN_O", "");
	add("OU", V_ASN1_UTF8STRING, value, TLS_SUBJECT_MAX);
	is("SSL_CLIENT_S_DN", NULL);
	for (i = 0; i < TLS_SUBJECT_PARTS; i++)
		add("DC", V_ASN1_UTF8STRING, "x", 1);
	is("SSL_CLIENT_S_DN_CN", NULL); /* of a subject with more parts than are read */
}

SUBJECT_TEST("/tls_subject/parts without a name")
{
	add("1.2.3.4", MBSTRING_UTF8, "x", -1);
	add("RSA-MD5", MBSTRING_UTF8, "x", -1); /* none of a variable */
	is("SSL_CLIENT_S_DN_1.2.3.4", NULL);
	is("SSL_CLIENT_S_DN_UNDEF", NULL);
	is("SSL_CLIENT_S_DN_RSA-MD5", NULL);
}

TEST("/tls_subject/a verifier that believes nobody verifies nobody")
{
	struct tls_verifier *v = tls_verifier_nobody(), *held = tls_verifier_hold(v);
	unsigned char id[TLS_VERIFIER_ID] = { 0 };
	struct tls_facts f = { .verifier = id };

	g_assert_false(tls_verified_by(&f, v)); /* though its id is the same */
	g_assert_false(tls_verified_by(&f, NULL));
	g_assert_false(tls_verified_by(NULL, v));
	tls_verifier_put(v);
	tls_verifier_put(held);
}

TEST("/tls_subject/a verifier has files that can be read")
{
	struct tls_verifier_settings set = { .pem = { TEXT("") } };
	enum tls_verifier_file of;
	const char *why;

	g_assert_null(tls_verifier_new(&set, &of, &why));
	g_assert_cmpint(of, ==, VERIFIER_AUTHORITIES);
	g_assert_nonnull(strstr(why, "no certificate is in the file"));
	set.pem[0] = TEXT("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	g_assert_null(tls_verifier_new(&set, &of, &why));
	g_assert_nonnull(strstr(why, "cannot be read"));
}
