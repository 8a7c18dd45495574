/* t/unit/base/unique.c -- ids: 32 hexadecimal digits, none twice in a process, in threads or in
 * processes. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/unique.h"
#include "t/unit/test.h"

#define EACH 20000
#define TELL 100000

static char made[4][EACH][UNIQUE_HEX + 1];

static void *
make_many(void *arg)
{
	char(*to)[UNIQUE_HEX + 1] = arg;
	size_t i;

	for (i = 0; i < EACH; i++)
		unique_hex(to[i]);
	return (NULL);
}

TEST("/unique/in threads")
{
	GHashTable *seen = g_hash_table_new(g_str_hash, g_str_equal);
	pthread_t t[4];
	size_t i, k;

	for (i = 0; i < 4; i++)
		g_assert_cmpint(pthread_create(&t[i], NULL, make_many, made[i]), ==, 0);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < 4; i++)
		for (k = 0; k < EACH; k++) {
			g_assert_cmpuint(strspn(made[i][k], "0123456789abcdef"), ==, UNIQUE_HEX);
			g_assert_true(g_hash_table_add(seen, made[i][k]));
		}
	g_hash_table_unref(seen);
}

/* The half that two processes would share if their keys were the same. */
static void
test_restart(const char *self)
{
	char *argv[] = { (char *)(uintptr_t)self, (char *)(uintptr_t) "--one", NULL }, *out[2];
	int i;

	for (i = 0; i < 2; i++) {
		g_assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out[i],
		    NULL, NULL, NULL));
		g_assert_cmpuint(strlen(out[i]), ==, UNIQUE_HEX + 1);
	}
	g_assert_cmpint(memcmp(out[0], out[1], 16), !=, 0);
	g_assert_cmpint(memcmp(out[0] + 16, out[1] + 16, 16), !=, 0);
	g_free(out[0]);
	g_free(out[1]);
}

static void
restart(gconstpointer self)
{
	test_restart(self);
}

TEST("/unique/what one costs")
{
	uint64_t begin = clock_mono_ns();
	char id[UNIQUE_HEX];
	size_t i;

	for (i = 0; i < TELL; i++)
		unique_hex(id);
	g_test_message("%.0f ns for each", (double)(clock_mono_ns() - begin) / TELL);
}

int
main(int argc, char **argv)
{
	char id[UNIQUE_HEX];

	if (argc == 2 && strcmp(argv[1], "--one") == 0) {
		unique_hex(id);
		g_print("%.*s\n", (int)UNIQUE_HEX, id);
		return (0);
	}
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/unique/after a restart", argv[0], restart);
	return (tests_run());
}
