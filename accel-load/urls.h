/* accel-load/urls.h -- the list of URLs, and which one is next.
 *
 * Thread   built before the threads start; then only url.size changes, atomically.
 */
#ifndef ACCEL_LOAD_URLS_H
#define ACCEL_LOAD_URLS_H

#include <stdio.h>
#include "accel-load/load.h"
#include "accel-load/target.h"

#define URL_MAX 8192u /* of a line */

struct url {
	const struct target *target;
	char *path; /* with its query, as it is sent */
	uint32_t path_len;
	uint16_t status; /* the expected one; 0: as for all */
	uint64_t size;   /* of the file, once an answer has shown it; 0: unknown.  Atomic. */
};

struct urls {
	struct url *url;
	size_t n, room;
	struct target *targets;
};

/* The URLs of the command line and of --urls.  0, or the exit status after a message. */
int urls_open(struct urls *, const struct load_conf *);
/* Those of --beside; their targets are those of list.  Likewise. */
int urls_open_beside(struct urls *, const struct load_conf *, struct urls *list);
/* Appends the lines of f; base: where paths go, NULL: nowhere yet.  Likewise. */
int urls_read(struct urls *, const struct load_conf *, FILE *f, const struct target *base);
void urls_close(struct urls *);

/* Which URL is next, and numbers that depend on the seed only.  One for each thread: thread i of n
 * takes the URLs i, i + n, i + 2 n ... of the list. */
struct turn {
	uint64_t random;
	size_t next, step;
};

void turn_begin(struct turn *, const struct load_conf *, unsigned thread);
uint32_t turn_next(struct turn *, const struct load_conf *, size_t urls);
uint64_t turn_random(struct turn *);

#endif
