/* io/tls/kept.h -- inside io/tls/ only: a key whose private half is in another process.
 *
 *   kept_key.c  the key as OpenSSL sees it
 *   kept_ask.c  asks for a signature
 *   keys.c      ... and answers
 *   keys_hide.c takes private keys out of the text of files
 */
#ifndef IO_TLS_KEPT_H
#define IO_TLS_KEPT_H

#include <openssl/evp.h>
#include "io/tls/keys.h"

/* A block of PEM with the public half of a kept key. */
#define TLS_KEPT_KEY "KEPT KEY"
/* ... of a key with a passphrase, which nobody can read */
#define TLS_LOCKED_KEY "LOCKED KEY"

/* The digests that may be signed; [0] is none. */
struct tls_key_hash {
	int nid;
	uint8_t n; /* bytes */
};
#define TLS_KEY_HASHES 8u
extern const struct tls_key_hash tls_key_hashes[TLS_KEY_HASHES];

/* False: OpenSSL failed. */
bool tls_key_id(EVP_PKEY *, unsigned char id[TLS_KEY_ID]);

/* The key with this public half, which is freed.  NULL: OpenSSL does not take it. */
EVP_PKEY *tls_kept_key(EVP_PKEY *pub);

/* Bytes of the answer, or -errno.  Waits. */
int tls_keys_ask(const struct tls_key_question *, unsigned char *answer, size_t size);
/* Once: why the last question of this thread had no answer, a constant text; NULL: it had one. */
const char *tls_keys_fault(void);

#endif
