/* accel-warm/conf.h -- what to make warm, and how: the parsed command line of accel-warm. */
#ifndef ACCEL_WARM_CONF_H
#define ACCEL_WARM_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "files/warm/warm.h"

struct walk_conf {
	enum warm_how how;
	uint64_t before;                   /* WARM_READ: bytes of each file; WARM_ALL */
	unsigned threads;                  /* threads at work, besides those that hang */
	uint64_t files_per_s, bytes_per_s; /* 0: no limit */
	bool follow, one_fs;
	const char *const *include, *const *exclude; /* see filter.h; NULL: none */
	const char *const *roots;                    /* trees; NULL: a list is given */
	const char *list; /* file with paths, "-" for standard input; NULL: none */
	/* its paths are relative to this; NULL: unchanged */
	const char *below;
	bool nul, urls;    /* paths end with NUL bytes; they are URLs */
	const char *state; /* state file; NULL: none */
	bool json, quiet, verbose;
};

#endif
