/* wire/codec/message.h -- a request to an application and the head of its reply, independent of a
 * protocol.
 *
 * Owner    the code that fills it in; texts are slices of its memory.
 * Units    lengths are bytes; a text with .n 0 or .p NULL is absent, as its comment says.
 */
#ifndef WIRE_MESSAGE_H
#define WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"
#include "wire/codec/control.h"

struct proxy_field {
	struct text name, value;
	bool set; /* made by the configuration: a control header of this name may pass */
	/* The value is the configuration's alone, no byte comes from the client.  Such a field
	 * passes whatever its name is, and replaces what this server would say of the client. */
	bool ours;
};

/* What an application gets about the client (client_fields.h); values of proxy-core.forwarded. */
#define FORWARD_X        1u /* X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, X-Host */
#define FORWARD_STANDARD 2u /* Forwarded (RFC 7239) */

#define VARIABLES_MAX  128u
#define LOG_FIELDS_MAX 4u
#define SETENV_MAX     40u /* of setenv.add-environment, and of setenv.set-environment */

/* A request; codecs turn it into CGI variables or headers. */
struct proxy_request {
	const char *id;  /* "c17.3", for log lines */
	uint32_t client; /* key of its address, for the fair queue; 0: unknown */
	bool nobody;     /* a proxy that does not name its clients: it may have many */
	/* target as the client sent it, without "." and ".."; path decoded and clean */
	struct text method, target, path, query;
	struct text protocol; /* "HTTP/1.1" */
	struct text host, scheme;
	struct text docroot, script_filename, path_info;
	bool info_in_filename; /* SCRIPT_FILENAME keeps PATH_INFO at its end */
	/* A look-up or a rule has found the script in the path; path_info may be empty. */
	bool path_is_split;
	/* The target after a rewrite, or with the name of an index file; .n 0: as sent. */
	struct text redirect_uri;
	unsigned redirect_status; /* the error that it answers; 0: none */
	struct text remote_addr, server_addr, server_name;
	uint16_t remote_port, server_port;
	/* The other end of the connection, which may be a proxy; remote_addr is the client's. */
	struct text peer_addr; /* .n 0: the same as remote_addr */
	bool peer_trusted;     /* it is believed about its client, in these fields: */
	const struct text *claims;
	size_t nclaims;
	unsigned forward; /* FORWARD_* */
	/* Take the place of the client's X-Request-ID, and of its traceparent and tracestate; .n 0:
	 * what the client sent may pass. */
	struct text request_id, traceparent;
	int64_t content_length; /* of the following body; -1: no body, 0: an empty body */
	/* A body of unknown length follows, and content_length is -1.  Only for a codec with
	 * unsized_body. */
	bool unsized;
	/* Not a request: asks whether the application lives.  END without a HEAD is the answer. */
	bool ping;
	struct text secret; /* proxy-core.secret, for a codec that sends one; .n 0: none */
	/* Protocol that the client may switch to ("websocket"); .n 0: none.  The codec asks for it
	 * with Connection and Upgrade if it can; otherwise the application never hears of it. */
	struct text upgrade;
	/* Of the client; the codec drops those that may not pass (cgi_env.h). */
	const struct proxy_field *headers;
	size_t nheaders;
	/* Further CGI variables, of an authorizer, of the user and of the configuration; their
	 * names are plain and differ. */
	const struct proxy_field *variables;
	size_t nvariables; /* at most VARIABLES_MAX */
	/* What is known of the client's TLS, by the names of mod_openssl. */
	const struct proxy_field *tls;
	size_t ntls;
	/* Asks only whether the request may go on: without its body, and without the variables that
	 * the FastCGI role AUTHORIZER does not get. */
	bool authorizer;
	/* May be repeated on another socket: GET, HEAD, OPTIONS without body. */
	bool safe;
	/* May be executed twice: GET, HEAD, OPTIONS, TRACE, PUT, DELETE (RFC 9110, 9.2.2). */
	bool idempotent;
};

struct proxy_reply {
	bool status_given;      /* the application sends one */
	int status;             /* if the application sends none: 200, or 302 with a Location */
	int64_t content_length; /* -1: unknown */
	bool has_body;          /* false: HEAD, 204 or 304 */
	/* Status 101: the protocol that the application switched to.  Bytes after the head do not
	 * pass through the codec.  The codec refuses a 101 that the request did not allow. */
	struct text upgrade;
	/* End-to-end fields only; control headers are removed, even if they are not allowed. */
	const struct proxy_field *headers;
	size_t nheaders;
	/* Values of control headers, unchanged; the first of each; .p NULL: none. */
	struct text control[CONTROLS];
	/* name of a control header without a row in controls.def; .p NULL: none */
	struct text unknown_control;
	/* X-LIGHTTPD-* without a row: for the access log, %{X-LIGHTTPD-SID}o.  If there are more
	 * than LOG_FIELDS_MAX, the first ones. */
	struct proxy_field log_fields[LOG_FIELDS_MAX];
	size_t nlog_fields;
};

#endif
