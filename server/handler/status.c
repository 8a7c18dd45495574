/* server/handler/status.c -- status pages at the URLs of the configuration. */
#include <stdio.h>
#include <stdlib.h>

#include "server/conn/conn.h"
#include "server/handler/handler.h"
#include "server/reply.h"
#include "server/status/status.h"
#include "server/worker.h"

#define PAGE_MAX (4u << 20) /* one letter for each connection can be long */

struct view {
	const char *type;
	void (*write)(struct buf *, const struct status *);
};

static const struct view html = { "text/html; charset=utf-8", status_html };
static const struct view json = { "application/json", status_json };
static const struct view automatic = { "text/plain; charset=utf-8", status_auto };
static const struct view statistics = { "text/plain; charset=utf-8", status_statistics };
static const struct view metrics = { "text/plain; version=0.0.4; charset=utf-8", status_metrics };

static bool
is_at(const struct request *r, const char *url)
{
	return (url != NULL && text_eq(request_path(r), text_of(url)));
}

static const struct view *
status_view(struct text query)
{
	struct text word;

	while (text_next(&query, '&', &word)) {
		if (text_eq(word, TEXT("json")))
			return (&json);
		if (text_eq(word, TEXT("auto")))
			return (&automatic);
	}
	return (&html);
}

static const struct view *
view_of(const struct request *r)
{
	if (is_at(r, r->conf->status_url))
		return (status_view(r->http.query));
	return (is_at(r, r->conf->statistics_url) ? &statistics : &metrics);
}

bool
status_is_at(const struct request *r)
{
	const struct conf *c = r->conf;

	return (is_at(r, c->status_url) || is_at(r, c->statistics_url) || is_at(r, c->metrics_url));
}

/* The page may use its own style and script, and nothing from elsewhere. */
static void
send_page(struct request *r, const struct view *view, struct buf *page)
{
	char lines[400];
	int n = snprintf(lines, sizeof(lines),
	    "Content-Type: %s\r\nCache-Control: no-store\r\n"
	    "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; "
	    "style-src 'unsafe-inline'; "
	    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:\r\n",
	    view->type);

	reply_stream_head(r, 200, (struct text){ lines, (size_t)n }, (int64_t)page->n, false);
	if (r->http.verb == HTTP_HEAD)
		return;
	r->body_bytes = page->n;
	if (body_lend(&r->body, buf_as_text(page), free, page->p))
		*page = (struct buf){ 0 }; /* r->body owns it now */
	else
		conn_close_after(r);
}

static enum handled
status_start(struct request *r, bool peek)
{
	const struct view *view = view_of(r);
	struct status *s;
	struct buf page;

	if (r->http.verb != HTTP_GET && r->http.verb != HTTP_HEAD) {
		reply_methods(r);
		return (HANDLED_REPLY);
	}
	conn_phase_show(r->conn); /* this connection is busy, too */
	s = status_new(r);
	buf_init(&page, PAGE_MAX);
	if (s != NULL) {
		view->write(&page, s);
		status_free(s);
	}
	if (s == NULL || page.failed)
		reply_error(r, 500);
	else
		send_page(r, view, &page);
	buf_free(&page);
	return (HANDLED_REPLY);
}

const struct handler handler_status = { .name = "status", .start = status_start };
