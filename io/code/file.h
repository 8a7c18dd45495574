/* io/code/file.h -- a file in a content coding, made by a thread: an IO_WORK.
 *
 *   cached below cache->dir? --yes--> descriptor, or bytes if they are few
 *        `--no--> read, compress --> bytes in memory (keep at most), or a file of the cache
 *                                    `--> also a file of the cache, for the next start
 *
 * The name in the cache has the identity of the file (device, inode, size, times) and the settings
 * of the coder, so another version of the file never finds it.  A file of the cache gets its name
 * when it is complete.  If the cache cannot be used (full, broken), the bytes in memory are the
 * result.
 *
 * Bounds   cache->max bytes; above them the files that were used longest ago are removed.
 */
#ifndef IO_CODE_FILE_H
#define IO_CODE_FILE_H

#include <pthread.h>
#include "io/code/coder.h"
#include "io/io.h"

#define CODE_NAME_MAX 160u

struct code_cache {
	uint32_t refs; /* atomic: threads that compress outlive a configuration */
	void (*free)(struct code_cache *);
	int dir;
	uint64_t max;   /* bytes */
	uint64_t bytes; /* atomic: of its files */
	bool counted;   /* the files of earlier processes are in bytes */
	pthread_mutex_t lock;
};
/* With one reference; free() closes dir when the last one is put.  -errno: not private to the
 * server's user (-EPERM), or cannot be used; then dir stays the caller's. */
int code_cache_init(struct code_cache *, int dir, uint64_t max, void (*free)(struct code_cache *));
struct code_cache *code_cache_ref(struct code_cache *); /* NULL is allowed */
void code_cache_put(struct code_cache *);               /* any thread; likewise */

struct code_file {
	struct io_work work;
	struct coder_conf conf;
	/* The source: a descriptor of the file, or a copy of its bytes (from malloc, taken). */
	int fd;
	char *bytes;
	struct statx stx; /* its version */
	uint64_t keep;    /* a result of at most this many bytes is kept in memory */
	/* Counted.  NULL: none, and a result longer than keep is given up. */
	struct code_cache *cache;
	/* The result. */
	int err;        /* 0; -EFBIG: not shorter than the file, or too long; another -errno */
	struct buf out; /* the bytes, if fd_out is -1 */
	int fd_out;     /* the caller may take it */
	uint64_t size;  /* of the result */
	bool was_cached;
	bool gone; /* atomic: nobody waits any more */
};

struct code_file *code_file_new(void); /* NULL: no memory */

#endif
