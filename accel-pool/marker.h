/* accel-pool/marker.h -- the file .accel-pool at the root of a pool: it proves that the directory
 * is a pool, and says what is in it.
 *
 *	accel-pool 1
 *	seed 1
 *	new                        accel-pool has made the directory itself
 *	spec 1000x100x100k         one line for each size
 *	spec 1x1000x10m
 *
 * A run that changes the pool holds a lock on the directory.
 *
 * Errors   -errno; -ENOENT: the directory is not a pool, -EPROTO: the file is not one of
 *          accel-pool, -EAGAIN: another run changes the pool.
 * Thread   one.
 */
#ifndef ACCEL_POOL_MARKER_H
#define ACCEL_POOL_MARKER_H

#include "accel-pool/spec.h"
#include "base/buf.h"

#define MARKER     ".accel-pool"
#define MARKER_NEW ".accel-pool.part"
#define MARKER_MAX 8192u /* bytes */

struct marker {
	uint64_t seed;
	bool made_dir;
	unsigned n;
	struct spec specs[SPECS_MAX];
};

/* Pure.  0 or -EPROTO. */
int marker_parse(struct text t, struct marker *);
void marker_put(const struct marker *, struct buf *);
/* Adds a spec, or enlarges the one with the same size.  NULL, or why the pool cannot have it. */
const char *marker_add(struct marker *, const struct spec *);
/* The spec that has the path, or NULL. */
const struct spec *marker_find(const struct marker *, struct text path, struct spec_place *);

int marker_lock(int dir);
int marker_read(int dir, struct marker *);
int marker_write(int dir, const struct marker *);

#endif
