/* accel-load/report.h -- the result of a run, as text and as JSON, and the sum of several.
 *
 * The text is for people; with .verbose it ends with the lines that http_load prints, for scripts
 * that read them.  The JSON is one object on one line, with all buckets of the histograms; the sum
 * of two such reports is that of one run which did both.
 */
#ifndef ACCEL_LOAD_REPORT_H
#define ACCEL_LOAD_REPORT_H

#include "accel-load/count.h"
#include "accel-load/load.h"
#include "base/buf.h"

struct load_result {
	double seconds;
	double cpu_s; /* of this program */
	/* threads; together they use at most this many seconds of CPU time a second */
	uint64_t threads;
	uint64_t connections; /* at the same time, at most */
	uint64_t held;        /* --hold: connections that are open */
	uint64_t streams;     /* HTTP/2: at once on each; 0: another protocol */
	/* connections without any answer; answers of the connection with fewest */
	uint64_t never, least;
	bool verbose;
	const struct counts *counts;
	const struct counts *beside; /* requests of --beside; NULL: none */
};

void report_text(struct buf *, const struct load_result *);
void report_json(struct buf *, const struct load_result *); /* one line */

/* --merge: reads reports of --json and prints their sum, as text or as JSON.  The exit status. */
int merge_files(const struct load_conf *, const char *const *files);

#endif
