/* SCGI: one request on each socket, which ends with the reply.
 *
 *   to it     LENGTH ":" NAME NUL VALUE NUL... "," body     CONTENT_LENGTH first, and SCGI=1
 *   from it   a head in CGI style, then a body: Content-Length bytes, or all to the end of the
 *             stream
 *
 * Applications have routes of their own, see cgi_for_routes().
 * Without Content-Length, a truncated reply looks like a complete one.
 */
#include <errno.h>
#include "wire/codec/cgi_env.h"
#include "wire/codec/codec.h"

struct scgi {
	bool had_head;
	int64_t left; /* of the body; -1: until the end of the stream */
};

/* ---------------------------------------------------------------- to the application */

struct pairs {
	struct buf b;
	bool broken; /* a value has a NUL, which would begin another variable */
};

static void
pairs_add(struct pairs *p, struct text name, struct text value)
{
	if (value.n > 0 && memchr(value.p, '\0', value.n) != NULL)
		p->broken = true;
	buf_text(&p->b, name);
	buf_char(&p->b, '\0');
	buf_text(&p->b, value);
	buf_char(&p->b, '\0');
}

static void
pairs_put(void *arg, struct text name, struct text value)
{
	if (!text_eq(name, TEXT("CONTENT_LENGTH"))) /* always first, even if it is 0 */
		pairs_add(arg, name, value);
}

static int
scgi_request(void *state, const struct proxy_request *r, bool keep, struct buf *out)
{
	uint64_t length = r->content_length > 0 ? (uint64_t)r->content_length : 0;
	struct proxy_request q = cgi_for_routes(r);
	struct pairs p = { .broken = false };
	char digits[20];
	int err;

	buf_init(&p.b, PROTO_REQUEST_MAX);
	pairs_add(&p, TEXT("CONTENT_LENGTH"),
	    (struct text){ digits, text_put_u64(digits, length) });
	pairs_add(&p, TEXT("SCGI"), TEXT("1"));
	err = cgi_env(&q, pairs_put, &p);
	buf_u64(out, p.b.n);
	buf_char(out, ':');
	buf_text(out, buf_as_text(&p.b));
	buf_char(out, ',');
	if (err == 0 && (p.b.failed || out->failed || out->n > PROTO_REQUEST_MAX))
		err = -E2BIG;
	buf_free(&p.b);
	return (err == 0 && p.broken ? -EINVAL : err);
}

static void
scgi_body(void *state, struct text bytes, struct buf *out)
{
	buf_text(out, bytes);
}

/* CONTENT_LENGTH marks the end of the body. */
static void
scgi_body_end(void *state, struct buf *out)
{
}

/* ---------------------------------------------------------------- from the application */

static void
reply_head(struct scgi *s, struct reply_head *h, struct text *in, struct proto_event *ev)
{
	switch (reply_head_cgi(h, in)) {
	case HEAD_MORE: break;
	case HEAD_BAD: *ev = (struct proto_event){ .kind = PROTO_BAD, .why = h->why }; break;
	case HEAD_DONE:
		s->had_head = true;
		s->left = h->reply.content_length;
		ev->kind = PROTO_HEAD;
		break;
	}
}

static void
reply_body(struct scgi *s, struct text *in, struct proto_event *ev)
{
	ev->bytes = text_take(in, s->left >= 0 ? (size_t)s->left : in->n);
	if (s->left > 0)
		s->left -= (int64_t)ev->bytes.n;
	ev->kind = PROTO_BODY;
}

static void
scgi_reply(void *state, struct reply_head *h, struct text *in, struct buf *out,
    struct proto_event *ev)
{
	struct scgi *s = state;

	*ev = (struct proto_event){ .kind = PROTO_MORE };
	if (!s->had_head)
		reply_head(s, h, in, ev);
	else if (s->left == 0)
		ev->kind = PROTO_END; /* bytes after the body are dropped with the socket */
	else if (in->n > 0)
		reply_body(s, in, ev);
}

static void
scgi_eof(void *state, struct proto_event *ev)
{
	const struct scgi *s = state;

	*ev = (struct proto_event){ .kind = PROTO_END };
	if (!s->had_head)
		*ev = (struct proto_event){ .kind = PROTO_BAD,
			.why = "the reply ended within its head" };
}

const struct proto proto_scgi = {
	.name = "scgi",
	.doc = "SCGI, a connection for each request",
	.size = sizeof(struct scgi),
	.once = true,
	.request = scgi_request,
	.body = scgi_body,
	.body_end = scgi_body_end,
	.reply = scgi_reply,
	.eof = scgi_eof,
};
