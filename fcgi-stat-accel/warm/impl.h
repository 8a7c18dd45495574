/* fcgi-stat-accel/warm/impl.h -- what the files of warm share.
 *
 *   warm.c         entries: what is known, who waits for it, who has waited too long
 *   lookup.c  what an entry needs: a file and its siblings, or the index file of a directory
 *   file.c    one file: in memory already, or opened by a thread and read
 *   warm_roots.c   names, and the directories they may lie in
 *   behind.c  the rest of long files, after the answer
 */
#ifndef FCGI_STAT_ACCEL_WARM_IMPL_H
#define FCGI_STAT_ACCEL_WARM_IMPL_H

#include <glib.h>
#include "fcgi-stat-accel/warm/warm.h"
#include "io/file.h"
#include "io/io.h"

/* ---------------------------------------------------------------- warm_roots.c */

struct warm_root {
	char *name, *real;		/* as given, and without symbolic links; no slash at the end */
	int   fd;
	bool  hot;			/* io_hot_root() */
};

struct warm_roots {
	GArray	*v;			/* struct warm_root */
	uint64_t resolve;
};

int  roots_open(struct warm_roots *, const char *const *dirs, const char **bad);
void roots_close(struct warm_roots *);
/* The root number *nr or a later one that path lies below, *tail is the rest of path then; NULL: no more. */
const struct warm_root *roots_next(const struct warm_roots *, const char *path, guint *nr, const char **tail);

/* ---------------------------------------------------------------- behind.c */

struct warm_behind {
	struct io    *io;
	struct stats *stats;
	struct list   turn, flying;	/* struct ahead: wait for their next window; have one on its way */
	guint	      n, nflying;
	struct io_op  pause;
	bool	      paused;
};

void behind_init(struct warm_behind *, struct io *, struct stats *);
void behind_cancel(struct warm_behind *);	/* drops all files; some windows may still be on their way */
bool behind_busy(const struct warm_behind *);
/* Bytes at..end of it, when there is nothing better to do.  Takes the reference. */
void behind_add(struct warm_behind *, struct io_file *, uint64_t at, uint64_t end, uint32_t client);

/* ---------------------------------------------------------------- warm.c */

struct warm {
	const struct warm_conf *conf;
	struct io	  *io;
	struct stats	  *stats;
	struct warm_roots  roots;
	struct warm_behind behind;
	GHashTable	  *entries;	/* struct warm_key -> struct warm_entry */
	struct list	   kept, loading;	/* entries; the oldest answers first */
	size_t		   kept_bytes;
	struct list	   waiting;	/* struct warm_wait, in the order they came */
	struct io_op	   timer;	/* for the first of them */
	bool		   timing;
};

struct warm_key {
	const char *path;
	struct range_set want;
	bool	 leaf;			/* an index file: a directory will not do */
};

struct lookup;				/* lookup.c */

struct warm_entry {
	struct warm_key	  key;
	struct warm	 *warm;
	struct list	  link;		/* of kept or loading */
	struct list	  waiters;
	struct warm_found found;
	uint64_t	  begun_ns, answered_ns;
	uint32_t	  client;
	bool		  held;		/* in use: not to be freed */
	bool		  told;		/* the log was: it is slow */
	bool		  cut;		/* broken off: found is not the truth */
	struct lookup	 *lookup;	/* NULL: it has its answer */
	char		  path[];	/* of key */
};

bool entry_ask(struct warm *, const char *path, bool leaf, struct warm_wait *w);	/* true: w->found is filled */
void entry_unask(struct warm_wait *);
void entry_answer(struct warm_entry *);		/* found is filled; may free it */

/* ---------------------------------------------------------------- lookup.c */

void lookup_begin(struct warm_entry *);		/* ends with entry_answer(), perhaps at once */
void lookup_leave(struct lookup *, bool late);	/* nobody waits for it any more: no work for nothing.  It ends all the same */
void lookup_cancel(struct lookup *);		/* the end of the program */
const char *lookup_stage(const struct lookup *);	/* "queue", "stat", "read" */

/* ---------------------------------------------------------------- file.c */

struct file_read;

struct warm_file {
	struct warm   *warm;
	struct lookup *owner;
	const char    *path;
	const struct range_set *want;
	uint32_t       client;
	void	     (*done)(struct warm_file *);	/* when file_begin() was false */
	/* out */
	int	       err;
	bool	       hot, cut, own_clock;	/* own_clock: this machine times the files of its root */
	struct statx   stx;
	uint64_t       asked_wall;	/* the clock that times files, before it was looked at */
	uint64_t       queue_ns, stat_ns, read_ns;
	/* file.c's */
	guint	       root;		/* number of the one that is tried */
	struct io_op   op;
	struct io_first first;
	struct file_read *read;
	bool	       looking;		/* op is on its way */
	bool	       left, late;	/* nobody waits for it; or nobody waited so long */
};

bool file_begin(struct warm_file *);		/* true: it is over already */
void file_leave(struct warm_file *, bool late);
void file_cancel(struct warm_file *);
const char *file_stage(const struct warm_file *);	/* NULL: it is over */

#endif
