/* accel-warm/progress.h -- how far it is, as one line.  Pure. */
#ifndef ACCEL_WARM_PROGRESS_H
#define ACCEL_WARM_PROGRESS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "accel-warm/tally.h"

struct walk_progress {
	struct walk_tally tally;
	uint64_t total;			/* names there are to be touched; 0: not known yet */
	double	 rate, seconds;		/* names a second, lately; since the start */
	unsigned stuck;			/* threads that hang */
};

/* "[=====>    ]  43 %  43210 of 100000  8123/s  1.2 GB  ETA 0:07"; no wider than width, without the bar for 0. */
void walk_progress_line(const struct walk_progress *, unsigned width, GString *);

/* "100000 files, ... in 12.3 s: 8130 files/s", or one line of JSON. */
void walk_progress_summary(const struct walk_progress *, bool interrupted, GString *);
void walk_progress_json(const struct walk_progress *, bool interrupted, GString *);

#endif
