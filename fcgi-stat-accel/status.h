/* fcgi-stat-accel/status.h -- the page about this process, and the ping.
 *
 * Matched against SCRIPT_NAME, as php-fpm does with pm.status_path, so any web server can pass it on.
 *
 *   /status            name: value, one per line
 *   /status?json       everything, with names that stay
 *   /status?metrics    for Prometheus (?prometheus too)
 *   /ping              "pong"; ?json: {"ok":true}
 *
 * Thread   the loop's.  Nothing here waits.
 */
#ifndef FCGI_STAT_ACCEL_STATUS_H
#define FCGI_STAT_ACCEL_STATUS_H

#include <glib.h>
#include <stdbool.h>
#include "fcgi-stat-accel/stats.h"
#include "io/sandbox.h"

struct io_pools;

struct status {
	const char *status_path, *ping_path;	/* NULL: none */
	const char *mode;		/* "sendfile", "auth" */
	const struct stats *stats;
	struct io_pools *pools;
	uint64_t started_ns;		/* CLOCK_MONOTONIC */
	struct sandbox sandbox;		/* what was entered; zeros for --no-sandbox */
};

/* True when it was one of our own paths: reply then has the whole answer.  Head and body; no body for HEAD. */
bool status_answer(const struct status *, char **params, GString *reply);

/* The same numbers to the log, a line for each group (USR2). */
void status_log(const struct status *);

#endif
