/* walk/ring.h -- which server HAProxy chooses with "hash-type consistent".
 *
 *	server id 1, weight 2: 32 points ---+      key of a request, hashed to 32 bits
 *	server id 2, weight 1: 16 points ---+--> [ . . : . .. | . . ] --> the nearest point
 *
 * Checked against a real HAProxy 2.6 by t/warm/shard.t.  A server that is down has no points, and
 * "slowstart" gives it its points little by little.
 *
 * Pure.  Thread: any, after ring_new().
 */
#ifndef WALK_RING_H
#define WALK_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define RING_WEIGHT_MAX 256u
#define RING_ID_MAX     0x7fffffffu

struct ring;

struct ring_server {
	unsigned id, weight; /* "id N" of its line, or its place from 1; 1 to RING_WEIGHT_MAX */
};

enum ring_hash { RING_SDBM, RING_DJB2, RING_CRC32 };

/* n: at least 1.  The caller frees the ring. */
struct ring *ring_new(const struct ring_server *, size_t n);
void ring_free(struct ring **);
uint32_t ring_hash(enum ring_hash, bool avalanche, struct text key);
/* The index of the server. */
size_t ring_find(const struct ring *, uint32_t hash);

#endif
