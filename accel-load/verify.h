/* accel-load/verify.h -- checks bodies as they arrive: their length, their bytes.
 *
 *	verify_open("pattern") once --> per answer: verify_begin(), verify_bytes()..., verify_end()
 *
 *   length      each answer of a URL is as long as the first one
 *   hash:FILE   ... and has the hash that FILE has for it
 *   pattern     ... and has the bytes that its name and offset ask for (base/pattern.h)
 *   dir:DIR     the bytes and the length of the file DIR/PATH, which is read at start
 *
 * Thread   struct verify_conf: verify_open() and verify_close() before and after the threads; what
 *          changes between them is atomic.  struct verify: one connection's.
 */
#ifndef ACCEL_LOAD_VERIFY_H
#define ACCEL_LOAD_VERIFY_H

#include "accel-load/count.h"
#include "accel-load/load.h"
#include "accel-load/urls.h"
#include "base/text.h"

/* Files of --verify=dir: are in memory; more is an error. */
#define VERIFY_DIR_MAX (4ull << 30)
/* Messages about answers that are not as expected; the others are only counted. */
#define VERIFY_MESSAGES 10

/* 0, or the exit status after a message: --verify is wrong, or a file of it cannot be read.  Reads
 * what it needs to know about the URLs. */
int verify_open(const char *spec, const struct load_conf *, const struct urls *,
    struct verify_conf **);
void verify_close(struct verify_conf **);
/* False: the bodies may be dropped in the kernel; verify_bytes() is called without bytes. */
bool verify_wants_bytes(const struct verify_conf *);

/* One body; embedded in its connection, which begins it with zeros.  verify.c uses the fields. */
struct verify {
	const struct verify_conf *conf; /* NULL: nothing is verified */
	const struct url *url;
	struct verify_url *of;
	uint64_t first;    /* offset of the body in the file */
	uint64_t received; /* bytes of this body */
	int64_t total;     /* of the file; -1: unknown */
	uint64_t wrong_at; /* offset in the file; UINT64_MAX: none is wrong */
	uint64_t key;      /* of its pattern; 0: not known yet */
	char head[8];      /* the first bytes, until the key is known */
	void *sum;         /* GChecksum; kept until verify_free() */
};

/* first: offset of the body's first byte in the file; total: length of the whole file, if the
 * answer says so, else -1.  Called for answers with the expected status; conf may be NULL. */
void verify_begin(struct verify *, const struct verify_conf *, const struct url *, uint64_t first,
    int64_t total);
void verify_bytes(struct verify *, const char *bytes, size_t n); /* bytes NULL: dropped */
/* LOAD_OK, SHORT, LONG or WRONG; standard error gets a line for the first few that are not OK. */
enum load_error verify_end(struct verify *);
void verify_free(struct verify *); /* with its connection */

#endif
