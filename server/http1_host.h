/* server/http1_host.h -- the authority of a Host field or of an absolute-form; between the http1*.c files. */
#ifndef SERVER_HTTP1_HOST_H
#define SERVER_HTTP1_HOST_H

#include <stdbool.h>
#include "base/text.h"

bool http1_authority_valid(struct text); /* host [":" port], host not empty */

#endif
