/* server/finish.h -- what is written down about a reply: access log and timing line. */
#ifndef SERVER_FINISH_H
#define SERVER_FINISH_H

#include "server/request.h"

/* May this reply be collected with others and its log lines be written now?  Not when it is to be timed or is
 * not all in memory. */
bool finish_may_batch(const struct request *);
bool finish_needs_head(const struct request *); /* will finish_log() look at the request head? */
void finish_log(struct request *, bool batched);
bool finish_is_clients(int err);                 /* the end of a reply was the client's doing, or ours: not the file's */
void finish_broken(struct request *, int err); /* the client left, or the file could not be read: a log line says so */

#endif
