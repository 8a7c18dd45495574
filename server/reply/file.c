/* server/reply/file.c -- a file as a reply: validators, conditions, ranges, several parts.  See
 * reply.h.
 *
 * The common reply (200, whole file) is a copy of the head in the cache, plus the date.
 */
#include "server/reply/impl.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "files/hold/hold.h"
#include "io/body.h"
#include "server/config/check/mime.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/reply/scope.h"
#include "server/reply/style.h"
#include "server/request/request.h"
#include "wire/codec/control.h"
#include "wire/http1/http_date.h"
#include "wire/http1/media_type.h"
#include "server/module/module.h"
#include "server/worker/base.h"
#include "wire/http1/range.h"
#include "wire/http1/validate.h"
#include "wire/urlpath.h"

/* up to this size copying the body after its head is cheaper than a second iovec */
#define COPY_MAX       2048u
#define ETAG_CODED_MAX 192u /* a longer tag of an application is not sent for a compressed form */
#define TYPE_MAX       256u /* a longer media type gets no charset */

struct file_facts {
	char etag_buf[ETAG_CODED_MAX];
	char date_buf[HTTP_DATE_LEN + 1];
	char type_buf[TYPE_MAX + CONTROL_NAME_MAX + MEDIA_TYPE_MORE];
	struct text etag, last_modified, type, coding; /* .n 0: none */
	bool varies;
	uint64_t size; /* of the form */
	struct validators v;
};

struct text
reply_type(const struct reply_style *style, const struct file_entry *e, const struct reply_extra *x)
{
	return (x != NULL && x->content_type.n != 0 ? x->content_type
						    : mime_type(style->mime, e->lk.path));
}

bool
reply_varies_fits(const struct reply_varies *v, struct text type, int64_t length)
{
	size_t i;

	if (v->n == 0 || (length >= 0 && ((uint64_t)length < v->min || (uint64_t)length > v->max)))
		return (false);
	for (i = 0; i < v->n; i++)
		if (type.n >= v->types[i].n &&
		    text_ieq((struct text){ type.p, v->types[i].n }, v->types[i]))
			return (true);
	return (false);
}

/* Each form has a tag of its own: "TAG-gzip". */
static void
coded_etag(struct file_facts *f, const struct reply_form *form)
{
	struct text c = coding_name(form->coding), t = f->etag;

	if (t.n < 2 || t.p[t.n - 1] != '"' || t.n + 1 + c.n > sizeof(f->etag_buf)) {
		f->etag = TEXT_NONE;
		return;
	}
	memmove(f->etag_buf, t.p, t.n);
	f->etag_buf[t.n - 1] = '-';
	memcpy(f->etag_buf + t.n, c.p, c.n);
	f->etag_buf[t.n + c.n] = '"';
	f->etag = (struct text){ f->etag_buf, t.n + c.n + 1 };
}

static void
facts_of(struct file_facts *f, const struct reply_style *style, const struct file_entry *e,
    const struct reply_form *form, const struct reply_extra *x, uint64_t wall_s)
{
	const struct file_entry *tags = form != NULL ? form->tags : e;
	int64_t mtime = e->stx.stx_mtime.tv_sec;

	f->etag = (struct text){ f->etag_buf,
		etag_make(f->etag_buf, &tags->stx, style->etag_parts, tags->unsettled) };
	if (x != NULL && x->etag.n != 0)
		f->etag = x->etag;
	f->coding = TEXT_NONE;
	if (form != NULL) {
		f->coding = coding_name(form->coding);
		coded_etag(f, form);
	}
	f->size = form != NULL ? form->size : e->size;
	f->v.mtime_s = mtime > 0 ? (uint64_t)mtime : 0;
	f->v.date_is_weak = e->unsettled != 0 || f->v.mtime_s + 2 > wall_s;
	http_date_put(f->date_buf, f->v.mtime_s);
	f->last_modified = (struct text){ f->date_buf, HTTP_DATE_LEN };
	if (x != NULL && x->last_modified.n != 0) {
		f->last_modified = x->last_modified;
		f->v.date_is_weak = false; /* the application decides about its date */
		(void)http_date_parse(x->last_modified, &f->v.mtime_s);
	} else if (f->etag.n == 0 && e->unsettled != 0) {
		/* the date would be the only validator, and the contents may still change without
		 * changing the date */
		f->last_modified = TEXT_NONE;
	}
	f->type = reply_type(style, e, x);
	f->varies = form != NULL || style->varies.all ||
		    reply_varies_fits(&style->varies, f->type, (int64_t)e->size);
	if (x != NULL && x->charset.n != 0 && f->type.n <= TYPE_MAX)
		f->type = (struct text){ f->type_buf,
			media_type_charset(f->type_buf, f->type, x->charset) };
	f->v.etag = f->etag;
}

static char *
put_validators(char *p, const struct file_facts *f)
{
	if (f->last_modified.n != 0)
		p = put_line(p, TEXT("Last-Modified: "), f->last_modified);
	if (f->etag.n != 0)
		p = put_line(p, TEXT("ETag: "), f->etag);
	if (f->varies)
		p = put(p, TEXT("Vary: Accept-Encoding\r\n"));
	return (p);
}

static char *
put_coding(char *p, const struct file_facts *f)
{
	return (f->coding.n != 0 ? put_line(p, TEXT("Content-Encoding: "), f->coding) : p);
}

static bool
facts_fit(const struct file_facts *f, const struct reply_style *style)
{
	return (
	    f->etag.n + f->last_modified.n + f->type.n + style->tag_line.n < FILE_HEAD_MAX - 256);
}

size_t
reply_prepare_form(const struct file_entry *e, const struct reply_form *form, char *head)
{
	const struct reply_style *style = reply_scope_style(e->lk.scope);
	struct file_facts f;
	char *p = head;

	facts_of(&f, style, e, form, NULL, io_wall_s(reply_scope_io(e->lk.scope)));
	if (!facts_fit(&f, style))
		return (0); /* replies are then built one by one */
	p = put_status(p, 200);
	p = put_line(p, TEXT("Content-Type: "), f.type);
	p = put_u64_line(p, TEXT("Content-Length: "), f.size);
	p = put_coding(p, &f);
	p = put_validators(p, &f);
	if (style->ranges && form == NULL)
		p = put(p, TEXT("Accept-Ranges: bytes\r\n"));
	p = put(p, style->tag_line);
	return ((size_t)(p - head));
}

size_t
reply_prepare(const struct file_entry *e, char *head)
{
	return (reply_prepare_form(e, NULL, head));
}

static void
put_back(void *entry)
{
	file_entry_put(entry);
}

bool
reply_attach(struct request *r, struct file_entry *e, uint64_t off, uint64_t len)
{
	struct text t;

	if (r->http.verb == HTTP_HEAD || len == 0)
		return (true);
	r->body_bytes += len;
	if (e->file != NULL)
		return (body_file(&r->body, e->file, off, len));
	t = (struct text){ e->bytes + off, len };
	if (len <= COPY_MAX)
		return (body_copy(&r->body, t));
	return (body_lend(&r->body, t, put_back, file_entry_ref(e)));
}

/* Adds all bytes of the file, or of its compressed form. */
static bool
attach_all(struct request *r, struct file_entry *e, struct reply_form *form)
{
	struct text t;
	void *owner;

	if (form == NULL || r->http.verb == HTTP_HEAD || form->size == 0)
		return (form != NULL || reply_attach(r, e, 0, e->size));
	r->body_bytes += form->size;
	if (form->file != NULL)
		return (body_file(&r->body, form->file, 0, form->size));
	t = (struct text){ form->bytes, form->size };
	if (t.n <= COPY_MAX)
		return (body_copy(&r->body, t));
	owner = form->keep(form);
	if (body_lend(&r->body, t, form->put, owner))
		return (true);
	form->put(owner);
	return (false);
}

static bool
is_conditional(const struct http_request *h)
{
	return (h->known[HH_RANGE].p != NULL || h->known[HH_IF_NONE_MATCH].p != NULL ||
		h->known[HH_IF_MODIFIED_SINCE].p != NULL || h->known[HH_IF_MATCH].p != NULL ||
		h->known[HH_IF_UNMODIFIED_SINCE].p != NULL);
}

/* The exclusion also applies to files that an application names: an application that only looks
 * files up, like fcgi-stat-accel, names whatever the client asks for. */
bool
reply_excludes(const struct request *r, struct text path)
{
	const struct module *m = r->site->modules.runs;
	const struct conf *conf = r->conf;
	struct text name = urlpath_without_dots(path);

	return (conf_list_ends(&conf->exclude_extensions, name) ||
		conf_list_ends(&conf->script_extensions, name) ||
		(m != NULL && m->runs(conf, path, true)));
}

/* A link does not give a script another name. */
bool
reply_excludes_link(struct request *r, const struct file_entry *e)
{
	struct text real;

	if (e->real == NULL)
		return (false);
	real = text_of(e->real);
	/* What an application names, it has decided about. */
	if (!reply_excludes(r, real) &&
	    (r->extra != NULL ||
		!conf_list_ends(r->conf->condition_endings, urlpath_without_dots(real))))
		return (false);
	log_limited(10, LOG_WARN, conn_id(r), "link.script", LF_TEXT("link", e->lk.path),
	    LF_STR("target", e->real),
	    LF_STR("why", "files with the ending of the target are not sent"), conn_client(r));
	return (true);
}

/* The hot path: a copy of the prepared head, the date, the bytes. */
static bool
send_prepared(struct request *r, struct file_entry *e, struct reply_form *form)
{
	struct text head = form != NULL ? form->head : e->head;
	struct text more = modules_head(r, 200, e, TEXT_NONE, TEXT_NONE);
	uint64_t mark = r->body.left;
	char *start, *p;

	start = body_room(&r->body, head.n + more.n + REPLY_END_MAX);
	if (start == NULL)
		return (false);
	p = put(modules_edit(r, start, put(start, head)), more);
	p = reply_put_end(p, r);
	body_wrote(&r->body, (size_t)(p - start));
	if (r->site->wants_head)
		reply_keep_head(r, mark);
	return (attach_all(r, e, form));
}

static char *
put_content_range(char *p, struct range_part g, uint64_t size)
{
	p = put(p, TEXT("Content-Range: bytes "));
	p += text_put_u64(p, g.from);
	*p++ = '-';
	p += text_put_u64(p, g.to - 1);
	*p++ = '/';
	p += text_put_u64(p, size);
	return (put(p, CRLF));
}

/* Head of a reply with bytes of a file: status, type, length, and the range if there is one.  A 304
 * has no type, but what modules add may depend on it. */
static bool
file_head(struct request *r, const struct file_entry *e, int status, const struct file_facts *f,
    struct text type, uint64_t length, const struct range_part *one, const struct reply_extra *x)
{
	struct text more;
	uint64_t mark = r->body.left;
	char *start, *p;

	start = body_room(&r->body, REPLY_OWN_HEAD_MAX + type.n);
	if (start == NULL)
		return (false);
	p = put_status(start, status);
	if (status != 304) {
		p = put_line(p, TEXT("Content-Type: "), type);
		p = put_u64_line(p, TEXT("Content-Length: "), length);
	}
	if (one != NULL)
		p = put_content_range(p, *one, e->size);
	if (status != 304)
		p = put_coding(p, f);
	p = put_validators(p, f);
	if (r->conf->range_requests && status < 300 && f->coding.n == 0)
		p = put(p, TEXT("Accept-Ranges: bytes\r\n"));
	p = put(p, r->site->style.tag_line);
	body_wrote(&r->body, (size_t)(modules_edit(r, start, p) - start));
	more = modules_head(r, status, e, x != NULL ? x->lines : TEXT_NONE, type);
	if (!body_copy(&r->body, more) || !reply_end_head(r, x))
		return (false);
	if (r->site->wants_head)
		reply_keep_head(r, mark);
	return (true);
}

static void
send_416(struct request *r, uint64_t size)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "Content-Range: bytes */%" PRIu64 "\r\n", size);

	reply_stream_head(r, 416, (struct text){ line, (size_t)n }, 0, false);
}

/* "--B\r\n", type, range, empty line; the first one without the line break before it. */
static size_t
part_head(char *dst, struct text boundary, bool first, struct text type, struct range_part g,
    uint64_t size)
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
send_multipart(struct request *r, struct file_entry *e, const struct file_facts *f,
    const struct range_part *g, int n, const struct reply_extra *x)
{
	char head[FILE_HEAD_MAX], bound[24], ctype[64], last[64];
	uint64_t length = 0;
	struct text boundary;
	size_t nlast;
	int i;

	/* The file's identity and the time make a boundary that the file cannot contain on
	 * purpose. */
	snprintf(bound, sizeof(bound), "%016llx",
	    (unsigned long long)(text_hash(f->etag) ^
				 (io_now(r->worker->io) * 0x9e3779b97f4a7c15ull)));
	boundary = text_of(bound);
	for (i = 0; i < n; i++)
		length +=
		    part_head(head, boundary, i == 0, f->type, g[i], e->size) + g[i].to - g[i].from;
	nlast = (size_t)snprintf(last, sizeof(last), "\r\n--%s--\r\n", bound);
	length += nlast;
	snprintf(ctype, sizeof(ctype), "multipart/byteranges; boundary=%s", bound);
	if (!file_head(r, e, 206, f, text_of(ctype), length, NULL, x))
		return (false);
	if (r->http.verb == HTTP_HEAD)
		return (true);
	for (i = 0; i < n; i++) {
		size_t len = part_head(head, boundary, i == 0, f->type, g[i], e->size);

		if (!body_copy(&r->body, (struct text){ head, len }) ||
		    !reply_attach(r, e, g[i].from, g[i].to - g[i].from))
			return (false);
	}
	return (body_copy(&r->body, (struct text){ last, nlast }));
}

bool
reply_own_status(int status)
{
	return (status != 0 && status != 200 && status != 206 && status != 416);
}

/* 0: the bytes are sent.  Otherwise the reply is made, or *ok is false. */
static int
check_conditions(struct request *r, struct file_entry *e, const struct file_facts *f,
    const struct reply_extra *x, bool *ok)
{
	int status = conditions_check(&r->http, &f->v);

	if (status == 304) {
		r->status = 304;
		*ok = file_head(r, e, 304, f, f->type, 0, NULL, x);
	} else if (status == 412) {
		reply_error(r, 412);
	}
	return (status);
}

static bool
send_whole(struct request *r, struct file_entry *e, struct reply_form *form,
    const struct file_facts *f, int status, const struct reply_extra *x)
{
	r->status = status;
	return (file_head(r, e, status, f, f->type, f->size, NULL, x) && attach_all(r, e, form));
}

static bool
send_selected(struct request *r, struct file_entry *e, struct reply_form *form,
    const struct reply_extra *x)
{
	struct range_part g[RANGES_MAX];
	struct file_facts f;
	bool ok = true;
	int n = 0;

	facts_of(&f, &r->site->style, e, form, x, io_wall_s(r->worker->io));
	if (!facts_fit(&f, &r->site->style)) {
		reply_error(r, 502);
		return (true);
	}
	if (x != NULL && reply_own_status(x->status))
		return (send_whole(r, e, form, &f, x->status, x));
	if (check_conditions(r, e, &f, x, &ok) != 0)
		return (ok);
	if (r->conf->range_requests && form == NULL && r->http.known[HH_RANGE].p != NULL &&
	    r->http.verb == HTTP_GET)
		n = ranges_select(&r->http, &f.v, e->size, g);
	if (n < 0) {
		send_416(r, e->size);
		return (true);
	}
	if (n == 0)
		return (send_whole(r, e, form, &f, 200, x));
	r->status = 206;
	if (n == 1)
		return (file_head(r, e, 206, &f, f.type, g[0].to - g[0].from, g, x) &&
			reply_attach(r, e, g[0].from, g[0].to - g[0].from));
	return (send_multipart(r, e, &f, g, n, x));
}

void
reply_file_as(struct request *r, struct file_entry *e, struct reply_form *form,
    const struct reply_extra *x)
{
	struct text head = form != NULL ? form->head : e->head;
	bool ok;

	r->status = 200;
	if (x == NULL && head.n != 0 && !is_conditional(&r->http))
		ok = send_prepared(r, e, form);
	else
		ok = send_selected(r, e, form, x);
	if (!ok)
		reply_no_memory(r);
}

bool
reply_file_decided(struct request *r, struct file_entry *e, struct reply_form *form,
    const struct reply_extra *x)
{
	struct file_facts f;
	bool ok = true;

	if (!is_conditional(&r->http))
		return (false);
	facts_of(&f, &r->site->style, e, form, x, io_wall_s(r->worker->io));
	if (!facts_fit(&f, &r->site->style) || check_conditions(r, e, &f, x, &ok) == 0)
		return (false);
	if (!ok)
		reply_no_memory(r);
	return (true);
}

void
reply_file(struct request *r, struct file_entry *e, const struct reply_extra *x)
{
	reply_file_as(r, e, NULL, x);
	file_entry_put(e);
}
