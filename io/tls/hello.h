/* io/tls/hello.h -- the name of the host in a client's hello (SNI), and whether it offers a
 * session, or asks for a challenge.  Pure.
 *
 *   record ... --> message: type 1, length 3
 *                           version 2, random 32, session 1+, ciphers 2+, compressions 1+
 *                           extensions 2+: type 2, length 2+: server_name 0
 *                                          list 2+: kind 1 (0: host), name 2+
 *                                          protocols (ALPN) 16
 *                                          list 2+: name 1+
 */
#ifndef IO_TLS_HELLO_H
#define IO_TLS_HELLO_H

#include <stdbool.h>
#include "base/text.h"

#define TLS_NAME_MAX 255u

/* The name is in buf, in lower case.  The hello has to be whole: tls_flight() says READY.
 * TEXT_NONE: it has no name of a host, or it is malformed, which OpenSSL tells the client. */
struct text tls_hello_name(const void *p, size_t n, char buf[TLS_NAME_MAX + 1]);

/* It offers a session.  If that is taken, a secret of a quick group is all that is computed: 0.1
 * ms. */
bool tls_hello_resumes(const void *p, size_t n);

#define TLS_CHALLENGE "acme-tls/1"

/* This is the first protocol that it names (ALPN). */
bool tls_hello_wants_challenge(const void *p, size_t n);

#endif
