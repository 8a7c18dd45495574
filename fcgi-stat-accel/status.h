/* fcgi-stat-accel/status.h -- the status page of this process, and the ping.
 *
 * The path is compared with SCRIPT_NAME, like pm.status_path of php-fpm, so any web server can pass
 * it on.
 *
 *   /status            name: value, one per line; at the top a summary and the advice
 *   /status?json       all numbers, with stable names; ?json&buckets: with all counts of histograms
 *   /status?metrics    for Prometheus (?prometheus too)
 *   /ping              "pong"; ?json: {"ok":true}
 *
 * Thread   the loop's.  Nothing here waits.
 */
#ifndef FCGI_STAT_ACCEL_STATUS_H
#define FCGI_STAT_ACCEL_STATUS_H

#include <glib.h>
#include <stdbool.h>
#include "fcgi-stat-accel/accel.h"
#include "fcgi-stat-accel/advice.h"
#include "io/start/sandbox.h"

struct all_counters; /* fcgi-stat-accel/counters.h */
struct io_pools;

struct status {
	const char *status_path, *ping_path; /* NULL: none */
	const char *mode;                    /* "sendfile", "auth" */
	const struct all_counters *counters;
	const struct advice *advice;
	const struct accel_conf *accel; /* for about.h; NULL: it is not answered */
	const struct warm_conf *warm;
	struct io_pools *pools;
	unsigned open_asks;     /* mounts of roots, see open_asks.h */
	uint64_t started_ns;    /* CLOCK_MONOTONIC */
	uint64_t started_s;     /* since 1970 */
	struct sandbox sandbox; /* the sandbox in force; zeros for --no-sandbox */
};

/* True if the path is one of these: reply then has the whole answer, head and body; no body for
 * HEAD. */
bool status_answer(const struct status *, char **params, GString *reply);

/* Logs the same numbers, a line for each group (USR2). */
void status_log(const struct status *);

#endif
