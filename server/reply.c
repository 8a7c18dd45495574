/* server/reply.c -- replies that are not files, and the end of every head; see reply.h. */
#include "server/reply_impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "server/conn/conn.h"
#include "wire/http_date.h"
#include "server/page.h"
#include "server/worker.h"

char *
reply_put_end(char *p, struct request *r)
{
	p = put(p, TEXT("Date: "));
	memcpy(p, worker_date(r->worker), HTTP_DATE_LEN);
	p = put(p + HTTP_DATE_LEN, CRLF);
	if (!conn_keeps_alive(r))
		p = put(p, TEXT("Connection: close\r\n"));
	else if (r->http.minor == 0)
		p = put(p, TEXT("Connection: keep-alive\r\n"));
	return (put(p, CRLF));
}

void
reply_no_memory(struct request *r)
{
	conn_close_after(r); /* whatever was written is cut: better than a wrong frame */
	r->status = 500;
}

bool
reply_end_head(struct request *r, const struct reply_extra *x)
{
	char *start;

	if (x != NULL && !body_copy(&r->body, x->lines))
		return (false);
	start = body_room(&r->body, REPLY_END_MAX);
	if (start == NULL)
		return (false);
	body_wrote(&r->body, (size_t)(reply_put_end(start, r) - start));
	return (true);
}

void
page_make(struct page *page, int status, struct text html)
{
	struct buf body, head;

	buf_init(&body, 0);
	buf_init(&head, 0);
	buf_text(&body, html);
	buf_printf(&head, "HTTP/1.1 %d %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %zu\r\n",
	    status, http1_reason(status), body.n);
	must(!body.failed && !head.failed);
	page->head = buf_as_text(&head);
	page->body = buf_as_text(&body);
}

void
page_free(struct page *page)
{
	free((char *)page->head.p);
	free((char *)page->body.p);
}

/* The administrator's page, else ours, made once per worker. */
static const struct page *
error_page(struct request *r, int status)
{
	struct page *page = &r->worker->pages[status];
	struct buf html;

	if (r->site->pages != NULL && r->site->pages[status].head.p != NULL)
		return (&r->site->pages[status]);
	if (page->head.p != NULL)
		return (page);
	buf_init(&html, 0);
	page_error(&html, status, TEXT_NONE);
	page_make(page, status, buf_as_text(&html));
	buf_free(&html);
	return (page);
}

static void
send_error(struct request *r, int status, struct text lines)
{
	const struct page *page = error_page(r, status);
	char *start, *p;

	r->status = status;
	start = body_room(&r->body, page->head.n + lines.n + r->site->style.tag_line.n + REPLY_END_MAX);
	if (start == NULL) {
		reply_no_memory(r);
		return;
	}
	p = put(put(put(start, page->head), lines), r->site->style.tag_line);
	p = reply_put_end(p, r);
	body_wrote(&r->body, (size_t)(p - start));
	if (r->http.verb == HTTP_HEAD)
		return;
	r->body_bytes = page->body.n;
	if (!body_copy(&r->body, page->body))
		reply_no_memory(r);
}

void
reply_error(struct request *r, int status)
{
	send_error(r, status, TEXT_NONE);
}

void
reply_retry(struct request *r, unsigned after_s)
{
	char line[48];

	send_error(r, 503, (struct text){line, (size_t)snprintf(line, sizeof(line), "Retry-After: %u\r\n", after_s)});
}

void
reply_options(struct request *r, const char *allow, int status)
{
	char line[96];
	size_t n = (size_t)snprintf(line, sizeof(line), "Allow: %s\r\n", allow);
	char *start, *p;

	if (status != 200) {
		send_error(r, status, (struct text){line, n});
		return;
	}
	r->status = 200;
	start = body_room(&r->body, REPLY_HEAD_MAX);
	if (start == NULL) {
		reply_no_memory(r);
		return;
	}
	p = put(put_status(start, 200), (struct text){line, n});
	p = put(put(p, TEXT("Content-Length: 0\r\n")), r->site->style.tag_line);
	p = reply_put_end(p, r);
	body_wrote(&r->body, (size_t)(p - start));
}

void
reply_redirect(struct request *r, int status, struct text path, struct text query)
{
	struct buf to, page;
	char *start, *p;
	size_t room;

	buf_init(&to, 65536);
	buf_init(&page, 0);
	buf_urlenc(&to, path);
	if (query.n != 0) {
		buf_char(&to, '?');
		buf_text(&to, query); /* validated with the request line: visible ASCII only */
	}
	page_redirect(&page, status, buf_as_text(&to));
	r->status = status;
	room = REPLY_HEAD_MAX + to.n;
	start = !to.failed && !page.failed && room <= IO_CHUNK ? body_room(&r->body, room) : NULL;
	if (start != NULL) {
		p = put_status(start, status);
		p = put_line(p, TEXT("Location: "), buf_as_text(&to));
		p = put(p, TEXT("Content-Type: text/html; charset=utf-8\r\n"));
		p = put_u64_line(p, TEXT("Content-Length: "), page.n);
		p = reply_put_end(put(p, r->site->style.tag_line), r);
		body_wrote(&r->body, (size_t)(p - start));
		if (r->http.verb != HTTP_HEAD) {
			r->body_bytes = page.n;
			if (!body_copy(&r->body, buf_as_text(&page)))
				reply_no_memory(r);
		}
	} else {
		reply_error(r, 414);
	}
	buf_free(&to);
	buf_free(&page);
}

void
reply_stream_head(struct request *r, int status, struct text lines, int64_t length, bool chunked)
{
	char head[256], *p = head;
	bool ok;

	r->status = status;
	p = put_status(p, status);
	if (chunked)
		p = put(p, TEXT("Transfer-Encoding: chunked\r\n"));
	else if (length >= 0)
		p = put_u64_line(p, TEXT("Content-Length: "), (uint64_t)length);
	ok = body_copy(&r->body, (struct text){head, (size_t)(p - head)}) && body_copy(&r->body, lines) &&
	    body_copy(&r->body, r->site->style.tag_line);
	p = reply_put_end(head, r);
	if (!ok || !body_copy(&r->body, (struct text){head, (size_t)(p - head)}))
		reply_no_memory(r);
}
