/* server/finish.c -- see finish.h */
#include "server/finish.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/accesslog.h"
#include "server/conn.h"
#include "server/timing.h"
#include "server/worker.h"

bool
finish_may_batch(const struct request *r)
{
	return (r->site != NULL && r->site->timing == TIMING_OFF && r->relay == NULL);
}

bool
finish_needs_head(const struct request *r)
{
	return (r->site != NULL && r->site->access != NULL);
}

static struct text
or_dash(struct text t)
{
	return (t.p != NULL ? t : TEXT("-"));
}

/* The worker's, used again and again: a logged request allocates nothing either. */
static struct buf *
empty_line(struct request *r)
{
	struct buf *line = &r->worker->line;

	line->n = 0;
	line->failed = false;
	return (line);
}

static void
access_line(struct request *r)
{
	char remote[64];
	struct access a = {
		.remote = conn_remote(r, remote),
		.user = TEXT("-"),
		.line = or_dash(r->http.line),
		.referer = or_dash(r->http.known[HH_REFERER]),
		.agent = or_dash(r->http.known[HH_USER_AGENT]),
		.status = r->status,
		.bytes = r->body_bytes,
		.wall_s = io_wall_s(r->worker->io),
	};
	struct buf *line = empty_line(r);

	accesslog_line(line, &a);
	if (!line->failed)
		logfile_line(r->site->access, buf_as_text(line));
}

static uint64_t
since(uint64_t from, uint64_t to)
{
	return (from != 0 && to > from ? to - from : 0);
}

static void
timing_lines(struct request *r)
{
	const struct sender_times *st = &r->times;
	struct timing t = {
		.tag = io_backend(r->worker->io)->tag,
		.id = conn_id(r),
		.status = r->status,
		.hot = !r->cold && st->hot,
		.bytes = r->body_bytes,
		.write_start_wall_ns = st->write_start_wall,
		.stat_queue_ns = r->cold ? since(r->open.submit, r->open.start) : 0,
		.stat_ns = r->cold ? since(r->open.start, r->open.end) : 0,
		.proxy_queue_ns = r->proxy_queue_ns,
		.proxy_ns = r->proxy_ns,
		.read_queue_ns = st->read_queue,
		.read_ns = st->read,
		.handover_ns = st->handover,
		.write_ns = st->write,
		.total_ns = since(r->started_ns, clock_mono_ns()),
		.path = request_path(r),
	};
	struct buf *line = empty_line(r);

	if (r->site->timing == TIMING_JSON)
		timing_json(line, &t);
	else
		timing_line(line, &t);
	if (!line->failed)
		log_raw(buf_as_text(line));
}

void
finish_log(struct request *r, bool batched)
{
	if (r->site == NULL || r->status == 0)
		return; /* written down already */
	count(&r->worker->counters, replies);
	if (r->site->access != NULL)
		access_line(r);
	if (!batched && r->site->timing != TIMING_OFF && r->path != NULL &&
	    r->http.verb != HTTP_HEAD && (r->status == 200 || r->status == 206))
		timing_lines(r);
	r->status = 0;
}

void
finish_broken(struct request *r, int err)
{
	if (err == -ENODATA)
		log_event(LOG_ERROR, conn_id(r), "file.shrunk", LF_TEXT("path", request_path(r)),
		    LF_STR("then", "connection cut, nothing was padded"));
	else if (err == -ETIMEDOUT)
		log_event(LOG_INFO, conn_id(r), "client.stalled", LF_TEXT("path", request_path(r)),
		    LF_STR("then", "closed after server.max-write-idle without progress"));
	else if (err != -EPIPE && err != -ECONNRESET && err != -ECANCELED)
		log_event(LOG_ERROR, conn_id(r), "send.failed", LF_TEXT("path", request_path(r)), LF_ERR("error", err));
}
