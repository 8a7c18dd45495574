/* fcgi-stat-accel/advice_show.h -- the advices in the log, on the status pages and in the manual.
 *
 * Examples come from clients: each page escapes them.
 * Thread   the loop's.
 */
#ifndef FCGI_STAT_ACCEL_ADVICE_SHOW_H
#define FCGI_STAT_ACCEL_ADVICE_SHOW_H

#include "base/buf.h"
#include "base/manpage.h"
#include "base/prometheus.h"
#include "fcgi-stat-accel/advice.h"

/* For struct advice: ev=advice.begins with all facts, ev=advice.ends. */
void advice_log(const struct advice *, enum advice_id);
void advice_log_all(const struct advice *); /* those in force */

/* "accel.advice.ID: ..." for each advice in force, else "accel.advice: none". */
void advice_text(struct buf *, const struct advice *);
void advice_json(struct buf *, const struct advice *); /* "advice":[...] */
void advice_metrics(const struct prom *, const struct advice *);
void advice_manual(struct manpage *);

#endif
