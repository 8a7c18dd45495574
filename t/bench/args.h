/* t/bench/args.h -- what the command lines of the load generators have in common. */
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

static inline void __attribute__((noreturn)) die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
	exit(64);
}

static inline double
number(const char *what, const char *s, double lo, double hi)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end != '\0' || !(v >= lo && v <= hi)) {
		fprintf(stderr, "%s: %s: expected %.10g to %.10g, got \"%s\"\n",
		    program_invocation_short_name, what, lo, hi, s);
		exit(64);
	}
	return (v);
}

/* Reads http://ADDRESS:PORT, of this machine only, into addr and "ADDRESS:PORT" into host.  Returns
 * what follows. */
static inline const char *
loopback_url(const char *url, struct sockaddr_in *addr, char host[64])
{
	char address[32];
	int port, used = 0;

	if (sscanf(url, "http://%31[0-9.]:%d%n", address, &port, &used) != 2 || port < 1 ||
	    port > 65535 || inet_pton(AF_INET, address, &addr->sin_addr) != 1)
		die(url, "expected http://127.0.0.1:PORT");
	if (ntohl(addr->sin_addr.s_addr) >> 24 != 127)
		die(url, "refused: only addresses of this machine, 127.x.x.x");
	addr->sin_family = AF_INET;
	addr->sin_port = htons((uint16_t)port);
	snprintf(host, 64, "%s:%d", address, port);
	return (url + used);
}

#endif
