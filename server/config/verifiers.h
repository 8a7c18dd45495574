/* server/config/verifiers.h -- who verifies certificates of clients: of sockets, and of the hosts
 * in blocks.
 *
 *   ssl.verifyclient.ca-file, .ca-crl-file, .depth, ... --> io/tls/verifier.h
 *
 * Owner    struct resources.
 * Errors   verifiers_new() returns NULL and writes one line to *err (errsize bytes), as
 *          resources_new() does.
 * Thread   verifiers_new() at start and at reload, may block; read-only afterwards.
 */
#ifndef SERVER_CONFIG_VERIFIERS_H
#define SERVER_CONFIG_VERIFIERS_H

#include <stddef.h>

struct conf;
struct config;
struct tls_verifier; /* io/tls/verifier.h */
struct verifiers;

struct verifiers *verifiers_new(const struct config *, char *err, size_t errsize);
/* Asks the sources of the configuration what verifiers_new() will ask, and perhaps more. */
void verifiers_fetch(const struct config *);
void verifiers_free(struct verifiers *); /* NULL is allowed */
/* Of these values; NULL: clients need no certificate.  Blocks that hold for one host may have
 * settings that no block has together: then nobody is verified. */
struct tls_verifier *verifiers_get(const struct verifiers *, const struct conf *);

#endif
