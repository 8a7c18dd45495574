/* t/unit/io/proof.c -- a file that became longer while it was sent: what is believed. */
#include "io/proof.h"

#include <errno.h>
#include "t/unit/io/in_dir.h"

#define SIZE 100000u
#define PART 20000u

extern const struct file_backend file_adaptive;

static char *path;
static struct io_file *f;
static struct io_proof proof;

/* The first bytes of the file have been sent, in parts. */
static void
up(unsigned parts)
{
	struct timespec then[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct statx stx;
	char part[PART];
	unsigned i, k;

	path = file_make(dir, "f", SIZE);
	loop_up(&file_adaptive, 1, 8);
	f = file_open(path, SIZE);
	g_assert_cmpint(futimens(f->fd, then), ==, 0);
	g_assert_cmpint(statx(f->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), ==, 0);
	io_file_watch(f, &stx);
	proof = (struct io_proof){ 0 };
	for (i = 0; i < parts; i++) {
		for (k = 0; k < PART; k++)
			part[k] = pattern(i * PART + k);
		io_proof_note(&proof, f, i * PART, part, PART);
	}
}

static void
down(void)
{
	io_file_put(f);
	run_ms(1);
	loop_down();
	g_unlink(path);
	g_free(path);
}

static void
put(uint64_t off, const char *bytes)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	g_assert_cmpint(pwrite(fd, bytes, strlen(bytes), (off_t)off), ==, (ssize_t)strlen(bytes));
	close(fd);
}

/* On the loop, and in a thread; the results are the same. */
static void
expect(int err)
{
	uint64_t n = io->counters->file_grew;
	struct io_proof copy = proof;
	bool grew = false;
	int warm = io_proof_look_warm(&proof, f);

	g_assert_cmpint(io_proof_look_in_thread(&copy, &f->version, f->fd, &grew), ==, err);
	if (warm == -EAGAIN && proof.writing) /* only a thread can wait for the writer */
		g_assert_cmpint(err, ==, -ETXTBSY);
	else
		g_assert_cmpint(warm, ==, err);
	g_assert_cmpuint(io->counters->file_grew, ==, n + grew);
	g_assert_true(f->stale == (err != 0 || grew));
}

UP_TEST("/proof/longer", 2)
{
	unsigned i;

	expect(0);
	for (i = 0; i < 3; i++) {
		put(SIZE + i * 4, "more");
		expect(0);
		g_assert_cmpuint(proof.size, ==, SIZE + i * 4 + 4);
	}
	put(SIZE, "MORE"); /* after what was promised */
	expect(0);
	g_assert_cmpuint(io->counters->file_grew, ==, 4);
	g_assert_cmpint(io_file_look(f), ==, -ETXTBSY); /* as strict as ever */
}

TEST("/proof/other-bytes")
{
	const struct {
		uint64_t off;
		int err;
	} rows[] = {
		{ 0, -ETXTBSY }, { PROOF_SAMPLE - 4, -ETXTBSY },
		{ PROOF_SAMPLE, 0 }, /* not in a sample: see DESIGN.md */
		{ 2 * PART - PROOF_SAMPLE - 4, 0 }, { 2 * PART - PROOF_SAMPLE, -ETXTBSY },
		{ 2 * PART - 4, -ETXTBSY }, { 2 * PART, 0 }, /* not sent yet */
	};
	unsigned i;

	for (i = 0; i < NELEM(rows); i++) {
		up(2);
		put(SIZE, "more");
		put(rows[i].off, "\1\2\1\2");
		expect(rows[i].err);
		down();
	}
}

TEST("/proof/sizes")
{
	up(2);
	put(0, "\1\2");
	expect(-ETXTBSY); /* as long as before */
	down();
	up(2);
	put(SIZE, "more");
	expect(0);
	g_assert_cmpint(truncate(path, SIZE + 1), ==, 0);
	expect(-ETXTBSY); /* shorter than it was */
	g_assert_cmpint(truncate(path, SIZE - 1), ==, 0);
	expect(-ENODATA);
	down();
}

UP_TEST("/proof/times", 2)
{
	struct timespec older[2] = { { .tv_sec = 999 }, { .tv_sec = 999 } };

	put(SIZE, "more");
	g_assert_cmpint(futimens(f->fd, older), ==, 0);
	expect(-ETXTBSY);
}

TEST("/proof/no-samples")
{
	up(0);
	put(SIZE, "more");
	expect(-ETXTBSY);
	down();
	up(2);
	proof.lost = true;
	put(SIZE, "more");
	expect(-ETXTBSY);
	down();
}

/* A few bytes do not replace a whole sample, the end of the file needs none, and a thread takes the
 * same samples from the file. */
TEST("/proof/notes")
{
	struct io_proof seen, read = { 0 };
	char all[SIZE];
	unsigned i;

	for (i = 0; i < SIZE; i++)
		all[i] = pattern(i);
	up(2);
	seen = proof;
	io_proof_note(&proof, f, 2 * PART, all + 2 * PART, 10);
	io_proof_note(&proof, f, 3 * PART, all + 3 * PART, SIZE - 3 * PART);
	g_assert_cmpmem(&proof, sizeof(proof), &seen, sizeof(seen));
	io_proof_note_file(&read, f, 0, PART);
	io_proof_note_file(&read, f, PART, PART);
	g_assert_cmpuint(read.first.hash, ==, seen.first.hash);
	g_assert_cmpuint(read.last.hash, ==, seen.last.hash);
	g_assert_cmpuint(read.last.off, ==, seen.last.off);
	down();
}
