/* io/rest.h -- after a burst a loop gives memory back to the system.
 *
 *   a round: rest_note() --> timer --> quiet, or much was freed? --> drop(), spare buffers
 *                              ^ no, still busy: again   |              a thread: malloc_trim(3)
 *                              '-------------------------'  quiet, and nothing to gain: no timer
 *
 * free(3) returns memory only from the end of a heap.  What lies between two blocks in use stays
 * with the process until malloc_trim(3).  Measured: 10.9 MB after 10,000 connections, 6.5 MB after
 * a trim, 5.7 MB before.  A trim takes 0.1 ms for such a heap and 0.1 s for one of a gigabyte, so a
 * thread does it.
 *
 * Owner    *r is the caller's until rest_stop() returned false.
 * Thread   the loop's.
 */
#ifndef IO_REST_H
#define IO_REST_H

#include "io/io.h"

struct rest {
	struct io *io;
	void (*drop)(struct rest *); /* frees what is kept for later requests; NULL: nothing is */
	struct io_op timer, op;
	bool timed, trimming, stopped;
	uint64_t done, seen, trimmed; /* requests: now, at the last timer, at the last trim */
	uint64_t memory, high;        /* bytes in use: now, the most since the last trim */
	uint64_t trims;
};

void rest_init(struct rest *, struct io *, void (*drop)(struct rest *));
/* Call it once a round: how many requests there were so far, and an estimate of the bytes that rise
 * and fall with connections and names. */
void rest_note(struct rest *, uint64_t done, uint64_t memory);
/* Cancels its ops; true: call it again after a round of the loop. */
bool rest_stop(struct rest *);

#endif
