/* server/reply.c -- see reply.h
 *
 * A reply head is written with put(): a short one costs no formatted printing and no allocation.
 * The common one (200, whole file) is a copy of what the cache prepared, plus the date.
 */
#include "server/reply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "server/conn/conn.h"
#include "wire/http_date.h"
#include "server/page.h"
#include "server/worker.h"

#define COPY_MAX 2048u /* up to here copying a body beside its head is cheaper than a second iovec */
#define HEAD_MAX 1536u /* any head made here without lines from an application */

#define CRLF TEXT("\r\n")

static char *
put(char *p, struct text t)
{
	if (t.n != 0)
		memcpy(p, t.p, t.n);
	return (p + t.n);
}

static char *
put_status(char *p, int status)
{
	p = put(p, TEXT("HTTP/1.1 "));
	p += text_put_u64(p, (uint64_t)status);
	*p++ = ' ';
	return (put(put(p, text_of(http1_reason(status))), CRLF));
}

static char *
put_u64_line(char *p, struct text name, uint64_t v)
{
	p = put(p, name);
	p += text_put_u64(p, v);
	return (put(p, CRLF));
}

static char *
put_line(char *p, struct text name, struct text value)
{
	return (put(put(put(p, name), value), CRLF));
}

/* Behind everything that can be prepared: the date, what becomes of the connection, the empty line. */
static char *
put_end(char *p, struct request *r)
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

#define END_MAX 96u

static void
out_of_memory(struct request *r)
{
	conn_close_after(r); /* whatever was written is cut: better than a wrong frame */
	r->status = 500;
}

/* What an application adds may be more than fits in one run of memory; then the end of the head. */
static bool
end_head(struct request *r, const struct reply_extra *x)
{
	char *start;

	if (x != NULL && !body_copy(&r->body, x->lines))
		return (false);
	start = body_room(&r->body, END_MAX);
	if (start == NULL)
		return (false);
	body_wrote(&r->body, (size_t)(put_end(start, r) - start));
	return (true);
}

/* ---- files */

struct file_facts {
	char etag_buf[ETAG_MAX];
	char date_buf[HTTP_DATE_LEN + 1];
	struct text etag, last_modified, type;
	struct validators v;
};

static void
facts_of(struct file_facts *f, const struct file_style *style, const struct stat_entry *e, const struct reply_extra *x,
    uint64_t wall_s)
{
	int64_t mtime = e->stx.stx_mtime.tv_sec;

	f->etag = (struct text){f->etag_buf, etag_make(f->etag_buf, &e->stx, style->etag_parts, e->unsettled)};
	if (x != NULL && x->etag.n != 0)
		f->etag = x->etag;
	f->v.mtime_s = mtime > 0 ? (uint64_t)mtime : 0;
	f->v.date_is_weak = e->unsettled != 0 || f->v.mtime_s + 2 > wall_s;
	http_date_put(f->date_buf, f->v.mtime_s);
	f->last_modified = (struct text){f->date_buf, HTTP_DATE_LEN};
	if (x != NULL && x->last_modified.n != 0) {
		f->last_modified = x->last_modified;
		f->v.date_is_weak = false; /* the application's business */
		(void)http_date_parse(x->last_modified, &f->v.mtime_s);
	} else if (f->etag.n == 0 && e->unsettled != 0) {
		f->last_modified = TEXT_NONE; /* it would be the only name of contents that may change under it */
	}
	f->type = x != NULL && x->content_type.n != 0 ? x->content_type : mime_type(style->mime, e->path);
	f->v.etag = f->etag;
}

static char *
put_validators(char *p, const struct file_facts *f)
{
	if (f->last_modified.n != 0)
		p = put_line(p, TEXT("Last-Modified: "), f->last_modified);
	if (f->etag.n != 0)
		p = put_line(p, TEXT("ETag: "), f->etag);
	return (p);
}

static bool
facts_fit(const struct file_facts *f, const struct file_style *style)
{
	return (f->etag.n + f->last_modified.n + f->type.n + style->tag_line.n < STAT_HEAD_MAX - 256);
}

size_t
reply_prepare(const struct stat_entry *e, char *head)
{
	const struct file_scope *fs = container_of(e->scope, const struct file_scope, scope);
	const struct file_style *style = &fs->style;
	struct file_facts f;
	char *p = head;

	facts_of(&f, style, e, NULL, io_wall_s(fs->io));
	if (!facts_fit(&f, style))
		return (0); /* replies are then built one by one */
	p = put_status(p, 200);
	p = put_line(p, TEXT("Content-Type: "), f.type);
	p = put_u64_line(p, TEXT("Content-Length: "), e->size);
	p = put_validators(p, &f);
	if (style->ranges)
		p = put(p, TEXT("Accept-Ranges: bytes\r\n"));
	p = put(p, style->tag_line);
	return ((size_t)(p - head));
}

static void
put_back(void *entry)
{
	stat_put(entry);
}

/* len bytes of the file from off, behind what the body holds.  HEAD: nothing. */
static bool
attach(struct request *r, struct stat_entry *e, uint64_t off, uint64_t len)
{
	struct text t;

	if (r->http.verb == HTTP_HEAD || len == 0)
		return (true);
	r->body_bytes += len;
	if (e->file != NULL)
		return (body_file(&r->body, e->file, off, len));
	t = (struct text){e->bytes + off, len};
	if (len <= COPY_MAX)
		return (body_copy(&r->body, t));
	return (body_lend(&r->body, t, put_back, stat_ref(e)));
}

static bool
is_conditional(const struct http_request *h)
{
	return (h->known[HH_RANGE].p != NULL || h->known[HH_IF_NONE_MATCH].p != NULL ||
	    h->known[HH_IF_MODIFIED_SINCE].p != NULL || h->known[HH_IF_MATCH].p != NULL ||
	    h->known[HH_IF_UNMODIFIED_SINCE].p != NULL);
}

/* The hot path: a copy of the prepared head, the date, the bytes. */
static bool
send_prepared(struct request *r, struct stat_entry *e)
{
	char *start, *p;

	start = body_room(&r->body, e->head.n + END_MAX);
	if (start == NULL)
		return (false);
	p = put(start, e->head);
	p = put_end(p, r);
	body_wrote(&r->body, (size_t)(p - start));
	return (attach(r, e, 0, e->size));
}

static bool
send_304(struct request *r, const struct file_facts *f, const struct reply_extra *x)
{
	char *start, *p;

	start = body_room(&r->body, HEAD_MAX);
	if (start == NULL)
		return (false);
	p = put_status(start, 304);
	p = put_validators(p, f);
	p = put(p, r->site->style.tag_line);
	body_wrote(&r->body, (size_t)(p - start));
	return (end_head(r, x));
}

static char *
put_content_range(char *p, struct byte_range g, uint64_t size)
{
	p = put(p, TEXT("Content-Range: bytes "));
	p += text_put_u64(p, g.off);
	*p++ = '-';
	p += text_put_u64(p, g.off + g.len - 1);
	*p++ = '/';
	p += text_put_u64(p, size);
	return (put(p, CRLF));
}

/* Head of a reply with bytes of a file: status, type, length and, for one range, which it is. */
static bool
file_head(struct request *r, int status, const struct file_facts *f, struct text type, uint64_t length,
    const struct byte_range *one, uint64_t size, const struct reply_extra *x)
{
	char *start, *p;

	start = body_room(&r->body, HEAD_MAX + type.n);
	if (start == NULL)
		return (false);
	p = put_status(start, status);
	p = put_line(p, TEXT("Content-Type: "), type);
	p = put_u64_line(p, TEXT("Content-Length: "), length);
	if (one != NULL)
		p = put_content_range(p, *one, size);
	p = put_validators(p, f);
	if (r->conf->range_requests && status < 300)
		p = put(p, TEXT("Accept-Ranges: bytes\r\n"));
	p = put(p, r->site->style.tag_line);
	body_wrote(&r->body, (size_t)(p - start));
	return (end_head(r, x));
}

static bool
send_416(struct request *r, uint64_t size)
{
	char *start, *p;

	r->status = 416;
	start = body_room(&r->body, HEAD_MAX);
	if (start == NULL)
		return (false);
	p = put_status(start, 416);
	p = put(p, TEXT("Content-Range: bytes */"));
	p += text_put_u64(p, size);
	p = put(p, TEXT("\r\nContent-Length: 0\r\n"));
	p = put(p, r->site->style.tag_line);
	p = put_end(p, r);
	body_wrote(&r->body, (size_t)(p - start));
	return (true);
}

/* "--B\r\n" type, range, empty line; the first without the line end before it. */
static size_t
part_head(char *dst, struct text boundary, bool first, struct text type, struct byte_range g, uint64_t size)
{
	char *p = dst;

	if (!first)
		p = put(p, CRLF);
	p = put(put(put(p, TEXT("--")), boundary), CRLF);
	p = put_line(p, TEXT("Content-Type: "), type);
	p = put_content_range(p, g, size);
	return ((size_t)(put(p, CRLF) - dst));
}

static bool
send_multipart(struct request *r, struct stat_entry *e, const struct file_facts *f,
    const struct byte_range *g, int n, const struct reply_extra *x)
{
	char head[STAT_HEAD_MAX], bound[24], ctype[64], last[64];
	uint64_t length = 0;
	struct text boundary;
	size_t nlast;
	int i;

	/* The file's identity and the time make a boundary that its bytes cannot have been written to hold. */
	snprintf(bound, sizeof(bound), "%016llx",
	    (unsigned long long)(text_hash(f->etag) ^ (io_now(r->worker->io) * 0x9e3779b97f4a7c15ull)));
	boundary = text_of(bound);
	for (i = 0; i < n; i++)
		length += part_head(head, boundary, i == 0, f->type, g[i], e->size) + g[i].len;
	nlast = (size_t)snprintf(last, sizeof(last), "\r\n--%s--\r\n", bound);
	length += nlast;
	snprintf(ctype, sizeof(ctype), "multipart/byteranges; boundary=%s", bound);
	if (!file_head(r, 206, f, text_of(ctype), length, NULL, e->size, x))
		return (false);
	if (r->http.verb == HTTP_HEAD)
		return (true);
	for (i = 0; i < n; i++) {
		size_t len = part_head(head, boundary, i == 0, f->type, g[i], e->size);

		if (!body_copy(&r->body, (struct text){head, len}) || !attach(r, e, g[i].off, g[i].len))
			return (false);
	}
	return (body_copy(&r->body, (struct text){last, nlast}));
}

/* 200, 206 and 416 say which part of a file is sent, and that is decided here. */
static bool
is_own_status(int status)
{
	return (status != 0 && status != 200 && status != 206 && status != 416);
}

static bool
send_selected(struct request *r, struct stat_entry *e, const struct reply_extra *x)
{
	struct byte_range g[RANGES_MAX];
	struct file_facts f;
	int n = 0, status = 0;

	facts_of(&f, &r->site->style, e, x, io_wall_s(r->worker->io));
	if (!facts_fit(&f, &r->site->style)) {
		reply_error(r, 502);
		return (true);
	}
	if (x != NULL && is_own_status(x->status)) {
		r->status = x->status;
		return (file_head(r, r->status, &f, f.type, e->size, NULL, 0, x) && attach(r, e, 0, e->size));
	}
	status = conditions_check(&r->http, &f.v);
	if (status == 304) {
		r->status = 304;
		return (send_304(r, &f, x));
	}
	if (status == 412) {
		reply_error(r, 412);
		return (true);
	}
	if (r->conf->range_requests && r->http.known[HH_RANGE].p != NULL && r->http.verb == HTTP_GET)
		n = ranges_select(&r->http, &f.v, e->size, g);
	if (n < 0)
		return (send_416(r, e->size));
	r->status = n != 0 ? 206 : 200;
	if (n == 0)
		return (file_head(r, 200, &f, f.type, e->size, NULL, 0, x) && attach(r, e, 0, e->size));
	if (n == 1)
		return (file_head(r, 206, &f, f.type, g[0].len, g, e->size, x) &&
		    attach(r, e, g[0].off, g[0].len));
	return (send_multipart(r, e, &f, g, n, x));
}

void
reply_file(struct request *r, struct stat_entry *e, const struct reply_extra *x)
{
	bool ok;

	r->status = 200;
	if (x == NULL && e->head.n != 0 && !is_conditional(&r->http))
		ok = send_prepared(r, e);
	else
		ok = send_selected(r, e, x);
	if (!ok)
		out_of_memory(r);
	stat_put(e);
}

/* ---- replies that are not files */

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
	start = body_room(&r->body, page->head.n + lines.n + r->site->style.tag_line.n + END_MAX);
	if (start == NULL) {
		out_of_memory(r);
		return;
	}
	p = put(put(put(start, page->head), lines), r->site->style.tag_line);
	p = put_end(p, r);
	body_wrote(&r->body, (size_t)(p - start));
	if (r->http.verb == HTTP_HEAD)
		return;
	r->body_bytes = page->body.n;
	if (!body_copy(&r->body, page->body))
		out_of_memory(r);
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
	start = body_room(&r->body, HEAD_MAX);
	if (start == NULL) {
		out_of_memory(r);
		return;
	}
	p = put(put_status(start, 200), (struct text){line, n});
	p = put(put(p, TEXT("Content-Length: 0\r\n")), r->site->style.tag_line);
	p = put_end(p, r);
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
	room = HEAD_MAX + to.n;
	start = !to.failed && !page.failed && room <= IO_CHUNK ? body_room(&r->body, room) : NULL;
	if (start != NULL) {
		p = put_status(start, status);
		p = put_line(p, TEXT("Location: "), buf_as_text(&to));
		p = put(p, TEXT("Content-Type: text/html; charset=utf-8\r\n"));
		p = put_u64_line(p, TEXT("Content-Length: "), page.n);
		p = put_end(put(p, r->site->style.tag_line), r);
		body_wrote(&r->body, (size_t)(p - start));
		if (r->http.verb != HTTP_HEAD) {
			r->body_bytes = page.n;
			if (!body_copy(&r->body, buf_as_text(&page)))
				out_of_memory(r);
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
	p = put_end(head, r);
	if (!ok || !body_copy(&r->body, (struct text){head, (size_t)(p - head)}))
		out_of_memory(r);
}

int
reply_status_of_errno(int err)
{
	switch (-err) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		return (404);
	case EACCES:
	case EPERM:
	case ELOOP:
	case EXDEV:
		return (403);
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ETIMEDOUT:
		return (503);
	default:
		return (500);
	}
}
