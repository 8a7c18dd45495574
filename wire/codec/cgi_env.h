/* wire/codec/cgi_env.h -- a request as CGI variables, for FastCGI, SCGI and uwsgi.
 *
 * put(arg, name, value) is called once for each name.  Fields of the client that may pass
 * (client_field_passes()) become HTTP_*; the fields that client_fields.h writes follow.
 */
#ifndef WIRE_CGI_ENV_H
#define WIRE_CGI_ENV_H

#include "wire/codec/message.h"

/* Texts are valid during the call. */
typedef void cgi_put(void *arg, struct text name, struct text value);

/* 0, -ENOMEM, or -E2BIG: more than FIELDS_MAX headers */
int cgi_env(const struct proxy_request *, cgi_put *, void *arg);

/* The request as applications with routes of their own (WSGI, PSGI, Rack) expect it: they find the
 * path in PATH_INFO, after SCRIPT_NAME, which is where they are mounted.  If no rule says which
 * part is the script, the whole path is in PATH_INFO: otherwise each URL would be their front
 * page. */
struct proxy_request cgi_for_routes(const struct proxy_request *);

#endif
