/* fcgi-stat-accel/counters.h -- all that the pages of the accelerator show: what each part counts,
 * and the rows of counters.def. */
#ifndef FCGI_STAT_ACCEL_COUNTERS_H
#define FCGI_STAT_ACCEL_COUNTERS_H

#include "fcgi-stat-accel/accel.h"
#include "files/warm/counters.h"
#include "io/counters.h"

struct all_counters {
	struct accel_counters accel;
	struct warm_counters files;
	struct io_pins_counters pins;
};

/* Offsets in struct all_counters. */
extern const struct counter_info accel_counter_infos[];

#endif
