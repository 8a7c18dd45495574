/* t/fuzz/fuzz_connection.c -- a whole connection; connection.h says what the bytes mean.
 *
 * A must(), a report of a sanitizer, or a connection that does not end when nobody does anything
 * any more, is a finding.
 */
#include "t/fuzz/connection.h"
#include "t/fuzz/connection_seeds.h"

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n < 3)
		return (0);
	up((unsigned)p[0] | (unsigned)p[1] << 8, p[2]);
	run_events(p + 3, n - 3);
	all_end();
	down();
	return (0);
}
