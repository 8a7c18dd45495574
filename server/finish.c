/* server/finish.c -- see finish.h */
#include "server/finish.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/timing.h"
#include "server/accesslog.h"
#include "server/conn/conn.h"
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

static uint64_t
opened_ns(const struct request *r)
{
	return (r->open.opened != 0 ? r->open.opened : r->open.end);
}

static void
timing_fill(struct timing *t, struct request *r, uint64_t now)
{
	const struct sender_times *st = &r->times;

	*t = (struct timing){
		.tag = io_backend(r->worker->io)->tag,
		.status = r->status,
		.hot = !r->cold && st->hot,
		.bytes = r->body_bytes,
		.write_start_wall_ns = st->write_start_wall,
		.stat_queue_ns = r->cold ? since(r->open.submit, r->open.start) : 0,
		.stat_ns = r->cold ? since(r->open.start, opened_ns(r)) : 0,
		.proxy_queue_ns = r->proxy_queue_ns,
		.proxy_ns = r->proxy_ns,
		.read_queue_ns = st->read_queue,
		.read_ns = st->read + (r->cold ? since(r->open.opened, r->open.end) : 0),
		.handover_ns = st->handover,
		.write_ns = st->write,
		.total_ns = since(r->started_ns, now),
	};
}

static void
timing_lines(struct request *r)
{
	struct timing t;
	struct buf *line;

	timing_fill(&t, r, clock_mono_ns());
	t.id = conn_id(r);
	t.path = request_path(r);
	line = empty_line(r);
	if (r->site->timing == TIMING_JSON)
		timing_json(line, &t);
	else
		timing_line(line, &t);
	if (!line->failed)
		log_raw(buf_as_text(line));
}

static void
stage_add(struct tally *t, enum stage stage, const struct timing *from)
{
	histogram_add(&t->stage[stage], timing_stage(from, stage));
}

/* Each stage that the request went through.  A hot one has its total only, by the time of the loop's round. */
static void
count_stages(struct request *r, bool batched)
{
	struct tally *t = r->worker->tally;
	bool read = !batched && !r->times.hot;
	struct timing from;

	if (!r->cold && !read && r->relay == NULL) {
		histogram_add(&t->stage[stage_total], io_now(r->worker->io) - r->started_ns);
		return;
	}
	timing_fill(&from, r, io_now(r->worker->io));
	if (r->cold) {
		stage_add(t, stage_stat_queue, &from);
		stage_add(t, stage_stat, &from);
	}
	if (r->relay != NULL) {
		stage_add(t, stage_proxy_queue, &from);
		stage_add(t, stage_proxy, &from);
	}
	if (read || (r->cold && r->open.opened != 0))
		stage_add(t, stage_read, &from);
	if (read) {
		stage_add(t, stage_read_queue, &from);
		stage_add(t, stage_handover, &from);
	}
	if (!batched)
		stage_add(t, stage_write, &from);
	stage_add(t, stage_total, &from);
}

static void
count_reply(struct request *r, bool batched)
{
	struct counters *c = &r->worker->tally->counters;

	count(c, replies);
	switch (r->status / 100) {
	case 2:
		count(c, replies_2xx);
		break;
	case 3:
		count(c, replies_3xx);
		break;
	case 4:
		count(c, replies_4xx);
		break;
	case 5:
		count(c, replies_5xx);
		break;
	}
	count_stages(r, batched);
}

void
finish_log(struct request *r, bool batched)
{
	if (r->site == NULL || r->status == 0)
		return; /* written down already */
	count_reply(r, batched);
	if (r->site->access != NULL)
		access_line(r);
	if (!batched && r->site->timing != TIMING_OFF && r->path != NULL &&
	    r->http.verb != HTTP_HEAD && (r->status == 200 || r->status == 206))
		timing_lines(r);
	r->status = 0;
}

bool
finish_is_clients(int err)
{
	return (err == -EPIPE || err == -ECONNRESET || err == -ECANCELED || err == -ETIMEDOUT);
}

/* One line a second: many clients may fetch a file that is written to all the time.  The counter has them all. */
static void
log_changed(struct request *r)
{
	struct worker *w = r->worker;

	log_limited(1, LOG_WARN, conn_id(r), "file.changed", LF_TEXT("path", request_path(r)),
	    LF_U64("changed", w->tally->counters.file_changed), LF_STR("then", "connection cut, two versions would look like one"),
	    LF_STR("do", "replace files by rename, or set server.cut-changed-files = \"disable\" for those that grow"));
}

void
finish_broken(struct request *r, int err)
{
	if (err == -ENODATA)
		log_limited(10, LOG_ERROR, conn_id(r), "file.shrunk", LF_TEXT("path", request_path(r)),
		    LF_STR("then", "connection cut, nothing was padded"));
	else if (err == -ETXTBSY)
		log_changed(r);
	else if (err == -ETIMEDOUT)
		log_limited(10, LOG_INFO, conn_id(r), "client.stalled", LF_TEXT("path", request_path(r)),
		    LF_STR("then", "closed: slower than server.min-write-rate, or silent, for server.max-write-idle"));
	else if (!finish_is_clients(err))
		log_limited(10, LOG_ERROR, conn_id(r), "send.failed", LF_TEXT("path", request_path(r)), LF_ERR("error", err));
}
