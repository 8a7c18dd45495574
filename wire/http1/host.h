/* wire/http1/host.h -- the authority of a Host field or of an absolute-form, in one spelling.
 *
 * Conditions, applications, logs and hashes use the result of http1_host(), so a client cannot
 * bypass a rule with another spelling:
 *
 *   WWW.Example.ORG   www.example.org        lower case
 *   example.org.      example.org            one dot after the name is removed
 *   example.org:80    example.org            so are the port of the scheme and a colon alone
 *   example.org:0443  example.org:443
 *   [2001:DB8:0::1]   [2001:db8::1]          as the C library prints it
 *
 * Malformed: an empty host, an empty label, an escape (%65), user information, port 0 or above
 * 65535, a zone, more than HTTP_HOST_MAX bytes.
 */
#ifndef WIRE_HTTP1_HOST_H
#define WIRE_HTTP1_HOST_H

#include "base/text.h"

#define HTTP_HOST_MAX 264 /* 255 bytes of a name, and a port */

/* A slice of t if it is in normal form, otherwise written to store.  .p NULL: malformed. */
struct text http1_host(struct text t, char store[HTTP_HOST_MAX]);

#endif
