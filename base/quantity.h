/* base/quantity.h -- "4096", "64k", "16m", "1g" on a command line. */
#ifndef BASE_QUANTITY_H
#define BASE_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* False: that is no number, or not from min to max; *n is left alone. */
bool quantity_read(const char *text, uint64_t min, uint64_t max, uint64_t *n);

#endif
