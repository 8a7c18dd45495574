/* t/unit/files/warm_test.h -- a tree of real files, and a client that asks for them. */
#ifndef WARM_TEST_H
#define WARM_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "files/warm/counters.h"
#include "files/warm/warm.h"
#include "io/disk/pools.h"
#include "io/engine.h"
#include "io/file.h"
#include "io/io.h"
#include "t/unit/test.h"

static struct io *io;
static struct io_pools *pools;
static struct warm_counters counters;
static struct warm_stages stages;
static struct warm_conf conf;
static struct warm *wm;
static char *dir;

static char *
in_dir(const char *name)
{
	return (g_strconcat(dir, "/", name, NULL));
}

static void G_GNUC_UNUSED
make_dir(const char *name)
{
	g_autofree char *path = in_dir(name);

	g_assert_cmpint(g_mkdir(path, 0755), ==, 0);
}

static void G_GNUC_UNUSED
make_file(const char *name, gssize size)
{
	/* as if it had been read since: a thread writes an access time that is due */
	const struct timespec read[] = { { .tv_sec = time(NULL) + 60 }, { .tv_nsec = UTIME_OMIT } };
	g_autofree char *path = in_dir(name), *bytes = g_malloc0(size);

	g_assert_true(g_file_set_contents(path, bytes, size, NULL));
	g_assert_cmpint(utimensat(AT_FDCWD, path, read, 0), ==, 0);
}

static void G_GNUC_UNUSED
make_link(const char *to, const char *name)
{
	g_autofree char *path = in_dir(name);

	g_assert_cmpint(symlink(to, path), ==, 0);
}

static void G_GNUC_UNUSED
remove_below(const char *path)
{
	GDir *d = g_dir_open(path, 0, NULL);
	const char *name;
	char *below;

	while (d != NULL && (name = g_dir_read_name(d)) != NULL) {
		below = g_build_filename(path, name, NULL);
		if (g_file_test(below, G_FILE_TEST_IS_DIR) &&
		    !g_file_test(below, G_FILE_TEST_IS_SYMLINK))
			remove_below(below);
		else
			g_assert_cmpint(g_unlink(below), ==, 0);
		g_free(below);
	}
	if (d != NULL)
		g_dir_close(d);
	g_assert_cmpint(g_rmdir(path), ==, 0);
}

/* ---------------------------------------------------------------- the client */

struct asker {
	struct warm_wait w;
	guint done; /* number of calls, and its place among all calls */
	guint turn;
};

static guint turns;

static void
asker_done(struct warm_wait *w)
{
	struct asker *a = (struct asker *)w;

	a->done++;
	a->turn = ++turns;
}

static bool G_GNUC_UNUSED
ask_from(struct asker *a, const char *path, uint64_t from)
{
	*a = (struct asker){ .w = { .done = asker_done,
				 .want = { 1, { { from & ~4095ull, UINT64_MAX } } } } };
	return (warm_file(wm, path, &a->w));
}

static bool G_GNUC_UNUSED
ask(struct asker *a, const char *path)
{
	return (ask_from(a, path, 0));
}

/* The facts that a real loop finds. */
static struct warm_found
find(const char *path)
{
	struct asker a;

	if (!ask(&a, path)) {
		while (a.done == 0)
			io_run(io);
	}
	return (a.w.found);
}

static void G_GNUC_UNUSED
check(const char *name, int want)
{
	g_autofree char *path = in_dir(name);

	g_test_message("%s", name);
	g_assert_cmpint(find(path).err, ==, want);
}

static void
warm_up(void)
{
	const char *bad;

	memset(&counters, 0, sizeof(counters));
	memset(&stages, 0, sizeof(stages));
	g_assert_cmpint(warm_new(&conf, io, &counters, &stages, &wm, &bad), ==, 0);
}

/* A real loop, this many threads of each kind. */
static void G_GNUC_UNUSED
loop_up(guint threads)
{
	struct io_pools_conf pc = { .stat_threads = threads,
		.read_threads = threads,
		.per_device = threads,
		.max_queue = 100 };
	struct io_conf ic = { .backend = file_backends[0] };
	int err = 0;

	g_assert_cmpint(io_pools_new(&pc, &pools), ==, 0);
	ic.pools = pools;
	io = io_new(&ic, &err);
	g_assert_nonnull(io);
	warm_up();
}

static void G_GNUC_UNUSED
loop_down(void)
{
	warm_free(&wm);
	g_assert_null(wm);
	g_assert_cmpuint(stages.waiting, ==, 0);
	g_assert_false(io_busy(io));
	io_free(io);
	io_pools_free(pools, 5000);
}

#endif
