/* accel-load/verify.h -- checks bodies as they arrive: their length, their bytes.
 *
 *	verify_open("pattern") once --> per answer: verify_begin(), verify_bytes()..., verify_end()
 *
 * Thread   struct verify_conf: read-only after verify_open().  struct verify: one connection's.
 */
#ifndef ACCEL_LOAD_VERIFY_H
#define ACCEL_LOAD_VERIFY_H

#include "accel-load/count.h"
#include "accel-load/load.h"
#include "accel-load/urls.h"
#include "base/text.h"

/* 0, or the exit status after a message: --verify is wrong, or a file of it cannot be read.  Reads
 * what it needs to know about the URLs. */
int verify_open(const char *spec, const struct load_conf *, const struct urls *,
    struct verify_conf **);
void verify_close(struct verify_conf **);
/* False: the bodies may be dropped in the kernel; verify_bytes() is called without bytes. */
bool verify_wants_bytes(const struct verify_conf *);

/* One body; embedded in its connection.  verify.c uses the fields. */
struct verify {
	const struct verify_conf *conf; /* NULL: nothing is verified */
	const struct url *url;
	uint64_t offset;   /* of the next byte in the file */
	uint64_t received; /* bytes of this body */
	uint64_t wrong_at; /* UINT64_MAX: none is wrong */
	uint64_t state[2];
};

/* first: offset of the body's first byte in the file; total: length of the whole file, if the
 * answer says so, else -1.  Called for answers with the expected status. */
void verify_begin(struct verify *, const struct verify_conf *, const struct url *, uint64_t first,
    int64_t total);
void verify_bytes(struct verify *, const char *bytes, size_t n); /* bytes NULL: dropped */
enum load_error verify_end(struct verify *);                     /* LOAD_OK, SHORT, LONG or WRONG */

#endif
