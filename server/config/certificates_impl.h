/* server/config/certificates_impl.h -- for certificates*.c only.
 *
 *   certificates.c        load, find, free
 *   certificates_renew.c  ... made again when their files change
 *   certificates_warn.c   what a client will refuse
 */
#ifndef SERVER_CONFIG_CERTIFICATES_IMPL_H
#define SERVER_CONFIG_CERTIFICATES_IMPL_H

#include <glib.h>
#include "server/config/certificates.h"
#include "server/config/config.h"
#include "server/config/file_set.h"

struct certificate {
	struct io_secure *secure;
	struct made_of of;
	char *unstapled; /* why its OCSP response is not sent; NULL: it is, or there is none */
	unsigned turn;   /* of the renewal that has looked at it */
};

struct certificates {
	GHashTable *made;  /* by whole name -> struct certificate */
	GHashTable *first; /* by name -> the first of them, whatever completes it */
	unsigned turn;     /* renewals so far */
};

/* NULL: it names none, or none was loaded. */
struct certificate *certificate_find(const struct certificates *, const struct conf *);
/* The files of these values, numbered by the enum of certificates.c; free it with
 * file_set_free(). */
struct file_set certificate_files(const struct conf *, struct sources *);
/* NULL: refused. */
struct io_secure *certificate_make(const struct conf_refusal *, const struct file_set *);
/* Before certificate_make()'s result is given away. */
void certificate_note_staple(struct certificate *, const struct io_secure *,
    const struct file_set *);

#endif
