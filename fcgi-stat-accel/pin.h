/* fcgi-stat-accel/pin.h -- how many bytes of answered files may be locked in memory: --pin, and the
 * limit of the system (RLIMIT_MEMLOCK).
 *
 *   pin_raise_limit() --> root is dropped --> pin_start(): tries it --> log --> pin_log()
 *
 * Thread   the one that starts the program, before others.
 */
#ifndef FCGI_STAT_ACCEL_PIN_H
#define FCGI_STAT_ACCEL_PIN_H

#include <stdint.h>

struct io_pins_counters;

#define PIN_MAX (1ull << 40)

/* Call it while the process is root.  Raises the limit as far as the system allows. */
void pin_raise_limit(uint64_t bytes);
/* Begins with as many of these bytes as may be locked; returns their number. */
uint64_t pin_start(uint64_t bytes, struct io_pins_counters *);
/* Warns if the limit is too small. */
void pin_log(uint64_t asked, uint64_t got);

#endif
