/* FastCGI 1.0, one request at a time on a socket.
 *
 *   to it     BEGIN  PARAMS... PARAMS(empty)  STDIN... STDIN(empty)
 *   from it   STDOUT... STDERR... END_REQUEST, in any mixture; STDOUT holds a reply in CGI style
 *
 *   record    version  type  id(2)  length(2)  padding  0   content(length)   (padding)
 */
#include <errno.h>
#include "base/must.h"
#include "wire/cgi_env.h"
#include "wire/codec.h"

enum { BEGIN = 1, END = 3, PARAMS = 4, STDIN = 5, STDOUT = 6, STDERR = 7 };
enum { COMPLETE, CANNOT_MULTIPLEX, OVERLOADED, UNKNOWN_ROLE };

#define VERSION 1
#define RESPONDER 1
#define KEEP_CONN 1
#define HEADER 8
#define OUR_ID 1 /* libfcgi cannot multiplex, so nobody does */
#define CONTENT_MAX 65535u

struct fcgi {
	unsigned char header[HEADER], end[8];
	uint8_t nheader, nend; /* bytes of these two so far */
	uint8_t padding;       /* still to come, as is content */
	uint16_t content;
	bool in_head;          /* STDOUT was seen, its head is not complete */
	bool had_head;
};

static void
put_header(struct buf *out, unsigned type, size_t content)
{
	const unsigned char h[HEADER] = {VERSION, (unsigned char)type, 0, OUR_ID,
	    (unsigned char)(content >> 8), (unsigned char)content};

	buf_add(out, h, sizeof(h));
}

/* The PARAMS stream: pairs run on from record to record, each as full as it can be. */
struct params {
	struct buf *out;
	size_t record; /* where the current record starts */
};

static void
params_close(struct params *p)
{
	size_t content = p->out->n - p->record - HEADER;

	if (p->out->failed)
		return;
	p->out->p[p->record + 4] = (char)(content >> 8);
	p->out->p[p->record + 5] = (char)content;
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
		room = CONTENT_MAX - (p->out->n - p->record - HEADER);
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

static void
params_length(struct params *p, size_t n)
{
	const char four[] = {(char)(0x80 | (n >> 24)), (char)(n >> 16), (char)(n >> 8), (char)n};

	if (n < 128)
		params_add(p, &four[3], 1);
	else
		params_add(p, four, sizeof(four));
}

static void
params_put(void *arg, struct text name, struct text value)
{
	struct params *p = arg;

	/* Fails the whole request below; and such a length would not fit the format either. */
	if (name.n > PROTO_REQUEST_MAX || value.n > PROTO_REQUEST_MAX) {
		p->out->failed = true;
		return;
	}
	params_length(p, name.n);
	params_length(p, value.n);
	params_add(p, name.p, name.n);
	params_add(p, value.p, value.n);
}

static int
fcgi_request(void *state, const struct proxy_request *r, bool keep, struct buf *out)
{
	const unsigned char begin[8] = {0, RESPONDER, keep ? KEEP_CONN : 0};
	struct params p = {.out = out};
	int err;

	put_header(out, BEGIN, sizeof(begin));
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
	size_t n;

	while (bytes.n > 0) {
		n = bytes.n < CONTENT_MAX ? bytes.n : CONTENT_MAX;
		put_header(out, STDIN, n);
		buf_add(out, bytes.p, n);
		bytes.p += n;
		bytes.n -= n;
	}
}

static void
fcgi_body_end(void *state, struct buf *out)
{
	put_header(out, STDIN, 0);
}

/* Fills have of want bytes from *in; true when they are all there. */
static bool
collect(unsigned char *dst, uint8_t *have, size_t want, struct text *in)
{
	size_t n = want - *have;

	n = n < in->n ? n : in->n;
	if (n > 0)
		memcpy(dst + *have, in->p, n);
	*have = (uint8_t)(*have + n);
	in->p += n;
	in->n -= n;
	return (*have == want);
}

static void
bad(struct proto_event *ev, const char *why)
{
	ev->kind = PROTO_BAD;
	ev->why = why;
}

/* A whole record header has come. */
static void
record_begin(struct fcgi *f, struct proto_event *ev)
{
	f->content = (uint16_t)(f->header[4] << 8 | f->header[5]);
	f->padding = f->header[6];
	f->nend = 0;
	if (f->header[0] != VERSION)
		bad(ev, "this is not FastCGI 1");
}

static bool
record_is_ours(const struct fcgi *f)
{
	return (f->header[2] == 0 && f->header[3] == OUR_ID);
}

/* The next n bytes of the record's content that have come. */
static struct text
content_take(struct fcgi *f, struct text *in)
{
	struct text t = {in->p, in->n < f->content ? in->n : f->content};

	in->p += t.n;
	in->n -= t.n;
	f->content = (uint16_t)(f->content - t.n);
	return (t);
}

static void
stdout_head(struct fcgi *f, struct reply_head *h, struct text *in, struct proto_event *ev)
{
	struct text t = content_take(f, in);
	const char *end = t.p + t.n;

	f->in_head = true;
	switch (reply_head_feed(h, &t)) {
	case HEAD_MORE:
		return;
	case HEAD_BAD:
		bad(ev, h->why);
		return;
	case HEAD_DONE:
		break;
	}
	f->in_head = false;
	f->had_head = true;
	f->content = (uint16_t)(f->content + t.n); /* what follows the head is body: put back */
	in->n += (size_t)(end - t.p);
	in->p = t.p;
	ev->kind = PROTO_HEAD;
}

static void
end_request(struct fcgi *f, struct text *in, struct proto_event *ev)
{
	if (f->nend == 0 && f->content < sizeof(f->end)) {
		bad(ev, "END_REQUEST is too short");
		return;
	}
	if (!collect(f->end, &f->nend, sizeof(f->end), in))
		return;
	f->content = (uint16_t)(f->content - sizeof(f->end));
	switch (f->end[4]) {
	case COMPLETE:
		if (!f->had_head) {
			bad(ev, f->in_head ? "the reply ended within its head"
					   : "the reply has no head");
			return;
		}
		ev->kind = PROTO_END;
		/* Late padding is not worth waiting for, but then the socket is not clean. */
		ev->reuse = f->content == 0 && f->padding <= in->n;
		in->p += ev->reuse ? f->padding : 0;
		in->n -= ev->reuse ? f->padding : 0;
		return;
	case CANNOT_MULTIPLEX:
	case OVERLOADED:
		if (f->had_head)
			break; /* it has begun to answer: too late to refuse */
		ev->kind = PROTO_REFUSED;
		ev->why = f->end[4] == OVERLOADED ? "overloaded" : "cannot multiplex";
		return;
	case UNKNOWN_ROLE:
		bad(ev, "the application is no responder");
		return;
	}
	bad(ev, "END_REQUEST makes no sense");
}

static void
record_content(struct fcgi *f, struct reply_head *h, struct text *in, struct proto_event *ev)
{
	unsigned type = record_is_ours(f) ? f->header[1] : 0;

	if (type == END)
		end_request(f, in, ev);
	else if (type == STDOUT && !f->had_head)
		stdout_head(f, h, in, ev);
	else {
		ev->bytes = content_take(f, in);
		if (type == STDOUT)
			ev->kind = PROTO_BODY;
		else if (type == STDERR)
			ev->kind = PROTO_NOTE;
		/* else: another request's, or a management record nobody asked for: skipped */
	}
}

static void
padding_skip(struct fcgi *f, struct text *in)
{
	uint8_t n = in->n < f->padding ? (uint8_t)in->n : f->padding;

	in->p += n;
	in->n -= n;
	f->padding = (uint8_t)(f->padding - n);
	if (f->padding == 0)
		f->nheader = 0; /* the record is through */
}

static void
fcgi_reply(void *state, struct reply_head *h, struct text *in, struct proto_event *ev)
{
	struct fcgi *f = state;

	*ev = (struct proto_event){.kind = PROTO_MORE};
	while (in->n > 0 && ev->kind == PROTO_MORE) {
		if (f->nheader < HEADER) {
			if (!collect(f->header, &f->nheader, HEADER, in))
				return;
			record_begin(f, ev);
			if (ev->kind == PROTO_MORE && f->content == 0 && record_is_ours(f) &&
			    f->header[1] == END)
				bad(ev, "END_REQUEST is too short");
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

/* END_REQUEST ends a reply, the stream does not. */
static void
fcgi_eof(void *state, struct proto_event *ev)
{
	*ev = (struct proto_event){0};
	bad(ev, "the backend hung up within its reply");
}

const struct proto proto_fastcgi = {
	.name = "fastcgi", .doc = "FastCGI 1.0, role responder",
	.size = sizeof(struct fcgi),
	.request = fcgi_request, .body = fcgi_body, .body_end = fcgi_body_end,
	.reply = fcgi_reply, .eof = fcgi_eof,
};
