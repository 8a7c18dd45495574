/* t/fuzz/seeds.c -- writes the seeds of a target to files, which is how libFuzzer wants them: seeds
 * DIR */
#include <stdio.h>
#include "t/fuzz/fuzz.h"

int
main(int argc, char **argv)
{
	const struct fuzz_seed *s;
	char name[4096];
	FILE *f;

	for (s = fuzz_seeds; argc == 2 && s != NULL && s->p != NULL; s++) {
		snprintf(name, sizeof(name), "%s/seed-%d", argv[1], (int)(s - fuzz_seeds));
		if ((f = fopen(name, "w")) == NULL || fwrite(s->p, 1, s->n, f) != s->n ||
		    fclose(f) != 0) {
			perror(name);
			return (73);
		}
	}
	return (0);
}
