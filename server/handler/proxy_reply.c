/* server/handler/proxy_reply.c -- the reply of an application: streamed to the client, or turned
 * into a file.
 *
 *   application --on_body--> r->body ----------------------> client
 *                  `-- more than BODY_MAX --> r->kept --'    memory, then a temporary file
 *
 * The application pauses while a piece is being written, and while no more may be kept until the
 * client has read everything.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/must.h"
#include "wire/urlpath.h"
#include "server/conn/conn.h"
#include "server/handler/proxy_impl.h"
#include "server/config/rewrite.h"
#include "server/route.h"

#define BODY_MAX    (64u << 10)  /* bytes that wait in r->body */
#define KEPT_MEMORY (192u << 10) /* bytes in memory behind them */
#define LINES_MAX   (64u << 10)  /* bytes of an application's header lines */

static void send_more(struct relay *);

/* ---- to the client */

static void
resume(struct relay *rl)
{
	if (rl->ex != NULL && (rl->r->kept == NULL || !spool_full(rl->r->kept)))
		exchange_resume(rl->ex);
}

/* r->body is empty: kept bytes follow.  False: no memory. */
static bool
take_kept(struct request *r)
{
	struct spool_bytes b;
	bool ok = true;

	while (ok && body_empty(&r->body)) {
		b = spool_front(r->kept);
		if (b.len != 0)
			ok = body_file(&r->body, b.file, b.off, b.len);
		else if (b.mem.n != 0)
			ok = body_copy(&r->body, b.mem);
		else
			break;
		spool_took(r->kept, b.len != 0 ? b.len : b.mem.n);
	}
	if (body_empty(&r->body) && spool_empty(r->kept))
		/* the client has read everything: frees the space on disk */
		spool_drop(&r->kept);
	return (ok);
}

static void
sent(struct request *r, int err)
{
	struct relay *rl = r->relay;

	rl->sending = false;
	if (err != 0) {
		conn_stop(r->conn);
		return;
	}
	send_more(rl);
}

static void
send_more(struct relay *rl)
{
	struct request *r = rl->r;

	if (rl->sending || rl->replied)
		return;
	if (r->kept != NULL && body_empty(&r->body) && !take_kept(r)) {
		conn_stop(r->conn);
		return;
	}
	resume(rl);
	if (!body_empty(&r->body)) {
		rl->sending = true;
		conn_send_body(r, sent);
		return;
	}
	if (!rl->over || r->kept != NULL)
		return;
	if (rl->broken) {
		conn_stop(r->conn);
		return;
	}
	rl->replied = true;
	conn_replied(r);
}

/* ---- bytes that wait */

static void
kept_moved(void *arg)
{
	struct relay *rl = arg;

	resume(rl);
	send_more(rl);
}

static bool
keep_begin(struct relay *rl)
{
	struct request *r = rl->r;
	struct spool_conf sc = { .id = conn_id(r),
		.client = r->sender.client,
		.memory = KEPT_MEMORY,
		.max = r->conf->proxy_reply_spool << 10 };

	r->kept = spool_new(r->worker, &sc);
	if (r->kept == NULL)
		return (false);
	spool_listen(r->kept, kept_moved, rl);
	return (true);
}

/* False: no memory. */
static bool
to_client(struct relay *rl, struct text t)
{
	struct request *r = rl->r;

	if (r->kept == NULL && r->body.left + t.n <= BODY_MAX)
		return (body_copy(&r->body, t));
	return ((r->kept != NULL || keep_begin(rl)) && spool_add(r->kept, t));
}

/* ---- the head */

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

/* The application's fields as header lines (.p NULL: no memory).  file: without the fields that
 * taken_by_file() takes. */
static struct text
reply_lines(struct request *r, const struct proxy_reply *p, struct reply_extra *file)
{
	struct text lines = TEXT_NONE;
	struct buf out;
	size_t i;

	buf_init(&out, LINES_MAX);
	for (i = 0; i < p->nheaders; i++) {
		struct text name = p->headers[i].name;
		struct text value =
		    rewrite_value(r->site->rewrite_response, name, p->headers[i].value, &r->arena);

		if (value.p == NULL && p->headers[i].value.p != NULL) {
			route_undecided(r, "proxy-core.rewrite-response", name);
			buf_free(&out);
			return (TEXT_NONE);
		}
		if (made_here(r, name) ||
		    (file != NULL && taken_by_file(file, name, value, &r->arena)))
			continue;
		buf_text(&out, name);
		buf_str(&out, ": ");
		buf_text(&out, value);
		buf_str(&out, "\r\n");
	}
	if (!out.failed)
		lines = arena_text(&r->arena, (struct text){ out.n != 0 ? out.p : "", out.n });
	buf_free(&out);
	return (lines);
}

/* The root of a path; *rest is the path below it. */
static struct file_scope *
root_of(const struct site *s, struct text path, struct text *rest)
{
	size_t i;

	for (i = 0; i < s->nsend_file_roots; i++)
		if (root_tail(s->send_file_roots[i].root, path, rest))
			return (s->send_file_roots[i].scope);
	return (NULL);
}

/* Another reply replaces the application's bytes. */
static void
answer_otherwise(struct relay *rl, enum handled h)
{
	rl->over = true;
	if (h == HANDLED_REPLY)
		send_more(rl);
	else
		rl->replied = true; /* static.c calls conn_replied() */
}

void
proxy_answer_error(struct relay *rl, int status)
{
	reply_error(rl->r, status);
	answer_otherwise(rl, HANDLED_REPLY);
}

/* Both copy the name to dst, of one byte more than it has.  NULL: no such name may be sent. */
static struct file_scope *
resolve_path(struct request *r, struct text path, char *dst, struct text *rest)
{
	int n = (int)path.n;

	if (r->conf->proxy_x_sendfile_decode)
		n = urlpath_decode(path, dst);
	else
		memcpy(dst, path.p, path.n);
	if (n < 0)
		return (NULL);
	dst[n] = '\0';
	return (root_of(r->site, (struct text){ dst, (size_t)n }, rest));
}

/* X-Accel-Redirect: a URI path below the document root. */
static struct file_scope *
resolve_uri(struct request *r, struct text uri, char *dst, struct text *rest)
{
	const char *query = memchr(uri.p, '?', uri.n);
	int n;

	if (query != NULL)
		uri.n = (size_t)(query - uri.p);
	if ((n = urlpath_clean(uri, dst)) < 1)
		return (NULL);
	*rest = (struct text){ dst + 1, (size_t)n - 1 };
	return (r->site->docroot);
}

static void
send_file(struct relay *rl, const struct proxy_reply *p)
{
	struct request *r = rl->r;
	enum control asks = control_answer(p->control);
	bool is_path = controls[asks].value == CONTROL_PATH;
	struct text name = p->control[asks], rest = TEXT_NONE;
	char *copy = arena_get(&r->arena, name.n + 1);
	struct file_scope *scope = NULL;
	int status = 0;

	count(&r->worker->counters->events, sendfile_headers);
	rl->extra.status = p->status;
	rl->extra.lines = reply_lines(r, p, &rl->extra);
	if (copy != NULL)
		scope = (is_path ? resolve_path : resolve_uri)(r, name, copy, &rest);
	if (rl->extra.lines.p == NULL)
		status = 502;
	else if (copy == NULL)
		status = 500;
	else if (scope == NULL || memchr(rest.p, '\0', rest.n) != NULL)
		status = 403;
	if (status == 403)
		log_limited(10, LOG_WARN, conn_id(r), "sendfile.refused",
		    LF_STR("backend", exchange_backend(rl->ex)), LF_TEXT("path", name),
		    LF_STR("why", "not below proxy-core.x-sendfile-docroot or the document root"));
	exchange_forget(&rl->ex, true);
	if (status != 0) {
		proxy_answer_error(rl, status);
		return;
	}
	if (r->http.verb != HTTP_HEAD)
		/* the reply is a file, also for a POST */
		r->http.verb = HTTP_GET;
	answer_otherwise(rl, static_send(r, scope, rest, &rl->extra, false));
}

static void
stream_head(struct relay *rl, const struct proxy_reply *p)
{
	struct request *r = rl->r;
	struct text lines = reply_lines(r, p, NULL);

	if (lines.p == NULL) {
		exchange_forget(&rl->ex, false);
		proxy_answer_error(rl, 502);
		return;
	}
	rl->chunked = p->has_body && p->content_length < 0 && r->http.minor != 0;
	if (p->has_body && p->content_length < 0 && !rl->chunked)
		/* HTTP/1.0: the end of the connection is the end of the body */
		conn_close_after(r);
	reply_stream_head(r, p->status, lines, p->content_length, rl->chunked);
	send_more(rl);
}

static void
note_times(struct relay *rl)
{
	const struct proxy_times *t = exchange_times(rl->ex);
	struct request *r = rl->r;

	r->proxy_queue_ns = t->leased > t->start ? t->leased - t->start : 0;
	r->proxy_ns = t->head > t->leased && t->leased != 0 ? t->head - t->leased : 0;
}

static void
on_head(void *arg, const struct proxy_reply *p)
{
	struct relay *rl = arg;
	struct request *r = rl->r;

	rl->has_head = true;
	note_times(rl);
	enum control asks = control_answer(p->control);

	if (asks < CONTROLS && r->conf->proxy_x_sendfile)
		send_file(rl, p);
	else
		stream_head(rl, p);
}

/* ---- the body, and the end */

static bool
chunk_to_client(struct relay *rl, struct text t)
{
	char size[24];
	size_t n = (size_t)snprintf(size, sizeof(size), "%zx\r\n", t.n);

	return (to_client(rl, (struct text){ size, n }) && to_client(rl, t) &&
		to_client(rl, TEXT("\r\n")));
}

static void
on_body(void *arg, struct text t)
{
	struct relay *rl = arg;
	struct request *r = rl->r;

	r->body_bytes += t.n;
	if (!(rl->chunked ? chunk_to_client(rl, t) : to_client(rl, t))) {
		conn_stop(r->conn);
		return;
	}
	if (r->kept != NULL && spool_full(r->kept))
		exchange_pause(rl->ex);
	send_more(rl);
}

static void
on_end(void *arg, int status, unsigned retry_after_s)
{
	struct relay *rl = arg;
	struct request *r = rl->r;

	rl->ex = NULL;
	rl->over = true;
	spool_drop(&r->upload);
	if (!rl->has_head) {
		must(status > 0);
		rl->has_head = true;
		if (status == 503)
			reply_retry(r, retry_after_s != 0 ? retry_after_s : 1);
		else
			reply_error(r, status);
	} else if (status != 0) {
		/* fewer bytes than announced: the client must be able to detect it */
		rl->broken = true;
	} else if (rl->chunked && !to_client(rl, TEXT("0\r\n\r\n"))) {
		rl->broken = true;
	}
	send_more(rl);
}

const struct exchange_sink proxy_sink = {
	.on_head = on_head,
	.on_body = on_body,
	.on_room = proxy_room,
	.on_end = on_end,
};
