/* accel-load/target.h -- where requests go: a URL's host becomes an address, before the run. */
#ifndef ACCEL_LOAD_TARGET_H
#define ACCEL_LOAD_TARGET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "base/text.h"

/* A URL in its parts, slices of its text. */
struct url_parts {
	struct text authority; /* "host:port" as written; empty: a path only */
	struct text host;      /* without brackets */
	uint16_t port;
	struct text path; /* with its query; "/" if there is none */
};

/* http://HOST[:PORT][/PATH] or /PATH.  False: *fault, a constant text "expected ...". */
bool url_split(struct text url, struct url_parts *, const char **fault);

struct target {
	struct target *next;
	char *authority; /* for the field Host */
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	};
	socklen_t len;
	bool local; /* an address of this host */
	char *name; /* "192.0.2.1:80", for messages */
};

#endif
