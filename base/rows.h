/* base/rows.h -- what waits for one resource, in a row for each client.
 *
 *   item --> row of its client --> the row with the fewest running items goes next, of equal ones the first that came
 *                              --> oldest item first
 *
 * A client alone may have all places of the resource.  Beside others its next item waits until they have as many running as
 * it has, so a flood costs others at most the time of one item for each place.
 *
 * Bounds   a row exists while it has items, waiting or running.
 * Cost     each call takes the same time however many items and rows there are (the table of rows grows by doubling).
 * Thread   none of its own: the caller locks, or has it to itself.
 */
#ifndef BASE_ROWS_H
#define BASE_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

#define ROW_RUNNING 16u /* clients with more running items than this share a turn */

struct row;

struct rows_item { /* embedded in what waits */
	/* the caller's, before rows_push() */
	uint64_t since_ns;
	uint32_t client;
	bool put_away;     /* nobody waits for it: it gives something back */
	/* of rows.c */
	struct list link, order;
	struct row *row;   /* while it waits or runs */
};

struct rows {
	struct row **table;           /* by client */
	struct row **by_length;       /* rows with so many items that are waited for */
	unsigned nrows, mask;         /* rows; size of table - 1 */
	unsigned longest, lengths;    /* of by_length: the last that is not empty, how many there are */
	uint32_t ready;               /* bit per list below that is not empty */
	struct list by_running[ROW_RUNNING + 1]; /* rows with waiting items */
	struct list order;            /* all waiting items, in the order they came */
	unsigned waiting, waited_for; /* all waiting items; those that are not put away */
};

int rows_init(struct rows *); /* -ENOMEM */
void rows_fini(struct rows *); /* nothing waits or runs, or rows_init() failed */

/* Waits from now on, behind or (first) before all others of its client; -ENOMEM. */
int rows_push(struct rows *, struct rows_item *, bool first);
struct rows_item *rows_next(const struct rows *); /* whose turn it is; NULL: none waits */
void rows_pull(struct rows *, struct rows_item *);   /* it waits no more */
void rows_take(struct rows *, struct rows_item *);   /* it runs; rows_ran() follows */
void rows_ran(struct rows *, struct rows_item *);
struct rows_item *rows_oldest(const struct rows *);  /* the one that came first; NULL: none waits */
struct rows_item *rows_newest_of_longest(const struct rows *); /* of those that are waited for; NULL: there is none */
/* The same if that row is longer than the client's own would be; else NULL. */
struct rows_item *rows_victim(const struct rows *, uint32_t client);
/* A waiting item goes to the end of the client's row if that is the shorter one. */
void rows_move(struct rows *, struct rows_item *, uint32_t client);

#endif
