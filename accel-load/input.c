#include "accel-load/input.h"

#include <errno.h>
#include <stdio.h>

#define PIECE (64u << 10)

int
input_read(const char *name, struct buf *out)
{
	FILE *f = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
	char piece[PIECE];
	size_t n = PIECE;
	int err = 0;

	if (f == NULL)
		return (-errno);
	while (n == PIECE && err == 0) {
		n = fread(piece, 1, PIECE, f);
		if (ferror(f))
			err = errno != 0 ? -errno : -EIO;
		buf_add(out, piece, n);
		if (out->failed)
			err = out->max > 0 && out->n + n > out->max ? -EFBIG : -ENOMEM;
	}
	if (f != stdin)
		fclose(f);
	return (err);
}
