/* accel-load/http.c -- HTTP/1.1 as a client that reads only what it counts. */
#include "accel-load/answer.h"
#include "accel-load/http.h"
#include "accel-load/urls.h"
#include "wire/http1/headers.h"
#include "wire/http1/reply.h"

enum { HEAD, SIZED, CHUNKS, STREAM };

/* ---------------------------------------------------------------- requests */

static bool
given(const struct load_conf *conf, struct text name)
{
	const char *const *h = conf->headers;

	for (; h != NULL && *h != NULL; h++)
		if (strlen(*h) > name.n && (*h)[name.n] == ':' &&
		    text_ieq((struct text){ *h, name.n }, name))
			return (true);
	return (false);
}

static void
put_range(struct buf *out, const struct request *r)
{
	buf_str(out, "Range: bytes=");
	buf_u64(out, r->offset);
	buf_char(out, '-');
	if (r->length != UINT64_MAX)
		buf_u64(out, r->offset + r->length - 1);
	buf_str(out, "\r\n");
}

void
load_http_fields(const struct load_conf *conf, const char *authority, struct buf *out)
{
	const char *const *h = conf->headers;

	buf_str(out, " HTTP/1.1\r\n");
	if (!given(conf, TEXT("Host")))
		buf_printf(out, "Host: %s\r\n", authority);
	if (!given(conf, TEXT("User-Agent")))
		buf_str(out, "User-Agent: accel-load\r\n");
	for (; h != NULL && *h != NULL; h++)
		buf_printf(out, "%s\r\n", *h);
}

static bool
http_request(const struct load_conf *conf, const struct url *u, const struct request *r,
    struct buf *out)
{
	if (conf->head)
		buf_add(out, "HEAD ", 5);
	else
		buf_add(out, "GET ", 4);
	buf_add(out, u->path, u->path_len);
	buf_add(out, u->target->fields, u->target->fields_len);
	if (r->length != 0)
		put_range(out, r);
	if (conf->close)
		buf_str(out, "Connection: close\r\n");
	buf_str(out, "\r\n");
	return (!out->failed);
}

/* ---------------------------------------------------------------- answers */

static enum answer_event
bad(struct answer *a, const char *why)
{
	a->why = why;
	return (ANSWER_BAD);
}

/* How the body ends. */
static void
body_begin(struct answer *a, const struct http1_reply *r)
{
	a->phase = SIZED;
	a->drop = 0;
	if (a->head_only || !status_has_body(r->status))
		return;
	if (r->chunked)
		a->phase = CHUNKS;
	else if (r->content_length >= 0)
		a->drop = (uint64_t)r->content_length;
	else {
		a->phase = STREAM;
		a->until_eof = true;
		a->keep = false;
	}
}

static enum answer_event
take_head(struct answer *a, struct text *in)
{
	struct http1_reply r;
	const char *why;
	size_t used;

	do {
		switch (http1_reply(*in, &r, &used, &why)) {
		case PARSE_BAD: return (bad(a, why));
		case PARSE_MORE:
			if (in->n > ANSWER_HEAD_MAX)
				return (bad(a, "the head is longer than 16 KiB"));
			return (ANSWER_MORE);
		case PARSE_DONE: text_take(in, used); break;
		}
	} while (r.status < 200); /* 100, 103: another head follows */
	a->status = r.status;
	a->keep = r.keep_alive;
	a->first = r.first > 0 ? (uint64_t)r.first : 0;
	a->total = r.status == 206 ? r.total : r.content_length;
	body_begin(a, &r);
	return (ANSWER_HEAD);
}

static enum answer_event
take_sized(struct answer *a, struct text *in, struct text *body)
{
	if (a->drop == 0)
		return (ANSWER_END);
	*body = text_take(in, a->drop < in->n ? (size_t)a->drop : in->n);
	a->drop -= body->n;
	return (body->n > 0 ? ANSWER_BODY : ANSWER_MORE);
}

static enum answer_event
take_chunks(struct answer *a, struct text *in, struct text *body)
{
	switch (http1_chunked(&a->chunked, in, body)) {
	case PARSE_BAD: return (bad(a, "malformed chunk"));
	case PARSE_DONE: return (ANSWER_END);
	case PARSE_MORE: break;
	}
	return (body->n > 0 ? ANSWER_BODY : ANSWER_MORE);
}

static enum answer_event
http_take(struct answer *a, struct text *in, struct text *body)
{
	switch (a->phase) {
	case HEAD: return (take_head(a, in));
	case SIZED: return (take_sized(a, in, body));
	case CHUNKS: return (take_chunks(a, in, body));
	default: *body = text_take(in, in->n); return (body->n > 0 ? ANSWER_BODY : ANSWER_MORE);
	}
}

static void
http_dropped(struct answer *a, uint64_t n)
{
	a->drop -= n;
}

static enum answer_event
http_eof(struct answer *a)
{
	if (a->phase == STREAM)
		return (ANSWER_END);
	return (bad(a, a->phase == HEAD ? "the answer ended within its head"
					: "the answer ended before its length"));
}

const struct load_protocol load_http = {
	.name = "http",
	.request = http_request,
	.take = http_take,
	.dropped = http_dropped,
	.eof = http_eof,
};
