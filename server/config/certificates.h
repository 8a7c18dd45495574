/* server/config/certificates.h -- the certificates that a configuration names, with their keys and
 * settings: of its sockets, and of the hosts in its blocks.
 *
 *   ssl.pemfile, ssl.privkey, ... --> io/tls/tls.h --> struct io_secure
 *
 * Owner    struct resources.
 * Errors   certificates_new() returns NULL and writes one line to *err (errsize bytes), as
 *          resources_new() does.
 * Thread   certificates_new() at start and at reload, may block; read-only afterwards.
 */
#ifndef SERVER_CONFIG_CERTIFICATES_H
#define SERVER_CONFIG_CERTIFICATES_H

#include <stddef.h>

struct conf;
struct config;
struct io_secure; /* io/tls/tls.h */
struct certificates;

struct certificates *certificates_new(const struct config *, char *err, size_t errsize);
/* Asks the sources of the configuration what certificates_new() will ask, and perhaps more. */
void certificates_fetch(const struct config *);
void certificates_free(struct certificates *); /* NULL is allowed */
/* Of these values; NULL: they have none. */
const struct io_secure *certificates_get(const struct certificates *, const struct conf *);

#endif
