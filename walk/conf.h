/* walk/conf.h -- which files to visit, and what to do with each: the parsed command line of
 * accel-warm and of accel-pool. */
#ifndef WALK_CONF_H
#define WALK_CONF_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "files/warm/warm.h"
#include "walk/shard.h"

struct walk_batch;
struct walk_progress;
struct walker;

struct walk_conf {
	/* What many threads do with each regular file; 0 or -errno.  NULL: it becomes warm. */
	int (*visit)(struct walker *, const struct walk_batch *, const char *name, bool follow);
	/* Writes the result, as .json says; NULL: walk_progress_summary() or walk_progress_json().
	 */
	void (*summary)(const struct walk_conf *, const struct walk_progress *, bool interrupted,
	    GString *);
	void *own; /* data of visit() and summary() */
	enum warm_how how;
	uint64_t before;                   /* WARM_READ: bytes of each file; WARM_ALL */
	unsigned threads;                  /* threads at work, besides those that hang */
	uint64_t files_per_s, bytes_per_s; /* 0: no limit */
	bool follow, one_fs;
	bool beneath; /* links that lead out of a directory are not followed, -EXDEV */
	const char *const *include, *const *exclude; /* see filter.h; NULL: none */
	struct walk_shard_conf share;
	const struct walk_shard *shard; /* of .share; NULL: all files */
	const char *const *roots;       /* trees; NULL: a list is given */
	const char *list;               /* file with paths, "-" for standard input; NULL: none */
	/* its paths are relative to this; NULL: unchanged */
	const char *below;
	bool nul, urls;    /* paths end with NUL bytes; they are URLs */
	const char *state; /* state file; NULL: none */
	bool json, quiet, verbose;
};

#endif
