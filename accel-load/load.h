/* accel-load/load.h -- what the parts of accel-load share: the options, URLs, requests.
 *
 *   options --> conf, urls --> run: thread 1..N, each with its own loop, connections and counts
 *
 * Thread   written before the threads start; read-only since.
 */
#ifndef ACCEL_LOAD_LOAD_H
#define ACCEL_LOAD_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_CONNECTIONS_MAX 60000u
#define LOAD_PIPELINE_MAX    64u
#define LOAD_STREAMS_MAX     1000u
#define LOAD_THREADS_MAX     256u
#define TLS_SETTING_MAX      63u /* bytes of a name of --tls-conf */

struct verify_conf; /* verify.h */

/* --range */
struct load_range {
	enum { RANGE_NONE, RANGE_FIXED, RANGE_RANDOM } kind;
	uint64_t first, last; /* FIXED; last UINT64_MAX: to the end */
	uint64_t bytes;       /* RANDOM */
};

struct load_conf {
	const char *const *words; /* URLs; with merge, files */
	const char *list;         /* --urls */
	unsigned connections, pipeline, threads;
	bool http2;
	unsigned streams, beside_streams;     /* at once on each connection */
	const char *priority;                 /* --priority: value of the field; NULL: none */
	const char *beside_priority;          /* of --beside */
	const char *beside;                   /* --beside: a list; NULL: none */
	uint64_t fetches;                     /* 0: no limit */
	uint64_t warm_ns, run_ns, timeout_ns; /* the first two one after the other */
	bool silence; /* timeout_ns counts from the last byte, not from the request */
	double rate;  /* requests a second; 0: closed loop */
	bool tls_resume;
	const char *const *tls_conf; /* "NAME=VALUE"; NULL: none */
	bool close, random, hold, head, yes, json, merge, fastcgi, quiet, verbose;
	uint64_t seed;
	unsigned status; /* the expected one; 0: any 2xx */
	struct load_range range;
	const char *unix_path, *from;
	const char *const *headers; /* lines; NULL: none */
	const char *verify;         /* --verify as given; NULL: none */
	const char *expect;         /* --expect: name of a field; NULL: none */
	const struct verify_conf *checks;
	double abort_percent;
};

/* One request that was started. */
struct request {
	uint32_t url;            /* number in the list */
	uint64_t scheduled_ns;   /* CLOCK_MONOTONIC; what its latency counts from */
	uint64_t offset, length; /* of its range; length 0: no range */
};

void load_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
