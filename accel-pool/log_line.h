/* accel-pool/log_line.h -- a line of an access log, in the common or the combined format.
 *
 *	192.0.2.1 - kim [23/Nov/2026:06:00:00 +0000] "GET /a%20b?c HTTP/1.1" 200 5120 "-" "curl/8"
 *	                                              ^^^ ^^^^^^^^^^          ^^^
 *
 * nginx, Apache, lighttpd and accel-server write it, with or without a field for the host at the
 * start.  Quotes and other bytes of the request are escaped: \" \\ \x22 \t and the like.
 *
 * Pure.
 */
#ifndef ACCEL_POOL_LOG_LINE_H
#define ACCEL_POOL_LOG_LINE_H

#include "base/text.h"

struct log_request {
	struct text method, target; /* target: unescaped, else as the client sent it */
	unsigned status;            /* 100 to 999 */
};

/* buf has space for line.n bytes, and holds the texts of *request.  False: no line of such a log.
 */
bool log_line_parse(struct text line, char *buf, struct log_request *request);

/* The path and query of the target, "/" at its start; false: it has none ("*", "host:443"). */
bool log_target_path(struct text target, struct text *path);

#endif
