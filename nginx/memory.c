/* nginx/memory.c -- names that were in memory a moment ago: a table for each worker.
 *
 * A name has a set of four places by its hash.  A full set forgets the name that would be forgotten
 * first.  The hash has a secret, so a client cannot make two names the same. */
#include "nginx/stat_accel.h"

#include <sys/random.h>

#define WAYS 4u

struct place {
	uint64_t key;
	uint64_t until : 56; /* ngx_current_msec */
	uint64_t kind : 8;
};

static struct place *places;
static size_t sets;
static uint64_t secret[2];

ngx_int_t
accel_memory_init(ngx_cycle_t *cycle, ngx_uint_t names)
{
	sets = ngx_max(names + WAYS - 1, WAYS) / WAYS;
	places = ngx_pcalloc(cycle->pool, sets * WAYS * sizeof(*places));
	if (places == NULL || getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return (NGX_ERROR);
	return (NGX_OK);
}

/* ---------------------------------------------------------------- SipHash-1-3 */

static uint64_t
turn(uint64_t v, unsigned bits)
{
	return (v << bits | v >> (64 - bits));
}

static void
mix(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = turn(v[1], 13) ^ v[0];
	v[3] = turn(v[3], 16) ^ v[2];
	v[0] = turn(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = turn(v[1], 17) ^ v[2];
	v[3] = turn(v[3], 21) ^ v[0];
	v[2] = turn(v[2], 32);
}

static void
take(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix(v);
	v[0] ^= word;
}

uint64_t
accel_memory_key(const ngx_str_t *path)
{
	uint64_t v[4] = { secret[0] ^ 0x736f6d6570736575u, secret[1] ^ 0x646f72616e646f6du,
		secret[0] ^ 0x6c7967656e657261u, secret[1] ^ 0x7465646279746573u };
	const u_char *p = path->data;
	size_t left = path->len;
	uint64_t word;

	for (; left >= sizeof(word); left -= sizeof(word), p += sizeof(word)) {
		ngx_memcpy(&word, p, sizeof(word));
		take(v, word);
	}
	word = 0;
	ngx_memcpy(&word, p, left);
	take(v, word | (uint64_t)path->len << 56);
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		mix(v);
	return (v[0] ^ v[1] ^ v[2] ^ v[3]);
}

/* ---------------------------------------------------------------- the table */

static struct place *
set_of(uint64_t key)
{
	return (places + key % sets * WAYS);
}

static int64_t
left_of(const struct place *p)
{
	return ((int64_t)p->until - (int64_t)ngx_current_msec);
}

enum accel_kind
accel_memory_get(uint64_t key)
{
	struct place *set = set_of(key);

	for (unsigned i = 0; i < WAYS; i++)
		if (set[i].key == key && set[i].kind != ACCEL_COLD && left_of(&set[i]) > 0)
			return ((enum accel_kind)set[i].kind);
	return (ACCEL_COLD);
}

void
accel_memory_put(uint64_t key, enum accel_kind kind, ngx_msec_t ms)
{
	struct place *set = set_of(key), *to = set;

	for (unsigned i = 0; i < WAYS && to->key != key; i++)
		if (set[i].key == key || left_of(&set[i]) < left_of(to))
			to = &set[i];
	if (to->key != key && left_of(to) > 0)
		accel_count(ACCEL_COUNT_forgotten);
	*to = (struct place){ key, ngx_current_msec + ms, kind };
}
