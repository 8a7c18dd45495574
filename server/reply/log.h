/* server/reply/log.h -- what is counted and logged at the end of a reply: counters, stages, access
 * log, timing line.
 */
#ifndef SERVER_REPLY_LOG_H
#define SERVER_REPLY_LOG_H

#include <stdbool.h>

struct request;

/* True if the reply may be sent together with others and logged before it is sent: it is in memory
 * and has no timing line. */
bool reply_log_may_batch(const struct request *);
bool reply_log_needs_head(const struct request *); /* reply_log() reads the request head */
void reply_log(struct request *, bool batched);
void reply_log_cut(struct request *); /* access log and timing line: the reply broke off */
/* True if err means that the client left or that the server cut the connection; false: the file
 * failed. */
bool reply_error_is_clients(int err);
/* Logs why a reply broke off: the client left, or the file could not be read. */
void reply_log_broken(struct request *, int err);

#endif
