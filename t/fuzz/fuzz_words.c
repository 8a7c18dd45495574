/* t/fuzz/fuzz_words.c -- any words of a command line of fcgi-stat-accel and accel-warm: quantities and --warm.
 *
 * One word a line.  What is accepted lies in its bounds. */
#include <stdlib.h>
#include <string.h>
#include "base/must.h"
#include "base/text.h"
#include "fcgi-stat-accel/quantity.h"
#include "fcgi-stat-accel/warm_words.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("0\n4096\n64k\n16M\n1g\nread:all\nread:128k\nopen\nstat"),
	SEED("18446744073709551615\n18446744073709551616\n9223372036854775807k\n-1\n+1\n 1\n1 \n0x10\n1e3"),
	SEED("read:\nread:k\nread:1024g\nread:99999999999g\nlighttpd\nnginx"),
	{NULL, 0},
};

static void
check_word(const char *word)
{
	static const uint64_t bounds[][2] = {{0, UINT64_MAX}, {1, 1024}, {1, 1ull << 50}, {4096, 1ull << 31}};
	enum warm_how how;
	uint64_t n;
	size_t i;

	for (i = 0; i < NELEM(bounds); i++) {
		n = UINT64_MAX - 1;
		if (quantity_read(word, bounds[i][0], bounds[i][1], &n))
			must(n >= bounds[i][0] && n <= bounds[i][1] && word[0] >= '0' && word[0] <= '9');
		else
			must(n == UINT64_MAX - 1);
	}
	if (warm_words_read(word, &how, &n))
		must(how == WARM_STAT || how == WARM_OPEN || (how == WARM_READ && strncmp(word, "read:", 5) == 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = {(const char *)p, n}, line;
	char *word;

	while (text_next(&in, '\n', &line)) {
		word = strndup(line.p, line.n);
		must(word != NULL);
		check_word(word);
		free(word);
	}
	return (0);
}
