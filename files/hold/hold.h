/* files/hold/hold.h -- "open this path": the open-file cache of one worker.
 *
 *   file_lookup(path) --+-- known, checked less than a second ago ----> entry, at once
 *                       +-- on its way already: join ---------+
 *                       +-- stale: re-check (urgent lane) ----+------> wait->done(entry), later
 *                       +-- unknown: IO_OPEN, with bytes -----+
 *
 * An answer never rests on a check that began more than FILE_FRESH_MS ago.  A name in demand is
 * checked again after half of that time, while it is still served, so requests for hot files do not
 * wait.  If that check does not come back in time, or fails, the entry serves on until a check
 * succeeds: a disk that hangs does not take its hot files with it.  A file that was not in demand
 * is checked before it is served.  That takes FILE_PATIENCE_MS at most.
 *
 * Contents that were read soon after a change may change again without new times
 * (io/start/version.h). The next check reads them again, and the old contents serve until then.
 *
 * Absences and refusals are entries too (err set).  They have a list of their own, so that a storm
 * of unknown names cannot push files out.
 *
 * Bounds   entries, open descriptors and bytes of file contents.  The least recently checked of the
 *          kind that exceeds its bound goes first.  An evicted entry that a client holds is not
 *          counted.
 * Owner    a returned entry carries a reference: file_entry_put() it.  An entry that you hold does
 *          not change.
 * Thread   the worker's.
 */
#ifndef FILES_HOLD_HOLD_H
#define FILES_HOLD_HOLD_H

#include "files/lookup.h"
#include "io/file.h"
#include "io/io.h"

#define FILE_FRESH_MS    1000u
#define FILE_RECHECK_MS  500u
#define FILE_SETTLE_MS   50u /* likewise for a file that settles within ticks of the kernel */
#define FILE_PATIENCE_MS 1000u

struct hold_counters;
struct file_cache;
struct file_entry;

/* A directory that paths are looked up below, and how.  Its entries and its users count it, because
 * an entry may outlive the site it was made for. */
struct file_scope {
	uint32_t id;      /* unique in the worker */
	int root;         /* descriptor of the directory */
	uint64_t resolve; /* flags of io/io.h */
	bool watched;     /* files that change while they are sent are noticed */
	/* No ETag is sent, so clients compare Last-Modified, in whole seconds.  A file settles only
	 * after that second. */
	bool by_date;
	/* Writes the start of every 200 for this file to head[FILE_HEAD_MAX].  Its length. */
	size_t (*prepare)(const struct file_entry *, char *head);
	void (*free)(struct file_scope *); /* at the last reference; NULL: it is not freed */
	uint32_t refs;
};

#define FILE_HEAD_MAX 1024

/* What a user of the cache adds to an entry. */
struct file_more {
	void (*free)(struct file_more *); /* with the entry */
};

struct file_entry {
	struct lookup lk;
	int err; /* 0, or -errno: there is no such file, or it cannot be sent */
	bool is_dir;
	struct io_file *file; /* of a regular file, unless its bytes are below */
	const char *bytes;    /* the whole file, size bytes; NULL: not kept (or empty file) */
	uint64_t size;
	struct statx stx;
	/* With IO_REAL_NAME: the path of the file, if a symbolic link led to it; NULL: none did. */
	char *real;
	/* 0: other contents have other times.  Otherwise the wall clock time of the check, ns. */
	uint64_t unsettled;
	struct text head;      /* prepared; .n 0 for directories and errors */
	struct io_stamps open; /* of the op that opened the file */
	/* of the cache */
	struct file_cache *cache;
	/* This entry is being loaded to replace that one, which serves until then; counted. */
	struct file_entry *replaces;
	uint64_t looked_ns;          /* round of the loop in which its file was looked at last */
	uint32_t recheck_ms;         /* age of the last check at which the next begins */
	uint64_t seen_ns, seen_wall; /* when its times were first seen as they are */
	uint64_t asked_wall;         /* the clock that times files, before it was opened */
	bool ready;                  /* loaded, or failed */
	bool rechecking;
	bool trusted;   /* the check began in time: the entry serves while the check lasts */
	bool data;      /* the bytes are wanted */
	bool in_demand; /* asked for since the check began */
	uint8_t tries;
	struct list busy;
	struct io_op op;
	struct io_first first;  /* the facts and bytes that opening it brought */
	struct statx again;     /* result of a re-check */
	char *memory;           /* holds head and bytes */
	struct file_more *more; /* NULL: none */
};

struct file_limits {
	uint32_t entries, fds;
	uint64_t bytes, max_file; /* contents of all files; of one file */
	bool cache;               /* false: server.stat-cache-engine = "disable" */
	uint32_t open_ms;         /* deadline of a look-up */
	uint32_t idle_ms; /* without a request for this long an open file is closed; 0: never */
	/* ... and a name without a descriptor is forgotten, with its bytes; 0: never */
	uint32_t forget_ms;
};

struct file_cache *file_cache_new(struct io *, struct hold_counters *, const struct file_limits *);
/* After all entries were put.  Cancels all ops and runs the loop until they are back. */
void file_cache_free(struct file_cache *);
/* For the end of a generation: keeps no entry from now on. */
void file_cache_shrink(struct file_cache *);
unsigned file_cache_entries(const struct file_cache *);
uint64_t file_cache_memory(const struct file_cache *); /* bytes, nearly */

/* An entry at once, or NULL: then w->done() brings it later.  w NULL: answers only from memory.
 * path: clean, without the leading slash; needs no NUL after it. */
struct file_entry *file_lookup(struct file_cache *, struct file_scope *, struct text path,
    struct lookup_wait *w);
/* Removes the wait.  May be called if w waits for nothing.  A look-up without waiters leaves the
 * queue. */
void file_lookup_cancel(struct lookup_wait *);
struct file_scope *file_scope_ref(struct file_scope *);
void file_scope_put(struct file_scope *); /* NULL is allowed */

static inline struct file_entry *
file_entry_of(struct lookup *l)
{
	return (container_of(l, struct file_entry, lk));
}

static inline void
file_entry_put(struct file_entry *e) /* NULL is allowed */
{
	if (e != NULL)
		lookup_put(&e->lk);
}

static inline struct file_entry *
file_entry_ref(struct file_entry *e)
{
	return (file_entry_of(lookup_ref(&e->lk)));
}

#endif
