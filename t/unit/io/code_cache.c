/* t/unit/io/code_cache.c -- the cache of compressed files: a thread that compresses keeps it. */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/code/file.h"
#include "t/unit/test.h"

#define SIZE 65536u

static int freed;

static void
cache_freed(struct code_cache *k)
{
	close(k->dir);
	freed++;
}

static struct code_file *
job_of(struct code_cache *k)
{
	struct code_file *c = code_file_new();

	g_assert_nonnull(c);
	c->conf = (struct coder_conf){ .coding = CODING_GZIP, .level = CODER_LEVEL };
	c->bytes = malloc(SIZE);
	g_assert_nonnull(c->bytes);
	memset(c->bytes, 'a', SIZE);
	c->stx.stx_size = SIZE;
	c->keep = SIZE;
	c->cache = code_cache_ref(k);
	return (c);
}

static unsigned
files_in(const char *dir, bool remove)
{
	GDir *d = g_dir_open(dir, 0, NULL);
	const char *name;
	char *path;
	unsigned n;

	for (n = 0; (name = g_dir_read_name(d)) != NULL; n++) {
		path = g_build_filename(dir, name, NULL);
		if (remove)
			g_assert_cmpint(g_unlink(path), ==, 0);
		g_free(path);
	}
	g_dir_close(d);
	return (n);
}

/* The configuration is gone while the job waits for a thread. */
TEST("/code-cache/outlives-configuration")
{
	g_autofree char *dir = g_dir_make_tmp("accel-cache-XXXXXX", NULL);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct code_cache k;
	struct code_file *c;

	g_assert_cmpint(code_cache_init(&k, fd, 1u << 20, cache_freed), ==, 0);
	c = job_of(&k);
	code_cache_put(&k);
	g_assert_cmpint(freed, ==, 0);
	c->work.run(&c->work);
	g_assert_cmpint(c->err, ==, 0);
	g_assert_cmpuint(files_in(dir, false), ==, 1);
	c->work.free(&c->work);
	g_assert_cmpint(freed, ==, 1);
	g_assert_cmpuint(files_in(dir, true), ==, 1);
	g_assert_cmpint(g_rmdir(dir), ==, 0);
}

TEST("/code-cache/others-may-write")
{
	g_autofree char *dir = g_dir_make_tmp("accel-cache-XXXXXX", NULL);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct code_cache k;

	g_assert_cmpint(fchmod(fd, 0777), ==, 0);
	g_assert_cmpint(code_cache_init(&k, fd, 1u << 20, cache_freed), ==, -EPERM);
	close(fd);
	g_assert_cmpint(g_rmdir(dir), ==, 0);
}
