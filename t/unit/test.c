/* t/unit/test.c -- the tests of a program, and the main() of one that needs no more. */
#define RUNS_TESTS
#include "t/unit/test.h"

static struct unit_test *tests;

/* Sorted by line: a compiler may run constructors in any order. */
void
tests_add(struct unit_test *test)
{
	struct unit_test **at = &tests;

	while (*at != NULL && (*at)->line < test->line)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

void __attribute__((weak)) tests_begin(void)
{
}

void __attribute__((weak)) tests_end(void)
{
}

int
tests_run(void)
{
	struct unit_test *test;
	int result;

	for (test = tests; test != NULL; test = test->next)
		g_test_add_func(test->path, test->run);
	tests_begin();
	result = g_test_run();
	tests_end();
	return (result);
}

int __attribute__((weak)) main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	return (tests_run());
}
