/* server/process/status.c -- what accel-server ctl status prints: lines for people, or one JSON
 * object with the same names.
 */
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "proxy-core/backend_health.h"
#include "server/process/impl.h"

#define BACKENDS_SAID 10u /* of those that are out */

struct field {
	const char *name;
	bool is_number;
	uint64_t number;
	struct text words;
};

/* UTC: "2026-11-23 09:30:00Z" */
static struct text
time_text(time_t at, char text[32])
{
	struct tm tm;

	if (at == 0)
		return (TEXT("never"));
	gmtime_r(&at, &tm);
	return ((struct text){ text, strftime(text, 32, "%Y-%m-%d %H:%M:%SZ", &tm) });
}

static const char *
state_of(const struct process *ps, unsigned nstill)
{
	if (ps->upgrade.retired)
		return ("retired: a newer process serves");
	if (ps->draining)
		return ("stopping");
	if (ps->leave.at_ns != 0)
		return ("draining: health checks fail, requests are served; it stops soon");
	if (nstill != 0)
		return ("serving, but a loop stands still: its connections wait");
	if (ps->upgrade.fd >= 0)
		return ("serving; an upgrade is running");
	return (ps->load.fd >= 0 ? "serving; a reload is running" : "serving");
}

static void
put_text(struct buf *out, const struct field *f)
{
	struct text rest = f->words, line;

	if (!f->is_number && rest.n == 0)
		return;
	buf_printf(out, "%-21s", f->name);
	if (f->is_number)
		buf_u64(out, f->number);
	else if (text_next(&rest, '\n', &line))
		buf_text(out, line);
	buf_char(out, '\n');
	while (!f->is_number && text_next(&rest, '\n', &line))
		if (line.n != 0)
			buf_printf(out, "%21s%.*s\n", "", (int)line.n, line.p);
}

static void
put_json(struct buf *out, const struct field *f, bool first)
{
	buf_printf(out, "%s\"%s\":", first ? "{" : ",", f->name);
	if (f->is_number)
		buf_u64(out, f->number);
	else
		buf_json(out, f->words);
}

/* "unix:/run/a.sock check-failed since 2026-11-23 09:30:00Z: HTTP 500" */
static void
say_out(struct buf *out, const struct backend *b, const struct backend_health *h)
{
	uint64_t ago_ns = clock_between(h->since_ns, clock_mono_ns());
	char since[32];

	buf_text(out, text_of(b->name));
	buf_printf(out, " %s since ", backend_state_names[h->state]);
	buf_text(out, time_text((time_t)((clock_wall_ns() - ago_ns) / NS_PER_S), since));
	buf_printf(out, "%s%s\n", h->reason[0] != '\0' ? ": " : "", h->reason);
}

/* Fills said: why the first ones are out.  Returns how many are, and the number of all. */
static uint64_t
backends_out(struct buf *said, uint64_t *all)
{
	const struct backend *b;
	struct backend_health h;
	uint64_t n = 0;

	buf_init(said, 0);
	*all = 0;
	for (b = backend_first(); b != NULL; b = b->next) {
		if (backend_read(b, users) == 0)
			continue;
		++*all;
		backend_health(b, clock_mono_ns(), &h);
		if (h.reason[0] == '\0')
			continue;
		if (++n <= BACKENDS_SAID)
			say_out(said, b, &h);
	}
	return (n);
}

static unsigned
still_loops(const struct process *ps, struct buf *names)
{
	buf_init(names, 0);
	return (process_alive_still(ps, names));
}

void
process_status(const struct process *ps, bool json, struct buf *out)
{
	uint64_t older = process_generations(ps) - 1;
	char since[32], tried[32], changed[32], ends[32];
	struct buf said;
	uint64_t backends, nout = backends_out(&said, &backends);
	struct buf still;
	unsigned nstill = still_loops(ps, &still);
	const struct field fields[] = {
		{ "version", false, 0, TEXT(STAT_ACCEL_VERSION) },
		{ "pid", true, (uint64_t)getpid(), TEXT_NONE },
		{ "state", false, 0, text_of(state_of(ps, nstill)) },
		{ "loops_still", false, 0, buf_as_text(&still) },
		{ "stops_in_s", true, process_leaves_in_s(ps), TEXT_NONE },
		{ "started", false, 0, time_text(ps->started_at, since) },
		{ "uptime_s", true, (clock_mono_ns() - ps->started_ns) / NS_PER_S, TEXT_NONE },
		{ "configuration", false, 0, text_of(ps->opt->file) },
		{ "generation", true, ps->nstarted, TEXT_NONE },
		{ "generations_draining", true, older, TEXT_NONE },
		{ "workers", true, process_newest(ps)->nworkers, TEXT_NONE },
		{ "connections", true, process_connections(ps), TEXT_NONE },
		{ "backends", true, backends, TEXT_NONE },
		{ "backends_out", true, nout, TEXT_NONE },
		{ "backends_out_said", false, 0, buf_as_text(&said) },
		{ "helper", false, 0, text_of(process_helper_state(ps)) },
		{ "helper_since", false, 0,
		    time_text((time_t)ps->counters_list.helper_since_s, changed) },
		{ "helpers_lost", true, ps->counters_list.helpers_lost, TEXT_NONE },
		{ "certificates", true, ps->counters_list.certificates, TEXT_NONE },
		{ "certificates_refused", true, ps->counters_list.certificates_refused, TEXT_NONE },
		{ "certificates_end", false, 0,
		    time_text((time_t)ps->counters_list.certificates_end_s, ends) },
		{ "last_reload", false, 0, time_text(ps->last.at, tried) },
		{ "last_reload_status", true, (uint64_t)ps->last.status, TEXT_NONE },
		{ "last_reload_said", false, 0, buf_as_text(&ps->last.said) },
	};
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (json)
			put_json(out, &fields[i], i == 0);
		else
			put_text(out, &fields[i]);
	if (json)
		buf_str(out, "}\n");
	buf_free(&said);
	buf_free(&still);
}
