/* t/fuzz/fuzz_tls_flight.c -- any bytes as the beginning of a handshake: every prefix asks for more
 * until the answer is final, and no answer is later than the bound. */
#include "base/must.h"
#include "io/tls/flight.h"
#include "io/tls/hello.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\x16\x03\x01\0\x0a\x01\0\0\x06\x03\x03\0\0\0\0"),
	SEED("\x16\x03\x01\0\x01\x01\x16\x03\x01\0\x01\0\x16\x03\x01\0\x03\0\x01\0"),
	SEED("\x16\x03\x03\0\x04\x02\0\0\0"),
	SEED("\x16\x03\x01\0\x04\x01\x7f\xff\xff"),
	SEED("\x14\x03\x03\0\x01\x01\x17\x03\x03\0\x05hello"),
	SEED("GET / HTTP/1.1\r\n"),
	{ NULL, 0 },
};

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	enum tls_flight all, part = TLS_FLIGHT_MORE, later;
	char buf[TLS_NAME_MAX + 1];
	struct text name;
	size_t i, whole;

	n = n < TLS_FLIGHT_MAX ? n : TLS_FLIGHT_MAX;
	all = tls_flight(p, n, true, &whole);
	must(whole <= n && (all != TLS_FLIGHT_READY || whole != 0));
	must(all != TLS_FLIGHT_MORE || n < TLS_FLIGHT_MAX);
	for (i = 0; i <= n && part == TLS_FLIGHT_MORE; i++)
		part = tls_flight(p, i, true, &whole);
	must(part == all);
	(void)tls_hello_resumes(p, n);
	(void)tls_hello_wants_challenge(p, n);
	name = tls_hello_name(p, n, buf);
	must(name.n <= TLS_NAME_MAX && (name.n == 0 || strlen(buf) == name.n));
	later = tls_flight(p, n, false, &whole);
	must(later == TLS_FLIGHT_READY || later == TLS_FLIGHT_BROKEN || n < TLS_FLIGHT_MAX);
	must((later == TLS_FLIGHT_MORE) == (whole == 0) && whole <= n);
	must(later != TLS_FLIGHT_BROKEN || whole == TLS_HEAD);
	must(later != TLS_FLIGHT_READY || tls_flight(p, whole, false, &i) == TLS_FLIGHT_READY);
	return (0);
}
