/* accel-pool/urls.h -- URLs to print: in their order, sorted or shuffled, each once or as often as
 * they come.
 *
 * Without sorting and shuffling a URL is written when it is added, and only --unique keeps it in
 * memory.  Otherwise a URL takes its length and 10 bytes until the end.
 *
 * Thread   the caller's lock.
 */
#ifndef ACCEL_POOL_URLS_H
#define ACCEL_POOL_URLS_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/text.h"

/* A longer URL is counted and left out: accel-load takes lines up to this length. */
#define LIST_URL_MAX 8192u

enum urls_order { URLS_AS_THEY_COME, URLS_SORTED, URLS_SHUFFLED };

struct urls_conf {
	enum urls_order order;
	const char *base; /* "http://host"; NULL: paths only */
	bool unique;
	uint64_t seed, limit; /* of the shuffle; 0: no limit */
	FILE *out;
};

struct urls {
	struct urls_conf conf;
	uint64_t printed, too_long;
	GHashTable *seen;     /* NULL: repetitions count */
	GPtrArray *kept;      /* NULL: printed at once */
	GStringChunk *memory; /* of seen and kept */
};

void urls_init(struct urls *, const struct urls_conf *);
void urls_free(struct urls *);
/* A path with its query, already encoded; a NUL after it.  False: the limit is reached. */
bool urls_add(struct urls *, const char *url, size_t n);
/* Prints what is kept.  0 or -errno of the output. */
int urls_end(struct urls *);

#endif
