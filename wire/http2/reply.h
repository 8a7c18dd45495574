/* wire/http2/reply.h -- the head of a reply in HTTP/1, as the fields of HTTP/2.
 *
 *   HTTP/1.1 200 OK CRLF  Content-Length: 5 CRLF  Connection: close CRLF CRLF
 *   --> 200, "content-length" "5", and 5 bytes follow
 *
 * Pure.  Fields of a connection are left out; the server made the head, so the rest is as it is.
 */
#ifndef WIRE_HTTP2_REPLY_H
#define WIRE_HTTP2_REPLY_H

#include "wire/http1/http1.h"

#define HTTP2_REPLY_FIELDS 256u
#define HTTP2_REPLY_MAX    (96u << 10) /* bytes of a head */

struct http2_field {
	struct text name, value; /* slices of the head, which is written to */
};

struct http2_reply {
	int status;
	int64_t length; /* of Content-Length; -1: none */
	unsigned n;
	struct http2_field field[HTTP2_REPLY_FIELDS];
};

/* The names in head become lower case.  PARSE_DONE: *used bytes are the head.  PARSE_BAD: it is no
 * head, or has too many fields.  PARSE_MORE: call it again with more bytes; nothing is kept. */
enum parse http2_reply_read(char *head, size_t n, struct http2_reply *, size_t *used);
/* The same for lines of fields that follow the body.  False: too many, or malformed. */
bool http2_trailers_read(char *lines, size_t n, struct http2_reply *);

#endif
