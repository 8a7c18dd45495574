/* wire/codec/uwsgi.c -- the uwsgi protocol: one request on each socket, which ends with the reply.
 *
 *   to it     00 length 00  (length NAME length VALUE)...  body     lengths: 2 bytes, little-endian
 *   from it   a reply of HTTP/1.x
 *
 * Applications have routes of their own, see cgi_for_routes().
 */
#include <errno.h>
#include "wire/codec/cgi_env.h"
#include "wire/codec/http.h"

#define VARS_MAX 65535u /* what the head can say */

static void
put_u16(struct buf *out, size_t n)
{
	buf_char(out, (char)n);
	buf_char(out, (char)(n >> 8));
}

static void
put_text(struct buf *out, struct text t)
{
	if (t.n > VARS_MAX)
		out->failed = true;
	put_u16(out, t.n);
	buf_text(out, t);
}

static void
put_var(void *vars, struct text name, struct text value)
{
	put_text(vars, name);
	put_text(vars, value);
}

static int
uwsgi_request(void *state, const struct proxy_request *r, bool keep, struct buf *out)
{
	struct proxy_request q = cgi_for_routes(r);
	struct buf vars;
	struct http *s = state;
	int err;

	s->head = text_eq(r->method, TEXT("HEAD"));
	s->echoes = text_eq(r->protocol, TEXT("HTTP/2.0"));
	buf_init(&vars, VARS_MAX);
	err = cgi_env(&q, put_var, &vars);
	buf_char(out, 0); /* modifier1: variables follow */
	put_u16(out, vars.n);
	buf_char(out, 0);
	buf_text(out, buf_as_text(&vars));
	if (err == 0 && (vars.failed || out->failed))
		err = -E2BIG;
	buf_free(&vars);
	return (err);
}

static void
uwsgi_body(void *state, struct text bytes, struct buf *out)
{
	buf_text(out, bytes);
}

/* CONTENT_LENGTH marks the end of the body. */
static void
uwsgi_body_end(void *state, struct buf *out)
{
}

const struct proto proto_uwsgi = {
	.name = "uwsgi",
	.doc = "uwsgi, a connection for each request",
	.size = sizeof(struct http),
	.once = true,
	.request = uwsgi_request,
	.body = uwsgi_body,
	.body_end = uwsgi_body_end,
	.reply = http_reply,
	.eof = http_eof,
};
