/* base/load.h -- reads numbers from unaligned bytes, in native byte order. */
#ifndef BASE_LOAD_H
#define BASE_LOAD_H

#include <stdint.h>
#include <string.h>

static inline uint64_t
load64(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return (v);
}

static inline uint32_t
load32(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return (v);
}

#endif
