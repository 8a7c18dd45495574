/* io/tls/challenge.h -- acme-tls/1 (RFC 8737): an authority asks in a handshake whether a host is
 * ours.
 *
 *   hello: ALPN "acme-tls/1", SNI www.example.org
 *   --> DIR/www.example.org.crt.pem and DIR/www.example.org.key.pem, which a client of ACME made
 *   --> a handshake with that certificate, and the end: no request follows
 *
 * The files are read in the thread of the handshake, with the rights of the server.
 */
#ifndef IO_TLS_CHALLENGE_H
#define IO_TLS_CHALLENGE_H

#include <openssl/ssl.h>
#include "base/text.h"

#define TLS_CHALLENGE_FILE_MAX 65536u

/* DIR/HOST, for free(); empty: such a name has no files.  NULL: no memory. */
char *tls_challenge_path(const char *dir, struct text host);
/* Settings for one handshake.  What the files lack leaves it without a certificate, so that the
 * client gets an alert: *why says it, a constant text, NULL: all is well.  NULL: no memory. */
SSL_CTX *tls_challenge_new(const char *path, const char **why);

#endif
