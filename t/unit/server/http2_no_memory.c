/* t/unit/server/http2_no_memory.c -- no_memory.h for requests of HTTP/2. */
#include "t/unit/allocations.h"

#include "t/fuzz/http2_client.h"
#include "t/fuzz/http2_seeds.h"
#include "t/unit/test.h"

#define UP(config, by_hand) http2_up(config, by_hand)
#define DOWN()              http2_down()
#include "t/unit/server/no_memory.h"

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/http2-no-memory/once", NULL, test_each);
	g_test_add_data_func("/http2-no-memory/from-then-on", "", test_each);
	return (tests_run());
}
