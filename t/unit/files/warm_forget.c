/* t/unit/files/warm_forget.c -- a file that is dropped from memory is cold at the next question;
 * some files must not be dropped; the loop may end while one is being dropped. */

#include "t/unit/files/warm_test.h"

static const char *roots[2];
static int ended = -1; /* -1: not yet */

static void
on_end(void *arg, bool gone)
{
	g_assert_true(arg == &ended);
	ended = gone;
}

/* Writes the file to disk: the kernel drops only pages that are on the disk. */
static void
settle(const char *name)
{
	g_autofree char *path = in_dir(name);
	int fd = open(path, O_RDONLY);

	g_assert_cmpint(fsync(fd), ==, 0);
	close(fd);
}

static bool
begin(const char *name)
{
	g_autofree char *path = in_dir(name);
	bool begun = warm_forget(wm, path, on_end, &ended);

	ended = -1;
	return (begun);
}

static bool
drop(const char *name)
{
	g_assert_true(begin(name));
	while (ended < 0)
		io_run(io);
	return (ended);
}

static bool
is_hot(const char *name)
{
	g_autofree char *path = in_dir(name);
	bool hot = find(path).hot;

	return (hot);
}

static void
up(const struct warm_conf *c)
{
	conf = *c;
	conf.roots = roots;
	loop_up(1);
}

static const struct warm_conf reads = { .how = WARM_READ, .before = 1 << 24 };

TEST("/warm/forget/cold-afterwards")
{
	up(&reads);
	if (!begin("large")) {
		g_test_skip("a file system that cannot tell what is in memory");
	} else {
		while (ended < 0)
			io_run(io);
		if (ended == 0)
			g_test_skip("a file system that keeps what it has in memory");
		else
			g_assert_false(is_hot("large"));
		g_assert_true(is_hot("large"));
		g_assert_false(drop("small"));
		g_assert_true(is_hot("small"));
		g_assert_false(drop("huge"));
		g_assert_true(is_hot("huge"));
		g_assert_false(drop("none"));
		g_assert_false(drop("directory"));
	}
	loop_down();
}

TEST("/warm/forget/refused")
{
	const struct warm_conf opens = { .how = WARM_OPEN }, nothing = { .how = WARM_READ };

	up(&reads);
	g_assert_false(warm_forget(wm, "/elsewhere/file", on_end, &ended));
	loop_down();
	up(&opens);
	g_assert_false(begin("large"));
	loop_down();
	up(&nothing);
	g_assert_false(begin("large"));
	loop_down();
}

TEST("/warm/forget/one-at-a-time")
{
	up(&reads);
	if (begin("large"))
		g_assert_false(begin("small"));
	ended = -1;
	loop_down(); /* in flight: it ends, or is cancelled without a call */
}

int
main(int argc, char **argv)
{
	int rc;

	g_test_init(&argc, &argv, NULL);
	dir = g_dir_make_tmp("warm-forget-XXXXXX", NULL);
	roots[0] = dir;
	make_file("small", 16383);
	make_file("large", 65536);
	make_file("huge", (1 << 20) + 1);
	make_dir("directory");
	settle("small");
	settle("large");
	settle("huge");
	rc = tests_run();
	remove_below(dir);
	g_free(dir);
	return (rc);
}
