/* io/tls/tls.h -- TLS for accepted sockets: what a listening socket has, and how it is made.
 *
 *   PEM --tls_secure_new()--> struct io_secure --IO_HANDSHAKE--> the socket speaks TLS
 *
 * Only io/tls/ includes headers of OpenSSL.
 *
 * Owner    the caller.  Sockets and threads that use it have references of their own, so it may be
 *          freed while connections go on.
 * Thread   tls_secure_new() at start, at reload and at a renewal, one at a time: a long RSA key
 *          takes milliseconds.  Afterwards every loop uses it.
 */
#ifndef IO_TLS_TLS_H
#define IO_TLS_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

struct io_secure;

struct tls_fault {
	enum {
		TLS_OF_CHAIN,
		TLS_OF_KEY,
		TLS_OF_CA,
		TLS_OF_CIPHERS,
		TLS_OF_GROUPS,
		TLS_OF_DH,
		TLS_OF_COMMANDS
	} of;
	char why[256];
};

struct tls_command { /* see SSL_CONF_cmd(3) */
	const char *name, *value;
};

struct tls_settings {
	struct text chain; /* PEM: the certificate, then those between it and a root */
	struct text key;   /* PEM; TEXT_NONE: it is in chain, too */
	/* PEM; TEXT_NONE: none.  Of these the ones between the certificate and a root are sent, if
	 * chain has the certificate alone. */
	struct text ca;
	struct text dh;     /* PEM: parameters for ciphers with DHE; TEXT_NONE: those of OpenSSL */
	struct text staple; /* DER: an OCSP response; TEXT_NONE: none */
	/* Of TLS 1.2 and below, the best one first; NULL: strong ones, the cheapest first. */
	const char *ciphers;
	bool clients_order; /* the first one of the client that is among them, not ours */
	const char *groups; /* for the exchange of keys, the best one first; NULL: X25519 first */
	const struct tls_command *commands; /* after the defaults */
	size_t ncommands;
};

/* Copies what it keeps.  NULL: *fault says why. */
struct io_secure *tls_secure_new(const struct tls_settings *, struct tls_fault *);
/* Before a renewal: why the response is not sent, a constant text; NULL: it is, or is not set. */
const char *tls_secure_unstapled(const struct io_secure *);
/* New connections get what `from` has, which ends; running ones keep theirs.  Any thread. */
void tls_secure_renew(struct io_secure *, struct io_secure *from);
/* When the first of its certificates ends, in seconds since 1970.  Any thread. */
uint64_t tls_secure_ends_s(const struct io_secure *);
void tls_secure_free(struct io_secure *); /* NULL is allowed */

/* ---- keys of session tickets, for the process that takes over */

#define TLS_TICKETS_TEXT 625 /* bytes, with the NUL */

/* False: there are none yet.  The caller clears the text. */
bool tls_tickets_save(char text[TLS_TICKETS_TEXT]);
/* False: it is not such a text, or of another boot; nothing has changed. */
bool tls_tickets_load(const char *text, uint64_t now_ns);

#endif
