/* accel-pool/each.h -- does something with each file that a pool has, by several threads.
 *
 *	specs --> pieces (files of one directory, about 4 MB) --> threads: file() for each file
 *	          this thread: progress, signals
 *
 * Directories are opened from the root down, one name at a time and without links, so no file
 * outside of the pool is reached.  The first error stops all threads.  A signal ends the program
 * at once: a thread may hang.
 */
#ifndef ACCEL_POOL_EACH_H
#define ACCEL_POOL_EACH_H

#include <pthread.h>

#include "accel-pool/marker.h"
#include "walk/watch.h"

#define EACH_BUFFER (256 * 1024) /* fits in the cache of a processor; larger writes gain nothing */

struct each;

struct each_worker {
	struct each *each;
	struct walk_counters counters;
	unsigned char *buf; /* EACH_BUFFER bytes */
	/* internal: */
	pthread_t thread;
	int dir_fd; /* of spec and dir; -1: none */
	const struct spec *spec;
	uint32_t dir;
};

struct each_file {
	const struct spec *spec;
	struct spec_place at;
	int dir_fd;
	const char *name; /* in the directory */
	const char *path; /* below the root */
	uint64_t size;    /* as the spec says */
};

struct each {
	int root;
	const struct marker *pool;
	unsigned threads;
	bool make_dirs; /* false: the files of a missing directory are skipped */
	bool quiet, json, verbose;
	/* 0, or -errno, which stops all threads */
	int (*file)(struct each_worker *, const struct each_file *);
	/* after each_run(): */
	struct walk_progress result;
	char failed[SPEC_TEXT_MAX]; /* the path of the first error */
	/* internal: */
	struct watch watch;
	struct each_worker *workers;
	unsigned running;     /* atomic: threads at work */
	pthread_mutex_t lock; /* of the fields below */
	unsigned spec;
	uint32_t dir, next;
	int err;
};

/* A regular file that begins as accel-pool would have made it; an empty one does. */
bool each_is_ours(const struct each_file *);
/* 0 or the -errno of the first error. */
int each_run(struct each *);
/* The result, on standard output: one line for people, or JSON. */
void each_summary(struct each *, bool interrupted);

#endif
