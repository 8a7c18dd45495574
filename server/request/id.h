/* server/request/id.h -- the id of a request, for logs, applications and clients.
 *
 *   X-Request-ID of a trusted peer, if it is short and plain   \   log lines (id=, %L),
 *   or 32 hexadecimal digits that no other request has         /   applications, clients
 *
 * It is made when it is first asked for, and stays: through an error handler, X-Sendfile,
 * another backend, a second try.  A file that nobody logs costs nothing.
 * Owner    the request.
 */
#ifndef SERVER_REQUEST_ID_H
#define SERVER_REQUEST_ID_H

#include "base/text.h"

struct conf;
struct request;

/* Who gets the id of a request: server.request-id and server.traceparent. */
#define IDS_APPLICATION 1u
#define IDS_CLIENT      2u
#define IDS_TRACE       4u

#define REQUEST_ID_MAX 128u /* bytes of a peer's */

unsigned request_ids(const struct conf *); /* IDS_* */
struct text request_id(struct request *);
/* The traceparent (W3C Trace Context) that applications get in place of the client's; .n 0: the
 * client's id comes from a trusted peer and is valid, so it is passed on with its tracestate.  A
 * new trace has the id of the request, if this server made it, and the flag "sampled": without a
 * field most tracers would record, too. */
struct text request_trace(struct request *);
/* The trace id, once request_trace() was called. */
struct text request_trace_id(const struct request *);

#endif
