/* server/handler/proxy.c -- one request handed to an application; see proxy_impl.h
 *
 *   client --> r->upload (server/conn/body.c: the whole body) --exchange_body()--> application --> proxy_reply.c
 *
 * The application's socket is asked for when the body is complete, and it is free again when the reply is.
 */
#include <errno.h>

#include "base/log.h"
#include "server/conn/conn.h"
#include "server/handler/proxy_impl.h"

/* ---- the request body */

static void
upload_failed(struct relay *rl)
{
	log_limited(1, LOG_ERROR, conn_id(rl->r), "spool.failed", LF_STR("why", "a temporary file cannot be read"),
	    LF_STR("then", "refused"), LF_STR("do", "check the disks of server.upload-dirs"));
	exchange_forget(&rl->ex, false);
	proxy_answer_error(rl, 500);
}

/* Moves what has been collected to the application, as far as it has room. */
static void
feed(struct relay *rl)
{
	struct spool *s = rl->r->upload;
	struct spool_bytes b;
	size_t n;

	while (rl->ex != NULL && s != NULL && !spool_empty(s)) {
		b = spool_front(s);
		if (b.len != 0)
			spool_fetch(s);
		if (b.mem.n == 0)
			return; /* upload_moved() comes */
		n = exchange_body(rl->ex, b.mem);
		if (n == 0)
			return; /* proxy_room() comes */
		spool_took(s, n);
	}
}

static void
upload_moved(void *arg)
{
	struct relay *rl = arg;

	if (rl->ex == NULL)
		return;
	if (spool_broken(rl->r->upload))
		upload_failed(rl);
	else
		feed(rl);
}

void
proxy_room(void *arg)
{
	feed(arg);
}

/* ---- start and stop */

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
	if (conn_upload_too_long(r))
		return (too_large(r));
	if (!request_keep(r) || (rl = arena_get(&r->arena, sizeof(*rl))) == NULL) {
		reply_error(r, 500);
		return (HANDLED_REPLY);
	}
	memset(rl, 0, sizeof(*rl));
	rl->r = r;
	rl->left = -1;
	if (!proxy_fill(rl) || exchange_start(r->site->upstream, &rl->req, &proxy_sink, rl, &rl->ex) != 0) {
		reply_error(r, 500);
		return (HANDLED_REPLY);
	}
	r->relay = rl;
	if (r->upload != NULL)
		spool_listen(r->upload, upload_moved, rl);
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
