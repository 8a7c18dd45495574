/* accel-warm/conf.h -- what is to be made warm, and how: the command line of accel-warm, understood. */
#ifndef ACCEL_WARM_CONF_H
#define ACCEL_WARM_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "fcgi-stat-accel/warm/warm.h"

struct walk_conf {
	enum warm_how how;
	uint64_t before;		/* WARM_READ: bytes of each file; WARM_ALL */
	unsigned threads;		/* that may be busy, beside those that hang */
	uint64_t files_per_s, bytes_per_s;	/* 0: as fast as it goes */
	bool	 follow, one_fs;
	const char *const *include, *const *exclude;	/* as in filter.h; NULL */
	const char *const *roots;	/* where to walk; NULL: a list is given */
	const char *list;		/* a file with paths, "-" for standard input; NULL */
	const char *below;		/* the paths in it are relative to this; NULL: as they stand */
	bool	 nul, urls;		/* they end in NUL bytes; they are URLs */
	const char *state;		/* NULL: not kept */
	bool	 json, quiet, verbose;
};

#endif
