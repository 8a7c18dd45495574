/* io/tls/tls.h -- TLS for accepted sockets: what a listening socket has, and how it is made.
 *
 *   PEM --tls_secure_new()--> struct io_secure --IO_HANDSHAKE--> the socket speaks TLS
 *
 * Only io/tls/ includes headers of OpenSSL.
 *
 * Owner    the caller.  Sockets and threads that use it have references of their own, so it may be
 *          freed while connections go on.
 * Thread   tls_secure_new() at start and at reload, one at a time: a long RSA key takes
 *          milliseconds.  Afterwards every loop uses it.
 */
#ifndef IO_TLS_TLS_H
#define IO_TLS_TLS_H

#include <stdbool.h>
#include "base/text.h"

struct io_secure;

struct tls_fault {
	bool of_key; /* the mistake is in the key, not in the certificate */
	char why[256];
};

/* chain: the certificate, then those between it and a root.  key: TEXT_NONE if it is in chain, too.
 * NULL: *fault says why. */
struct io_secure *tls_secure_new(struct text chain, struct text key, struct tls_fault *fault);
void tls_secure_free(struct io_secure *); /* NULL is allowed */

#endif
