/* walk/progress.h -- the progress as one line.  Pure. */
#ifndef WALK_PROGRESS_H
#define WALK_PROGRESS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "walk/counters.h"

struct walk_progress {
	struct walk_counters counters;
	uint64_t total;       /* names to touch; 0: unknown */
	double rate, seconds; /* names a second, in the last seconds; seconds since the start */
	unsigned stuck;       /* threads that hang */
};

void walk_bytes(GString *, double n); /* "12.3 GB", "512 B" */

/* "[=====>    ] 43 % 43210 of 100000 8123/s 1.2 GB ETA 0:07", at most width columns; without the
 * bar if width is 0. */
void walk_progress_line(const struct walk_progress *, unsigned width, GString *);

/* "100000 files, ... in 12.3 s: 8130 files/s", or one line of JSON. */
void walk_progress_summary(const struct walk_progress *, bool interrupted, GString *);
void walk_progress_json(const struct walk_progress *, bool interrupted, GString *);

#endif
