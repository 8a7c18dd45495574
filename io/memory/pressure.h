/* io/memory/pressure.h -- is memory short: stalls that the kernel counted (PSI), and pages of files
 * that had been in memory and were read again (refaults), of the machine and of the own cgroup.
 *
 *   loop --pressure_ask()--> thread: reads files of /proc and of the cgroup file system
 *   loop <--pressure_get()-- the last look
 *
 * No disk is waited for.  But the kernel may sum up all processors before it answers for
 * memory.stat (measured: 17 us, at most 0.7 ms, with 7 cgroups and 2 processors; it grows with
 * both), so a thread looks, at most once a second, and only when it was asked.
 *
 * What the kernel does not have (containers, old kernels) is PRESSURE_NONE, never 0.
 *
 * Thread   any.  The one that looks is made by the first call that needs it, and inherits the
 *          sandbox of its caller; it sleeps until it is asked.
 */
#ifndef IO_PRESSURE_H
#define IO_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

#define PRESSURE_NONE   UINT64_MAX
#define PRESSURE_GAP_MS 1000u /* a look that is younger than this is fresh */

enum pressure_scope { PRESSURE_MACHINE, PRESSURE_CGROUP, PRESSURE_SCOPES };
extern const char *const pressure_scopes[PRESSURE_SCOPES]; /* names */

struct psi { /* some: at least one process waited for memory; full: all did */
	uint64_t some_10s, full_10s; /* share of the last ten seconds, in 1/10,000 */
	uint64_t some_us, full_us;   /* since the start */
};

/* The kernel has all of these, or none. */
static inline bool
psi_known(const struct psi *p)
{
	return (p->some_10s != PRESSURE_NONE && p->full_10s != PRESSURE_NONE &&
		p->some_us != PRESSURE_NONE && p->full_us != PRESSURE_NONE);
}

struct pressure {
	uint64_t taken_ns; /* CLOCK_MONOTONIC; 0: there was no look */
	struct psi psi[PRESSURE_SCOPES];
	uint64_t refault_bytes; /* of files, since the start */
	enum pressure_scope refaults_of;
	uint64_t used_bytes;  /* of the own cgroup, with its page cache */
	uint64_t limit_bytes; /* io_memory_limit() */
};

/* Opens the files and looks for the first time.  At start, before a sandbox closes /proc. */
void pressure_open(void);

/* Wants a look that is younger than PRESSURE_GAP_MS; returns at once. */
void pressure_ask(void);
bool pressure_fresh(void);            /* there is one, or it cannot be had */
void pressure_get(struct pressure *); /* the last look */
void pressure_first(struct pressure *);

/* Looks at once, and may take some ms: for threads that no client waits for. */
void pressure_look(void);

/* Called in the thread after each look that was asked for.  NULL: no function is called, and no
 * call is running when this returns. */
typedef void pressure_seen(void *arg, const struct pressure *);
void pressure_on_look(pressure_seen *, void *arg);

/* The pure part: texts of the kernel, any bytes.  What is not understood stays as it is. */
void pressure_parse_psi(struct text, struct psi *);
/* memory.stat, v1 and v2, or vmstat: pages. */
bool pressure_parse_refaults(struct text, uint64_t *pages);

#endif
