/* server/reply/log.c -- see log.h */
#include "server/reply/log.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/timing.h"
#include "io/file.h"
#include "io/log/logfile.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/log/accesslog.h"
#include "server/log/accesslog_format.h"
#include "server/reply/reply.h"
#include "server/request/client.h"
#include "server/log/debug_log.h"
#include "server/module/rules.h"
#include "server/request/told.h"
#include "server/request/fault.h"
#include "server/request/request.h"
#include "server/status/hosts.h"
#include "server/reply/counters.h"
#include "server/status/worker_counters.h"
#include "server/worker/base.h"
#include "wire/http1/http1.h"
#include "wire/log_format.h"

bool
reply_log_may_batch(const struct request *r)
{
	return (r->site != NULL && r->site->timing == TIMING_OFF && !r->proxied);
}

bool
reply_log_needs_head(const struct request *r)
{
	return (hosts_count(&r->worker->conf.counters_list->hosts) != 0 ||
		(r->site != NULL && (r->site->access != NULL || r->site->debug)));
}

static struct text
or_dash(struct text t)
{
	return (t.p != NULL ? t : TEXT("-"));
}

/* The line buffer belongs to the worker and is reused: logging a request allocates nothing. */
static struct buf *
empty_line(struct request *r)
{
	struct buf *line = &r->worker->line;

	line->n = 0;
	line->failed = false;
	return (line);
}

static void
combined_line(struct request *r, struct buf *line)
{
	char remote[64];
	struct access a = {
		.remote = conn_remote(r, remote),
		.user = r->user,
		.line = or_dash(r->http.line),
		.referer = or_dash(r->http.known[HH_REFERER]),
		.agent = or_dash(r->http.known[HH_USER_AGENT]),
		.status = r->status,
		.bytes = r->body_bytes,
		.date = reply_date(r->worker),
	};

	accesslog_line(line, &a);
}

/* A client that goes on after 429 would make one line for each request. */
static bool
is_left_out(const struct request *r)
{
	struct worker_base *w = r->worker;
	uint64_t second = io_now(w->io) / NS_PER_S;

	if (r->status != 429 || !request_told(r)->over_rate)
		return (false);
	if (w->refused_lines.second != second) {
		w->refused_lines.second = second;
		w->refused_lines.lines = 0;
	}
	if (w->refused_lines.lines++ < r->conf->accesslog_refused)
		return (false);
	count(w->counts.reply, access_left_out);
	return (true);
}

static uint64_t
opened_ns(const struct request *r)
{
	return (r->open.opened != 0 ? r->open.opened : r->open.end);
}

static void
timing_fill(struct timing *t, struct request *r, uint64_t now)
{
	const struct request_told *told = request_told(r);
	const struct sender_times *st = &r->times;

	*t = (struct timing){
		.tag = io_backend(r->worker->io)->tag,
		.status = r->status,
		.hot = !r->cold && st->hot,
		.bytes = r->body_bytes,
		.write_start_wall_ns = st->write_start_wall,
		.handshake_ns = told->handshake_ns,
		.stat_queue_ns = r->cold ? clock_between(r->open.submit, r->open.start) : 0,
		.stat_ns = r->cold ? clock_between(r->open.start, opened_ns(r)) : 0,
		.proxy_queue_ns = told->queue_ns,
		.proxy_ns = told->ns,
		.read_queue_ns = st->read_queue,
		.read_ns = st->read + (r->cold ? clock_between(r->open.opened, r->open.end) : 0),
		.handover_ns = st->handover,
		.write_ns = st->write,
		.total_ns = clock_between(r->started_ns, now),
	};
}

static void
format_line(struct request *r, struct buf *line, const struct log_format *f, bool cut)
{
	struct timing t = { 0 };

	if (f->times)
		timing_fill(&t, r, clock_mono_ns());
	accesslog_format(line, r, f, &t, cut);
}

static void
access_line(struct request *r, bool cut)
{
	const struct log_format *f = r->site->rules[RULES_log_format];
	struct buf *line = empty_line(r);

	if (is_left_out(r))
		return;
	if (f != NULL)
		format_line(r, line, f, cut);
	else
		combined_line(r, line);
	if (!line->failed)
		logfile_line(r->site->access, buf_as_text(line));
}

static bool
has_timing_line(const struct request *r)
{
	return (r->site->timing != TIMING_OFF && r->path != NULL && r->http.verb != HTTP_HEAD &&
		(r->status == 200 || r->status == 206));
}

static void
write_timing_line(struct request *r, bool cut)
{
	struct timing t;
	struct buf *line;

	timing_fill(&t, r, clock_mono_ns());
	t.cut = cut;
	t.id = conn_number(r);
	t.path = request_path(r);
	line = empty_line(r);
	(r->site->timing == TIMING_JSON || log_is_json() ? timing_json : timing_line)(line, &t);
	if (!line->failed)
		log_raw(buf_as_text(line));
}

static void
stage_add(struct worker_counters *t, enum stage stage, const struct timing *from)
{
	histogram_add(&t->stage[stage], timing_stage(from, stage));
}

/* Counts each stage of the request.  A hot request has a total only, taken from the time of the
 * loop's round. */
static void
count_stages(struct request *r, bool batched)
{
	struct worker_counters *t = r->worker->counters;
	bool read = !batched && !r->times.hot;
	struct timing from;

	if (!r->cold && !read && !r->proxied) {
		histogram_add(&t->stage[stage_total], io_now(r->worker->io) - r->started_ns);
		return;
	}
	timing_fill(&from, r, io_now(r->worker->io));
	if (r->cold) {
		stage_add(t, stage_stat_queue, &from);
		stage_add(t, stage_stat, &from);
	}
	if (r->proxied) {
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

#define add(field, v) shared_set(field, shared_get(field) + (v))

static void
count_by(const struct request *r)
{
	const struct hosts *hosts = &r->worker->conf.counters_list->hosts;
	struct replies_by *by = &r->worker->counters->by;
	unsigned status = (unsigned)r->status;
	bool known = status >= STATUS_MIN && status <= STATUS_MAX;
	struct host_counters *h;

	add(by->status[known ? status - STATUS_MIN + 1 : 0], 1);
	if (hosts_count(hosts) == 0)
		return;
	h = &by->host[r->http.host.p != NULL ? hosts_find(hosts, r->http.host) : HOSTS_MAX];
	add(h->class[known ? status / 100 : 0], 1);
	add(h->bytes, r->body_bytes);
}

static void
count_reply(struct request *r, bool batched)
{
	struct reply_counters *c = r->worker->counts.reply;

	count(c, replies);
	count_by(r);
	switch (r->status / 100) {
	case 2: count(c, replies_2xx); break;
	case 3: count(c, replies_3xx); break;
	case 4: count(c, replies_4xx); break;
	case 5:
		count(c, replies_5xx);
		fault_count(r);
		fault_tell(r);
		break;
	}
	count_stages(r, batched);
}

void
reply_log(struct request *r, bool batched)
{
	if (r->site == NULL || r->status == 0)
		return; /* logged already */
	count_reply(r, batched);
	if (r->site->debug)
		debug_log_replied(r);
	if (batched)
		r->times = (struct sender_times){ .hot = true }; /* not those of the last send */
	if (r->site->access != NULL)
		access_line(r, false);
	if (!batched && has_timing_line(r))
		write_timing_line(r, false);
	r->status = 0;
}

void
reply_log_cut(struct request *r)
{
	if (r->site == NULL || r->status == 0)
		return;
	count(r->worker->counts.reply, replies_cut);
	if (r->body_bytes > r->sent)
		r->body_bytes = r->sent;
	if (r->site->access != NULL)
		access_line(r, true);
	if (has_timing_line(r))
		write_timing_line(r, true);
	r->status = 0;
}

bool
reply_error_is_clients(int err)
{
	return (err == -EPIPE || err == -ECONNRESET || err == -ECANCELED || err == -ETIMEDOUT);
}

/* One line a second: many clients may fetch a file that is written to all the time.  The counter
 * counts all of them. */
static void
log_changed(struct request *r)
{
	struct worker_base *w = r->worker;

	log_limited(1, LOG_WARN, conn_id(r), "file.changed", conn_client(r),
	    LF_TEXT("path", request_path(r)), LF_U64("changed", w->counts.reply->file_changed),
	    LF_STR("then", "connection cut, because two versions would look like one"),
	    LF_STR("do", "replace files by rename, or set server.cut-changed-files = \"disable\" "
			 "for those that may be mixed"));
}

void
reply_log_broken(struct request *r, int err)
{
	if (err == -ENODATA)
		log_limited(10, LOG_ERROR, conn_id(r), "file.shrunk", conn_client(r),
		    LF_TEXT("path", request_path(r)),
		    LF_STR("then", "connection cut, without padding"));
	else if (err == -ETXTBSY)
		log_changed(r);
	else if (err == -ETIMEDOUT && fault_tell_read(r))
		return;
	else if (err == -ETIMEDOUT)
		log_limited(10, LOG_INFO, conn_id(r), "client.stalled", conn_client(r),
		    LF_TEXT("path", request_path(r)),
		    LF_STR("then", "closed: slower than server.min-write-rate, or silent, for "
				   "server.max-write-idle"));
	else if (!reply_error_is_clients(err))
		log_limited(10, LOG_ERROR, conn_id(r), "send.failed", conn_client(r),
		    LF_TEXT("path", request_path(r)), LF_ERR("error", err));
}
