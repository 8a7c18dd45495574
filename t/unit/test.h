/* t/unit/test.h -- TEST("/path") { ... }: a test that registers itself.
 * UP_TEST("/path", x) { ... }: likewise, between up(x) and down(), which the program has.
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

#define UP_TEST(path, ...)      TEST_IN(path, up(__VA_ARGS__), down())
#define TEST(path)              TEST_IN(path, (void)0, (void)0)
#define TEST_IN(path, up, down) TEST_AT(path, up, down, __LINE__)
#define TEST_AT(path, up, down, line)                                            \
	TEST_OF(path, up, down, line, G_PASTE(test_, line), G_PASTE(run_, line), \
	    G_PASTE(add_, line))
#define TEST_OF(path, up, down, line, name, run, add)                     \
	static void name(void);                                           \
	static void run(void)                                             \
	{                                                                 \
		up;                                                       \
		name();                                                   \
		down;                                                     \
	}                                                                 \
	static void __attribute__((constructor)) add(void)                \
	{                                                                 \
		static struct unit_test test = { path, run, line, NULL }; \
		tests_add(&test);                                         \
	}                                                                 \
	static void name(void)

#endif
