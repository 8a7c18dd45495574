/* server/log/accesslog_format.h -- a line of the access log in a format of accesslog.format.
 *
 * Allocates nothing but room in the line; a worker uses one line again and again.
 * Thread   the worker's.
 */
#ifndef SERVER_ACCESSLOG_FORMAT_H
#define SERVER_ACCESSLOG_FORMAT_H

#include <stdbool.h>

struct buf;
struct log_format;
struct request;
struct timing;

/* times: read if the format has times.  cut: the reply did not reach the client whole */
void accesslog_format(struct buf *out, struct request *, const struct log_format *,
    const struct timing *times, bool cut);

#endif
