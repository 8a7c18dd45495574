/* server/reply/reply.c -- replies other than files, and the end of every head; see reply.h. */
#include "server/reply/impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "io/body.h"
#include "server/config/page.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/log/debug_log.h"
#include "server/request/fault.h"
#include "server/request/request.h"
#include "server/request/told.h"
#include "wire/http1/headers.h"
#include "wire/http1/http_date.h"
#include "server/module/module.h"
#include "server/reply/page.h"
#include "server/worker/base.h"

char *
reply_put_end(char *p, struct request *r)
{
	p = put(p, TEXT("Date: "));
	memcpy(p, reply_date(r->worker), HTTP_DATE_LEN);
	p = put(p + HTTP_DATE_LEN, CRLF);
	if (r->http.major != 2 && !conn_keeps_alive(r))
		p = put(p, TEXT("Connection: close\r\n"));
	else if (r->http.major != 2 && r->http.minor == 0)
		p = put(p, TEXT("Connection: keep-alive\r\n"));
	return (put(p, CRLF));
}

void
reply_no_memory(struct request *r)
{
	/* the connection is cut after a part of a reply: better than a wrong frame */
	conn_close_after(r);
	r->status = 500;
	fault_own(r, r->status);
}

/* Adds the lines, without those that modules replace. */
static bool
put_lines(struct request *r, struct text lines)
{
	struct text kept = modules_edited(r, lines);

	return ((kept.p != NULL || lines.n == 0) && body_copy(&r->body, kept));
}

bool
reply_end_head(struct request *r, const struct reply_extra *x)
{
	char *start;

	if (x != NULL && !put_lines(r, x->lines))
		return (false);
	start = body_room(&r->body, REPLY_END_MAX);
	if (start == NULL)
		return (false);
	body_wrote(&r->body, (size_t)(reply_put_end(start, r) - start));
	return (true);
}

void
reply_keep_head(struct request *r, uint64_t mark)
{
	size_t n = (size_t)(r->body.left - mark);
	char *p = arena_get(&r->arena, n + 1);

	if (p == NULL)
		return; /* the log shows "-" */
	body_peek(&r->body, mark, p, n);
	request_told(r)->reply_head = (struct text){ p, n };
	if (r->site->debug)
		debug_log_head(r);
}

/* The administrator's page or the built-in one, made once per worker.  NULL: no memory. */
static const struct page *
error_page(struct request *r, int status)
{
	struct page *page = &r->worker->pages[status];
	struct buf html;
	bool ok;

	if (r->site->pages != NULL && r->site->pages[status].head.p != NULL)
		return (&r->site->pages[status]);
	if (page->head.p != NULL)
		return (page);
	buf_init(&html, 0);
	page_error(&html, status);
	ok =
	    !html.failed && page_make(page, status, "text/html; charset=utf-8", buf_as_text(&html));
	buf_free(&html);
	return (ok ? page : NULL);
}

/* That of the refusal, if its error handler has not answered. */
static int
page_status(const struct request *r, int status)
{
	bool replaced = !r->refused.missing || status == 403 || status == 404;

	return (r->refused.status != 0 && replaced ? r->refused.status : status);
}

void
reply_error_with(struct request *r, int status, struct text lines)
{
	const struct page *page;
	struct text more;
	uint64_t mark = r->body.left;
	char *start, *p;

	r->status = status = page_status(r, status);
	fault_own(r, status);
	page = error_page(r, status);
	if (page == NULL) {
		reply_no_memory(r);
		return;
	}
	more = modules_head(r, status, NULL, lines, TEXT_NONE);
	start = body_room(&r->body,
	    page->head.n + lines.n + more.n + r->site->style.tag_line.n + REPLY_END_MAX);
	if (start == NULL) {
		reply_no_memory(r);
		return;
	}
	p = put(put(put(start, page->head), lines), r->site->style.tag_line);
	p = put(modules_edit(r, start, p), more);
	p = reply_put_end(p, r);
	body_wrote(&r->body, (size_t)(p - start));
	if (r->site->wants_head)
		reply_keep_head(r, mark);
	if (r->http.verb == HTTP_HEAD)
		return;
	r->body_bytes = page->body.n;
	if (!body_copy(&r->body, page->body))
		reply_no_memory(r);
}

void
reply_error(struct request *r, int status)
{
	if (status == 503)
		reply_retry(r, 1);
	else
		reply_error_with(r, status, TEXT_NONE);
}

void
reply_retry(struct request *r, unsigned after_s)
{
	char line[48];

	reply_error_with(r, 503,
	    (struct text){ line,
		(size_t)snprintf(line, sizeof(line), "Retry-After: %u\r\n", after_s) });
}

void
reply_methods(struct request *r)
{
	struct text allow = TEXT("Allow: GET, HEAD, OPTIONS\r\n");

	if (r->http.verb == HTTP_OPTIONS)
		reply_stream_head(r, 200, allow, 0, false);
	else
		reply_error_with(r, 405, allow);
}

void
reply_redirect(struct request *r, int status, struct text path, struct text query)
{
	struct buf url;

	buf_init(&url, IO_CHUNK);
	buf_urlenc(&url, path);
	if (query.n != 0) {
		buf_char(&url, '?');
		buf_text(&url, query); /* validated with the request line: visible ASCII only */
	}
	if (url.failed)
		reply_error(r, 414);
	else
		reply_location(r, status, buf_as_text(&url));
	buf_free(&url);
}

void
reply_location(struct request *r, int status, struct text url)
{
	struct buf lines, page;
	bool has_body = status_has_body(status);

	buf_init(&lines, IO_CHUNK - REPLY_OWN_HEAD_MAX);
	buf_init(&page, 0);
	if (has_body)
		page_redirect(&page, status, url);
	buf_str(&lines, "Location: ");
	buf_text(&lines, url);
	buf_str(&lines, "\r\n");
	if (has_body)
		buf_str(&lines, "Content-Type: text/html; charset=utf-8\r\n");
	if (lines.failed || page.failed)
		reply_error(r, 414);
	else {
		reply_stream_head(r, status, buf_as_text(&lines), has_body ? (int64_t)page.n : -1,
		    false);
		r->body_bytes = r->http.verb == HTTP_HEAD ? 0 : page.n;
		if (!body_copy(&r->body, (struct text){ page.p, r->body_bytes }))
			reply_no_memory(r);
	}
	buf_free(&lines);
	buf_free(&page);
}

void
reply_stream_head(struct request *r, int status, struct text lines, int64_t length, bool chunked)
{
	char head[256], *p = head;
	uint64_t mark = r->body.left;
	bool ok;

	r->status = status;
	p = put_status(p, status);
	if (chunked)
		p = put(p, TEXT("Transfer-Encoding: chunked\r\n"));
	else if (length >= 0)
		p = put_u64_line(p, TEXT("Content-Length: "), (uint64_t)length);
	ok = body_copy(&r->body, (struct text){ head, (size_t)(p - head) }) &&
	     put_lines(r, lines) && put_lines(r, r->site->style.tag_line) &&
	     body_copy(&r->body, modules_head(r, status, NULL, lines, TEXT_NONE));
	p = reply_put_end(head, r);
	if (!ok || !body_copy(&r->body, (struct text){ head, (size_t)(p - head) }))
		reply_no_memory(r);
	else if (r->site->wants_head)
		reply_keep_head(r, mark);
}

bool
reply_interim(struct request *r, int status, struct text lines)
{
	char head[64], *p = put_status(head, status);

	return (body_copy(&r->body, (struct text){ head, (size_t)(p - head) }) &&
		body_copy(&r->body, lines) && body_copy(&r->body, CRLF));
}

bool
reply_switch(struct request *r, struct text protocol, struct text lines)
{
	struct buf all;
	bool ok;

	buf_init(&all, 0);
	buf_str(&all, "Connection: Upgrade\r\nUpgrade: ");
	buf_text(&all, protocol);
	buf_str(&all, "\r\n");
	buf_text(&all, lines);
	ok = !all.failed && reply_interim(r, 101, buf_as_text(&all));
	buf_free(&all);
	if (ok)
		r->status = 101;
	return (ok);
}

const char *
reply_date(struct worker_base *w)
{
	uint64_t now = io_wall_s(w->io);

	if (now != w->date_s) {
		w->date_s = now;
		http_date_put(w->date, now);
	}
	return (w->date);
}
