/* files/warm/impl.h -- shared by the files of files/warm/; no other file includes it.
 *
 *   warm.c     entries, waiting requests and their deadlines
 *   load.c     what an entry needs: a file and its siblings, or the index file of a directory
 *   file.c     one file: in memory already, or opened by a thread
 *   windows.c  the bytes of an open file, before the answer and after it
 *   order.c    which file is read next
 *   forget.c   a file that is dropped from memory
 *   pin.c      files that stay in memory after their answer
 *   open.c     files that are opened for another process
 *   roots.c    the directories that files must be below
 */
#ifndef FILES_WARM_IMPL_H
#define FILES_WARM_IMPL_H

#include <glib.h>
#include "files/warm/counters.h"
#include "files/warm/warm.h"
#include "files/lookup.h"
#include "files/root.h"
#include "io/file.h"
#include "io/io.h"

/* ---------------------------------------------------------------- roots.c */

struct warm_root {
	struct root dir;
	bool hot; /* io_fd_is_local() */
};

struct warm_roots {
	GArray *v; /* struct warm_root */
	uint64_t resolve;
};

int roots_open(struct warm_roots *, const char *const *dirs, const char **bad);
void roots_close(struct warm_roots *);
/* The first root from number *nr on that path lies below; *tail is the rest of path.  NULL: no
 * more. */
const struct warm_root *roots_next(const struct warm_roots *, const char *path, guint *nr,
    const char **tail);

/* ---------------------------------------------------------------- warm.c */

struct warm_order { /* order.c */
	struct list devices;
	guint ndevices;
	guint nbehind, flying; /* files that are read after their answers; windows on their way */
	struct io_op pause, watch;
	bool paused, watching;
};

struct warm_forget { /* forget.c */
	struct io_op op;
	struct io_first first;
	struct statx stx;
	char *path;
	bool busy;
	void (*done)(void *arg, bool gone);
	void *arg;
};

#define WARM_PINS 16u /* hot files that are being pinned; more would only wait for the thread */
struct warm_pin;
struct warm_pins { /* pin.c */
	struct warm_pin *place;
	guint n;
	guint credit;      /* hot files that may be pinned */
	struct io_op look; /* a timer, then the work of a thread */
	bool looking;
};

struct warm {
	const struct warm_conf *conf;
	struct io *io;
	struct warm_counters *counters;
	struct warm_stages *stages;
	struct warm_roots roots;
	struct warm_order order;
	struct warm_forget forget;
	struct warm_pins pins;
	struct lookup_table table;
	struct lookup_list kept;
	struct list loading; /* struct warm_entry */
	GString *key;        /* of the requested entry */
	struct list opens;   /* struct warm_open */
	struct list waiting; /* struct warm_wait, oldest first */
	struct io_op timer;  /* for the first of them */
	bool timing;
	struct io_op stale; /* timer: drops the oldest answers */
	bool staling;
};

struct warm_load; /* load.c */

struct warm_entry {
	struct lookup lk; /* its path continues after the NUL, see key_of() */
	struct warm *warm;
	struct list loading;
	struct warm_found found;
	uint64_t begun_ns;
	bool held;              /* being loaded or answered: not freed */
	bool told;              /* a line in the log says that it is slow */
	bool cut;               /* given up: found is not kept */
	struct warm_load *load; /* NULL: it has its answer */
};

static inline struct warm_entry *
entry_of(struct lookup *l)
{
	return (container_of(l, struct warm_entry, lk));
}

static inline uint64_t
warm_sum(uint64_t a, uint64_t b) /* WARM_ALL is larger than all others */
{
	return (a + b < a ? UINT64_MAX : a + b);
}

/* The inverse of key_of(): what is wanted of the file; true: an index file, so a directory is an
 * error. */
bool key_read(const struct warm_entry *, struct range_set *want);
bool key_is_cached(const struct warm_entry *); /* see warm_wait */
/* true: w->found is filled */
bool entry_ask(struct warm *, const char *path, bool leaf, struct warm_wait *w);
void entry_answer(struct warm_entry *); /* found is filled; may free it */

/* ---------------------------------------------------------------- load.c */

/* ends with entry_answer(), perhaps at once */
void load_begin(struct warm_entry *);
/* No request waits for it, so its ops are given to stop().  It still ends.  late: the deadline has
 * passed, but the file will be wanted. */
void load_stop(struct warm_load *, void (*stop)(struct io *, struct io_op *), bool late);
const char *load_stage(const struct warm_load *); /* "queue", "stat", "read" */

/* ---------------------------------------------------------------- file.c */

struct warm_file {
	struct warm *warm;
	struct warm_load *owner;
	const char *path;
	const struct range_set *want;
	uint32_t client;
	void (*done)(struct warm_file *); /* called if file_begin() returned false */
	bool pins;                        /* in memory, and only waits to be pinned */
	bool gives;                       /* it is opened for another process, see fd */
	/* out */
	struct warm_found found; /* except settled and index */
	bool cut;
	int fd; /* gives: of a file or directory, through which the wanted bytes were read; yours */
	bool own_clock;      /* this machine times the files of its root */
	uint64_t asked_wall; /* the clock that times files, before the look-up */
	/* file.c's */
	guint root; /* number of the root being tried */
	struct io_op op;
	struct io_first first;
	struct warm_read *read;
	bool looking;    /* op is in flight */
	bool left, late; /* see load_stop() */
};

bool file_begin(struct warm_file *); /* true: it has ended already */
/* As file_begin(), but later, and by a thread unless it gives.  False: the file is below no root,
 * and done() does not come. */
bool file_open(struct warm_file *);
void file_stop(struct warm_file *, void (*stop)(struct io *, struct io_op *), bool late);
const char *file_stage(const struct warm_file *); /* NULL: it has ended */

/* ---------------------------------------------------------------- windows.c */

/* before: needed for the answer.  soon: read from the start at full speed, in the turn of the file.
 * behind: read after `before` when threads are idle. */
struct warm_bytes {
	uint64_t before, soon, behind;
};

static inline uint64_t
warm_bytes_all(const struct warm_bytes *b)
{
	return (MAX(warm_sum(b->before, b->behind), b->soon));
}

/* Reads the needed bytes of f, then calls f->done().  Takes the descriptor. */
void read_begin(struct warm_file *, int fd, const struct warm_bytes *);
void read_stop(struct warm_read *, void (*stop)(struct io *, struct io_op *));

/* ---------------------------------------------------------------- pin.c */

void pins_init(struct warm_pins *);
void pins_fini(struct warm_pins *);
bool pins_busy(const struct warm_pins *);
void pins_cancel(struct warm *);
/* A file with these facts is answered; path: pin it if it is not pinned; NULL: it was just read. */
void pin_answered(struct warm *, const struct statx *, const char *path,
    const struct range_set *want, uint32_t client);
/* An earlier answer is still true: the bytes are pinned, or no bytes leave memory. */
bool pin_holds(const struct warm_entry *);
void pin_cold(struct warm *);  /* a thread has read a file */
void pin_watch(struct warm *); /* pins end in time */

/* ---------------------------------------------------------------- open.c */

void opens_cancel(struct warm *);

/* ---------------------------------------------------------------- order.c */

void order_init(struct warm_order *);
void order_fini(struct warm_order *);
bool order_busy(const struct warm_order *);
/* drops all files that are read after their answers; some windows may still be in flight */
void order_cancel(struct warm *);

#endif
