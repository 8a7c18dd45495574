/* wire/uwsgi.c -- the uwsgi protocol: one request on each socket, which ends with the reply.
 *
 *   to it     00 length 00  (length NAME length VALUE)...  body     lengths: 2 bytes, little-endian
 *   from it   a reply of HTTP/1.x
 *
 * Applications find the path in PATH_INFO, behind SCRIPT_NAME.  Without proxy-core.rewrite-request
 * all of the path is in PATH_INFO: otherwise each URL would be their front page.
 */
#include <errno.h>
#include "wire/cgi_env.h"
#include "wire/http.h"

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

struct vars {
	const struct proxy_request *req;
	struct buf b;
};

static void
put_var(void *arg, struct text name, struct text value)
{
	struct vars *v = arg;

	if (v->req->path_info.n == 0) {
		if (text_eq(name, TEXT("PATH_INFO")))
			value = v->req->path;
		else if (text_eq(name, TEXT("SCRIPT_NAME")))
			value = TEXT("");
	}
	put_text(&v->b, name);
	put_text(&v->b, value);
}

static int
uwsgi_request(void *state, const struct proxy_request *r, bool keep, struct buf *out)
{
	struct vars vars = { .req = r };
	struct http *s = state;
	int err;

	s->head = text_eq(r->method, TEXT("HEAD"));
	buf_init(&vars.b, VARS_MAX);
	err = cgi_env(r, put_var, &vars);
	buf_char(out, 0); /* modifier1: variables follow */
	put_u16(out, vars.b.n);
	buf_char(out, 0);
	buf_text(out, buf_as_text(&vars.b));
	if (err == 0 && (vars.b.failed || out->failed))
		err = -E2BIG;
	buf_free(&vars.b);
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
