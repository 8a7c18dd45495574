/* accel-load/report_read.h -- a report of --json, as another machine has written it.
 *
 * Input is hostile.  Only numbers from which the others follow are read; members of other names are
 * skipped, at most REPORT_DEPTH objects deep.  A member that occurs twice, a bound that no bucket
 * has, and requests whose ends do not add up are faults.  Pure.
 */
#ifndef ACCEL_LOAD_REPORT_READ_H
#define ACCEL_LOAD_REPORT_READ_H

#include "accel-load/report.h"

#define REPORT_DEPTH       8
#define REPORT_NUMBER_MAX  (1ull << 53) /* what other programs hold exactly */
#define REPORT_SECONDS_MAX 1e9

struct report_fault {
	const char *at;  /* in the input */
	const char *why; /* "expected ...", a constant text */
};

/* Reads one object and removes it, with the blanks around it, from *in.  counts is empty before;
 * result->counts stays.  False: the contents of both are undefined. */
bool report_read(struct text *in, struct load_result *result, struct counts *,
    struct report_fault *);

#endif
