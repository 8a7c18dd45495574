#include "walk/ring.h"

#include <glib.h>

#define POINTS_OF_WEIGHT 16u   /* of each unit of a weight */
#define KEYS_OF_ID       4096u /* points of one server at most: 256 * 16 */

struct point {
	uint32_t at, server;
};

struct ring {
	size_t n;
	struct point point[]; /* by .at; equal ones in the order of the servers */
};

/* ---------------------------------------------------------------- hashes */

/* Each bit of the input changes half of the bits of the result (Bob Jenkins).  HAProxy multiplies
 * by a prime afterwards. */
static uint32_t
avalanche_of(uint32_t a)
{
	a = (a + 0x7ed55d16u) + (a << 12);
	a = (a ^ 0xc761c23cu) ^ (a >> 19);
	a = (a + 0x165667b1u) + (a << 5);
	a = (a + 0xd3a2646cu) ^ (a << 9);
	a = (a + 0xfd7046c5u) + (a << 3);
	a = (a ^ 0xb55a4f09u) ^ (a >> 16);
	return (a * 3221225473u);
}

static uint32_t
sdbm(struct text t)
{
	uint32_t h = 0;

	for (size_t i = 0; i < t.n; i++)
		h = (unsigned char)t.p[i] + (h << 6) + (h << 16) - h;
	return (h);
}

static uint32_t
djb2(struct text t)
{
	uint32_t h = 5381;

	for (size_t i = 0; i < t.n; i++)
		h = h * 33 + (unsigned char)t.p[i];
	return (h);
}

static uint32_t
crc32(struct text t)
{
	uint32_t h = ~0u;

	for (size_t i = 0; i < t.n; i++) {
		h ^= (unsigned char)t.p[i];
		for (unsigned bit = 0; bit < 8; bit++)
			h = h >> 1 ^ (h & 1 ? 0xedb88320u : 0);
	}
	return (~h);
}

uint32_t
ring_hash(enum ring_hash how, bool avalanche, struct text key)
{
	uint32_t h = how == RING_SDBM ? sdbm(key) : how == RING_DJB2 ? djb2(key) : crc32(key);

	return (avalanche ? avalanche_of(h) : h);
}

/* ---------------------------------------------------------------- points */

static int
by_place(const void *a, const void *b)
{
	const struct point *p = a, *q = b;

	if (p->at != q->at)
		return (p->at < q->at ? -1 : 1);
	return (p->server < q->server ? -1 : p->server > q->server);
}

struct ring *
ring_new(const struct ring_server *server, size_t n)
{
	struct ring *r;
	size_t i, points = 0;

	for (i = 0; i < n; i++)
		points += server[i].weight * POINTS_OF_WEIGHT;
	r = g_malloc0(sizeof(*r) + points * sizeof(r->point[0]));
	for (i = 0; i < n; i++)
		for (uint32_t j = 0; j < server[i].weight * POINTS_OF_WEIGHT; j++)
			r->point[r->n++] = (struct point){
				.at = avalanche_of(server[i].id * KEYS_OF_ID + j),
				.server = (uint32_t)i,
			};
	qsort(r->point, r->n, sizeof(r->point[0]), by_place);
	return (r);
}

void
ring_free(struct ring **rp)
{
	g_free(*rp);
	*rp = NULL;
}

/* The first point at or after the hash; r->n: none. */
static size_t
behind(const struct ring *r, uint32_t hash)
{
	size_t low = 0, high = r->n, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (r->point[mid].at < hash)
			low = mid + 1;
		else
			high = mid;
	}
	return (low);
}

/* Distances wrap around the ring, as the arithmetic of 32 bits does. */
size_t
ring_find(const struct ring *r, uint32_t hash)
{
	size_t at = behind(r, hash);
	const struct point *next = &r->point[at % r->n];
	const struct point *prev = &r->point[(at % r->n + r->n - 1) % r->n];

	return (hash - prev->at <= next->at - hash ? prev->server : next->server);
}
