/* accel-load/target.h -- where requests go: a URL's host becomes an address, before the run. */
#ifndef ACCEL_LOAD_TARGET_H
#define ACCEL_LOAD_TARGET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "accel-load/load.h"
#include "base/text.h"

/* A URL in its parts, slices of its text. */
struct url_parts {
	struct text authority; /* "host:port" as written; .n 0: a path only */
	struct text host;      /* without brackets */
	uint16_t port;
	bool tls;
	struct text path; /* with its query, without a fragment; "/" if there is none */
};

/* http[s]://HOST[:PORT][/PATH] or /PATH.  NULL, or what was expected, a constant text. */
const char *url_split(struct text url, struct url_parts *);

struct target {
	struct target *next;
	char *authority;
	char *fields; /* of HTTP: what follows the path in each request to it */
	size_t fields_len;
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	};
	socklen_t len;
	unsigned nr;    /* in the list: 0 is the first one that was added */
	char *host;     /* https: without port and brackets; NULL: plain */
	bool local;     /* an address of this host, or a unix socket */
	char name[128]; /* "192.0.2.1:80", for messages */
};

/* The target of these parts in the list, added if it is new; may wait for a name server.  0 or the
 * exit status after a message. */
int target_get(struct target **list, const struct load_conf *, const struct url_parts *,
    const struct target **);
/* As target_get(), for --fastcgi: unix:PATH or HOST:PORT. */
int target_get_address(struct target **list, const struct load_conf *, const char *address,
    const struct target **);
void target_list_free(struct target **list);

#endif
