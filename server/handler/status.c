/* server/handler/status.c -- status pages at the URLs of the configuration. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "io/body.h"
#include "io/memory/pressure.h"
#include "server/config/config.h"
#include "server/request/client.h"
#include "server/request/fault.h"
#include "server/handler/handler.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/status/status.h"
#include "server/worker/base.h"
#include "wire/http1/http1.h"

/* A page has a letter for each connection and 14 kB of metrics for each backend. */
#define PAGE_MAX (64u << 20)

struct view {
	const char *type;
	void (*write)(struct buf *, const struct status *);
	bool lists_running; /* asks the other workers first */
};

/* A page that waits for other workers and for figures of the memory.  Freed by its timer, which may
 * end after the request. */
struct status_wait {
	struct request *r; /* NULL: the client is gone */
	const struct view *view;
	struct running_query *query; /* NULL: the page lists no requests */
	uint64_t until_ns;
	struct io_op timer;
};

static REQUEST_SLOT(struct status_wait *, status_wait); /* NULL: it waits for nothing */

static void
write_running(struct buf *out, const struct status *s)
{
	running_text(out, &s->running);
}

static const struct view html = { "text/html; charset=utf-8", status_html, true };
static const struct view json = { "application/json", status_json, true };
static const struct view json_buckets = { "application/json", status_json_buckets, true };
static const struct view running = { "text/plain; charset=utf-8", write_running, true };
static const struct view automatic = { "text/plain; charset=utf-8", status_auto };
static const struct view statistics = { "text/plain; charset=utf-8", status_statistics };
static const struct view metrics = { "text/plain; version=0.0.4; charset=utf-8", status_metrics };

static const struct view health = { "text/plain; charset=utf-8" };

static const struct view modules = { "text/plain; charset=utf-8", status_modules };

static bool
is_at(const struct request *r, const char *url)
{
	return (url != NULL && text_eq(request_path(r), text_of(url)));
}

static bool
has_word(struct text query, struct text wanted)
{
	struct text word;

	while (text_next(&query, '&', &word))
		if (text_eq(word, wanted))
			return (true);
	return (false);
}

static const struct view *
status_view(struct text query)
{
	const struct text all = query;
	struct text word;

	while (text_next(&query, '&', &word)) {
		if (text_eq(word, TEXT("json")))
			return (has_word(all, TEXT("buckets")) ? &json_buckets : &json);
		if (text_eq(word, TEXT("auto")))
			return (&automatic);
		if (text_eq(word, TEXT("running")))
			return (&running);
	}
	return (&html);
}

static const struct view *
view_of(const struct request *r)
{
	if (is_at(r, r->conf->status_url))
		return (status_view(r->http.query));
	if (is_at(r, r->conf->config_url))
		return (&modules);
	if (is_at(r, r->conf->health_url))
		return (&health);
	return (is_at(r, r->conf->statistics_url) ? &statistics : &metrics);
}

bool
status_is_at(const struct request *r)
{
	const struct conf *c = r->conf;

	return (is_at(r, c->status_url) || is_at(r, c->statistics_url) ||
		is_at(r, c->metrics_url) || is_at(r, c->config_url) || is_at(r, c->health_url));
}

/* The page may use its own style and script, and nothing from elsewhere. */
static void
send_page(struct request *r, int status, const struct view *view, struct buf *page)
{
	char lines[400];
	int n = snprintf(lines, sizeof(lines),
	    "Content-Type: %s\r\nCache-Control: no-store\r\n"
	    "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; "
	    "style-src 'unsafe-inline'; "
	    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:\r\n",
	    view->type);

	reply_stream_head(r, status, (struct text){ lines, (size_t)n }, (int64_t)page->n, false);
	if (r->http.verb == HTTP_HEAD)
		return;
	r->body_bytes = page->n;
	if (body_lend(&r->body, buf_as_text(page), free, page->p))
		*page = (struct buf){ 0 }; /* r->body owns it now */
	else
		conn_close_after(r);
}

static void
write_page(struct request *r, const struct view *view, struct running_query *query)
{
	struct status *s = status_new(r);
	struct buf page;
	bool ok = s != NULL;

	buf_init(&page, PAGE_MAX);
	if (query != NULL && s != NULL)
		ok = running_take(query, io_now(r->worker->io), &s->running);
	else if (query != NULL)
		running_drop(query);
	if (ok)
		view->write(&page, s);
	if (s != NULL)
		status_free(s);
	if (!ok || page.failed)
		reply_error(r, 500);
	else
		send_page(r, 200, view, &page);
	buf_free(&page);
}

/* The answer to a health check needs no other worker and no lock, because balancers ask often. */
static void
write_health(struct request *r)
{
	bool leaving = counters_leaving(r->worker->conf.counters_list);
	struct buf page;

	buf_init(&page, PAGE_MAX);
	buf_str(&page, leaving ? "draining\n" : "ok\n");
	if (leaving)
		fault_told(r); /* by drain.started */
	if (page.failed)
		reply_error(r, 503);
	else
		send_page(r, leaving ? 503 : 200, &health, &page);
	buf_free(&page);
}

/* ---- other workers, and the memory */

static bool
wait_ready(struct status_wait *sw)
{
	return ((sw->query == NULL || running_ready(sw->query)) && pressure_fresh());
}

static void
looked(struct io_op *op)
{
	struct status_wait *sw = container_of(op, struct status_wait, timer);
	struct request *r = sw->r;

	if (r == NULL) {
		if (sw->query != NULL)
			running_drop(sw->query);
		free(sw);
		return;
	}
	if (!wait_ready(sw) && io_now(r->worker->io) < sw->until_ns) {
		op_submit(r->worker->io, op);
		return;
	}
	*request_slot(r, status_wait) = NULL;
	write_page(r, sw->view, sw->query);
	free(sw);
	conn_replied(r);
}

/* This worker answers at the end of its round, as the others do. */
static enum handled
status_ask(struct request *r, const struct view *view)
{
	struct worker_base *w = r->worker;
	struct status_wait *sw = calloc(1, sizeof(*sw));

	if (sw == NULL || !request_keep(r) ||
	    (view->lists_running && (sw->query = running_ask(w->conf.counters_list)) == NULL)) {
		free(sw);
		reply_error(r, 500);
		return (HANDLED_REPLY);
	}
	sw->r = r;
	sw->view = view;
	sw->until_ns = io_now(w->io) + RUNNING_WAIT_MS * NS_PER_MS;
	*request_slot(r, status_wait) = sw;
	op_init(&sw->timer, IO_TIMER, looked);
	sw->timer.deadline_ms = RUNNING_POLL_MS;
	op_submit(w->io, &sw->timer);
	return (HANDLED_LATER);
}

static void
status_stop(struct request *r)
{
	struct status_wait *sw = *request_slot(r, status_wait);

	if (sw == NULL)
		return;
	*request_slot(r, status_wait) = NULL;
	sw->r = NULL;
	op_cancel(r->worker->io, &sw->timer);
}

static enum handled
status_start(struct request *r)
{
	const struct view *view = view_of(r);

	if (r->http.verb != HTTP_GET && r->http.verb != HTTP_HEAD) {
		reply_methods(r);
		return (HANDLED_REPLY);
	}
	if (view == &health) {
		write_health(r);
		return (HANDLED_REPLY);
	}
	pressure_ask();
	if (view->lists_running || !pressure_fresh())
		return (r->peeks ? HANDLED_NOT_NOW : status_ask(r, view));
	conn_show(r); /* this connection is busy, too */
	write_page(r, view, NULL);
	return (HANDLED_REPLY);
}

const struct handler handler_status = { .name = "status",
	.start = status_start,
	.stop = status_stop };
