/* base/prometheus.c -- see prometheus.h */
#include <inttypes.h>
#include <stdio.h>

#include "base/must.h"
#include "base/prometheus.h"

void
prom_name(const struct prom *p, const char *name)
{
	buf_printf(p->out, "%s_%s", p->prefix, name);
}

void
prom_family(const struct prom *p, const char *name, const char *type, const char *help)
{
	buf_str(p->out, "# HELP ");
	prom_name(p, name);
	buf_printf(p->out, " %s\n# TYPE ", help);
	prom_name(p, name);
	buf_printf(p->out, " %s\n", type);
}

/* Escapes backslash, quote and line break.  Invalid UTF-8 would make the whole page unreadable, so
 * other bytes stay only if they are ASCII. */
void
prom_label(const struct prom *p, const char *label, const char *value)
{
	buf_printf(p->out, "%s=\"", label);
	for (; *value != '\0'; value++) {
		if (*value == '\\' || *value == '"')
			buf_char(p->out, '\\');
		if (*value == '\n')
			buf_str(p->out, "\\n");
		else
			buf_char(p->out, *value > ' ' && *value < 127 ? *value : '?');
	}
	buf_char(p->out, '"');
}

void
prom_gauge(const struct prom *p, const char *name, const char *help, uint64_t v)
{
	prom_family(p, name, "gauge", help);
	prom_name(p, name);
	buf_printf(p->out, " %" PRIu64 "\n", v);
}

void
prom_counter(const struct prom *p, const char *dotted, const char *help, uint64_t v)
{
	char name[64], *c;

	snprintf(name, sizeof(name), "%s_total", dotted);
	for (c = name; *c != '\0'; c++)
		if (*c == '.' || *c == '-')
			*c = '_';
	prom_family(p, name, "counter", help);
	prom_name(p, name);
	buf_printf(p->out, " %" PRIu64 "\n", v);
}

static void
histogram_row(const struct prom *p, const char *name, const char *part, struct text labels)
{
	prom_name(p, name);
	buf_printf(p->out, "_%s{", part);
	buf_text(p->out, labels);
}

void
prom_histogram_of(const struct prom *p, const char *name, struct text labels,
    const struct histogram *h)
{
	static const uint64_t steps[] = { 10, 25, 50 }; /* multiples of a unit, 1 us at first */
	uint64_t count = histogram_count(h), unit;
	unsigned i;

	for (unit = 1000; unit < HISTOGRAM_MAX_NS; unit *= 10)
		for (i = 0; i < NELEM(steps) && unit * steps[i] <= HISTOGRAM_MAX_NS; i++) {
			histogram_row(p, name, "bucket", labels);
			buf_printf(p->out, ",le=\"%g\"} %" PRIu64 "\n",
			    (double)(unit * steps[i]) / 1e9, histogram_up_to(h, unit * steps[i]));
		}
	histogram_row(p, name, "bucket", labels);
	buf_printf(p->out, ",le=\"+Inf\"} %" PRIu64 "\n", count);
	histogram_row(p, name, "sum", labels);
	buf_printf(p->out, "} %.9f\n", (double)h->sum_ns / 1e9);
	histogram_row(p, name, "count", labels);
	buf_printf(p->out, "} %" PRIu64 "\n", count);
}

void
prom_histogram(const struct prom *p, const char *name, const char *label, const char *value,
    const struct histogram *h)
{
	struct buf labels;
	const struct prom to = { &labels, p->prefix };

	buf_init(&labels, 0);
	prom_label(&to, label, value);
	prom_histogram_of(p, name, buf_as_text(&labels), h);
	buf_free(&labels);
}
