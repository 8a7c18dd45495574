/* io/tls/verifier.h -- who verifies certificates of clients: authorities, revocations, a depth.
 *
 *   PEM --tls_verifier_new()--> op->handshake.verifier --> facts: SSL_CLIENT_VERIFY and others
 *
 * Signatures are verified in the thread of the handshake.  A session is resumed only where the same
 * verifier, by its contents, would have been asked.
 *
 * Owner    counted: sockets and threads that use one hold it.
 * Thread   tls_verifier_new() at start, at reload and at a renewal; afterwards every loop and
 *          thread uses it.
 */
#ifndef IO_TLS_VERIFIER_H
#define IO_TLS_VERIFIER_H

#include <stdbool.h>
#include "base/text.h"

struct tls_facts;
struct tls_verifier;

#define TLS_VERIFIER_ID 32u

enum tls_verifier_file { VERIFIER_AUTHORITIES, VERIFIER_NAMES, VERIFIER_REVOKED, VERIFIER_FILES };

struct tls_verifier_settings {
	/* PEM.  AUTHORITIES: certificates that are believed.  NAMES: certificates whose subjects
	 * are in the question to clients, and one of which has to be the issuer; .p NULL:
	 * AUTHORITIES.
	 * REVOKED: lists of revoked certificates, one for each authority; .p NULL: none. */
	struct text pem[VERIFIER_FILES];
	unsigned depth; /* of the last issuer: 1 is an authority that signed for the client */
	bool enforce;   /* no handshake without a certificate that is believed */
	bool exports;   /* the certificate is among the facts */
};

/* NULL: *why says what is wrong with *of, a constant text. */
struct tls_verifier *tls_verifier_new(const struct tls_verifier_settings *,
    enum tls_verifier_file *of, const char **why);
struct tls_verifier *tls_verifier_nobody(void); /* believes no client; NULL: no memory */
/* The one that is in use now: itself, or its last renewal.  NULL is allowed, also below. */
struct tls_verifier *tls_verifier_hold(struct tls_verifier *);
void tls_verifier_put(struct tls_verifier *);
/* Takes `from`, which clients meet from now on.  Any thread. */
void tls_verifier_renew(struct tls_verifier *, struct tls_verifier *from);

/* The client of the connection was verified as it would be by this verifier. */
bool tls_verified_by(const struct tls_facts *, struct tls_verifier *);

#endif
