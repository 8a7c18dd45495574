/* FastCGI 1.0, one request at a time on a socket.
 *
 *   to it     BEGIN  PARAMS... PARAMS(empty)  STDIN... STDIN(empty)
 *   from it   STDOUT... STDERR... END_REQUEST, in any mixture; STDOUT holds a reply in CGI style
 */
#include <errno.h>
#include "base/must.h"
#include "wire/codec/cgi_env.h"
#include "wire/codec/codec.h"
#include "wire/codec/fcgi.h"

#define OUR_ID      1 /* one request at a time, because libfcgi cannot multiplex */
#define CONTENT_MAX 65535u

struct fcgi {
	uint8_t header[FCGI_HEAD], end[8];
	uint8_t nheader, nend; /* received bytes of these two */
	uint8_t padding;       /* bytes left, like content */
	uint16_t content;
	bool in_head; /* STDOUT has begun, its head is not complete */
	bool had_head;
};

static void
put_header(struct buf *out, enum fcgi_type type, size_t content)
{
	uint8_t h[FCGI_HEAD];

	fcgi_head(h, type, OUR_ID, content);
	buf_add(out, h, sizeof(h));
}

/* The PARAMS stream: pairs may cross the borders of records, and each record is full. */
struct params {
	struct buf *out;
	size_t record; /* start of the current record */
};

static void
params_close(struct params *p)
{
	size_t content = p->out->n - p->record - FCGI_HEAD;

	if (p->out->failed)
		return;
	fcgi_set_content(p->out->p + p->record, content);
}

static void
params_open(struct params *p)
{
	p->record = p->out->n;
	put_header(p->out, PARAMS, 0);
}

static void
params_add(struct params *p, const char *s, size_t n)
{
	size_t room;

	while (n > 0 && !p->out->failed) {
		room = CONTENT_MAX - (p->out->n - p->record - FCGI_HEAD);
		if (room == 0) {
			params_close(p);
			params_open(p);
			continue;
		}
		room = room < n ? room : n;
		buf_add(p->out, s, room);
		s += room;
		n -= room;
	}
}

/* A pair that fits into its record, as nearly all do: 60 instructions instead of 320. */
static bool
params_put_whole(struct params *p, struct text lengths, struct text name, struct text value)
{
	size_t room = CONTENT_MAX - (p->out->n - p->record - FCGI_HEAD),
	       n = lengths.n + name.n + value.n;
	char *dst;

	if (p->out->failed || n > room || (dst = buf_extend(p->out, n)) == NULL)
		return (false);
	memcpy(dst, lengths.p, lengths.n);
	memcpy(dst + lengths.n, name.p, name.n);
	if (value.n > 0)
		memcpy(dst + lengths.n + name.n, value.p, value.n);
	return (true);
}

static void
params_put(void *arg, struct text name, struct text value)
{
	struct params *p = arg;
	char b[8];
	struct text lengths = { b, 0 };

	/* The request is too long in any case, and the format has no such length. */
	if (name.n > PROTO_REQUEST_MAX || value.n > PROTO_REQUEST_MAX) {
		p->out->failed = true;
		return;
	}
	lengths.n = fcgi_length(b, name.n);
	lengths.n += fcgi_length(b + lengths.n, value.n);
	if (params_put_whole(p, lengths, name, value))
		return;
	params_add(p, lengths.p, lengths.n);
	params_add(p, name.p, name.n);
	params_add(p, value.p, value.n);
}

static int
fcgi_request(void *state, const struct proxy_request *r, bool keep, struct buf *out)
{
	const unsigned char role = r->authorizer ? AUTHORIZER : RESPONDER;
	const unsigned char begin[8] = { 0, role, keep ? KEEP_CONN : 0 };
	struct params p = { .out = out };
	int err;

	put_header(out, BEGIN_REQUEST, sizeof(begin));
	buf_add(out, begin, sizeof(begin));
	params_open(&p);
	err = cgi_env(r, params_put, &p);
	params_close(&p);
	put_header(out, PARAMS, 0);
	if (err < 0)
		return (err);
	return (out->failed || out->n > PROTO_REQUEST_MAX ? -E2BIG : 0);
}

static void
fcgi_body(void *state, struct text bytes, struct buf *out)
{
	struct text piece;

	while (bytes.n > 0) {
		piece = text_take(&bytes, CONTENT_MAX);
		put_header(out, STDIN, piece.n);
		buf_text(out, piece);
	}
}

static void
fcgi_body_end(void *state, struct buf *out)
{
	put_header(out, STDIN, 0);
}

/* A record header is complete. */
static void
record_begin(struct fcgi *f, struct proto_event *ev)
{
	f->content = fcgi_content(f->header);
	f->padding = f->header[6];
	f->nend = 0;
	if (f->header[0] != FCGI_VERSION)
		proto_bad(ev, "expected FastCGI version 1");
}

static bool
record_is_ours(const struct fcgi *f)
{
	return (fcgi_id(f->header) == OUR_ID);
}

/* Removes up to n received bytes of the record's content. */
static struct text
content_take(struct fcgi *f, struct text *in)
{
	struct text t = text_take(in, f->content);

	f->content = (uint16_t)(f->content - t.n);
	return (t);
}

static void
stdout_head(struct fcgi *f, struct reply_head *h, struct text *in, struct proto_event *ev)
{
	struct text t = content_take(f, in);
	const char *end = t.p + t.n;

	f->in_head = true;
	switch (reply_head_cgi(h, &t)) {
	case HEAD_MORE: return;
	case HEAD_BAD: proto_bad(ev, h->why); return;
	case HEAD_DONE: break;
	}
	f->in_head = false;
	f->had_head = true;
	/* bytes after the head belong to the body: put them back */
	f->content = (uint16_t)(f->content + t.n);
	in->n += (size_t)(end - t.p);
	in->p = t.p;
	ev->kind = PROTO_HEAD;
}

static void
end_request(struct fcgi *f, struct text *in, struct proto_event *ev)
{
	if (f->nend == 0 && f->content < sizeof(f->end)) {
		proto_bad(ev, "END_REQUEST is too short");
		return;
	}
	if (!proto_collect(f->end, &f->nend, sizeof(f->end), in))
		return;
	f->content = (uint16_t)(f->content - sizeof(f->end));
	switch (f->end[4]) {
	case REQUEST_COMPLETE:
		if (!f->had_head) {
			proto_bad(ev, f->in_head ? "the reply ended within its head"
						 : "the reply has no head");
			return;
		}
		ev->kind = PROTO_END;
		/* Without its padding the socket cannot be used again. */
		ev->reuse = f->content == 0 && f->padding <= in->n;
		text_take(in, ev->reuse ? f->padding : 0);
		return;
	case CANT_MPX_CONN:
	case OVERLOADED:
		if (f->had_head)
			break; /* a refusal after its head */
		ev->kind = PROTO_REFUSED;
		ev->why = f->end[4] == OVERLOADED ? "overloaded" : "cannot multiplex";
		return;
	case UNKNOWN_ROLE:
		proto_bad(ev, "the application does not support the role responder");
		return;
	}
	proto_bad(ev, "unexpected protocol status in END_REQUEST");
}

static void
record_content(struct fcgi *f, struct reply_head *h, struct text *in, struct proto_event *ev)
{
	unsigned type = record_is_ours(f) ? f->header[1] : 0;

	if (type == END_REQUEST)
		end_request(f, in, ev);
	else if (type == STDOUT && !f->had_head)
		stdout_head(f, h, in, ev);
	else {
		ev->bytes = content_take(f, in);
		if (type == STDOUT)
			ev->kind = PROTO_BODY;
		else if (type == STDERR)
			ev->kind = PROTO_NOTE;
		/* otherwise: a record of another request or of management is skipped */
	}
}

static void
padding_skip(struct fcgi *f, struct text *in)
{
	f->padding = (uint8_t)(f->padding - text_take(in, f->padding).n);
	if (f->padding == 0)
		f->nheader = 0; /* the record has ended */
}

static void
fcgi_reply(void *state, struct reply_head *h, struct text *in, struct buf *out,
    struct proto_event *ev)
{
	struct fcgi *f = state;

	*ev = (struct proto_event){ .kind = PROTO_MORE };
	while (in->n > 0 && ev->kind == PROTO_MORE) {
		if (f->nheader < FCGI_HEAD) {
			if (!proto_collect(f->header, &f->nheader, FCGI_HEAD, in))
				return;
			ev->messages++;
			record_begin(f, ev);
			if (ev->kind == PROTO_MORE && f->content == 0 && record_is_ours(f) &&
			    f->header[1] == END_REQUEST)
				proto_bad(ev, "END_REQUEST is too short");
			if (f->content == 0)
				padding_skip(f, in);
			continue;
		}
		if (f->content > 0)
			record_content(f, h, in, ev);
		else
			padding_skip(f, in);
	}
}

/* END_REQUEST ends a reply; the end of the stream does not. */
static void
fcgi_eof(void *state, struct proto_event *ev)
{
	*ev = (struct proto_event){ 0 };
	proto_bad(ev, "the backend hung up within its reply");
}

const struct proto proto_fastcgi = {
	.name = "fastcgi",
	.doc = "FastCGI 1.0, role responder",
	.size = sizeof(struct fcgi),
	.request = fcgi_request,
	.body = fcgi_body,
	.body_end = fcgi_body_end,
	.reply = fcgi_reply,
	.eof = fcgi_eof,
};
