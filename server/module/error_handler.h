/* server/module/error_handler.h -- server.error-handler and server.error-handler-404: another URL
 * answers instead of an error page.
 *
 *   refusal --> routed again as the URL of the handler --> a file: with the status of the refusal
 *                                                     |              (error-handler-404: 200)
 *                                                     |--> an application: with its own status
 *                                                     '--> an error: the page of the first refusal
 *
 * Once for each request.  Not for 401, whose fields clients need, and not after a part of a request
 * body went to an application.
 */
#ifndef SERVER_MODULE_ERROR_HANDLER_H
#define SERVER_MODULE_ERROR_HANDLER_H

#include <stdbool.h>

struct request;

/* True: the request has another target, and the caller has it routed again instead of refusing it.
 * The caller has released all it held. */
bool error_handler_takes(struct request *, int status);
/* A request with a method other than GET may reach a handler: look up its file first. */
bool error_handler_is_set(const struct request *);

#endif
