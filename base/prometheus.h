/* base/prometheus.h -- numbers for Prometheus: text format 0.0.4.
 *
 *   prom_family()   # HELP prefix_name ...          once, before the rows
 *                   # TYPE prefix_name gauge
 *   prom_name()     prefix_name                     the caller adds {label="..."} and the value
 *
 * Pure: appends to out.
 */
#ifndef BASE_PROMETHEUS_H
#define BASE_PROMETHEUS_H

#include "base/buf.h"
#include "base/histogram.h"

struct prom {
	struct buf *out;
	const char *prefix; /* of every name, without the underscore */
};

void prom_family(const struct prom *, const char *name, const char *type, const char *help);
void prom_name(const struct prom *, const char *name);
/* label="value", escaped */
void prom_label(const struct prom *, const char *label, const char *value);

/* Families with one row. */
void prom_gauge(const struct prom *, const char *name, const char *help, uint64_t v);
/* a.b-c becomes prefix_a_b_c_total */
void prom_counter(const struct prom *, const char *dotted, const char *help, uint64_t v);

/* Rows of a family of histograms, in seconds.  labels: one or more, as prom_label() writes them. */
void prom_histogram_of(const struct prom *, const char *name, struct text labels,
    const struct histogram *);
void prom_histogram(const struct prom *, const char *name, const char *label, const char *value,
    const struct histogram *);

#endif
