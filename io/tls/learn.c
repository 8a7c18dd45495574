/* io/tls/learn.c -- the facts of a connection (facts.h), after the last step of its handshake */
#include "io/tls/facts.h"
#include "io/tls/impl.h"
#include "io/tls/verifier.h"

static void
add_text(struct tls_draft *d, struct text name, const char *value)
{
	if (value != NULL)
		tls_draft_add(d, name, text_of(value));
}

static void
add_number(struct tls_draft *d, struct text name, int v)
{
	char digits[20];

	tls_draft_add(d, name,
	    (struct text){ digits, text_put_u64(digits, v > 0 ? (uint64_t)v : 0) });
}

static void
add_cipher(struct tls_draft *d, const SSL_CIPHER *c)
{
	int most = 0, used = SSL_CIPHER_get_bits(c, &most);

	add_text(d, TEXT("SSL_CIPHER"), SSL_CIPHER_get_name(c));
	add_number(d, TEXT("SSL_CIPHER_USEKEYSIZE"), used);
	add_number(d, TEXT("SSL_CIPHER_ALGKEYSIZE"), most);
}

const char *
tls_learn(struct tls_link *l)
{
	const SSL_CIPHER *cipher = SSL_get_current_cipher(l->ssl);
	const char *why = NULL;
	struct tls_facts *f;
	struct tls_draft d;
	size_t own, told;

	tls_draft_init(&d);
	add_text(&d, TEXT("SSL_PROTOCOL"), SSL_get_version(l->ssl));
	if (cipher != NULL)
		add_cipher(&d, cipher);
	own = d.n;
	if (l->verifier != NULL)
		why = tls_verifier_learn(l->verifier, l->ssl, &d);
	told = d.n;
	add_text(&d, TEXT("SSL_SESSION_RESUMED"),
	    SSL_session_reused(l->ssl) == 1 ? "Resumed" : "Initial");
	add_text(&d, TEXT("SSL_TLS_SNI"), l->host);
	f = tls_facts_new(&d, own, told);
	if (f == NULL)
		return ("not enough memory");
	f->verifier = l->verifier != NULL ? tls_verifier_id(l->verifier) : NULL;
	l->transport.facts = f;
	return (why);
}
