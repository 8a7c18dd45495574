/* t/fuzz/fuzz_accept_encoding.c -- any lines as Accept-Encoding: a client gets what it takes. */
#include "base/must.h"
#include "wire/http1/accept_encoding.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("gzip, deflate, br"),
	SEED("gzip;q=0.125, *;q=0, identity;q=0.5"),
	SEED("*"),
	SEED("br;q=1.0\nx-gzip;q=0\n, ,zstd"),
	SEED("gzip;q=1.001, br;level=1, deflate;q="),
	{ NULL, 0 },
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t order[] = { CODING_ZSTD, CODING_GZIP, CODING_BROTLI, CODING_DEFLATE };
	struct text all = { (const char *)data, size }, line;
	struct accept_encoding a;
	enum coding c;
	unsigned i;

	accept_encoding_init(&a);
	while (all.n != 0 && text_next(&all, '\n', &line))
		accept_encoding_line(&a, line);
	c = accept_encoding_pick(&a, order, sizeof(order));
	must(c == CODING_IDENTITY || accept_encoding_takes(&a, c));
	for (i = 0; i < CODINGS; i++)
		must(a.q[i] == ACCEPT_UNSET || a.q[i] <= 1000);
	return (0);
}
