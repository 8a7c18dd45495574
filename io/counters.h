/* io/counters.h -- what io/ counts; its files and those who show it see this. */
#ifndef IO_COUNTERS_H
#define IO_COUNTERS_H

#include "base/counter.h"

struct io_pins_counters { /* of io/disk/pin.h: windows */
	uint64_t pinned, again, early, refused;
};

#endif
