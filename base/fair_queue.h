/* base/fair_queue.h -- items that wait for one resource; clients take turns.
 *
 *   item --> row of its client --> the row with the fewest running items, of equal rows the one
 *                                  that has waited longest --> its oldest item
 *
 * A client alone may use the whole resource.  If other clients wait, its next item waits until they
 * have as many items running as it has.  So a flood costs the others at most the time of one item
 * for each place of the resource.
 *
 * Bounds   a row exists while it has items, waiting or running.
 * Cost     each call takes constant time, however many items and rows there are (the table of rows
 *          grows by doubling).
 * Thread   the caller locks, or is the only one.
 */
#ifndef BASE_FAIR_QUEUE_H
#define BASE_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

#define ROW_RUNNING 16u /* rows with more running items than this count as equal */

struct row;

struct fair_queue_item { /* embedded in the waiting object */
	/* set by the caller, before fair_queue_push() */
	uint64_t since_ns;
	uint32_t client;
	bool put_away; /* no request waits for this item: it only frees something */
	/* private to fair_queue.c */
	struct list link, order;
	struct row *row; /* while it waits or runs */
};

struct fair_queue {
	struct row **table;     /* by client */
	struct row **by_length; /* [n]: rows with n items that requests wait for */
	unsigned nrows, mask;   /* number of rows; size of table - 1 */
	/* of by_length: the last index that is not empty; its size */
	unsigned longest, lengths;
	uint32_t ready;                          /* one bit for each list below that is not empty */
	uint32_t may;                            /* ... and for each whose rows may run more */
	struct list by_running[ROW_RUNNING + 1]; /* rows with waiting items */
	struct list order;                       /* all waiting items, oldest first */
	unsigned waiting, waited_for;            /* all waiting items; those without put_away */
};

int fair_queue_init(struct fair_queue *); /* -ENOMEM */
/* A client may have n items running, even if no other one waits; 0, and more than ROW_RUNNING: any
 * number. */
void fair_queue_limit(struct fair_queue *, unsigned n);
/* No item may wait or run.  May be called after fair_queue_init() failed. */
void fair_queue_fini(struct fair_queue *);

/* The item waits behind, or with first before, all others of its client.  -ENOMEM. */
int fair_queue_push(struct fair_queue *, struct fair_queue_item *, bool first);
/* The item whose turn it is; NULL: none waits, or none may run. */
struct fair_queue_item *fair_queue_next(const struct fair_queue *);
/* Running items of the client of an item that waits or runs. */
unsigned fair_queue_running(const struct fair_queue_item *);
/* Waiting items of the client of an item that waits or runs, without those put away. */
unsigned fair_queue_queued(const struct fair_queue_item *);
/* The item stops waiting. */
void fair_queue_pull(struct fair_queue *, struct fair_queue_item *);
/* The item starts to run, until fair_queue_ran(). */
void fair_queue_take(struct fair_queue *, struct fair_queue_item *);
void fair_queue_ran(struct fair_queue *, struct fair_queue_item *);
/* The item that has waited longest; NULL: none waits. */
struct fair_queue_item *fair_queue_oldest(const struct fair_queue *);
/* of the items without put_away; NULL: none */
struct fair_queue_item *fair_queue_newest_of_longest(const struct fair_queue *);
/* fair_queue_newest_of_longest() if the row of that item is longer than the client's row would be
 * with one more item; else NULL. */
struct fair_queue_item *fair_queue_victim(const struct fair_queue *, uint32_t client);
/* Moves a waiting item to the end of the client's row if that row is shorter than its own. */
void fair_queue_move(struct fair_queue *, struct fair_queue_item *, uint32_t client);

#endif
