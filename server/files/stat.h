/* server/files/stat.h -- "open this path": the open-file cache of one worker.
 *
 *   stat_lookup(path) --+-- known, checked less than a second ago ----> entry, at once
 *                       +-- on its way already: join ---------+
 *                       +-- stale: re-check (urgent lane) ----+------> wait->done(entry), later
 *                       +-- unknown: IO_OPEN, with bytes -----+
 *
 * An answer never rests on a check that began more than STAT_FRESH_MS ago.  A name in demand is checked again when
 * half of that has passed, while it is still being served, so requests for hot files do not wait.  The exception: that
 * check has not come back in time, or failed.  Then nobody can know better, and what is in memory is
 * served on until a check says something else; a disk that hangs does not take its hot files with it.  A file that was not
 * in demand waits for its check first, for STAT_PATIENCE_MS at most.
 * Contents read so soon after a change that the file's times might not tell of another one (io/version.h) are not believed
 * beyond the next check, which reads them again; what was read before serves until that is done.
 * Absences and refusals are entries too (err set), kept in a list of their own so that a storm of
 * unknown names cannot push files out.
 *
 * Bounds   entries, open descriptors and bytes of file contents; the longest unused of those that use up the bound
 *          go first.  What clients still hold of an evicted entry is not counted.
 * Owner    a returned entry carries a reference: stat_put() it.  It never changes while you hold it.
 * Thread   the worker's.
 */
#ifndef SERVER_FILES_STAT_H
#define SERVER_FILES_STAT_H

#include "base/counter.h"
#include "base/list.h"
#include "base/text.h"
#include "io/file.h"
#include "io/io.h"

#define STAT_FRESH_MS 1000u
#define STAT_RECHECK_MS 500u
#define STAT_SETTLE_MS 50u /* the same for a file that settles within ticks of the kernel */
#define STAT_PATIENCE_MS 1000u

struct stat_cache;
struct stat_entry;

/* A place that paths are looked up beneath; entries of different scopes never meet.  Counted by those who look
 * things up in it and by its entries: an entry may outlive the site it was made for. */
struct stat_scope {
	uint32_t id;      /* unique in the worker */
	int root;         /* descriptor of the directory */
	uint64_t resolve; /* IO_BENEATH, IO_NO_SYMLINKS */
	bool watched;     /* files that change while they are sent are noticed */
	bool by_date;     /* clients tell contents apart by whole seconds, having no tags: a file settles as late as that */
	/* Writes what every 200 for this file starts with to head[STAT_HEAD_MAX]; returns its length. */
	size_t (*prepare)(const struct stat_entry *, char *head);
	void (*free)(struct stat_scope *); /* nobody counts on it any more; NULL: it is not freed */
	uint32_t refs;
};

#define STAT_HEAD_MAX 1024

struct stat_entry {
	int err;              /* 0, or -errno: no such answerable file */
	bool is_dir;
	struct io_file *file; /* regular files whose bytes are not below */
	const char *bytes;    /* all of it, size bytes; NULL: not kept (or empty file) */
	uint64_t size;
	struct statx stx;
	uint64_t unsettled;   /* 0: other contents will have other times.  Else when they were looked at, wall clock ns */
	struct text head;     /* prepared; .n 0 for directories and errors */
	struct io_stamps open; /* of the op that opened it */
	/* the cache's */
	struct text path;
	struct stat_scope *scope;
	struct stat_cache *cache;
	struct stat_entry *chain;
	struct stat_entry *replaces; /* being loaded to take the place of this one, which serves until then; counted */
	uint64_t hash, checked_ns;
	uint64_t looked_ns; /* round of the loop in which its file was looked at last */
	uint32_t recheck_ms; /* it is checked again when the last check is so old */
	uint64_t seen_ns, seen_wall; /* since when its times are as they are, as far as we saw */
	uint64_t asked_wall; /* the clock that times files, before it was opened */
	uint32_t refs, client;
	uint8_t stage; /* loading, ready */
	bool hashed, rechecking;
	bool trusted;   /* served while the check lasts, since that began in time */
	bool data;      /* the bytes are wanted */
	bool in_demand; /* asked for since the check began */
	uint8_t tries;
	struct list lru, waiters, busy;
	struct io_op op;
	struct io_first first; /* what its open brought along */
	struct statx again; /* result of a re-check */
	char *memory;       /* head and bytes are in here; the path follows the struct */
};

struct stat_wait {
	struct list link;
	struct stat_entry *entry; /* the cache's: waits for this one; NULL: for none */
	bool data;       /* the bytes will be wanted too, not only what is known about them */
	uint32_t client; /* whose turn it takes in the queues, see io_op */
	void (*done)(struct stat_wait *, struct stat_entry *); /* the reference is yours; not called after stat_cancel() */
};

struct stat_limits {
	uint32_t entries, fds;
	uint64_t bytes, max_file; /* contents in all; of one file */
	bool cache;               /* false: server.stat-cache-engine = "disable" */
	uint32_t open_ms;         /* deadline of a look-up */
	uint32_t idle_ms;         /* an open file that nobody asked for is closed then; 0: never */
};

struct stat_cache *stat_cache_new(struct io *, struct counters *, const struct stat_limits *);
void stat_cache_free(struct stat_cache *); /* after all entries were put; cancels what is on its way and runs the loop until it is back */
void stat_cache_shrink(struct stat_cache *); /* for the end of a generation: from now on nothing is kept that nobody holds */
unsigned stat_cache_entries(const struct stat_cache *);

/* An entry at once, or NULL: then w->done() brings it later.  w NULL: only what is known now, starts nothing.
 * path: clean, NUL behind it is not needed, without the leading slash. */
struct stat_entry *stat_lookup(struct stat_cache *, struct stat_scope *, struct text path, struct stat_wait *w);
void stat_cancel(struct stat_wait *); /* also when it waits for nothing; a look-up nobody waits for leaves the queue */
void stat_put(struct stat_entry *);
struct stat_entry *stat_ref(struct stat_entry *);
struct stat_scope *stat_scope_ref(struct stat_scope *);
void stat_scope_put(struct stat_scope *); /* NULL is fine */

#endif
