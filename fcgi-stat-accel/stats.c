/* fcgi-stat-accel/stats.c -- the counters by name. */

#include "fcgi-stat-accel/stats.h"

const struct stats_info stats_infos[] = {
#define C(name, dotted, doc) { #name, dotted, doc, offsetof(struct stats, name) },
#include "fcgi-stat-accel/stats.def"
#undef C
	{ NULL }
};
