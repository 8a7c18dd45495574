/* server/process/pressure.c -- lines of the log while memory is short, for people and accel-graph.
 *
 *   worker: windows came from a disk --pressure_ask()--> thread of io/memory/pressure.h --> seen()
 *
 * A line comes at most every MEMORY_LOOK_S seconds, and only if something happened that never
 * happens with enough memory.
 */
#include "base/clock.h"
#include "base/must.h"
#include "io/memory/memory_status.h"
#include "server/process/impl.h"
#include "server/status/counters.h"

#define REFAULT_BYTES (1u << 20) /* less is not worth a line */
#define STALLED_US    100000u    /* 1 % of ten seconds */

/* Used by the thread that looks. */
struct seen {
	uint64_t logged_ns, refault_bytes, stalled_us, gone;
};

static struct seen last;

static struct seen
seen_of(const struct pressure *p, const struct io_counters *c)
{
	uint64_t some = p->psi[PRESSURE_CGROUP].some_us;

	some = some != PRESSURE_NONE ? some : p->psi[PRESSURE_MACHINE].some_us;
	return ((struct seen){ .logged_ns = p->taken_ns,
	    .refault_bytes = p->refault_bytes != PRESSURE_NONE ? p->refault_bytes : 0,
	    .stalled_us = some != PRESSURE_NONE ? some : 0,
	    .gone = c->loop_waits + c->pages_gone });
}

static bool
is_worse(const struct seen *now)
{
	return (now->refault_bytes >= last.refault_bytes + REFAULT_BYTES ||
		now->stalled_us >= last.stalled_us + STALLED_US || now->gone != last.gone);
}

static void
log_memory(const struct pressure *p, const struct io_counters *c)
{
	struct log_field f[IO_MEMORY_FIELDS + 6];
	size_t n = io_memory_status_fields(p, f);

	f[n++] = LF_U64("pages_gone", c->pages_gone);
	f[n++] = LF_U64("loop_waits", c->loop_waits);
	f[n++] = LF_U64("file_reads", c->file_reads);
	f[n++] = LF_U64("hotset_filled", c->hotset_filled);
	f[n++] = LF_U64("hotset_evicted", c->hotset_evicted);
	f[n++] = LF_U64("hotset_sent", c->hotset_sent);
	log_event_fields(LOG_INFO, NULL, "memory", f, n);
}

static void
seen(void *arg, const struct pressure *p)
{
	struct server_counters sum;
	struct seen now;

	server_counters_sum(worker_counters_first(&((const struct process *)arg)->counters_list),
	    &sum);
	now = seen_of(p, &sum.io);
	if (now.logged_ns < last.logged_ns + MEMORY_LOOK_S * NS_PER_S || !is_worse(&now))
		return;
	last = now;
	log_memory(p, &sum.io);
}

void
process_pressure_watch(struct process *ps, bool on)
{
	const struct io_counters none = { 0 };
	struct pressure p;

	pressure_on_look(NULL, NULL);
	if (!on)
		return;
	pressure_get(&p);
	last = seen_of(&p, &none);
	last.logged_ns = 0; /* the first line need not wait */
	pressure_on_look(seen, ps);
}
