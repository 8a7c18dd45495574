/* io/tls/keys.h -- private keys that another process keeps.
 *
 *   process that keeps them      reader of the files              server
 *   tls_keys_add()  <---------   tls_keys_hide() --PEM without--> tls_secure_new()
 *   tls_keys_answer() <-- a digest -------------------------------- a thread of a handshake
 *                     --- its signature -------------------------->
 *
 * A key is named by the digest of its public half.  Its certificate has that half, too, so it is
 * all that the server needs.  An intruder in the server may ask for signatures, but gets no key.
 *
 *   question  struct tls_key_question, of the length that n tells
 *   answer    int32_t: the bytes that follow, or -errno
 *
 * Errors   -ENOENT: no such key; -EPERM: not with this key; -EINVAL: no such question;
 *          -EIO: OpenSSL failed; -ETIMEDOUT: no answer in time; -EPIPE: no process to ask.
 * Thread   tls_keys_answer() any; tls_keys_hide() one at a time.
 */
#ifndef IO_TLS_KEYS_H
#define IO_TLS_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"

#define TLS_KEY_ID     32u
#define TLS_KEY_BYTES  2048u /* of a question, and of what is signed: RSA of 16384 bits */
#define TLS_KEY_ANSWER (sizeof(int32_t) + TLS_KEY_BYTES)
/* A key as tls_keys_hide() tells it: a byte of enum tls_key_use, then DER. */
#define TLS_KEY_TOLD   (16u << 10)
#define TLS_KEYS_MAX   4096u /* at a time: those that came first are forgotten */
#define TLS_KEY_ASK_MS 10000 /* as long as a handshake may take */

enum tls_key_op {
	TLS_KEY_PKCS1 = 1, /* signs a digest: RSA, as in TLS 1.2 */
	TLS_KEY_PSS,       /* ... RSA */
	TLS_KEY_ECDSA,
	TLS_KEY_EDDSA,   /* signs the bytes themselves */
	TLS_KEY_DECRYPT, /* the secret of TLS 1.2 that the client encrypted: RSA without ECDHE */
};

enum tls_key_use {
	TLS_KEY_SIGNS = 1,
	TLS_KEY_SIGNS_AND_DECRYPTS, /* the configuration names ciphers of its own */
};

struct tls_key_question {
	unsigned char key[TLS_KEY_ID];
	uint8_t op;        /* enum tls_key_op */
	uint8_t hash;      /* of a digest: a row of tls_key_hashes; 0: none */
	uint16_t n;        /* bytes that follow */
	uint16_t asked;    /* TLS_KEY_DECRYPT: version in the client's hello */
	uint16_t accepted; /* ... and the server's */
	unsigned char bytes[TLS_KEY_BYTES];
};

/* ---- the process that keeps them */

struct tls_keys;

struct tls_keys *tls_keys_new(void);   /* NULL: no memory, or OpenSSL cannot start */
void tls_keys_free(struct tls_keys *); /* nobody asks any more; NULL is allowed */
/* What tls_keys_hide() told.  0 or -errno. */
int tls_keys_add(struct tls_keys *, const void *told, size_t n);
/* Writes the answer; its length.  Any bytes may come. */
size_t tls_keys_answer(struct tls_keys *, const void *question, size_t n,
    unsigned char answer[TLS_KEY_ANSWER]);
size_t tls_keys_count(struct tls_keys *);

/* ---- the reader of the files */

/* 0 or -errno */
typedef int tls_keys_tell(void *arg, const void *told, size_t n);

/* Writes pem to *out with each private key replaced by its public half, and tells each.  A private
 * key that cannot be read is left out.  The last result of tell(). */
int tls_keys_hide(struct text pem, enum tls_key_use, struct buf *out, tls_keys_tell *, void *arg);

/* ---- the server */

/* How a thread gets a socket to the process: connected, SOCK_SEQPACKET; or -errno.  Set it before
 * there are threads. */
void tls_keys_reach(int (*connect)(void *arg), void *arg);

#endif
