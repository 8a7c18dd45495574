/* files/warm/read.h -- for windows.c and order.c only: an open file whose bytes are read, and the
 * order in which files are read.
 *
 *   order_add() -> [rows by client] -> [turn: a b c] -> answered -> [behind: d e f] -> closed
 *          `-----> [brief] -----------'a gets all free windows, then b, then c
 *
 * Many large files at once end one after the other: the first one in turn gets as many windows as
 * it may have on their way, and the next one gets those that are left.  A file leaves the rows when
 * no file in turn can use a free window.  Brief files overtake the others.  Files that have
 * their answers get windows that no file in turn can use.
 *
 * Bounds   a device has `most` windows on their way.  A window without an answer for STUCK_MS does
 *          not count, so that a file that hangs stops no other.  After a turn of TURN bytes a file
 *          goes back into its row if other files wait.  After BRIEF_RUN windows of brief files the
 *          next one is another file's.
 */
#ifndef FILES_WARM_READ_H
#define FILES_WARM_READ_H

#include "base/fair_queue.h"
#include "files/warm/impl.h"

/* Windows of a file that are on their way at a time.  Measured with 16 spindles of 8 ms for 128 KiB
 * (plain threads: 251 MB/s), files of 10 MB: one client gets 30, 57, 96, 151 MB/s with 1, 2, 4, 8
 * of them, sixteen clients 251 with each.  The kernel makes two requests of each window, so 8
 * windows use all 16 spindles; more would only delay others. */
#define WINDOWS 8

struct window {
	struct io_op op;
	struct warm_read *read;
	struct list link; /* in flight of its device */
	uint64_t at;      /* as in warm_read */
	uint64_t begun_ns;
	bool busy;
};

enum read_place { READ_NOWHERE, READ_WAITS, READ_TURN, READ_BRIEF, READ_BEHIND };

struct warm_device {
	struct warm *warm;
	struct list link;
	uint64_t dev;
	struct fair_queue rows; /* files that wait for their turn */
	/* brief files; in the order of their turns; in the order of their answers */
	struct list brief, turn, behind;
	guint nbrief;         /* windows begun for brief files since the last one of another file */
	struct list flight;   /* windows on their way, oldest first */
	guint flying, most;   /* windows on their way; allowed */
	guint samples;        /* windows that came back since the last change of most */
	uint64_t least, mean; /* nanoseconds of a whole window; least 0: unknown */
	bool going;           /* in order_go() */
};

struct warm_read {
	struct warm *warm;
	struct warm_file *owner; /* NULL: after the answer */
	struct warm_device *device;
	enum read_place place;
	struct list link;           /* in "brief", "turn" or "behind" */
	struct fair_queue_item row; /* while it waits, or has its turn */
	uint64_t turn_end;          /* as `at`: then another file has its turn */
	struct io_file *file;
	uint32_t client;
	/* Parts of the file needed before the answer and after it. */
	struct range_part part[RANGE_PARTS];
	guint n;
	/* Positions in the bytes of these parts: next to read; needed now; needed in this turn;
	 * needed in all. */
	uint64_t at, end, soon, all;
	uint64_t last_ns; /* when the last window came */
	guint flying;
	bool stop;  /* no more windows */
	bool again; /* bytes were lost, or a loss would have been noticed */
	struct io_op over;
	struct window window[WINDOWS];
};

/* ---------------------------------------------------------------- windows.c */

/* True: a window of it can be begun.  May free a file after its answer. */
bool read_ready(struct warm_read *);
void read_window(struct warm_read *);
/* The turn of the file begins: answers if nothing is needed before the answer. */
void read_turn(struct warm_read *);
void read_drop(struct warm_read *); /* after the answer, and nothing on its way */

/* ---------------------------------------------------------------- order.c */

void order_add(struct warm_read *); /* to its row */
void order_leave(struct warm_read *);
/* False: the limit of files that are read after their answers is reached. */
bool order_behind(struct warm_read *);
void order_began(struct window *);
/* A window came back.  Another file's turn begins if this one's is over. */
void order_ended(struct window *);
void order_turn(struct warm_read *);
void order_pause(struct warm *); /* no thread is idle for bytes after the answer */
void order_go(struct warm_device *);
struct warm_device *order_device(struct warm *, uint64_t dev);

#endif
