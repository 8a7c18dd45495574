/* walk/watch.h -- the main thread of a program whose other threads may hang in the kernel: it waits
 * for the end of their work or a signal, and shows the progress.
 *
 *	threads --> over_fd --.
 *	signals ---------------+--> watch_wait(): 0, or the signal that ends the program
 *	four times a second --'     calls tick(), shows the progress line
 *
 * SIGUSR1 prints the progress as a line.  INT, TERM and HUP end the wait.
 *
 * Thread   one; measure() and tick() run in it.
 */
#ifndef WALK_WATCH_H
#define WALK_WATCH_H

#include "base/rate.h"
#include "walk/progress.h"

struct watch {
	bool quiet, verbose;
	void (*measure)(void *arg, struct walk_progress *); /* sets counters, total and stuck */
	void (*tick)(void *arg);                            /* NULL: nothing */
	void *arg;
	int over_fd; /* set by watch_open(): an eventfd, written to at the end of all work */
	/* internal: */
	int signal_fd;
	uint64_t start_ns, verbose_ns;
	bool bar;
	struct rate rate;
};

/* The fields above are set.  Blocks the signals, so that threads started later do not get them.
 * 0, or -errno. */
int watch_open(struct watch *);
int watch_wait(struct watch *);
struct walk_progress watch_measure(struct watch *); /* now, with rate and seconds */
/* Removes the progress line, and prints a summary on standard output. */
void watch_summary(struct watch *, const GString *);
void watch_close(struct watch *); /* signals end the program again */

#endif
