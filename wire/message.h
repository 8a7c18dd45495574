/* wire/message.h -- a request to an application and the head of its reply, in no protocol's words.
 *
 * Owner    the code that fills one in; texts are slices of its memory.
 */
#ifndef WIRE_MESSAGE_H
#define WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"

struct proxy_field {
	struct text name, value;
};

/* The request, in no protocol's words; codecs make CGI variables or headers of it. */
struct proxy_request {
	const char *id;         /* "c17.3", for log lines */
	uint32_t client;        /* who asks, for a fair turn: a key of its address; 0: unknown */
	struct text method, target, path, query; /* target as the client sent it; path decoded and clean */
	struct text protocol;   /* "HTTP/1.1" */
	struct text host, scheme;
	struct text docroot, script_filename, path_info;
	struct text redirect_uri; /* the target as a rewrite made it; .n 0: not rewritten */
	struct text remote_addr, server_addr, server_name;
	uint16_t remote_port, server_port;
	int64_t content_length; /* of the body to come; -1: none, 0: one of no bytes */
	const struct proxy_field *headers; /* the client's; the codec drops those that may not pass (cgi_env.h) */
	size_t nheaders;
	bool safe;              /* may be repeated on another socket: GET, HEAD, OPTIONS without body */
};

struct proxy_reply {
	int status;             /* 200 when the application named none, 302 with a Location */
	int64_t content_length; /* -1: not told */
	const struct proxy_field *headers; /* end-to-end ones only; control headers are taken out, allowed or not */
	size_t nheaders;
	struct text send_file;  /* X-Sendfile, X-LIGHTTPD-send-file: as written; .p NULL: none */
	struct text send_uri;   /* X-Accel-Redirect */
};

#endif
