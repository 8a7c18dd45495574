/* wire/http1/http1.h -- HTTP/1.1 request heads in, reply heads out (RFC 9110, RFC 9112).
 *
 * Pure: bytes to result, no socket, no global; any split of the bytes gives the same answer.
 * Owner    every text in struct http_request is a slice of the input or of the struct, and valid as
 *          long as both are.
 * A request has one meaning: a head that RFC 9112 does not allow is refused, and the caller closes
 * the connection.
 */
#ifndef WIRE_HTTP1_H
#define WIRE_HTTP1_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"
#include "wire/http1/host.h"

#define HTTP_MAX_HEADERS 100

enum http_method {
	HTTP_OTHER,
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_DELETE,
	HTTP_OPTIONS,
	HTTP_PATCH,
	HTTP_TRACE,
	HTTP_CONNECT
};

/* Request headers that the server itself reads; index into http_request.known. */
enum http_known {
	HH_HOST,
	HH_CONNECTION,
	HH_CONTENT_LENGTH,
	HH_TRANSFER_ENCODING,
	HH_EXPECT,
	HH_RANGE,
	HH_IF_RANGE,
	HH_IF_MATCH,
	HH_IF_NONE_MATCH,
	HH_IF_MODIFIED_SINCE,
	HH_IF_UNMODIFIED_SINCE,
	HH_USER_AGENT,
	HH_REFERER,
	HH_COOKIE,
	HH_N
};

struct http_header {
	struct text name, value; /* value without blanks at its ends */
};

struct http_request {
	struct text line; /* whole request line, for the access log */
	struct text method;
	enum http_method verb;
	/* As sent; of an absolute-form only the path and query ("/" if none); "*" for OPTIONS. */
	struct text target;
	struct text path;  /* target up to '?', still encoded */
	struct text query; /* the part after '?', or none */
	/* Authority of an absolute-form, else Host, in normal form; the Host field has the same
	 * value. */
	struct text host;
	uint8_t major, minor; /* HTTP/major.minor; of 2 the minor is 1, as its rules are */
	bool keep_alive;
	bool expect_continue;
	bool chunked;           /* Transfer-Encoding: chunked */
	int64_t content_length; /* -1: none */
	uint16_t nheaders;
	uint16_t nours; /* of these, at the end: those that the configuration has put there */
	/* .p NULL: absent.  Of a repeated list header the first line; see nheaders for all lines.
	 * A repeated Range, If-Range or date condition cannot be one value: Range (for the first
	 * two) or the condition counts as absent.
	 */
	struct text known[HH_N];
	uint32_t repeated; /* bit HH_x: the field occurs more than once */
	struct http_header headers[HTTP_MAX_HEADERS];
	char host_store[HTTP_HOST_MAX]; /* of a host that was not in normal form */
};

enum parse { PARSE_MORE, PARSE_DONE, PARSE_BAD };

/* Reads one request head from the front of in.  PARSE_DONE: *used bytes belong to it (leading empty
 * lines too).  PARSE_BAD: *status is 400, 414 (line longer than max_head), 417 (unknown Expect),
 * 431, 501 (unknown transfer coding, CONNECT) or 505, *why a short reason; bytes after it must not
 * be read.  PARSE_MORE only while in.n < max_head.  After PARSE_BAD r->line is set if the whole
 * line came; the rest of *r is undefined.  The parser keeps no state: a head in pieces is parsed
 * again from its beginning. */
enum parse http1_head(struct text in, size_t max_head, struct http_request *, size_t *used,
    int *status, const char **why);

/* The same for a head of wire/http2/request.h, whose version is HTTP/2.0. */
enum parse http2_head(struct text in, size_t max_head, struct http_request *, size_t *used,
    int *status, const char **why);

/* The bytes of the head have moved from `from` to `to`: moves the slices.  Parsing the copy would
 * cost six times as much. */
void http1_head_moved(struct http_request *, struct text from, const char *to);

/* Decodes a chunked body: call until PARSE_DONE.  Each call removes bytes from *in and sets *data
 * to the next run of body bytes (may be empty).  Limits: chunk-size line 256 bytes, trailers 8 KiB.
 * Start from {0}.  PARSE_MORE without data: *in is used up.  PARSE_DONE: *in begins
 * with the next request. */
struct http1_chunked {
	uint64_t left;
	uint32_t line;
	uint8_t state;
};
enum parse http1_chunked(struct http1_chunked *, struct text *in, struct text *data);
/* Bytes of the trailer section so far, the last ones that were removed from *in; 0: it has no
 * field. */
size_t http1_chunked_trailers(const struct http1_chunked *);

/* The members of one Connection field: sets *close and *keep if one is close, keep-alive. */
void http1_connection(struct text list, bool *close, bool *keep);

struct text http_version(const struct http_request *); /* "HTTP/1.1" */
const char *http1_name(enum http_known);               /* "user-agent" */
const char *http1_reason(int status);                  /* "Not Found" */
/* Status for a file that cannot be sent, err is -errno; 0 gives 200. */
int http1_status_of_errno(int err);

#endif
