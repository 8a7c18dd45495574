/* server/module/limits.h -- server.max-requests-per-second-per-address, for the access log. */
#ifndef SERVER_MODULE_LIMITS_H
#define SERVER_MODULE_LIMITS_H

#include "server/request/request.h"

bool limits_refused(const struct request *); /* with 429 */

#endif
