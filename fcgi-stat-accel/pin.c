#include "fcgi-stat-accel/pin.h"

#include <glib.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/log.h"
#include "io/disk/pin.h"

/* A server opens the file within milliseconds, and a client of 20 kB/s has 100 kB after 5 s.
 * --remember is a second, so the bytes of a remembered answer are still in memory. */
#define PIN_MS 5000

static uint64_t
limit(void)
{
	struct rlimit r;

	return (getrlimit(RLIMIT_MEMLOCK, &r) == 0 ? r.rlim_cur : 0);
}

void
pin_raise_limit(uint64_t bytes)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r) < 0 || r.rlim_cur >= bytes)
		return;
	r.rlim_cur = bytes;
	r.rlim_max = r.rlim_max > bytes ? r.rlim_max : bytes;
	if (setrlimit(RLIMIT_MEMLOCK, &r) == 0)
		return;
	(void)getrlimit(RLIMIT_MEMLOCK, &r);
	r.rlim_cur = r.rlim_max; /* not root */
	(void)setrlimit(RLIMIT_MEMLOCK, &r);
}

/* With MLOCK_ONFAULT the kernel compares the number with the limit, or finds CAP_IPC_LOCK, and
 * takes no memory. */
static bool
may_lock(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool may;

	if (p == MAP_FAILED)
		return (false);
	may = mlock2(p, bytes, MLOCK_ONFAULT) == 0;
	munmap(p, bytes);
	return (may);
}

uint64_t
pin_start(uint64_t bytes, struct io_pins_counters *counters)
{
	uint64_t got = bytes == 0 || may_lock(bytes) ? bytes : MIN(bytes, limit());
	const struct io_pins_conf conf = { .bytes = got, .ms = PIN_MS, .counters = counters };

	io_pins_start(&conf);
	return (got);
}

void
pin_log(uint64_t asked, uint64_t got)
{
	if (got >= asked)
		return;
	log_event(LOG_WARN, NULL, "pin.limit", LF_U64("asked", asked), LF_U64("locked", got),
	    LF_STR("why", "RLIMIT_MEMLOCK is smaller than --pin"),
	    LF_STR("change", "LimitMEMLOCK= of the unit, or ulimit -l; --pin=BYTES asks for less"));
}
