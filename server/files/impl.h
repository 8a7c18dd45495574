/* server/files/impl.h -- between the stat*.c files; nobody else includes it.
 *
 *   stat.c        look-ups and their answers
 *   load.c   an unknown name: open, then the bytes of a small file
 *   check.c  a name in demand: still the same file?
 *   idle.c   open files that nobody asks for
 *   table.c  entries, the table they are found in, and its bounds
 */
#ifndef SERVER_FILES_IMPL_H
#define SERVER_FILES_IMPL_H

#include "server/files/stat.h"

enum stage { ST_LOADING, ST_READY };

struct stat_cache {
	struct io *io;
	struct counters *counters;
	struct stat_limits lim;
	uint64_t fresh_ns;
	struct stat_entry **table;
	size_t mask;
	struct list open, kept, absent; /* with a descriptor, without, no file at all; longest unused first */
	struct list busy;               /* entries with an op in flight */
	unsigned nfiles, nabsent, nfds; /* of what is in the table: nfiles counts open and kept */
	uint64_t nbytes;
	struct io_op idle;              /* timer; in flight while idle_timed */
	bool idle_timed;
	struct stat_entry *no_memory;   /* the answer when none can be made */
};

/* table.c */
uint64_t scope_hash(const struct stat_scope *, struct text path);
struct stat_entry *entry_find(struct stat_cache *, const struct stat_scope *, struct text path, uint64_t hash);
struct stat_entry *entry_new(struct stat_cache *, struct stat_scope *, struct text path, uint64_t hash);
void entry_hash(struct stat_entry *);   /* into the table, with the reference of the caller */
void entry_detach(struct stat_entry *); /* out of it: nobody finds it any more; those who hold it go on */
void entry_touch(struct stat_entry *);  /* used, or checked, now: the last to be evicted */
void cache_keep_bounds(struct stat_cache *);
void cache_shed_descriptors(struct stat_cache *); /* descriptors are short: lets go of half of ours */

/* stat.c */
bool err_is_shortage(int err); /* of descriptors */
void entry_add_waiter(struct stat_entry *, struct stat_wait *);
void entry_move_waiters(struct stat_entry *to, struct stat_entry *from);
void entry_tell(struct stat_entry *, struct stat_entry *answer); /* all waiters: a reference to the answer for each */
void entry_ready(struct stat_entry *, int err);                  /* loaded, or not: tells its waiters */

/* load.c */
void entry_load(struct stat_entry *);
void entry_submit(struct stat_entry *, uint32_t deadline_ms); /* its op, with a reference */
struct stat_entry *entry_of_op(struct io_op *);    /* it is back; the caller puts the reference of the op last */
bool entry_memory(struct stat_entry *, size_t bytes); /* head, and room for bytes; false: no memory */
void entry_keep(struct stat_entry *, const char *bytes);
void entry_hold(struct stat_entry *, struct io_file *);

/* idle.c */
void cache_time_idle(struct stat_cache *, uint32_t ms); /* looks for idle files then, if it does not already */
void cache_untime_idle(struct stat_cache *);

/* check.c */
bool entry_same_file(const struct statx *, const struct statx *); /* the same inode with the same size and times */
bool entry_take_over(struct stat_entry *); /* of the one it replaces, now that it is loaded; false: that one stays */
void entry_recheck(struct stat_entry *, bool trusted);
uint64_t entry_age(const struct stat_entry *); /* ns since its check began */

#endif
