/* server/config/certificates.h -- the certificates that a configuration names, with their keys and
 * settings: of its sockets, and of the hosts in its blocks.
 *
 *   ssl.pemfile, ssl.privkey, ... --> io/tls/tls.h --> struct io_secure
 *
 * Owner    struct resources.
 * Errors   certificates_new() returns NULL and writes one line to *err (errsize bytes), as
 *          resources_new() does.
 * Thread   certificates_new() at start and at reload, may block; certificates_renew() while
 *          workers use certificates_get(); one thread for both.
 */
#ifndef SERVER_CONFIG_CERTIFICATES_H
#define SERVER_CONFIG_CERTIFICATES_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct conf;
struct config;
struct io_secure; /* io/tls/tls.h */
struct sources;
struct certificates;

struct certificates *certificates_new(const struct config *, char *err, size_t errsize);
/* Asks the sources of the configuration what certificates_new(), verifiers_new() and
 * ticket_file_new() will ask, and perhaps more. */
void certificates_fetch(const struct config *);
/* Each file that certificates_fetch() asks for. */
void certificates_files(const struct config *, void (*fn)(const char *file, void *arg), void *arg);
/* enum tls_key_use of their private keys; 0: the server keeps them. */
uint8_t certificates_keys(const struct config *);
/* Names these files and this use: equal for equal ones, in each process. */
uint64_t certificates_list(const struct config *);

/* why NULL: this one is in use from now on; otherwise what is wrong with it, as of
 * certificates_new().  unstapled: the same of its OCSP response. */
typedef void certificates_news(void *arg, const char *file, const char *why, const char *unstapled);
/* Takes what has changed from a record of all files.  What cannot be used leaves the last one in
 * use, and is said once. */
void certificates_renew(struct certificates *, const struct config *, struct sources *,
    certificates_news *, void *arg);

struct certificates_state {
	unsigned n, refused; /* refused: the last one is in use */
	uint64_t ends_s;     /* when the first of them ends, since 1970; 0: none */
};
struct certificates_state certificates_state(const struct certificates *);

/* Dates, order and names of the certificates, and their OCSP responses, as resources_warn(). */
void certificates_warn(const struct certificates *, const struct config *, struct buf *out);
void certificates_free(struct certificates *); /* NULL is allowed */
/* Of these values; NULL: they have none. */
const struct io_secure *certificates_get(const struct certificates *, const struct conf *);

#endif
