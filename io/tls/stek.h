/* io/tls/stek.h -- keys of session tickets from a file, so that clients resume at each machine that
 * has it.  The file is that of lighttpd: one key in 92 bytes, numbers in the byte order of the
 * machine.
 *
 *   0: uint32 0   4: first second, since 1970   8: its last one
 *   12: name, 16 bytes   28: HMAC-SHA-256, 32   60: AES-256-CBC, 32
 *
 * A new file takes nothing from clients: the last three keys open tickets until they end, and the
 * newest one that has begun is for new ones.
 *
 * Owner    the caller.  No core file has the key.
 * Errors   tls_stek_new() returns NULL, and *why is a constant text.
 * Thread   any.
 */
#ifndef IO_TLS_STEK_H
#define IO_TLS_STEK_H

#include <stdint.h>
#include "base/text.h"

#define TLS_STEK_BYTES 92u

struct tls_stek;

struct tls_stek *tls_stek_new(struct text file, const char **why);
void tls_stek_free(struct tls_stek *); /* NULL is allowed */
/* From now on tickets are of keys from files only, and of this one if it is not NULL. */
void tls_stek_use(const struct tls_stek *);
void tls_stek_stop(void); /* ... of our own */
/* When the last key of a file ends, in seconds since 1970; 0: none is used. */
uint64_t tls_stek_end_s(void);

#endif
