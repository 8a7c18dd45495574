/* server/config/verifiers.h -- who verifies certificates of clients: of sockets, and of the hosts
 * in blocks.
 *
 *   ssl.verifyclient.ca-file, .ca-crl-file, .depth, ... --> io/tls/verifier.h
 *
 * Owner    struct resources.
 * Errors   verifiers_new() returns NULL and writes one line to *err (errsize bytes), as
 *          resources_new() does.
 * Thread   verifiers_new() at start and at reload, may block; verifiers_renew() while workers use
 *          verifiers_get(); one thread for both.
 */
#ifndef SERVER_CONFIG_VERIFIERS_H
#define SERVER_CONFIG_VERIFIERS_H

#include <stddef.h>
#include "server/config/certificates.h"

struct conf;
struct config;
struct tls_verifier; /* io/tls/verifier.h */
struct verifiers;

struct verifiers *verifiers_new(const struct config *, char *err, size_t errsize);
/* Each file that these values name, for certificates_files(). */
void verifiers_add_files(const struct conf *, void (*fn)(const char *file, void *arg), void *arg);
/* As certificates_renew(). */
void verifiers_renew(struct verifiers *, const struct config *, struct sources *,
    certificates_news *, void *arg);
unsigned verifiers_refused(const struct verifiers *); /* the last files are in use */
void verifiers_free(struct verifiers *);              /* NULL is allowed */
/* Of these values; NULL: clients need no certificate.  Blocks that hold for one host may have
 * settings that no block has together: then nobody is verified. */
struct tls_verifier *verifiers_get(const struct verifiers *, const struct conf *);

#endif
