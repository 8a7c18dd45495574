/* accel-load/urls.h -- the list of URLs, and which one is next.
 *
 * Thread   built before the threads start; then only url.size changes, atomically.
 */
#ifndef ACCEL_LOAD_URLS_H
#define ACCEL_LOAD_URLS_H

#include "accel-load/target.h"

struct url {
	const struct target *target;
	char *path;    /* with its query, as it is sent */
	char *request; /* its bytes; for a range without the empty line */
	uint32_t request_len;
	uint64_t size; /* of the file, once an answer has told it; 0: unknown.  Atomic. */
};

struct urls {
	struct url *url;
	size_t n, room;
	struct target *targets;
};

#endif
