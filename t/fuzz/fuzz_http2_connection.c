/* t/fuzz/fuzz_http2_connection.c -- a whole connection of HTTP/2; connection.h and http2_client.h
 * say what the bytes mean.
 *
 * A must(), a report of a sanitizer, or a connection that does not end when nobody does anything
 * any more, is a finding.
 */
#include "t/fuzz/http2_client.h"
#include "t/fuzz/http2_seeds.h"

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n < 3)
		return (0);
	http2_up((unsigned)p[0] | (unsigned)p[1] << 8, p[2]);
	run_events(p + 3, n - 3);
	all_end();
	http2_down();
	return (0);
}
