/* wire/http1/headers.c -- see headers.h */
#include <stdlib.h>
#include "base/must.h"
#include "wire/http1/headers.h"
#include "wire/http1/scan.h"

bool
header_is_token(struct text name)
{
	return (name.n > 0 && skip(name.p, name.p + name.n, C_TOKEN) == name.p + name.n);
}

bool
header_value_ok(struct text value)
{
	return (skip_value(value.p, value.p + value.n) == value.p + value.n);
}

static char
dashed(char c)
{
	return (c == '_' ? '-' : byte_lower(c));
}

bool
header_is_alike(struct text a, struct text b)
{
	size_t i = 0;

	if (a.n != b.n)
		return (false);
	while (i < a.n && dashed(a.p[i]) == dashed(b.p[i]))
		i++;
	return (i == a.n);
}

static bool
is_plain(struct text name)
{
	size_t i = 0;

	while (i < name.n && (byte_is_alnum(name.p[i]) || dashed(name.p[i]) == '-'))
		i++;
	return (name.n > 0 && i == name.n);
}

bool
header_passes(const struct fields *f, size_t i)
{
	/* written by each codec, except Proxy */
	static const struct text never[] = { TEXT("Content-Length"), TEXT("Proxy") };
	struct text name = f->v[i].name;

	if (f->v[i].ours)
		return (is_plain(name));
	return (text_is_plain(name, '-') && !text_is_one_of(name, never, NELEM(never)) &&
		(f->v[i].set || !header_is_control(name)) && !fields_is_hop(f, i));
}

bool
status_has_body(int status)
{
	return (status >= 200 && status != 204 && status != 304);
}

void
reply_head_init(struct reply_head *h)
{
	memset(h, 0, sizeof(*h));
	buf_init(&h->raw, REPLY_HEAD_MAX);
	h->reply.content_length = -1;
}

void
reply_head_free(struct reply_head *h)
{
	buf_free(&h->raw);
	free(h->fields);
	reply_head_init(h);
}

static bool
refuse(struct reply_head *h, const char *why)
{
	h->why = why;
	return (false);
}

static bool
fields_reserve(struct reply_head *h)
{
	size_t cap = h->cap > 0 ? h->cap * 2 : 16;
	struct proxy_field *v;

	if (h->nfields < h->cap)
		return (true);
	if (cap > REPLY_FIELDS_MAX)
		return (false);
	v = realloc(h->fields, cap * sizeof(*v));
	if (v == NULL)
		return (false);
	h->fields = v;
	h->cap = cap;
	return (true);
}

bool
reply_head_field(struct reply_head *h, struct text name, struct text value)
{
	value = text_trim(value);
	if (!header_is_token(name))
		return (refuse(h, "a header name is not a token"));
	if (!header_value_ok(value))
		return (refuse(h, "a header value holds a control character"));
	if (!fields_reserve(h))
		return (refuse(h, "too many header fields"));
	h->fields[h->nfields++] = (struct proxy_field){ name, value };
	return (true);
}

/* A program that writes as if to the client itself ("nph-" of old) begins with a status line. */
static bool
is_status_line(const struct reply_head *h, struct text line)
{
	return (h->cgi && h->nfields == 0 &&
		(text_starts(line, TEXT("HTTP/1.1 ")) || text_starts(line, TEXT("HTTP/1.0 "))));
}

static bool
head_line(struct reply_head *h, struct text line)
{
	const char *colon = memchr(line.p, ':', line.n);
	size_t n;

	if (is_status_line(h, line)) {
		text_take(&line, sizeof("HTTP/1.1"));
		return (reply_head_field(h, TEXT("Status"), line));
	}
	if (colon == NULL)
		return (refuse(h, "a line of the head has no colon"));
	n = (size_t)(colon - line.p);
	return (reply_head_field(h, (struct text){ line.p, n },
	    (struct text){ colon + 1, line.n - n - 1 }));
}

static bool
take_status(struct reply_head *h, struct text v)
{
	struct proxy_reply *r = &h->reply;
	uint64_t n;

	if (r->status != 0)
		return (refuse(h, "two Status fields"));
	/* a 1xx needs a second head, which CGI does not have */
	if (v.n < 3 || (v.n > 3 && v.p[3] != ' ') || text_u64((struct text){ v.p, 3 }, &n) < 0 ||
	    n < 200 || n > 599)
		return (refuse(h, "expected a Status from 200 to 599"));
	r->status = (int)n;
	return (true);
}

static bool
take_length(struct reply_head *h, struct text v)
{
	struct proxy_reply *r = &h->reply;
	uint64_t n;

	if (r->content_length >= 0)
		return (refuse(h, "two Content-Length fields"));
	if (text_u64(v, &n) < 0 || n > INT64_MAX)
		return (refuse(h, "expected a number as Content-Length"));
	r->content_length = (int64_t)n;
	return (true);
}

static void
take_control(struct proxy_reply *r, const struct proxy_field *f)
{
	enum control c = control_find(f->name);

	if (c == CONTROLS && text_istarts(f->name, TEXT("x-lighttpd-"))) {
		if (r->nlog_fields < LOG_FIELDS_MAX)
			r->log_fields[r->nlog_fields++] = *f;
	} else if (c == CONTROLS)
		r->unknown_control = f->name;
	else if (r->control[c].p == NULL)
		r->control[c] = f->value;
}

enum head_result
reply_head_sort(struct reply_head *h)
{
	struct proxy_reply *r = &h->reply;
	struct proxy_field *f;
	size_t i, n = h->nfields, kept = 0;
	bool located = false, known = r->status != 0, hop[REPLY_FIELDS_MAX];
	struct fields index;

	fields_index(&index, h->fields, n);
	for (i = 0; i < n; i++) /* before the loop below moves the fields */
		hop[i] = fields_is_hop(&index, i);
	for (i = 0; i < n && h->why == NULL; i++) {
		f = &h->fields[i];
		if (text_ieq(f->name, TEXT("Status"))) {
			if (!known)
				take_status(h, f->value);
		} else if (text_ieq(f->name, TEXT("Content-Length")))
			take_length(h, f->value);
		else if (header_is_control(f->name))
			take_control(r, f);
		else if (!hop[i]) {
			located = located || text_ieq(f->name, TEXT("Location"));
			h->fields[kept++] = *f;
		}
	}
	r->status_given = r->status != 0;
	if (!r->status_given)
		r->status = located ? 302 : 200;
	r->headers = h->fields;
	r->nheaders = kept;
	return (h->why == NULL ? HEAD_DONE : HEAD_BAD);
}

static enum head_result
head_parse(struct reply_head *h)
{
	struct text rest = buf_as_text(&h->raw), line;

	rest.n--; /* the last newline ends the last line */
	while (text_next(&rest, '\n', &line)) {
		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		if (line.n > 0 && !head_line(h, line))
			return (HEAD_BAD);
	}
	return (HEAD_DONE);
}

/* True if the last complete line is the empty one that ends the head. */
static bool
line_is_empty(const struct reply_head *h)
{
	size_t n = h->raw.n - h->line;

	return (n == 1 || (n == 2 && h->raw.p[h->line] == '\r'));
}

enum head_result
reply_head_feed(struct reply_head *h, struct text *in)
{
	const char *nl;

	while (in->n > 0) {
		nl = memchr(in->p, '\n', in->n);
		buf_text(&h->raw, text_take(in, nl != NULL ? (size_t)(nl - in->p) + 1 : in->n));
		if (h->raw.failed) {
			h->why = "the head is longer than 64 KiB";
			return (HEAD_BAD);
		}
		if (nl == NULL)
			break;
		if (line_is_empty(h))
			return (head_parse(h));
		h->line = h->raw.n;
	}
	return (HEAD_MORE);
}

enum head_result
reply_head_cgi(struct reply_head *h, struct text *in)
{
	enum head_result res;

	h->cgi = true;
	res = reply_head_feed(h, in);
	return (res == HEAD_DONE ? reply_head_sort(h) : res);
}
