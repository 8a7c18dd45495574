/* server/handler/cgi.h -- requests for CGI programs (cgi.assign): the helper process runs them, see
 * server/helper/cgi.h.
 *
 *   worker --proxy-core, FastCGI--> runner of the helper --pipes--> program
 *
 * To proxy-core the helper is an application with one request on each socket.  So a program waits
 * in the fair queue, streams, has deadlines and is logged as every application.
 *
 * Bounds   each worker runs its share of cgi.max-programs, and half of that for one client.
 * Thread   the worker's.
 */
#ifndef SERVER_HANDLER_CGI_H
#define SERVER_HANDLER_CGI_H

#include <stdint.h>
#include "base/text.h"
#include <stdbool.h>

struct request;
struct conf;
struct conf_pair;
struct backends;

/* The row of cgi.assign for the script of the request; NULL: none. */
const struct conf_pair *cgi_rule_of(const struct request *);
/* True if the script of the request (r->script_len) is one of cgi.assign. */
bool cgi_is_script(const struct request *);
/* The file has an ending of cgi.assign, in upper or lower case: it may not be sent.  The ending ""
 * does not count here. */
bool cgi_excluded(const struct conf *, struct text path);
/* cgi.assign has the ending "": every file is a program. */
bool cgi_is_all(const struct conf *);
/* Then an application may not name the files of the directory of the request. */
bool cgi_is_beside(const struct request *, struct text path);

struct cgi_limits { /* cgi.limits */
	uint64_t read_s, write_s;
	int signal;
	bool fin; /* a client that sends no more is gone */
};

#endif
