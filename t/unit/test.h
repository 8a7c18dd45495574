/* t/unit/test.h -- TEST("/path") { ... }: a test that registers itself.
 *
 * GTest runs the tests of a program in the order of their lines and prints TAP.  A program that
 * adds tests of other kinds has a main() of its own, which calls tests_run().
 */
#ifndef T_UNIT_TEST_H
#define T_UNIT_TEST_H

#include <glib.h>

struct unit_test {
	const char *path;
	void (*run)(void);
	int line;
	struct unit_test *next;
};

void tests_add(struct unit_test *);
int tests_run(void);    /* after g_test_init() */
void tests_begin(void); /* before the first test; a program may define these two */
void tests_end(void);

#ifndef RUNS_TESTS
#pragma GCC poison g_test_run /* would leave out every TEST() */
#endif

#define TEST(path)          TEST_AT(path, __LINE__)
#define TEST_AT(path, line) TEST_OF(path, line, G_PASTE(test_, line), G_PASTE(add_, line))
#define TEST_OF(path, line, name, add)                                     \
	static void name(void);                                            \
	static void __attribute__((constructor)) add(void)                 \
	{                                                                  \
		static struct unit_test test = { path, name, line, NULL }; \
		tests_add(&test);                                          \
	}                                                                  \
	static void name(void)

#endif
