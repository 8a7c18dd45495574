/* t/unit/accel-pool/kept.c -- the memory of a file: how much it is, by both system calls, and who
 * keeps it there. */
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "accel-pool/cache.h"
#include "accel-pool/kept.h"
#include "t/unit/test.h"

#define SIZE 20000

static int
a_file(struct stat *st)
{
	char *name = NULL, bytes[SIZE];
	int fd = g_file_open_tmp("kept-XXXXXX", &name, NULL);

	g_assert_cmpint(fd, >=, 0);
	memset(bytes, 'k', sizeof(bytes));
	g_assert_cmpint(write(fd, bytes, sizeof(bytes)), ==, SIZE);
	g_assert_cmpint(fstat(fd, st), ==, 0);
	unlink(name);
	g_free(name);
	return (fd);
}

/* Bytes that were written a moment ago are dirty, so they cannot have left memory yet; clean bytes
 * may. */
TEST("/kept/cache")
{
	struct cache_facts f = { 0, 0 };
	struct stat st;
	int fd = a_file(&st);

	g_assert_cmpint(cache_look(fd, SIZE, &f), ==, 0);
	g_assert_cmpuint(f.in_memory, <=, SIZE);
	g_assert_cmpuint(f.dirty, <=, SIZE);
	g_assert_cmpint(cache_look_mincore(fd, SIZE, &f), ==, 0);
	g_assert_cmpuint(f.in_memory, <=, SIZE);
	g_assert_cmpuint(f.dirty, ==, 0);
	g_assert_cmpint(cache_look(fd, 0, &f), ==, 0);
	g_assert_cmpuint(f.in_memory, ==, 0);
	g_assert_cmpint(cache_look(-1, SIZE, &f), <, 0);
	close(fd);
}

TEST("/kept/mappings")
{
	struct stat st, other;
	struct kept k;
	int fd = a_file(&st), free_fd = a_file(&other);
	char *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0), self[32];
	bool locked;

	g_assert_true(map != MAP_FAILED);
	g_snprintf(self, sizeof(self), "(%d)", (int)getpid());
	for (unsigned round = 0; round < 2; round++) {
		/* not mlock(): sanitizers make it do nothing */
		locked = round == 1 && syscall(SYS_mlock, map, 4096) == 0;
		kept_init(&k);
		kept_add(&k, KEPT_other, st.st_dev, st.st_ino, 8192);
		kept_add(&k, KEPT_other, other.st_dev, other.st_ino, 4096);
		kept_add(&k, KEPT_dirty, other.st_dev, other.st_ino + 1, 100);
		kept_explain(&k);
		g_assert_cmpuint(k.sums[KEPT_mapped].files, ==, locked ? 0 : 1);
		g_assert_cmpuint(k.sums[KEPT_locked].files, ==, locked ? 1 : 0);
		g_assert_cmpuint(k.sums[locked ? KEPT_locked : KEPT_mapped].bytes, ==, 8192);
		g_assert_nonnull(strstr(k.sums[locked ? KEPT_locked : KEPT_mapped].by, self));
		g_assert_cmpuint(k.sums[KEPT_other].bytes, ==, 4096);
		g_assert_cmpuint(k.sums[KEPT_dirty].bytes, ==, 100);
		kept_free(&k);
	}
	munmap(map, SIZE);
	close(fd);
	close(free_fd);
}
