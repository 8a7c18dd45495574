/* accel-pool/spec.h -- the shape of a pool: "1000x100x100k" is 1000 directories of 100 files of
 * 100 KiB.
 *
 *	DIRSxFILESxSIZE        SIZE: 0, 512, 100k, 10m, 1g, or a range 4k-1m
 *	100k/0007/0042.bin     a file: its size as written here, its directory, its number
 *
 * A range is log-uniform: as many files from 4k to 8k as from 512k to 1m.  The size of a file
 * follows from the seed and from its place, with integers only, so all machines agree.
 *
 * Pure.
 */
#ifndef ACCEL_POOL_SPEC_H
#define ACCEL_POOL_SPEC_H

#include "base/text.h"

#define SPEC_DIRS_MAX  1000000u
#define SPEC_FILES_MAX 1000000u
#define SPEC_SIZE_MAX  (UINT64_C(1) << 40)
#define SPEC_TOTAL_MAX (UINT64_C(1) << 52) /* bytes of one spec */
#define SPEC_TEXT_MAX  64                  /* "1000000x1000000x...-...", with a NUL */
#define SPECS_MAX      64u                 /* of a pool */

struct spec {
	uint32_t dirs, files; /* files: in each directory */
	uint64_t min, max;    /* bytes */
};

struct spec_place {
	uint32_t dir, file;
};

/* NULL, or what is wrong: "expected DIRSxFILESxSIZE" and the like; *spec is set on success only. */
const char *spec_parse(struct text t, struct spec *spec);
size_t spec_put(const struct spec *, char dst[SPEC_TEXT_MAX]);     /* "1000x100x100k" */
size_t spec_put_dir(const struct spec *, char dst[SPEC_TEXT_MAX]); /* "100k" */
/* "100k/0007/0042.bin" */
size_t spec_put_path(const struct spec *, struct spec_place, char dst[SPEC_TEXT_MAX]);
/* The size of a file. */
uint64_t spec_size(const struct spec *, struct spec_place, uint64_t seed);
/* The place of a file; false: the path is not one of this spec. */
bool spec_place_of(const struct spec *, struct text path, struct spec_place *);
uint64_t spec_count(const struct spec *); /* files */
/* of all files; an estimate for a range with more than a million files */
uint64_t spec_bytes(const struct spec *, uint64_t seed);

#endif
