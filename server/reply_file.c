/* server/reply_file.c -- a file as a reply: validators, conditions, ranges, several parts.  See reply.h.
 *
 * The common reply (200, whole file) is a copy of what the cache prepared, plus the date.
 */
#include "server/reply_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "server/conn/conn.h"
#include "wire/http_date.h"
#include "server/page.h"
#include "server/worker.h"

#define COPY_MAX 2048u /* up to here copying a body beside its head is cheaper than a second iovec */

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

	start = body_room(&r->body, e->head.n + REPLY_END_MAX);
	if (start == NULL)
		return (false);
	p = put(start, e->head);
	p = reply_put_end(p, r);
	body_wrote(&r->body, (size_t)(p - start));
	return (attach(r, e, 0, e->size));
}

static bool
send_304(struct request *r, const struct file_facts *f, const struct reply_extra *x)
{
	char *start, *p;

	start = body_room(&r->body, REPLY_HEAD_MAX);
	if (start == NULL)
		return (false);
	p = put_status(start, 304);
	p = put_validators(p, f);
	p = put(p, r->site->style.tag_line);
	body_wrote(&r->body, (size_t)(p - start));
	return (reply_end_head(r, x));
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

	start = body_room(&r->body, REPLY_HEAD_MAX + type.n);
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
	return (reply_end_head(r, x));
}

static bool
send_416(struct request *r, uint64_t size)
{
	char *start, *p;

	r->status = 416;
	start = body_room(&r->body, REPLY_HEAD_MAX);
	if (start == NULL)
		return (false);
	p = put_status(start, 416);
	p = put(p, TEXT("Content-Range: bytes */"));
	p += text_put_u64(p, size);
	p = put(p, TEXT("\r\nContent-Length: 0\r\n"));
	p = put(p, r->site->style.tag_line);
	p = reply_put_end(p, r);
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
		reply_no_memory(r);
	stat_put(e);
}
