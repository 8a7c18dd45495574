/* accel-load/report.h -- the result of a run, as text and as JSON, and the line of progress. */
#ifndef ACCEL_LOAD_REPORT_H
#define ACCEL_LOAD_REPORT_H

#include "accel-load/count.h"
#include "accel-load/load.h"
#include "base/buf.h"

struct load_result {
	double seconds;
	double cpu_s; /* of this program */
	unsigned threads;
	unsigned held; /* --hold: connections that are open */
	const struct counts *counts;
};

void report_text(struct buf *, const struct load_result *);
void report_json(struct buf *, const struct load_result *); /* one line */

/* --merge: reads reports of --json and prints their sum, as text or as JSON.  The exit status. */
int merge_files(const struct load_conf *, const char *const *files);

#endif
