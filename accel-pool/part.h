/* accel-pool/part.h -- the temporary name of a file that is not complete yet. */
#ifndef ACCEL_POOL_PART_H
#define ACCEL_POOL_PART_H

#include <stdio.h>

#define PART_MAX 32

/* ".0042.bin.part" */
static inline void
part_name(const char *name, char dst[PART_MAX])
{
	snprintf(dst, PART_MAX, ".%s.part", name);
}

#endif
