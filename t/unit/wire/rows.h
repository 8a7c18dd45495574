/* t/unit/wire/rows.h -- tables of bytes to results. */
#ifndef WIRE_ROWS_H
#define WIRE_ROWS_H

#include <stdlib.h>
#include "t/unit/test.h"
#include "wire/http1/http1.h"

#define MAX_HEAD 8192

struct row {
	const char *bytes;
	size_t n;
	const char *want;
};

#define ROW(bytes, want)                       \
	{                                      \
		bytes, sizeof(bytes) - 1, want \
	}

static struct text G_GNUC_UNUSED
copy(const char *p, size_t n)
{
	/* exactly n bytes, so that a sanitizer sees a read past them */
	char *heap = malloc(n);

	if (n > 0)
		memcpy(heap, p, n);
	return ((struct text){ heap, n });
}

#endif
