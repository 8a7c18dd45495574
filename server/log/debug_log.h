/* server/log/debug_log.h -- debug.log-*: what happens to a request, line by line in the error log.
 *
 * An administrator has switched it on, so lines are not rationed; each has at most LOG_LINE_MAX
 * bytes.  Values that let others in (Authorization, Cookie) are not written.
 * Thread   the worker's.  Call them only if the site has debug set.
 */
#ifndef SERVER_DEBUG_LOG_H
#define SERVER_DEBUG_LOG_H

#include <stdbool.h>

struct conf;
struct request;
struct handler;

bool debug_log_is_on(const struct conf *); /* one of the settings is */
/* The conditions are decided, and a handler is known. */
void debug_log_routed(struct request *, const struct handler *);
void debug_log_head(struct request *);    /* the head of the reply is made */
void debug_log_replied(struct request *); /* the reply is over */

#endif
