/* fcgi-stat-accel/warm/words.h -- --warm=stat|open|read:BYTES|read:all, as fcgi-stat-accel and accel-warm read it. */
#ifndef FCGI_STAT_ACCEL_WARM_WORDS_H
#define FCGI_STAT_ACCEL_WARM_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "fcgi-stat-accel/warm/warm.h"

#define WARM_WORDS "stat, open, read:BYTES (read:128k, read:16m) or read:all"

/* *before is WARM_ALL with read:all, and means nothing with stat and open.  False: none of these. */
bool warm_words_read(const char *text, enum warm_how *how, uint64_t *before);

#endif
