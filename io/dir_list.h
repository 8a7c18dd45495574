/* io/dir_list.h -- the names in a directory with their facts, read by threads: an IO_WORK.
 *
 *   open beneath the root --> names, the first `most` kept --> facts of these --> made()
 *   `------ in steps of STEP_NS: between them other jobs of the device have their turn ----'
 *
 * A slow disk costs facts, not the listing: after FACTS_NS the rest of the entries have none.  A
 * mount point below the directory is not touched.
 *
 * Owner    the work, see io.h.  gone: set it when nobody waits any more; the next step is the last.
 * Errors   err: -errno of opening the directory.
 */
#ifndef IO_DIR_LIST_H
#define IO_DIR_LIST_H

#include "base/buf.h"
#include "io/io.h"

#define DIR_TEXT_MAX (64u << 10) /* bytes of a text; the rest of it is cut */
#define DIR_TEXTS    2

struct dir_entry {
	char *name;
	size_t n;
	bool is_dir, known; /* known: size and mtime are */
	uint64_t size;
	int64_t mtime;
};

struct dir_list {
	struct io_work work;
	/* Set before it is submitted. */
	int root;              /* its own descriptor */
	char *path;            /* below the root, or ""; its own */
	uint64_t resolve;      /* IO_BENEATH, IO_NO_SYMLINKS, IO_LINKS */
	size_t most;           /* entries */
	bool unsorted;         /* keeps the first entries that come */
	char *text[DIR_TEXTS]; /* names of files whose bytes are wanted, or NULL; its own */
	/* In a thread.  True: the entry is wanted. */
	bool (*wants)(const struct dir_list *, struct text name);
	void (*made)(struct dir_list *);    /* err is 0 */
	void (*release)(struct dir_list *); /* frees what the owner added, and the memory */
	/* The result. */
	int err;
	struct statx stx; /* of the directory */
	struct dir_entry *entries;
	size_t n, left_out, unread; /* unread: entries without facts */
	struct buf bytes[DIR_TEXTS];
	/* of dir_list.c */
	bool gone; /* atomic */
	size_t cap, looked;
	void *dir; /* DIR */
	bool crossed, links;
	uint64_t facts_until;
	enum { DIR_OPEN, DIR_NAMES, DIR_FACTS } step;
};

/* The fields above are zero.  False: no descriptor or no memory. */
bool dir_list_init(struct dir_list *, int root, struct text path, uint64_t resolve);

#endif
