/* io/memory/memory_status.c -- see memory_status.h */
#include "io/memory/memory_status.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/must.h"

void
io_memory_status_take(struct io_memory_status *m, struct io_pools *pools)
{
	*m = (struct io_memory_status){ .holds = pools != NULL };
	pressure_get(&m->pressure);
	if (pools != NULL)
		io_pools_hotset(pools, &m->held);
}

/* ---------------------------------------------------------------- name and number */

struct memory_each {
	void (*fn)(void *, const char *, uint64_t);
	void *arg;
};

static void
known(const struct memory_each *e, const char *name, uint64_t v)
{
	if (v != PRESSURE_NONE)
		e->fn(e->arg, name, v);
}

static void
each_psi(const struct memory_each *e, const char *scope, const struct psi *psi)
{
	char name[64];

	snprintf(name, sizeof(name), "memory.pressure.%s.some-us", scope);
	known(e, name, psi->some_us);
	snprintf(name, sizeof(name), "memory.pressure.%s.full-us", scope);
	known(e, name, psi->full_us);
}

void
io_memory_status_each(const struct io_memory_status *m, void (*fn)(void *, const char *, uint64_t),
    void *arg)
{
	const struct memory_each e = { fn, arg };
	const struct pressure *p = &m->pressure;
	char name[64];
	unsigned i;

	known(&e, "memory.limit-bytes", p->limit_bytes);
	known(&e, "memory.used-bytes", p->used_bytes);
	for (i = 0; i < PRESSURE_SCOPES; i++)
		each_psi(&e, pressure_scopes[i], &p->psi[i]);
	snprintf(name, sizeof(name), "memory.refaults.%s.bytes", pressure_scopes[p->refaults_of]);
	known(&e, name, p->refault_bytes);
	if (!m->holds)
		return;
	fn(arg, "hotset.bytes", m->held.bytes);
	fn(arg, "hotset.bytes-limit", m->held.budget);
	fn(arg, "hotset.windows", m->held.windows);
	fn(arg, "io.longest-loop-wait-us", m->held.longest_wait_ns / 1000);
}

/* ---------------------------------------------------------------- JSON */

struct json {
	struct buf *out;
	const char *before; /* the next member */
};

static void
member(struct json *j, const char *name)
{
	buf_printf(j->out, "%s\"%s\":", j->before, name);
	j->before = ",";
}

static void
number(struct json *j, const char *name, uint64_t v)
{
	if (v == PRESSURE_NONE)
		return;
	member(j, name);
	buf_printf(j->out, "%" PRIu64, v);
}

static void
share(struct json *j, const char *name, uint64_t per_10000)
{
	if (per_10000 == PRESSURE_NONE)
		return;
	member(j, name);
	buf_printf(j->out, "%.4f", (double)per_10000 / 1e4);
}

static void
psi_json(struct json *j, const char *scope, const struct psi *psi)
{
	member(j, scope);
	j->before = "{";
	share(j, "some_10s", psi->some_10s);
	share(j, "full_10s", psi->full_10s);
	number(j, "some_ns", psi->some_us * 1000);
	number(j, "full_ns", psi->full_us * 1000);
	buf_str(j->out, "}");
	j->before = ",";
}

void
io_memory_status_json(struct buf *out, const struct io_memory_status *m)
{
	struct json j = { out, "\"memory\":{" };
	const struct pressure *p = &m->pressure;
	unsigned i;

	member(&j, "pressure");
	j.before = "{";
	for (i = 0; i < PRESSURE_SCOPES; i++)
		if (psi_known(&p->psi[i]))
			psi_json(&j, pressure_scopes[i], &p->psi[i]);
	buf_str(out, j.before[0] == '{' ? "{}" : "}");
	j.before = ",";
	number(&j, "limit_bytes", p->limit_bytes);
	number(&j, "used_bytes", p->used_bytes);
	number(&j, "refault_bytes", p->refault_bytes);
	if (p->refault_bytes != PRESSURE_NONE) {
		member(&j, "refaults_of");
		buf_printf(out, "\"%s\"", pressure_scopes[p->refaults_of]);
	}
	if (m->holds) {
		number(&j, "hotset_bytes", m->held.bytes);
		number(&j, "hotset_bytes_limit", m->held.budget);
		number(&j, "hotset_windows", m->held.windows);
		number(&j, "longest_loop_wait_ns", m->held.longest_wait_ns);
	}
	buf_str(out, "}");
}

/* ---------------------------------------------------------------- Prometheus */

static void
psi_metrics(const struct prom *p, const char *scope, const char *kind, uint64_t us)
{
	if (us == PRESSURE_NONE)
		return;
	prom_name(p, "memory_stalled_seconds_total");
	buf_printf(p->out, "{scope=\"%s\",stalled=\"%s\"} %.6f\n", scope, kind, (double)us / 1e6);
}

static void
gauge(const struct prom *p, const char *name, const char *help, uint64_t v)
{
	if (v != PRESSURE_NONE)
		prom_gauge(p, name, help, v);
}

void
io_memory_status_metrics(const struct prom *p, const struct io_memory_status *m)
{
	const struct pressure *t = &m->pressure;
	unsigned i;

	gauge(p, "memory_limit_bytes",
	    "The smallest of the machine's memory and the limits of the cgroups.", t->limit_bytes);
	gauge(p, "memory_used_bytes", "Memory of the own cgroup, with its page cache.",
	    t->used_bytes);
	if (psi_known(&t->psi[PRESSURE_MACHINE]) || psi_known(&t->psi[PRESSURE_CGROUP]))
		prom_family(p, "memory_stalled_seconds_total", "counter",
		    "Time in which some or all processes waited for memory (PSI).");
	for (i = 0; i < PRESSURE_SCOPES; i++) {
		psi_metrics(p, pressure_scopes[i], "some", t->psi[i].some_us);
		psi_metrics(p, pressure_scopes[i], "full", t->psi[i].full_us);
	}
	if (t->refault_bytes != PRESSURE_NONE) {
		prom_family(p, "memory_refault_bytes_total", "counter",
		    "Bytes of files that had been dropped from memory and were read again.");
		prom_name(p, "memory_refault_bytes_total");
		buf_printf(p->out, "{scope=\"%s\"} %" PRIu64 "\n", pressure_scopes[t->refaults_of],
		    t->refault_bytes);
	}
	if (!m->holds)
		return;
	prom_gauge(p, "hotset_bytes", "Bytes of files in the server's own memory.", m->held.bytes);
	prom_gauge(p, "hotset_bytes_limit", "How many may be.", m->held.budget);
	prom_gauge(p, "hotset_windows", "Windows of files in the server's own memory.",
	    m->held.windows);
	prom_family(p, "loop_wait_longest_seconds", "gauge",
	    "The longest wait of an event loop for a disk, since the start.");
	prom_name(p, "loop_wait_longest_seconds");
	buf_printf(p->out, " %.9f\n", (double)m->held.longest_wait_ns / 1e9);
}

/* ---------------------------------------------------------------- the log */

static uint64_t
since(uint64_t now, uint64_t then)
{
	if (now == PRESSURE_NONE || then == PRESSURE_NONE)
		return (now);
	return (now > then ? now - then : 0);
}

static size_t
field(struct log_field *f, size_t n, const char *name, uint64_t v)
{
	if (v != PRESSURE_NONE)
		f[n++] = LF_U64(name, v);
	return (n);
}

size_t
io_memory_status_fields(const struct pressure *p, struct log_field f[IO_MEMORY_FIELDS])
{
	enum pressure_scope of =
	    psi_known(&p->psi[PRESSURE_CGROUP]) ? PRESSURE_CGROUP : PRESSURE_MACHINE;
	struct pressure then;
	size_t n = 0;

	pressure_first(&then);
	n = field(f, n, "memory_limit", p->limit_bytes);
	n = field(f, n, "memory_used", p->used_bytes);
	n = field(f, n, "refault_bytes", since(p->refault_bytes, then.refault_bytes));
	n = field(f, n, "stalled_some_us", since(p->psi[of].some_us, then.psi[of].some_us));
	n = field(f, n, "stalled_full_us", since(p->psi[of].full_us, then.psi[of].full_us));
	return (n);
}
