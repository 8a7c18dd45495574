/* base/unique.c -- see unique.h */
#include <stdint.h>
#include <sys/random.h>
#include "base/clock.h"
#include "base/random.h"
#include "base/unique.h"

static uint64_t keys[4];

static void __attribute__((constructor)) unique_start(void)
{
	uint64_t seed;
	unsigned i;

	if (getrandom(keys, sizeof(keys), GRND_NONBLOCK) == (ssize_t)sizeof(keys))
		return;
	seed = clock_wall_ns() ^ clock_mono_ns() << 32 ^ (uintptr_t)&seed;
	for (i = 0; i < 4; i++)
		keys[i] = random_next(&seed);
}

/* Each thread takes 2^32 numbers at a time. */
static uint64_t
next_number(void)
{
	static uint64_t blocks; /* atomic */
	static __thread uint64_t next;

	if ((uint32_t)next == 0)
		next = __atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED) << 32;
	return (next++);
}

static void
put_hex(char out[16], uint64_t v)
{
	static const char hex[] = "0123456789abcdef";
	unsigned i;

	for (i = 0; i < 16; i++)
		out[i] = hex[v >> (60 - 4 * i) & 15];
}

void
unique_hex(char out[UNIQUE_HEX])
{
	uint64_t n = next_number();

	put_hex(out, random_mix(n ^ keys[0]) ^ keys[1]);
	put_hex(out + 16, random_mix(n ^ keys[2]) ^ keys[3]);
}
