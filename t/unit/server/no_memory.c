/* t/unit/server/no_memory.c -- no_memory.h for requests of HTTP/1. */
#include "t/unit/allocations.h"

#include "t/fuzz/connection.h"
#include "t/fuzz/connection_seeds.h"
#include "t/unit/test.h"

#define UP(config, by_hand) up(config, by_hand)
#define DOWN()              down()
#include "t/unit/server/no_memory.h"

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/no-memory/once", NULL, test_each);
	g_test_add_data_func("/no-memory/from-then-on", "", test_each);
	return (tests_run());
}
