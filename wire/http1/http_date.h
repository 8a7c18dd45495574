/* wire/http1/http_date.h -- dates in headers (RFC 9110, 5.6.7).  Pure; seconds since 1970, UTC. */
#ifndef WIRE_HTTP_DATE_H
#define WIRE_HTTP_DATE_H

#include "base/text.h"

#define HTTP_DATE_LEN 29
#define HTTP_DATE_MAX 253402300799ull /* the last second of a year with four digits */

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
void http_date_put(char dst[HTTP_DATE_LEN + 1], uint64_t unix_s);
int http_date_parse(struct text, uint64_t *unix_s); /* accepts the three forms; -EINVAL */

#endif
