/* server/handler/proxy_head.c -- the header fields of an application as lines for the client. */
#include "server/config/site.h"
#include "server/request/told.h"
#include "server/request/request.h"
#include "wire/http1/http_date.h"
#include "wire/http1/media_type.h"
#include "server/config/check/rewrite.h"
#include "server/handler/proxy_impl.h"
#include "server/module/module.h"
#include "server/request/route.h"

#define LINES_MAX (64u << 10) /* bytes of an application's header lines */

/* True for a header that a file reply makes itself, or takes from the application elsewhere. */
static bool
taken_by_file(struct reply_extra *file, struct text name, struct text value, struct arena *arena)
{
	if (text_ieq(name, TEXT("content-type")))
		file->content_type = arena_text(arena, value);
	else if (text_ieq(name, TEXT("etag")))
		file->etag = arena_text(arena, value);
	else if (text_ieq(name, TEXT("last-modified")))
		file->last_modified = arena_text(arena, value);
	else
		return (text_ieq(name, TEXT("accept-ranges")) ||
			text_ieq(name, TEXT("content-range")) ||
			text_ieq(name, TEXT("content-encoding")));
	return (true);
}

static bool
made_here(const struct request *r, struct text name)
{
	return (text_ieq(name, TEXT("content-length")) || text_ieq(name, TEXT("date")) ||
		(text_ieq(name, TEXT("server")) && r->site->style.tag_line.n != 0));
}

static void
put_field(struct buf *out, struct text name, struct text value)
{
	buf_text(out, name);
	buf_str(out, ": ");
	buf_text(out, value);
	buf_str(out, "\r\n");
}

/* X-Accel-Expires, unless the application says itself how long its reply is fresh. */
static void
put_expires(struct relay *rl, const struct proxy_reply *p, struct buf *out)
{
	char date[HTTP_DATE_LEN + 1];
	size_t i;

	for (i = 0; i < p->nheaders; i++)
		if (text_ieq(p->headers[i].name, TEXT("cache-control")) ||
		    text_ieq(p->headers[i].name, TEXT("expires")))
			return;
	if (rl->expires_is_date) {
		http_date_put(date, rl->expires);
		put_field(out, TEXT("Expires"), (struct text){ date, HTTP_DATE_LEN });
	} else if (rl->expires != 0)
		buf_printf(out, "Cache-Control: max-age=%llu\r\n", (unsigned long long)rl->expires);
	else
		buf_str(out, "Cache-Control: no-cache\r\n");
}

/* The value for the client; .p NULL: a rewrite failed, or memory is short. */
static struct text
value_of(struct relay *rl, const struct proxy_field *f)
{
	struct request *r = rl->r;
	struct text v = rewrite_value(r->site->rewrite_response, f->name, f->value, &r->arena);
	char *dst;

	if (v.p == NULL && f->value.p != NULL)
		route_undecided(r, "proxy-core.rewrite-response", f->name);
	if (v.p == NULL || rl->extra.charset.n == 0 || !text_ieq(f->name, TEXT("content-type")))
		return (v);
	dst = arena_get(&r->arena, v.n + rl->extra.charset.n + MEDIA_TYPE_MORE);
	if (dst == NULL)
		return (TEXT_NONE);
	return ((struct text){ dst, media_type_charset(dst, v, rl->extra.charset) });
}

/* The type by the file's name counts only if the application gives none. */
static void
put_type(struct relay *rl, const struct proxy_reply *p, struct buf *out)
{
	const struct proxy_field f = { TEXT("Content-Type"), rl->type };
	size_t i;

	for (i = 0; i < p->nheaders; i++)
		if (text_ieq(p->headers[i].name, f.name))
			return;
	put_field(out, f.name, value_of(rl, &f));
}

static void
keep_for_log(struct request *r, const struct proxy_reply *p)
{
	struct buf out;
	size_t i;

	buf_init(&out, LINES_MAX);
	for (i = 0; i < p->nlog_fields; i++)
		put_field(&out, p->log_fields[i].name, p->log_fields[i].value);
	if (!out.failed && out.n != 0)
		request_told(r)->log_fields = arena_text(&r->arena, buf_as_text(&out));
	buf_free(&out);
}

struct text
proxy_lines(struct relay *rl, const struct proxy_reply *p, struct reply_extra *file)
{
	struct request *r = rl->r;
	struct text lines = TEXT_NONE, value;
	struct buf out;
	size_t i;

	if (r->site->wants_head)
		keep_for_log(r, p);
	buf_init(&out, LINES_MAX);
	for (i = 0; i < p->nheaders; i++) {
		struct text name = p->headers[i].name;

		value = value_of(rl, &p->headers[i]);
		if (value.p == NULL && p->headers[i].value.p != NULL) {
			buf_free(&out);
			return (TEXT_NONE);
		}
		if (proxy_code_weakens(rl, name, value))
			buf_str(&out, "ETag: W/"), buf_text(&out, value), buf_str(&out, "\r\n");
		else if (!made_here(r, name) && !proxy_code_drops(rl, name) &&
			 (file == NULL || !taken_by_file(file, name, value, &r->arena)))
			put_field(&out, name, value);
	}
	if (rl->type.n != 0)
		put_type(rl, p, &out);
	if (rl->expires_set)
		put_expires(rl, p, &out);
	proxy_code_lines(rl, &out);
	if (!out.failed)
		lines = arena_text(&r->arena, (struct text){ out.n != 0 ? out.p : "", out.n });
	buf_free(&out);
	return (lines);
}

struct text
proxy_trailer_lines(struct relay *rl, const struct proxy_reply *p)
{
	struct text lines = TEXT_NONE, value;
	struct buf out;
	size_t i;

	buf_init(&out, LINES_MAX);
	for (i = 0; i < p->nheaders && !out.failed; i++) {
		value = value_of(rl, &p->headers[i]);
		out.failed = value.p == NULL && p->headers[i].value.p != NULL;
		put_field(&out, p->headers[i].name, value);
	}
	if (!out.failed)
		lines = arena_text(&rl->r->arena, modules_edited(rl->r, buf_as_text(&out)));
	buf_free(&out);
	return (lines);
}
