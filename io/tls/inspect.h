/* io/tls/inspect.h -- what is worth a warning about the certificates of a struct io_secure: dates,
 * the order of the chain, names of hosts.
 *
 * Owner    the caller; a line is lent until tell() returns.
 * Thread   as tls_secure_new(): at start and at reload.
 */
#ifndef IO_TLS_INSPECT_H
#define IO_TLS_INSPECT_H

#include <stdint.h>
#include "base/text.h"

#define TLS_ENDS_SOON_S (14 * 86400) /* ACME clients renew 30 days before the end */

struct io_secure;

typedef void tls_tell_fn(void *arg, const char *line);

/* now_s: of the wall clock. */
void tls_inspect(const struct io_secure *, int64_t now_s, tls_tell_fn *, void *arg);
/* Tells if the certificate is not for this host, which the setting names. */
void tls_inspect_host(const struct io_secure *, struct text host, const char *setting,
    tls_tell_fn *, void *arg);

#endif
