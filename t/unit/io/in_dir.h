/* t/unit/io/in_dir.h -- the tests of a program share dir, which is removed after the last. */
#ifndef T_UNIT_IO_IN_DIR_H
#define T_UNIT_IO_IN_DIR_H

#include "t/unit/io/io_test.h"

void
tests_begin(void)
{
	dir = g_dir_make_tmp("io-XXXXXX", NULL);
}

void
tests_end(void)
{
	g_autofree char *cmd = g_strdup_printf("rm -rf '%s'", dir);

	g_assert_cmpint(system(cmd), ==, 0);
	g_free(dir);
}

#endif
