/* io/tls/facts.h -- what is known of a connection after its handshake: names and values, as
 * mod_openssl of lighttpd and mod_ssl of Apache name them.
 *
 *   SSL_PROTOCOL           TLSv1.3
 *   SSL_CIPHER             TLS_AES_256_GCM_SHA384
 *   SSL_CIPHER_USEKEYSIZE  256
 *   SSL_CIPHER_ALGKEYSIZE  256
 *   SSL_CLIENT_VERIFY ...  if the client's certificate was verified: verifier.h, subject.h
 *   -- so far for applications; for logs also:
 *   SSL_SESSION_RESUMED    Initial, Resumed
 *   SSL_TLS_SNI            the host that the client named, in lower case; only if it did
 *
 * Owner    the transport of the socket: they live as long as the connection.
 * Thread   made in the thread of the last step of a handshake; read-only afterwards.
 */
#ifndef IO_TLS_FACTS_H
#define IO_TLS_FACTS_H

#include "base/buf.h"

struct io_sock;

#define TLS_FACTS_MAX 40u

struct tls_fact {
	struct text name, value;
};

struct tls_facts {
	size_t n;
	size_t told; /* the first ones: those for applications */
	size_t own;  /* ... as if the client had no certificate */
	/* Id of the verifier, which is the transport's; NULL: nobody verified the client. */
	const unsigned char *verifier;
	struct tls_fact v[];
};

/* NULL: the socket speaks plain text. */
const struct tls_facts *io_sock_facts(const struct io_sock *);
/* .p NULL: not known; facts may be NULL. */
struct text tls_fact(const struct tls_facts *, struct text name);

/* A list that grows: those for applications are added first. */
struct tls_draft {
	struct buf bytes;
	size_t n;
	struct {
		size_t name, value; /* lengths in bytes */
	} v[TLS_FACTS_MAX];
};

void tls_draft_init(struct tls_draft *);
void tls_draft_add(struct tls_draft *, struct text name, struct text value);
bool tls_draft_has(const struct tls_draft *, struct text name);
/* One piece of memory, for free().  Frees what the draft holds.  NULL: no memory, or
 * more than TLS_FACTS_MAX. */
struct tls_facts *tls_facts_new(struct tls_draft *, size_t own, size_t told);

#endif
