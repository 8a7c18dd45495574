/* t/fuzz/driver.c -- runs a target without clang: mutates its seeds for some seconds.
 *
 *	fuzz_request [SECONDS [SEED [DIR]]]     SEED "-": a new one each time; DIR: more seeds
 *
 * Each seed runs once as it is, so a file of DIR also holds a bug that was fixed. Blind, so no
 * match for libFuzzer on the same targets; but it needs a compiler only, and five seconds of it in
 * every test run find what a careless change breaks.  The bytes that made a target abort() go to
 * stderr as a C string.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/must.h"
#include "t/fuzz/fuzz.h"

#define INPUT_MAX   4096
#define CLOCK_EVERY 256 /* inputs between two looks at the clock */
#define FILES_MAX   1024

struct input {
	size_t n;
	char p[INPUT_MAX];
};

static struct input now; /* the input that the target runs on, for the signal handler */
static uint64_t state;
static struct fuzz_seed seeds[FILES_MAX]; /* those of the target, then the files of DIR */
static size_t nseeds;

/* Words that parsers may fail on. */
static const struct fuzz_seed words[] = {
	SEED("\r\n"),
	SEED("\r"),
	SEED("\n"),
	SEED("\r\n\r\n"),
	SEED(" "),
	SEED("\t"),
	SEED(":"),
	SEED(","),
	SEED(";"),
	SEED("="),
	SEED("-"),
	SEED("\""),
	SEED("W/"),
	SEED("*"),
	SEED("/"),
	SEED("//"),
	SEED("."),
	SEED(".."),
	SEED("%2e"),
	SEED("%2F"),
	SEED("%00"),
	SEED("%"),
	SEED("\\"),
	SEED("?"),
	SEED("#"),
	SEED("\0"),
	SEED("\x7f"),
	SEED("\x80"),
	SEED("\xff"),
	SEED("0"),
	SEED("1"),
	SEED("ffffffffffffffff"),
	SEED("7fffffffffffffff"),
	SEED("18446744073709551615"),
	SEED("18446744073709551616"),
	SEED("9223372036854775807"),
	SEED("bytes="),
	SEED("HTTP/1.1"),
	SEED("HTTP/1.0"),
	SEED("GET "),
	SEED("http://"),
	SEED("Host: h\r\n"),
	SEED("Content-Length: 1\r\n"),
	SEED("Transfer-Encoding: chunked\r\n"),
	SEED("Connection: close\r\n"),
};

/* xorshift64*: the same seed, the same inputs. */
static uint64_t
dice(uint64_t sides)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return ((state * 0x2545f4914f6cdd1du >> 16) % sides);
}

static const struct fuzz_seed *
any_seed(void)
{
	static const struct fuzz_seed nothing = SEED("");

	return (nseeds > 0 ? &seeds[dice(nseeds)] : &nothing);
}

static void
take_own_seeds(void)
{
	const struct fuzz_seed *s;

	for (s = fuzz_seeds; s != NULL && s->p != NULL && nseeds < FILES_MAX; s++)
		seeds[nseeds++] = *s;
}

/* A file that is longer than an input is cut. */
static void
take_file(const char *path)
{
	char *p = malloc(INPUT_MAX);
	FILE *f = fopen(path, "r");

	must(p != NULL);
	if (f == NULL) {
		perror(path);
		exit(66);
	}
	seeds[nseeds].n = fread(p, 1, INPUT_MAX, f);
	seeds[nseeds++].p = p;
	fclose(f);
}

static void
take_files(const char *dir)
{
	char path[4096];
	struct dirent **names;
	int i, n = scandir(dir, &names, NULL, alphasort);

	if (n < 0) {
		perror(dir);
		exit(66);
	}
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (names[i]->d_name[0] != '.' && nseeds < FILES_MAX)
			take_file(path);
		free(names[i]);
	}
	free(names);
}

/* Makes room for n bytes at `at`, as far as possible; returns how many. */
static size_t
open_gap(struct input *in, size_t at, size_t n)
{
	if (n > INPUT_MAX - in->n)
		n = INPUT_MAX - in->n;
	memmove(in->p + at + n, in->p + at, in->n - at);
	in->n += n;
	return (n);
}

static void
insert(struct input *in, const char *p, size_t n)
{
	size_t at = dice(in->n + 1);

	n = open_gap(in, at, n);
	memcpy(in->p + at, p, n);
}

static void
erase(struct input *in)
{
	size_t at = dice(in->n), n = 1 + dice(dice(4) == 0 ? in->n - at : 1);

	memmove(in->p + at, in->p + at + n, in->n - at - n);
	in->n -= n;
}

static void
repeat(struct input *in)
{
	char part[64];
	size_t at = dice(in->n), n = 1 + dice(sizeof(part));

	if (n > in->n - at)
		n = in->n - at;
	memcpy(part, in->p + at, n);
	insert(in, part, n);
}

static void
mutate(struct input *in)
{
	const struct fuzz_seed *s;
	size_t kind = in->n == 0 ? 0 : dice(6);

	switch (kind) {
	case 0:
		s = &words[dice(NELEM(words))];
		insert(in, s->p, s->n);
		break;
	case 1: in->p[dice(in->n)] ^= (char)(1 << dice(8)); break;
	case 2: in->p[dice(in->n)] = (char)dice(256); break;
	case 3: erase(in); break;
	case 4: repeat(in); break;
	default:
		s = any_seed();
		insert(in, s->p + s->n / 2, s->n - s->n / 2);
		break;
	}
}

static void
run(const struct input *in)
{
	/* no room after it: the sanitizer sees over-reads */
	uint8_t *exact = malloc(in->n > 0 ? in->n : 1);

	must(exact != NULL);
	memcpy(exact, in->p, in->n);
	LLVMFuzzerTestOneInput(exact, in->n);
	free(exact);
}

static void
on_abort(int sig)
{
	char out[5];
	ssize_t ignored;
	size_t i;

	for (i = 0; i < now.n; i++) {
		snprintf(out, sizeof(out), "\\x%02x", (unsigned char)now.p[i]);
		ignored = write(STDERR_FILENO, out, 4);
		(void)ignored;
	}
	ignored = write(STDERR_FILENO, "\n", 1);
	(void)ignored;
	signal(sig, SIG_DFL);
	raise(sig);
}

static void
load(const struct fuzz_seed *s)
{
	now.n = s->n < INPUT_MAX ? s->n : INPUT_MAX;
	memcpy(now.p, s->p, now.n);
}

static void
run_mutant(void)
{
	uint64_t times = dice(8);

	load(any_seed());
	while (times-- > 0)
		mutate(&now);
	run(&now);
}

int
main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 5;
	uint64_t seed =
	    argc > 2 && strcmp(argv[2], "-") != 0 ? strtoull(argv[2], NULL, 10) : clock_wall_ns();
	uint64_t end = clock_mono_ns() + seconds * NS_PER_S, runs = 0;
	size_t i;

	signal(SIGABRT, on_abort);
	state = seed | 1;
	printf("# %s: seed %llu\n", argv[0], (unsigned long long)seed);
	take_own_seeds();
	if (argc > 3)
		take_files(argv[3]);
	for (i = 0; i < nseeds; i++) {
		load(&seeds[i]);
		run(&now);
	}
	do {
		run_mutant();
		runs++;
	} while (runs % CLOCK_EVERY != 0 || clock_mono_ns() < end);
	printf("1..1\nok 1 - %llu inputs\n", (unsigned long long)runs);
	return (0);
}
