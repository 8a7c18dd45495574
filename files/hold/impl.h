/* files/hold/impl.h -- shared by the files of files/hold/; no other file includes it.
 *
 *   hold.c   look-ups and their answers
 *   load.c   an unknown name: open, then the bytes of a small file
 *   check.c  a name in demand: still the same file?
 *   room.c   which entries are dropped
 *   gone.c   which of them are asked for again
 */
#ifndef FILES_HOLD_IMPL_H
#define FILES_HOLD_IMPL_H

#include "files/hold/counters.h"
#include "files/hold/hold.h"

/* Entries of one kind.  While there are some, a timer waits for those without requests. */
struct file_list {
	struct lookup_list l;
	struct file_cache *cache;
	struct io_op timer; /* in flight while timed */
	bool timed;
	uint32_t idle_ms; /* 0: none is dropped because it had no requests */
};

struct gone_name {
	uint32_t hash; /* its upper half */
	uint32_t at_s; /* 0: none */
};

struct gone_names {
	struct gone_name *slot; /* NULL: no name went yet */
	size_t mask;
};

struct file_cache {
	struct lookup_table table;
	struct io *io;
	struct hold_counters *counters;
	struct file_limits lim;
	bool shrunk; /* it keeps no more entries, which is not an eviction */
	uint64_t fresh_ns;
	/* with a descriptor; without; absent */
	struct file_list open, kept, absent;
	struct gone_names gone;
	struct list busy;             /* entries with an op in flight */
	struct file_entry *no_memory; /* the answer if there is no memory for one */
};

/* hold.c */
struct file_entry *entry_new(struct file_cache *, struct file_scope *, struct text path,
    uint64_t hash);
bool err_is_shortage(int err); /* of descriptors */
/* The entry is loaded, or failed: answers its waiters. */
void entry_ready(struct file_entry *, int err);

/* load.c */
void entry_load(struct file_entry *);
void entry_submit(struct file_entry *, uint32_t deadline_ms); /* its op, with a reference */
/* The op is back.  The caller puts the reference of the op at its end. */
struct file_entry *entry_of_op(struct io_op *);

/* check.c */
/* true: the same inode with the same size and times */
bool entry_same_file(const struct statx *, const struct statx *);
/* Takes the place of the entry it replaces; false: that one stays. */
bool entry_take_over(struct file_entry *);
void entry_recheck(struct file_entry *, bool trusted);

/* room.c */
void entry_touch(struct file_entry *); /* Checked now: moves it to the end of its list. */
void cache_keep_bounds(struct file_cache *);
/* descriptors are short: closes half of the cached ones */
void cache_shed_descriptors(struct file_cache *);
void cache_lists_init(struct file_cache *);
/* Cancels the timers; true: one has not come back yet. */
bool cache_lists_stop(struct file_cache *);

/* gone.c */
/* Notes a name that is dropped to make room. */
void gone_note(struct file_cache *, const struct lookup *);
/* true: this name was dropped lately.  It is not asked for again until it is dropped again. */
bool gone_take(struct file_cache *, uint64_t hash);
void gone_end(struct file_cache *);

#endif
