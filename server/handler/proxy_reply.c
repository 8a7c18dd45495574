/* server/handler/proxy_reply.c -- what an application answers: streamed to the client, or turned into a file.
 *
 *   application --on_body--> r->body ----------------------> client
 *                  `-- more than BODY_MAX --> r->kept --'    memory, then a temporary file
 *
 * The application is paused while a piece is being written, and when no more may be kept until the client has read it all.
 */
#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "base/must.h"
#include "wire/urlpath.h"
#include "server/conn/conn.h"
#include "server/handler/proxy_impl.h"
#include "server/config/rewrite.h"
#include "server/route.h"

#define BODY_MAX (64u << 10)    /* waiting in r->body */
#define KEPT_MEMORY (192u << 10) /* and in memory behind it */
#define LINES_MAX (64u << 10)   /* header lines of an application */

static void pump(struct relay *);

/* ---- to the client */

static void
done(struct relay *rl)
{
	if (rl->broken) {
		conn_cut(rl->r);
		return;
	}
	if (rl->replied)
		return;
	rl->replied = true;
	conn_replied(rl->r);
}

static void
resume(struct relay *rl)
{
	if (!rl->paused || rl->ex == NULL)
		return;
	rl->paused = false;
	exchange_resume(rl->ex);
}

/* The body is empty: what was kept follows.  False: no memory. */
static bool
follow(struct request *r)
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
		spool_drop(&r->kept); /* the client has caught up: its place on the disk is free again */
	return (ok);
}

static void
sent(struct request *r, int err)
{
	struct relay *rl = r->relay;

	rl->sending = false;
	if (err != 0) {
		conn_cut(r);
		return;
	}
	pump(rl);
}

static void
pump(struct relay *rl)
{
	struct request *r = rl->r;

	if (rl->sending || rl->replied)
		return;
	if (r->kept != NULL && body_empty(&r->body) && !follow(r)) {
		conn_cut(r);
		return;
	}
	if (r->kept == NULL || !spool_full(r->kept))
		resume(rl);
	if (!body_empty(&r->body)) {
		rl->sending = true;
		conn_send_body(r, sent);
		return;
	}
	if (rl->over && r->kept == NULL)
		done(rl);
}

/* ---- bytes that wait */

static void
kept_moved(void *arg)
{
	struct relay *rl = arg;

	if (!spool_full(rl->r->kept))
		resume(rl);
	pump(rl);
}

static bool
keep_begin(struct relay *rl)
{
	struct request *r = rl->r;
	struct spool_conf sc = {.id = conn_id(r), .client = r->sender.client, .memory = KEPT_MEMORY,
	    .max = r->conf->proxy_reply_spool << 10};

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

/* What a file reply makes itself, or takes from the application in a place of its own. */
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
		return (text_ieq(name, TEXT("accept-ranges")) || text_ieq(name, TEXT("content-range")) ||
		    text_ieq(name, TEXT("content-encoding")));
	return (true);
}

static bool
made_here(const struct request *r, struct text name)
{
	return (text_ieq(name, TEXT("content-length")) || text_ieq(name, TEXT("date")) ||
	    (text_ieq(name, TEXT("server")) && r->site->style.tag_line.n != 0));
}

/* The application's fields as header lines (.p NULL: no memory); file: without those that it takes. */
static struct text
reply_lines(struct request *r, const struct proxy_reply *p, struct reply_extra *file)
{
	struct text lines = TEXT_NONE;
	struct buf out;
	size_t i;

	buf_init(&out, LINES_MAX);
	for (i = 0; i < p->nheaders; i++) {
		struct text name = p->headers[i].name;
		struct text value = rewrite_value(r->site->rewrite_response, name, p->headers[i].value, &r->arena);

		if (value.p == NULL && p->headers[i].value.p != NULL) {
			route_undecided(r, "proxy-core.rewrite-response", name);
			buf_free(&out);
			return (TEXT_NONE);
		}
		if (made_here(r, name) || (file != NULL && taken_by_file(file, name, value, &r->arena)))
			continue;
		buf_text(&out, name);
		buf_str(&out, ": ");
		buf_text(&out, value);
		buf_str(&out, "\r\n");
	}
	if (!out.failed)
		lines = arena_text(&r->arena, (struct text){out.n != 0 ? out.p : "", out.n});
	buf_free(&out);
	return (lines);
}

/* Which root a path lies in; *rest is what follows it, without slashes: applications join "/www/" and "/file". */
static struct stat_scope *
root_of(const struct site *s, struct text path, struct text *rest)
{
	size_t i, k;

	for (i = 0; i < s->nsend_roots; i++) {
		const struct send_root *root = &s->send_roots[i];
		const struct text dirs[2] = {root->dir, root->real};

		for (k = 0; k < 2; k++) {
			struct text d = dirs[k];

			if (d.n == 1 && d.p[0] == '/')
				d.n = 0;
			if (path.n > d.n && text_starts(path, d) && path.p[d.n] == '/') {
				*rest = (struct text){path.p + d.n, path.n - d.n};
				while (rest->n != 0 && rest->p[0] == '/')
					rest->p++, rest->n--;
				return (root->scope);
			}
		}
	}
	return (NULL);
}

/* The answer is made of something else than the application's bytes. */
static void
answer_otherwise(struct relay *rl, enum handled h)
{
	rl->over = true;
	if (h == HANDLED_REPLY)
		pump(rl);
	else
		rl->replied = true; /* static.c calls conn_replied() */
}

void
proxy_answer_error(struct relay *rl, int status)
{
	reply_error(rl->r, status);
	answer_otherwise(rl, HANDLED_REPLY);
}

static struct stat_scope *
resolve_path(struct request *r, struct text path, struct text *rest)
{
	char *p;
	int n;

	if (!r->conf->proxy_x_sendfile_decode)
		return (root_of(r->site, path, rest));
	p = arena_get(&r->arena, path.n + 1);
	if (p == NULL || (n = urlpath_decode(path, p)) < 0)
		return (NULL);
	return (root_of(r->site, (struct text){p, (size_t)n}, rest));
}

/* X-Accel-Redirect: a URI path below the document root. */
static struct stat_scope *
resolve_uri(struct request *r, struct text uri, struct text *rest)
{
	const char *query = memchr(uri.p, '?', uri.n);
	char *p = arena_get(&r->arena, uri.n + 1);
	int n;

	if (query != NULL)
		uri.n = (size_t)(query - uri.p);
	if (p == NULL || (n = urlpath_clean(uri, p)) < 1)
		return (NULL);
	*rest = (struct text){p + 1, (size_t)n - 1};
	return (r->site->docroot);
}

static void
send_file(struct relay *rl, const struct proxy_reply *p)
{
	struct request *r = rl->r;
	struct stat_scope *scope;
	struct text rest;

	count(&r->worker->tally->counters, sendfile_headers);
	rl->extra.status = p->status;
	rl->extra.lines = reply_lines(r, p, &rl->extra);
	scope = p->send_file.p != NULL ? resolve_path(r, p->send_file, &rest) : resolve_uri(r, p->send_uri, &rest);
	if (rl->extra.lines.p == NULL) {
		exchange_forget(&rl->ex, true);
		proxy_answer_error(rl, 502);
		return;
	}
	if (scope == NULL || memchr(rest.p, '\0', rest.n) != NULL) {
		log_limited(10, LOG_WARN, conn_id(r), "sendfile.refused", LF_STR("backend", exchange_backend(rl->ex)),
		    LF_TEXT("path", p->send_file.p != NULL ? p->send_file : p->send_uri),
		    LF_STR("why", "not below proxy-core.x-sendfile-docroot or the document root"));
		exchange_forget(&rl->ex, true);
		proxy_answer_error(rl, 403);
		return;
	}
	rest = arena_text(&r->arena, rest);
	exchange_forget(&rl->ex, true);
	if (rest.p == NULL) {
		proxy_answer_error(rl, 500);
		return;
	}
	if (r->http.verb != HTTP_HEAD)
		r->http.verb = HTTP_GET; /* what is sent is a file, whatever was asked of the application */
	answer_otherwise(rl, static_send(r, scope, rest, &rl->extra, false));
}

/* No bytes may follow such a head: to the client they would be the start of the next reply. */
static bool
status_has_no_body(int status)
{
	return (status < 200 || status == 204 || status == 304);
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
	rl->no_body = r->http.verb == HTTP_HEAD || status_has_no_body(p->status);
	rl->left = p->content_length;
	rl->chunked = !rl->no_body && rl->left < 0 && r->http.minor != 0;
	if (!rl->no_body && rl->left < 0 && !rl->chunked)
		conn_close_after(r); /* HTTP/1.0: the end of the connection is the end of the body */
	reply_stream_head(r, p->status, lines, status_has_no_body(p->status) ? -1 : rl->left, rl->chunked);
	pump(rl);
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
	if (!r->conf->proxy_x_sendfile || (p->send_file.p == NULL && p->send_uri.p == NULL) ||
	    status_has_no_body(p->status)) {
		stream_head(rl, p);
		return;
	}
	send_file(rl, p);
}

/* ---- the body, and the end */

static bool
chunk_to_client(struct relay *rl, struct text t)
{
	char size[24];
	size_t n = (size_t)snprintf(size, sizeof(size), "%zx\r\n", t.n);

	return (to_client(rl, (struct text){size, n}) && to_client(rl, t) && to_client(rl, TEXT("\r\n")));
}

static void
on_body(void *arg, struct text t)
{
	struct relay *rl = arg;
	struct request *r = rl->r;

	if (rl->no_body || t.n == 0)
		return;
	if (rl->left >= 0 && t.n > (uint64_t)rl->left)
		t.n = (size_t)rl->left; /* more than was promised: not part of this reply */
	if (rl->left >= 0)
		rl->left -= (int64_t)t.n;
	r->body_bytes += t.n;
	if (t.n != 0 && !(rl->chunked ? chunk_to_client(rl, t) : to_client(rl, t))) {
		conn_cut(r);
		return;
	}
	if (!rl->paused && r->kept != NULL && spool_full(r->kept)) {
		rl->paused = true;
		exchange_pause(rl->ex);
	}
	pump(rl);
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
	} else if (status != 0 || (!rl->no_body && rl->left > 0)) {
		rl->broken = true; /* what was promised did not come: the client must be able to tell */
	} else if (rl->chunked && !to_client(rl, TEXT("0\r\n\r\n"))) {
		rl->broken = true;
	}
	pump(rl);
}

const struct exchange_sink proxy_sink = {
	.on_head = on_head, .on_body = on_body, .on_room = proxy_room, .on_end = on_end,
};
