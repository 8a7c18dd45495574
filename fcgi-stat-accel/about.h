/* fcgi-stat-accel/about.h -- what this process is, for accel-check.
 *
 * A request with the SCRIPT_NAME "stat-accel:about" gets one JSON object: mode, header, roots,
 * index names, variables with the path.  A SCRIPT_NAME that a web server makes from a URL begins
 * with a slash, so no client can ask.
 *
 * Thread   the loop's.  Nothing here waits.
 */
#ifndef FCGI_STAT_ACCEL_ABOUT_H
#define FCGI_STAT_ACCEL_ABOUT_H

#include <glib.h>
#include <stdbool.h>

struct accel_conf;
struct warm_conf;

#define ABOUT_NAME "stat-accel:about"

/* True if the request asks what this process is: reply then has the whole answer, head and body. */
bool about_answer(const struct accel_conf *, const struct warm_conf *, char **params,
    GString *reply);

#endif
