/* io/tls/client.h -- TLS for sockets that connect: of load tools and tests, because certificates
 * are not checked.
 *
 *   tls_client_new() --> struct io_secure --IO_HANDSHAKE--> the socket speaks TLS
 *
 * The handshake runs on the loop, without threads.
 *
 * Owner    the caller, who frees it after its sockets.
 * Thread   one: that of the loop of its sockets.
 */
#ifndef IO_TLS_CLIENT_H
#define IO_TLS_CLIENT_H

#include "io/tls/tls.h"

struct tls_client_settings {
	const char *host; /* sent to the server (SNI), unless it is an address */
	/* The only protocol that is offered (ALPN), which the server must take, a constant text.
	 * NULL: HTTP/1.1, also with servers that know no ALPN. */
	const char *protocol;
	bool resumes; /* each session goes on with the newest ticket of those before */
	const struct tls_command *commands;
	size_t ncommands;
};

/* Copies what it keeps.  NULL: *fault says why. */
struct io_secure *tls_client_new(const struct tls_client_settings *, struct tls_fault *);
void tls_client_free(struct io_secure *); /* NULL is allowed */

#endif
