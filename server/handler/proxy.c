/* server/handler/proxy.c -- one request handed to an application, its reply streamed or turned into a file.
 *
 *   client --body--> conn_want_input() --> exchange_body() --> application
 *   client <--body-- conn_send_body() <-- r->body <-- on_head, on_body, on_end
 *
 * Back-pressure: above HIGH_WATER bytes waiting for the client the exchange is paused, below LOW_WATER it goes on.
 * The reply may begin before the request body has been sent: both go on side by side until the application has ended its
 * reply. The head has then said that the connection ends with it, as the rest of the body may never be read.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "base/urlpath.h"
#include "server/conn.h"
#include "server/handler/handler.h"
#include "server/reply.h"
#include "server/rewrite.h"
#include "server/worker.h"

#define HIGH_WATER (256u << 10)
#define LOW_WATER (64u << 10)
#define LINES_MAX (64u << 10) /* header lines of an application */

struct relay {
	struct request *r;
	struct exchange *ex;       /* NULL: over */
	struct proxy_request req;
	struct reply_extra extra;
	int64_t left;              /* reply bytes the head promised; -1: not told */
	size_t uploaded;           /* of r->upload */
	bool has_head, no_body;    /* HEAD, 204, 304 */
	bool chunked, paused, sending, over;
	bool broken;               /* the reply broke off: cut */
	bool replied;              /* somebody else (a file, an error page) answers */
};

static void pump(struct relay *);
static void feed(struct relay *);

/* ---- the request body */

static void
got_input(struct request *r, int err)
{
	struct relay *rl = r->relay;

	if (err == -ECANCELED || rl == NULL || rl->over) {
		if (rl != NULL)
			pump(rl);
		return;
	}
	if (err != 0) {
		conn_cut(r); /* a client that leaves in mid-body wants no answer */
		return;
	}
	feed(rl);
}

static void
feed_upload(struct relay *rl)
{
	struct request *r = rl->r;
	struct text t = {r->upload.p + rl->uploaded, r->upload.n - rl->uploaded};

	if (t.n != 0)
		rl->uploaded += exchange_body(rl->ex, t);
}

/* Moves what has arrived to the application, and asks for more. */
static void
feed(struct relay *rl)
{
	struct request *r = rl->r;
	struct text t;
	size_t n;

	if (rl->ex == NULL || rl->over)
		return;
	if (r->upload.n != 0) {
		feed_upload(rl);
		return;
	}
	while (r->body_left > 0 && (t = conn_input(r)).n != 0) {
		n = exchange_body(rl->ex, t);
		if (n == 0)
			return; /* on_room() comes */
		conn_input_taken(r, n);
	}
	if (r->body_left > 0 && !conn_wants_input(r))
		conn_want_input(r, got_input);
}

static void
on_room(void *arg)
{
	feed(arg);
}

/* ---- the reply */

static void
done(struct relay *rl)
{
	struct request *r = rl->r;

	if (conn_wants_input(r)) {
		conn_stop_input(r); /* got_input() brings us back */
		return;
	}
	if (rl->broken) {
		conn_cut(r);
		return;
	}
	if (rl->replied)
		return;
	rl->replied = true;
	conn_replied(r);
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
	if (rl->paused && r->body.left < LOW_WATER && rl->ex != NULL) {
		rl->paused = false;
		exchange_resume(rl->ex);
	}
	pump(rl);
}

static void
pump(struct relay *rl)
{
	struct request *r = rl->r;

	if (rl->sending || rl->replied)
		return;
	if (!body_empty(&r->body)) {
		rl->sending = true;
		conn_send_body(r, sent);
		return;
	}
	if (rl->over)
		done(rl);
}

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

static void
answer_error(struct relay *rl, int status)
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
	if (rl->extra.lines.p == NULL || scope == NULL || memchr(rest.p, '\0', rest.n) != NULL) {
		log_event(LOG_WARN, conn_id(r), "sendfile.refused", LF_STR("backend", exchange_backend(rl->ex)),
		    LF_TEXT("path", p->send_file.p != NULL ? p->send_file : p->send_uri),
		    LF_STR("why", "not below proxy-core.x-sendfile-docroot or the document root"));
		exchange_forget(&rl->ex, true);
		answer_error(rl, 403);
		return;
	}
	rest = arena_text(&r->arena, rest);
	exchange_forget(&rl->ex, true);
	if (rest.p == NULL) {
		answer_error(rl, 500);
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
		answer_error(rl, 502);
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
	if (r->body_left != 0)
		conn_close_after(r);
	if (!r->conf->proxy_x_sendfile || (p->send_file.p == NULL && p->send_uri.p == NULL) ||
	    status_has_no_body(p->status)) {
		stream_head(rl, p);
		return;
	}
	conn_stop_input(r);
	send_file(rl, p);
}

static void
on_body(void *arg, struct text t)
{
	struct relay *rl = arg;
	struct request *r = rl->r;
	char size[24];
	bool ok = true;

	if (rl->no_body || t.n == 0)
		return;
	if (rl->left >= 0 && t.n > (uint64_t)rl->left)
		t.n = (size_t)rl->left; /* more than was promised: not part of this reply */
	if (rl->left >= 0)
		rl->left -= (int64_t)t.n;
	r->body_bytes += t.n;
	if (rl->chunked && t.n != 0)
		ok = body_copy(&r->body, (struct text){size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", t.n)});
	ok = ok && body_copy(&r->body, t);
	if (rl->chunked && t.n != 0)
		ok = ok && body_copy(&r->body, TEXT("\r\n"));
	if (!ok) {
		conn_cut(r);
		return;
	}
	if (!rl->paused && r->body.left > HIGH_WATER) {
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
	if (!rl->has_head) {
		must(status > 0);
		rl->has_head = true;
		if (r->body_left != 0)
			conn_close_after(r);
		if (status == 503)
			reply_retry(r, retry_after_s != 0 ? retry_after_s : 1);
		else
			reply_error(r, status);
	} else if (status != 0 || (!rl->no_body && rl->left > 0)) {
		rl->broken = true; /* what was promised did not come: the client must be able to tell */
	} else if (rl->chunked && !body_copy(&r->body, TEXT("0\r\n\r\n"))) {
		rl->broken = true;
	}
	pump(rl);
}

static const struct exchange_sink sink = {
	.on_head = on_head, .on_body = on_body, .on_room = on_room, .on_end = on_end,
};

/* ---- start and stop */

static struct text
host_only(struct text host)
{
	const char *end;

	if (host.n != 0 && host.p[0] == '[')
		end = memchr(host.p, ']', host.n) != NULL ? (const char *)memchr(host.p, ']', host.n) + 1 : NULL;
	else
		end = memchr(host.p, ':', host.n);
	if (end != NULL)
		host.n = (size_t)(end - host.p);
	return (host);
}

static struct text
rewritten(struct request *r, struct text name, struct text value)
{
	return (rewrite_value(r->site->rewrite_request, name, value, &r->arena));
}

static bool
fill_headers(struct request *r, struct proxy_request *q)
{
	struct proxy_field *f = arena_get(&r->arena, (r->http.nheaders + 1u) * sizeof(*f));
	size_t i;

	if (f == NULL)
		return (false);
	for (i = 0; i < r->http.nheaders; i++) {
		struct text name = r->http.headers[i].name;

		f[i] = (struct proxy_field){name, rewritten(r, name, r->http.headers[i].value)};
	}
	q->headers = f;
	q->nheaders = r->http.nheaders;
	return (true);
}

/* "127.0.0.1:8080", "[::1]:80" or "unix:/path" */
static void
fill_server(struct request *r, struct proxy_request *q)
{
	struct text name = conn_listener(r);
	const char *colon = memrchr(name.p, ':', name.n);
	uint64_t port = 0;

	if (colon != NULL && text_u64((struct text){colon + 1, name.n - (size_t)(colon + 1 - name.p)}, &port) == 0)
		name.n = (size_t)(colon - name.p);
	q->server_addr = name;
	q->server_port = (uint16_t)port;
}

/* None unless proxy-core.rewrite-request makes one of the path. */
static struct text
path_info(struct request *r, struct text path)
{
	struct text t = rewritten(r, TEXT("_pathinfo"), path);

	return (t.p != path.p ? t : (struct text){"", 0});
}

static struct text
redirect_uri(struct request *r)
{
	struct text t = rewritten(r, TEXT("_uri"), r->http.target);

	return (t.p != r->http.target.p ? t : (struct text){"", 0});
}

static bool
fill(struct relay *rl)
{
	struct request *r = rl->r;
	struct proxy_request *q = &rl->req;
	struct text root = rewritten(r, TEXT("_docroot"), r->site->docroot_dir), path = request_path(r);
	char *remote = arena_get(&r->arena, 64), *file, *id;

	/* A trailing slash stays: the application must be able to tell a directory. */
	file = arena_get(&r->arena, root.n + path.n + 1);
	id = arena_str(&r->arena, text_of(conn_id(r)));
	if (remote == NULL || file == NULL || id == NULL || !fill_headers(r, q))
		return (false);
	memcpy(file, root.p, root.n);
	memcpy(file + root.n, path.p, path.n);
	q->id = id;
	q->client = conn_client(r);
	q->method = r->http.method;
	q->target = r->http.target;
	q->path = rewritten(r, TEXT("_scriptname"), path);
	q->query = r->http.query.p != NULL ? r->http.query : (struct text){"", 0};
	q->protocol = r->http.minor == 0 ? TEXT("HTTP/1.0") : TEXT("HTTP/1.1");
	q->host = r->http.host.p != NULL ? r->http.host : (struct text){"", 0};
	q->scheme = TEXT("http");
	q->docroot = root;
	q->script_filename = (struct text){file, root.n + path.n};
	q->redirect_uri = redirect_uri(r);
	q->path_info = r->site->rewrite_request != NULL ? path_info(r, path) : (struct text){"", 0};
	q->remote_addr = conn_remote(r, remote);
	q->remote_port = conn_remote_port(r);
	q->server_name = q->host.n != 0 ? host_only(q->host)
	    : r->conf->server_name != NULL ? text_of(r->conf->server_name) : (struct text){"", 0};
	fill_server(r, q);
	q->content_length = r->upload.n != 0 ? (int64_t)r->upload.n : r->body_left;
	q->safe = q->content_length == 0 && (r->http.verb == HTTP_GET || r->http.verb == HTTP_HEAD || r->http.verb == HTTP_OPTIONS);
	return (true);
}

static enum handled
too_large(struct request *r)
{
	conn_close_after(r);
	reply_error(r, 413);
	return (HANDLED_REPLY);
}

static enum handled
proxy_start(struct request *r, bool peek)
{
	struct relay *rl;

	if (peek)
		return (HANDLED_NOT_NOW);
	if (r->conf->max_request_kb != 0 && r->body_left > 0 && (uint64_t)r->body_left > r->conf->max_request_kb << 10)
		return (too_large(r));
	if (!request_keep(r) || (rl = arena_get(&r->arena, sizeof(*rl))) == NULL) {
		reply_error(r, 500);
		return (HANDLED_REPLY);
	}
	memset(rl, 0, sizeof(*rl));
	rl->r = r;
	rl->left = -1;
	if (!fill(rl) || exchange_start(r->site->upstream, &rl->req, &sink, rl, &rl->ex) != 0) {
		reply_error(r, 500);
		return (HANDLED_REPLY);
	}
	r->relay = rl;
	feed(rl);
	return (HANDLED_LATER);
}

static void
proxy_stop(struct request *r)
{
	struct relay *rl = r->relay;

	if (rl != NULL && rl->ex != NULL)
		exchange_forget(&rl->ex, false);
	static_stop(r);
}

const struct handler handler_proxy = {
	.name = "proxy", .reads_body = true, .start = proxy_start, .stop = proxy_stop,
};
