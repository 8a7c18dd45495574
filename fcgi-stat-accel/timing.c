/* fcgi-stat-accel/timing.c -- see timing.h */

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "fcgi-stat-accel/timing.h"

/* accel-graph identifies the threads by it */
#define TAG "network_fcgi_stat_accel.c.78:"

/* accel_reply() begins with the status. */
static int
status_of(const GString *reply)
{
	int status = 200;

	sscanf(reply->str, "Status: %3d", &status);
	return (status);
}

void
timing_note(enum timing_format format, const struct timing_request *r)
{
	const struct warm_found *f = r->found;
	char id[32];
	const struct timing t = {
		.tag = TAG,
		.id = id,
		.status = status_of(r->reply),
		.hot = f->hot,
		.bytes = f->err == 0 ? f->stx.stx_size : 0,
		.write_start_wall_ns = clock_wall_ns(),
		.stat_queue_ns = f->queue_ns,
		.stat_ns = f->stat_ns,
		.read_ns = f->read_ns,
		.total_ns = r->total_ns,
		.path = text_of(r->path),
	};
	struct buf line;

	if (format == TIMING_OFF)
		return;
	snprintf(id, sizeof(id), "c%u.%u", r->conn, r->number);
	buf_init(&line, 0);
	(format == TIMING_JSON || log_is_json() ? timing_json : timing_line)(&line, &t);
	if (!line.failed)
		log_raw(buf_as_text(&line));
	buf_free(&line);
}
