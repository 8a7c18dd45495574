/* wire/codec/http.c -- HTTP/1.1 to an application: RFC 9112 from the client's side.
 *
 *   to it     request line, Host, the client's fields, framing; Content-Length or chunks
 *   from it   1xx..., status line, fields, then no body, Content-Length bytes, chunks, or all to
 *             the end of the stream
 *
 * A reply has one meaning.  Two lengths, a length beside Transfer-Encoding, a coding other than
 * chunked, and Transfer-Encoding in HTTP/1.0 are violations: readers disagree on where such a reply
 * ends, and the next one begins there.
 *
 * Without a length a truncated reply looks like a complete one.
 */
#include <errno.h>
#include <stdio.h>
#include "base/must.h"
#include "wire/codec/client_fields.h"
#include "wire/codec/http.h"
#include "wire/http1/scan.h"

#define STATUS_LINE_MAX 8192

static const char status_form[] = "HTTP/1.0 000"; /* 0: any digit */

enum http_phase { P_LINE, P_FIELDS, P_BODY, P_CHUNKS, P_STREAM };

/* ---------------------------------------------------------------- to the application */

static void
put_field(struct buf *out, const char *name, struct text value)
{
	buf_str(out, name);
	buf_str(out, ": ");
	buf_text(out, value);
	buf_str(out, "\r\n");
}

/* A rewrite may have made a target or a method that would end the line. */
static bool
put_line(const struct proxy_request *r, struct buf *out)
{
	struct text t = r->redirect_uri.n != 0 ? r->redirect_uri : r->target;

	if (!header_is_token(r->method) || t.n == 0 || skip_target(t.p, t.p + t.n) != t.p + t.n)
		return (false);
	buf_text(out, r->method);
	buf_char(out, ' ');
	buf_text(out, t);
	buf_str(out, " HTTP/1.1\r\n");
	return (true);
}

/* The field Host may come from a rewrite; then it is not the host of the request.  A client of
 * HTTP/1.0 may have none, and servers refuse an empty one. */
static struct text
host_of(const struct proxy_request *r, const struct fields *f)
{
	size_t i = fields_find(f, TEXT("Host"));

	if (i < f->n && r->headers[i].value.n != 0)
		return (r->headers[i].value);
	if (r->host.n != 0)
		return (r->host);
	return (r->server_name.n != 0 ? r->server_name : TEXT("localhost"));
}

static void
put_forwarded(void *out, struct text name, struct text value)
{
	buf_text(out, name);
	buf_str(out, ": ");
	buf_text(out, value);
	buf_str(out, "\r\n");
}

static bool
put_fields(const struct proxy_request *r, const struct fields *f, struct buf *out)
{
	struct text host = host_of(r, f);
	size_t i;

	if (!header_value_ok(host))
		return (false);
	put_field(out, "Host", host);
	for (i = 0; i < r->nheaders; i++) {
		if (text_ieq(r->headers[i].name, TEXT("Host")) || !client_field_passes(r, f, i))
			continue;
		if (!header_value_ok(r->headers[i].value))
			return (false);
		buf_text(out, r->headers[i].name);
		buf_str(out, ": ");
		buf_text(out, r->headers[i].value);
		buf_str(out, "\r\n");
	}
	return (true);
}

static void
put_framing(const struct http *s, const struct proxy_request *r, struct buf *out)
{
	if (s->chunks_out)
		buf_str(out, "Transfer-Encoding: chunked\r\n");
	else if (r->content_length >= 0) {
		buf_str(out, "Content-Length: ");
		buf_u64(out, (uint64_t)r->content_length);
		buf_str(out, "\r\n");
	}
	if (s->upgrade) {
		buf_str(out, "Connection: Upgrade\r\n");
		put_field(out, "Upgrade", r->upgrade);
	} else if (!s->keep)
		buf_str(out, "Connection: close\r\n");
	buf_str(out, "\r\n");
}

static int
http_request(void *state, const struct proxy_request *r, bool keep, struct buf *out)
{
	struct http *s = state;
	struct fields f;

	if (r->nheaders > FIELDS_MAX)
		return (-E2BIG);
	s->keep = keep;
	s->head = text_eq(r->method, TEXT("HEAD"));
	s->chunks_out = r->unsized;
	s->upgrade = r->upgrade.n != 0 && header_value_ok(r->upgrade);
	fields_index(&f, r->headers, r->nheaders);
	if (!put_line(r, out) || !put_fields(r, &f, out))
		return (-EINVAL);
	if (client_fields_write(r, &f, put_forwarded, out) != 0)
		return (-ENOMEM);
	put_framing(s, r, out);
	return (out->failed || out->n > PROTO_REQUEST_MAX ? -E2BIG : 0);
}

static void
http_body(void *state, struct text bytes, struct buf *out)
{
	const struct http *s = state;

	if (s->chunks_out)
		buf_printf(out, "%zx\r\n", bytes.n);
	buf_text(out, bytes);
	if (s->chunks_out)
		buf_str(out, "\r\n");
}

static void
http_body_end(void *state, struct buf *out)
{
	const struct http *s = state;

	if (s->chunks_out)
		buf_str(out, "0\r\n\r\n");
}

/* ---------------------------------------------------------------- the status line */

static const char *
status_byte(struct http *s, char c)
{
	char form;

	if (s->line < sizeof(status_form) - 1) {
		form = status_form[s->line];
		if (s->line == 5 && s->echoes && c == '2')
			form = c;
		if (form == '0' ? !byte_is_digit(c) : c != form)
			return ("expected HTTP/1.x and a status");
		if (s->line == 7)
			s->minor = (uint8_t)(c - '0');
		if (s->line > 8)
			s->status = (uint16_t)(s->status * 10 + (c - '0'));
	} else if (s->line == STATUS_LINE_MAX)
		return ("the status line is longer than 8 KiB");
	else if (s->line == sizeof(status_form) - 1 && c != ' ' && c != '\r' && c != '\n')
		return ("expected three digits of a status");
	else if (c != '\n' && (s->cr || (c != '\r' && !is(c, C_VALUE))))
		return ("a control character in the status line");
	s->cr = c == '\r';
	s->line++;
	return (NULL);
}

/* NULL, or why the line is malformed. */
static const char *
status_line(struct http *s, struct text *in)
{
	const char *why;
	char c;

	while (in->n > 0) {
		c = *text_take(in, 1).p;
		why = status_byte(s, c);
		if (why != NULL)
			return (why);
		if (c != '\n')
			continue;
		s->phase = P_FIELDS;
		return (s->status < 100 || s->status > 599 ? "expected a status from 100 to 599"
							   : NULL);
	}
	return (NULL);
}

/* ---------------------------------------------------------------- the fields */

/* What the fields about framing and the connection say. */
struct framing {
	bool close, keep_alive;
	size_t lengths, codings;
	bool chunked; /* the only coding */
	bool named;   /* Connection lists a field */
	struct text upgrade;
};

/* What Connection lists may not pass as a trailer, either (RFC 9110 7.6.1). */
static bool
names_a_field(struct text list)
{
	struct text member;

	while (text_next(&list, ',', &member)) {
		member = text_trim(member);
		if (member.n != 0 && !text_ieq(member, TEXT("close")) &&
		    !fields_is_hop_name(member))
			return (true);
	}
	return (false);
}

static struct framing
read_framing(const struct reply_head *h)
{
	struct framing f = { .close = false };
	const struct proxy_field *v;
	size_t i;

	for (i = 0; i < h->nfields; i++) {
		v = &h->fields[i];
		if (text_ieq(v->name, TEXT("Connection"))) {
			http1_connection(v->value, &f.close, &f.keep_alive);
			f.named = f.named || names_a_field(v->value);
		} else if (text_ieq(v->name, TEXT("Content-Length")))
			f.lengths++;
		else if (text_ieq(v->name, TEXT("Transfer-Encoding"))) {
			f.codings++;
			f.chunked = text_ieq(v->value, TEXT("chunked"));
		} else if (text_ieq(v->name, TEXT("Upgrade")) && f.upgrade.p == NULL)
			f.upgrade = v->value;
	}
	return (f);
}

/* NULL, or why the length of the body is not clear. */
static const char *
framing_fault(const struct http *s, const struct framing *f)
{
	if (f->codings > 0 && f->lengths > 0)
		return ("Content-Length beside Transfer-Encoding");
	if (f->codings > 0 && s->minor == 0)
		return ("Transfer-Encoding in HTTP/1.0");
	if (f->codings > 1 || (f->codings == 1 && !f->chunked))
		return ("expected chunked as the only Transfer-Encoding");
	if (s->status == 101 && !s->upgrade)
		return ("101 without a request for an upgrade");
	if (s->status == 101 && f->upgrade.n == 0)
		return ("101 without Upgrade");
	return (NULL);
}

static void
body_begin(struct http *s, const struct framing *f, int64_t length)
{
	bool none = s->head || !status_has_body(s->status);

	s->reuse = s->keep && !f->close && (s->minor > 0 || f->keep_alive);
	s->untrailed = f->named;
	s->phase = P_BODY;
	if (s->status == 101 || (!none && !f->chunked && length < 0)) {
		s->phase = P_STREAM;
		s->reuse = false;
	} else if (!none && f->chunked)
		s->phase = P_CHUNKS;
	else if (!none)
		s->left = (uint64_t)length;
}

/* The head is complete. */
static void
take_head(struct http *s, struct reply_head *h, struct proto_event *ev)
{
	struct framing f = read_framing(h);
	const char *why = framing_fault(s, &f);

	if (why != NULL) {
		proto_bad(ev, why);
		return;
	}
	h->reply.status = s->status;
	if (reply_head_sort(h) == HEAD_BAD) {
		proto_bad(ev, h->why);
		return;
	}
	if (s->status < 200 && s->status != 101) {
		s->phase = P_LINE;
		s->line = s->status = 0;
		s->interim = true;
		ev->kind = PROTO_INTERIM;
		return;
	}
	if (s->status == 101)
		h->reply.upgrade = f.upgrade;
	body_begin(s, &f, h->reply.content_length);
	ev->kind = PROTO_HEAD;
}

static void
reply_head(struct http *s, struct reply_head *h, struct text *in, struct proto_event *ev)
{
	const char *why;

	if (s->phase == P_LINE && (why = status_line(s, in)) != NULL) {
		proto_bad(ev, why);
		return;
	}
	if (s->phase != P_FIELDS)
		return;
	switch (reply_head_feed(h, in)) {
	case HEAD_MORE: break;
	case HEAD_BAD: proto_bad(ev, h->why); break;
	case HEAD_DONE: take_head(s, h, ev); break;
	}
}

/* ---------------------------------------------------------------- the body */

static void
end(const struct http *s, struct proto_event *ev)
{
	*ev = (struct proto_event){ .kind = PROTO_END, .reuse = s->reuse };
}

/* The fields that may pass; false: none. */
static bool
sort_trailers(struct reply_head *h)
{
	size_t i, kept = 0;

	for (i = 0; i < h->nfields; i++)
		if (fields_may_trail(h->fields[i].name))
			h->fields[kept++] = h->fields[i];
	h->reply.headers = h->fields;
	h->reply.nheaders = kept;
	return (kept != 0);
}

/* Keeps the trailers among the bytes at end, the last n of them new.  True: they are complete. */
static bool
take_trailers(struct http *s, struct reply_head *h, const char *end, size_t n)
{
	size_t all = http1_chunked_trailers(&s->chunked);
	struct text t;

	if (all == 0 || s->untrailed)
		return (false);
	if (all <= n)
		reply_head_free(h); /* they begin here */
	n = all < n ? all : n;
	t = (struct text){ end - n, n };
	return (reply_head_feed(h, &t) == HEAD_DONE && sort_trailers(h));
}

static void
reply_chunks(struct http *s, struct reply_head *h, struct text *in, struct proto_event *ev)
{
	size_t had = in->n;
	enum parse p = http1_chunked(&s->chunked, in, &ev->bytes);
	bool trailers = p != PARSE_BAD && take_trailers(s, h, in->p, had - in->n);

	if (p == PARSE_BAD)
		proto_bad(ev, "malformed chunk");
	else if (p == PARSE_DONE) {
		end(s, ev);
		ev->trailers = trailers;
	} else if (ev->bytes.n > 0)
		ev->kind = PROTO_BODY;
}

static void
reply_bytes(struct http *s, struct text *in, struct proto_event *ev)
{
	if (s->phase == P_BODY && s->left == 0) {
		end(s, ev);
		return;
	}
	ev->bytes = text_take(in, s->phase == P_BODY && s->left < in->n ? (size_t)s->left : in->n);
	if (ev->bytes.n == 0)
		return;
	if (s->phase == P_BODY)
		s->left -= ev->bytes.n;
	ev->kind = PROTO_BODY;
}

void
http_reply(void *state, struct reply_head *h, struct text *in, struct buf *out,
    struct proto_event *ev)
{
	struct http *s = state;

	*ev = (struct proto_event){ .kind = PROTO_MORE };
	if (s->phase <= P_FIELDS)
		reply_head(s, h, in, ev);
	else if (s->phase == P_CHUNKS)
		reply_chunks(s, h, in, ev);
	else
		reply_bytes(s, in, ev);
}

void
http_eof(void *state, struct proto_event *ev)
{
	struct http *s = state;

	*ev = (struct proto_event){ .kind = PROTO_END };
	if (s->phase == P_STREAM)
		return;
	if (s->phase <= P_FIELDS)
		proto_bad(ev, s->interim && s->line == 0 ? "the reply ended after a 1xx"
							 : "the reply ended within its head");
	else
		proto_bad(ev, s->phase == P_CHUNKS
				  ? "the reply ended before its last chunk"
				  : "the reply is shorter than its Content-Length");
}

const struct proto proto_http = {
	.name = "http",
	.doc = "HTTP/1.1, keeps connections",
	.size = sizeof(struct http),
	.unsized_body = true,
	.request = http_request,
	.body = http_body,
	.body_end = http_body_end,
	.reply = http_reply,
	.eof = http_eof,
};
