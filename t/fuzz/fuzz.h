/* t/fuzz/fuzz.h -- what a target gives its driver: libFuzzer's entry point, and where to begin. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

struct fuzz_seed {
	const char *p;
	size_t n;
};
#define SEED(lit)                    \
	{                            \
		lit, sizeof(lit) - 1 \
	}

/* Ends with a NULL.  Weak: a target without seeds begins with nothing. */
extern const struct fuzz_seed fuzz_seeds[] __attribute__((weak));

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#endif
