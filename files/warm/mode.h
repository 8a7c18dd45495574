/* files/warm/mode.h -- parses --warm=stat|open|read:BYTES|read:all for fcgi-stat-accel and
 * accel-warm, and --warm=auto for fcgi-stat-accel. */
#ifndef FILES_WARM_MODE_H
#define FILES_WARM_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "files/warm/warm.h"

#define WARM_MODES "stat, open, read:BYTES (read:128k, read:16m) or read:all"

/* *before: the bytes of read:BYTES, WARM_ALL for read:all, unused for stat and open.  False: none
 * of these modes. */
bool warm_mode_parse(const char *text, enum warm_how *how, uint64_t *before);

#define WARM_MODES_AUTO "auto, auto:threads, " WARM_MODES

/* As above, and "auto" for a server that sends in its event loop, "auto:threads" for one that sends
 * in threads. */
bool warm_mode_parse_auto(const char *text, struct warm_conf *);

#endif
