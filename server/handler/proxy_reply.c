/* server/handler/proxy_reply.c -- the reply of an application, streamed to the client.
 *
 *   application --on_body--> r->body ----------------------> client
 *                  `-- more than BODY_MAX --> r->kept --'    memory, then a temporary file
 *
 * The application pauses while a piece is being written, and while no more may be kept until the
 * client has read everything.
 */
#include <stdio.h>

#include "base/log.h"
#include "io/body.h"
#include "io/lent.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/module/error_handler.h"
#include "server/request/told.h"
#include "server/request/request.h"

#define BODY_MAX    (64u << 10)  /* bytes that wait in r->body */
#define LEND_MIN    (8u << 10)   /* bytes that are passed on without a copy */
#define LENT_MAX    (240u << 10) /* bytes in r->body if they are lent */
#define KEPT_MEMORY (192u << 10) /* bytes kept in memory besides those */

/* ---- to the client */

static void
resume(struct relay *rl)
{
	if (rl->ex != NULL && (rl->r->kept == NULL || !spool_full(rl->r->kept)) &&
	    !proxy_code_is_full(rl))
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

/* What is left cannot be sent. */
static void
cut(struct request *r)
{
	if (relay_of(r)->tunnel) {
		conn_end(r);
		return;
	}
	proxy_stop(r);
	conn_cut(r);
}

static void
sent(struct request *r, int err)
{
	struct relay *rl = relay_of(r);

	rl->sending = false;
	if (err != 0) {
		conn_end(r);
		return;
	}
	proxy_send_more(rl);
}

void
proxy_send_more(struct relay *rl)
{
	struct request *r = rl->r;

	if (rl->sending || rl->replied || proxy_code_holds(rl))
		return;
	if (r->kept != NULL && body_empty(&r->body) && !take_kept(r)) {
		cut(r);
		return;
	}
	resume(rl);
	if (!body_empty(&r->body) && !(rl->over && !rl->broken && r->kept == NULL)) {
		rl->sending = true;
		conn_send_body(r, sent);
		return;
	}
	if (rl->half && !rl->over)
		conn_tunnel_half(r);
	if (!rl->over || r->kept != NULL)
		return;
	if (rl->broken) {
		cut(r);
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
	proxy_send_more(rl);
}

static bool
keep_begin(struct relay *rl)
{
	struct request *r = rl->r;
	struct spool_conf sc = { .id = conn_id(r),
		.client = r->sender.client,
		.memory = KEPT_MEMORY,
		.max = rl->unkept ? 0 : r->conf->proxy_reply_spool << 10 };

	r->kept = spool_new(r->worker, &sc);
	if (r->kept == NULL)
		return (false);
	spool_listen(r->kept, kept_moved, rl);
	return (true);
}

/* Passes on a large piece in the buffer that it was received in.  False: copy it.  CPU of 1 MiB
 * through HTTP, receives of 64 KiB: 493 us with a copy, 418 without. */
static bool
lend(struct relay *rl, struct text t)
{
	struct body *b = &rl->r->body;
	struct io_lent *l;

	if (rl->coding.n != 0 || t.n < LEND_MIN || b->left + t.n > LENT_MAX ||
	    b->n >= BODY_PIECES / 2 || rl->ex == NULL || (l = exchange_keep(rl->ex)) == NULL)
		return (false);
	if (body_lend(b, t, io_lent_drop, l))
		return (true);
	io_lent_drop(l);
	return (false);
}

/* False: no memory. */
static bool
to_client(struct relay *rl, struct text t)
{
	struct request *r = rl->r;

	if (r->kept == NULL && lend(rl, t))
		return (true);
	if (r->kept == NULL && r->body.left + t.n <= BODY_MAX)
		return (body_copy(&r->body, t));
	return ((r->kept != NULL || keep_begin(rl)) && spool_add(r->kept, t));
}

/* ---- the head */

void
proxy_answer(struct relay *rl, enum handled h)
{
	struct request *r = rl->r;

	rl->over = true;
	rl->replied = h != HANDLED_REPLY;
	switch (h) {
	case HANDLED_REPLY: proxy_send_more(rl); break;
	case HANDLED_AGAIN: conn_route_again(r); break;
	case HANDLED_LATER:
	case HANDLED_NOT_NOW: conn_body_room(r); break; /* drops the rest of the body meanwhile */
	}
}

void
proxy_answer_error(struct relay *rl, int status)
{
	struct request *r = rl->r;
	enum handled h = HANDLED_REPLY;

	conn_early_reply(r);
	if (error_handler_takes(r, status))
		h = HANDLED_AGAIN;
	else
		reply_error(r, status);
	proxy_answer(rl, h);
}

static void
stream_head(struct relay *rl, const struct proxy_reply *p)
{
	struct request *r = rl->r;
	int64_t length = p->content_length;
	struct text lines;

	proxy_code_begin(rl, p);
	lines = proxy_lines(rl, p, NULL);
	if (lines.p == NULL) {
		proxy_code_stop(rl);
		exchange_forget(&rl->ex, false);
		proxy_answer_error(rl, 502);
		return;
	}
	if (rl->coding.n != 0)
		length = -1;
	rl->chunked = p->has_body && length < 0 && r->http.minor != 0 && r->http.major == 1;
	if (p->has_body && length < 0 && !rl->chunked)
		/* HTTP/1.0, HTTP/2: the end of the connection is the end of the body */
		conn_close_after(r);
	reply_stream_head(r, p->status, lines, length, rl->chunked);
}

/* For the access log: the exchange is gone when its line is written. */
static void
note_backend(struct relay *rl)
{
	struct text name = text_of(rl->ex != NULL ? exchange_backend(rl->ex) : "");
	struct request *r = rl->r;

	if (r->site->access != NULL && name.n != 0)
		request_told(r)->backend = arena_text(&r->arena, name);
}

static void
note_times(struct relay *rl)
{
	const struct proxy_times *t = exchange_times(rl->ex);
	struct request_told *told = request_told(rl->r);

	told->queue_ns = t->leased > t->start ? t->leased - t->start : 0;
	told->ns = t->head > t->leased && t->leased != 0 ? t->head - t->leased : 0;
}

/* The reply of a handler itself, and one that asks for a password, stay as they are. */
static bool
is_intercepted(const struct request *r, int status)
{
	return (
	    r->conf->error_intercept && status >= 400 && status != 401 && r->refused.status == 0);
}

static void
on_head(void *arg, const struct proxy_reply *p)
{
	struct relay *rl = arg;
	struct request *r = rl->r;
	enum control answer;

	rl->has_head = true;
	note_times(rl);
	note_backend(rl);
	if (p->status == 101) {
		proxy_tunnel_begin(rl, p);
		return;
	}
	if (is_intercepted(r, p->status)) {
		exchange_forget(&rl->ex, true);
		proxy_answer_error(rl, p->status);
		return;
	}
	conn_early_reply(r);
	if (!rl->fetched && proxy_rewrite(rl, p))
		return;
	if (rl->program && proxy_local_redirect(rl, p))
		return;
	answer = proxy_control(rl, p);
	if (answer < CONTROLS && controls[answer].value == CONTROL_URI) {
		proxy_redirect(rl, p, answer);
		return;
	}
	if (answer < CONTROLS)
		proxy_control_send(rl, p, answer);
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

static bool
last_chunk_to_client(struct relay *rl)
{
	if (rl->trailers.n == 0)
		return (to_client(rl, TEXT("0\r\n\r\n")));
	return (to_client(rl, TEXT("0\r\n")) && to_client(rl, rl->trailers) &&
		to_client(rl, TEXT("\r\n")));
}

bool
proxy_code_to_client(struct relay *rl, struct text t, bool over)
{
	rl->over = over;
	rl->r->body_bytes += t.n;
	if (!rl->chunked)
		return (to_client(rl, t));
	return (
	    (t.n == 0 || chunk_to_client(rl, t)) && (!over || to_client(rl, TEXT("0\r\n\r\n"))));
}

/* False: no memory. */
static bool
take_body(struct relay *rl, struct text t)
{
	if (rl->code != NULL)
		return (proxy_code_take(rl, t));
	rl->r->body_bytes += t.n;
	return (rl->chunked ? chunk_to_client(rl, t) : to_client(rl, t));
}

static void
on_body(void *arg, struct text t)
{
	struct relay *rl = arg;
	struct request *r = rl->r;

	if (rl->tunnel) {
		r->body_bytes += t.n;
		proxy_tunnel_body(rl, t);
		return;
	}
	if (!take_body(rl, t)) {
		conn_end(r);
		return;
	}
	if ((r->kept != NULL && spool_full(r->kept)) || proxy_code_is_full(rl))
		exchange_pause(rl->ex);
}

/* Head, body and end that came together leave together: a send costs as much as the rest of a small
 * reply. */
static void
on_flush(void *arg)
{
	proxy_code_flush(arg, false);
	proxy_send_more(arg);
}

static void
on_end(void *arg, int status, unsigned retry_after_s)
{
	struct relay *rl = arg;
	struct request *r = rl->r;

	if (!rl->has_head)
		note_backend(rl);
	rl->ex = NULL;
	if (status != 0)
		proxy_code_stop(rl);
	rl->over = rl->code == NULL;
	spool_drop(&r->upload);
	if (!rl->has_head) {
		if (status <= 0)
			status = 502; /* the application ended without a head */
		rl->has_head = true;
		conn_early_reply(r);
		if (error_handler_takes(r, status)) {
			rl->replied = true;
			conn_route_again(r);
			return;
		}
		if (status == 503 && retry_after_s != 0)
			reply_retry(r, retry_after_s);
		else
			reply_error(r, status);
	} else if (status != 0) {
		/* fewer bytes than announced: the client must be able to detect it */
		rl->broken = true;
	} else if (rl->code != NULL) {
		proxy_code_flush(rl, true);
	} else if (rl->chunked && !last_chunk_to_client(rl)) {
		rl->broken = true;
	}
	if (conn_body_room(r)) /* to drop the rest */
		proxy_send_more(rl);
}

static uint64_t
passed(void *arg)
{
	return (conn_passed(((const struct relay *)arg)->r));
}

static bool
client_ended(void *arg)
{
	return (conn_client_ended(((const struct relay *)arg)->r));
}

const struct exchange_sink proxy_sink = {
	.on_head = on_head,
	.on_body = on_body,
	.on_flush = on_flush,
	.on_room = proxy_room,
	.on_end = on_end,
	.on_interim = proxy_interim,
	.on_trailers = proxy_trailers,
	.on_eof = proxy_tunnel_eof,
	.on_moved = proxy_moved,
	.passed = passed,
	.ended = client_ended,
};
