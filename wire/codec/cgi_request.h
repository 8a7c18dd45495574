/* wire/codec/cgi_request.h -- a request for a CGI program, as the process that runs the program
 * reads it.
 *
 *   worker --FastCGI 1.0: BEGIN  PARAMS...  STDIN...--> cgi_request_feed()
 *
 * Only what wire/codec/fastcgi.c writes is accepted: role responder, one request, each stream in
 * its turn.  The worker may be in the hands of an intruder, so all else is CGI_BAD.
 *
 * Pure: any split of the same bytes gives the same events (CGI_BODY may come in other pieces).
 * Bounds   PROTO_REQUEST_MAX bytes of variables.
 */
#ifndef WIRE_CGI_REQUEST_H
#define WIRE_CGI_REQUEST_H

#include "base/buf.h"
#include "wire/codec/fcgi.h"

enum cgi_event {
	CGI_MORE,   /* all bytes are used */
	CGI_PARAMS, /* params is complete; each pair of it is whole */
	CGI_BODY,   /* *body: bytes for the program, a slice of the input */
	CGI_END,    /* the body is complete; nothing may follow */
	CGI_BAD
};

struct cgi_request {
	struct buf params; /* for fcgi_take_pair() */
	uint8_t head[FCGI_HEAD], begin[8];
	uint8_t have, nbegin, padding;
	uint16_t left; /* bytes of the content of this record */
	enum cgi_stage { CGI_AT_BEGIN, CGI_AT_PARAMS, CGI_AT_BODY, CGI_AT_END } stage;
};

void cgi_request_init(struct cgi_request *);
void cgi_request_free(struct cgi_request *);
/* Removes bytes from *in up to and including the next event.  Call it until CGI_MORE or CGI_BAD. */
enum cgi_event cgi_request_feed(struct cgi_request *, struct text *in, struct text *body);

/* The name and the value can be a variable of a program: no NUL, no '=' in the name. */
bool cgi_variable_ok(struct text name, struct text value);
/* A variable of cgi_env(), or of a user who was asked for a password.  Others, like LD_PRELOAD and
 * PERL5OPT, could make a program run something else. */
bool cgi_variable_is_usual(struct text name);

#endif
