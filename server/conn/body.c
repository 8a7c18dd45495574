/* server/conn/body.c -- request bodies: read and dropped, or collected for an application.
 *
 *   client --> eat_body() --> r->upload (server/request/spool.h: memory, then a file) --whole-->
 * handler
 *
 * Receiving pauses while a piece of the body is being written, so an upload holds one piece in
 * memory at a time.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/rate.h"
#include "server/conn/impl.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/request/spool.h"
#include "wire/http1/http1.h"

#define UPLOAD_MEMORY  (64u << 10)
#define LINGER_MS      2000u  /* after a refusal: time for the client to read it */
#define LINGER_BODY_MS 10000u /* likewise, if it sends a body before it reads */

uint32_t
conn_body_ms(const struct conn *c)
{
	return (debt_patience_ms(c->debt_ns, 1000 * c->r->conf->read_idle));
}

/* False: no memory. */
static bool
eaten(struct conn *c, struct spool *into, struct text data)
{
	c->r->in.received += data.n;
	if (into != NULL)
		return (spool_add(into, data));
	c->dropped += (uint32_t)data.n;
	return (true);
}

/* -EAGAIN: the body is incomplete; 0: complete; -EPROTO: malformed; -ENOMEM. */
static int
eat_chunked(struct conn *c, struct spool *into)
{
	struct text data;
	enum parse s;

	/* Takes all received bytes, even during a write: one write holds many small chunks. */
	do {
		s = http1_chunked(&c->r->in.chunked, &c->in, &data);
		io_events(c->w->base.io, 1);
		if (s == PARSE_BAD)
			return (-EPROTO);
		if (!eaten(c, into, data))
			return (-ENOMEM);
		if (s == PARSE_DONE)
			return (0);
	} while (c->in.n != 0);
	return (-EAGAIN);
}

static int
eat_body(struct conn *c, struct spool *into)
{
	struct request *r = c->r;
	struct text data;
	int err;

	if (r->in.left < 0) {
		err = eat_chunked(c, into);
		if (err == 0)
			r->in.left = 0;
		return (err);
	}
	data = text_take(&c->in, (size_t)r->in.left);
	if (!eaten(c, into, data))
		return (-ENOMEM);
	r->in.left -= (int64_t)data.n;
	return (r->in.left == 0 ? 0 : -EAGAIN);
}

static const struct conn_state *
body_failed(struct conn *c, int status, const char *why)
{
	c->dropped = 0;
	spool_drop(&c->r->upload);
	return (conn_refuse(c, status, why));
}

static const struct conn_state *
no_body_came(struct conn *c)
{
	return (c->in_err == -ETIMEDOUT ? body_failed(c, 408, "the request body came too slowly")
					: &st_close);
}

const struct conn_state *
conn_skip_body(struct conn *c)
{
	struct request *r = c->r;
	int err;

	if (c->parent != NULL || r->http.expect_continue || r->in.left > SKIP_MAX ||
	    c->dropped > SKIP_MAX) {
		/* A final answer replaces 100 Continue; later bytes are not read as a request.  The
		 * rest of a stream's body delays nobody: io/http2/ drops it. */
		c->close_after = true;
		c->dropped = 0;
		return (&st_handle);
	}
	if (c->in_err != 0)
		return (no_body_came(c));
	err = eat_body(c, NULL);
	if (err == -EAGAIN)
		return (conn_want_bytes(c, conn_body_ms(c)));
	if (err != 0)
		return (body_failed(c, 400, "malformed chunked body"));
	c->dropped = 0;
	return (&st_handle);
}

/* The reply was complete before the body.  Drops the rest, to keep the connection. */
const struct conn_state *
conn_rest(struct conn *c)
{
	int err = 0;

	if (c->in_err != 0)
		return (&st_close);
	if (c->r->in.left <= SKIP_MAX && c->dropped <= SKIP_MAX)
		err = eat_body(c, NULL);
	if (err == -EAGAIN)
		return (conn_want_bytes(c, conn_body_ms(c)));
	if (c->r->in.left != 0)
		c->close_after = true; /* too long, or malformed */
	return (&st_finish);
}

const struct conn_state *
conn_linger(struct conn *c)
{
	uint64_t most_ms;

	if (c->r != NULL) {
		c->owes_body = c->r->in.left != 0;
		c->due_ns = c->r->sender.due_ns;
		requests_give(c->r);
		c->r = NULL;
		(c->cut ? io_sock_cut : io_sock_shutdown)(&c->sock);
		c->head_ns = io_now(c->w->base.io);
	} else {
		if (c->in_err != 0)
			return (&st_close);
	}
	c->in = TEXT_NONE;
	/* Time bounds it, not bytes: a reset in the middle of what the client still sends would
	 * take the reply with it. */
	most_ms = c->owes_body ? LINGER_BODY_MS : LINGER_MS;
	if (io_now(c->w->base.io) - c->head_ns > most_ms * NS_PER_MS)
		return (&st_close);
	return (conn_want_bytes(c, LINGER_MS));
}

/* ---- collected for an application */

static uint64_t
upload_max(const struct request *r)
{
	uint64_t longest = spool_longest(r->worker), max = r->conf->max_request_kb << 10;

	if (longest < UPLOAD_MEMORY)
		longest = UPLOAD_MEMORY;
	return (max != 0 && max < longest ? max : longest);
}

uint64_t
conn_stream_max(const struct request *r)
{
	return (r->conf->max_request_kb << 10);
}

bool
conn_request_upload_too_long(const struct request *r)
{
	uint64_t max = conn_stream_max(r);

	if (r->in.streams)
		return (max != 0 && r->in.left > 0 && (uint64_t)r->in.left > max);
	return (r->in.left > 0 && (uint64_t)r->in.left > upload_max(r));
}

/* A piece has been written; goes on with the next one. */
static void
upload_moved(void *arg)
{
	conn_run(arg);
}

static bool
upload_begin(struct conn *c)
{
	struct request *r = c->r;
	bool is_short = r->in.left >= 0 && (uint64_t)r->in.left < UPLOAD_MEMORY;
	struct spool_conf sc = { .id = conn_id(r),
		.client = r->sender.client,
		.max = UINT64_MAX,
		.memory = is_short ? (uint64_t)r->in.left : UPLOAD_MEMORY };

	r->upload = spool_new(&c->w->base, &sc);
	if (r->upload == NULL)
		return (false);
	spool_listen(r->upload, upload_moved, c);
	return (true);
}

static const struct conn_state *
upload_failed(struct conn *c, int err)
{
	switch (err) {
	case -EPROTO: return (body_failed(c, 400, "malformed chunked body"));
	case -EFBIG: return (body_failed(c, 413, "body longer than server.max-request-size"));
	case -EDQUOT: return (body_failed(c, 503, "server.max-spool-size is reached"));
	case -ENOSPC:
		return (body_failed(c, 507, "the directories of server.upload-dirs are full"));
	case -EMFILE:
	case -ENFILE:
	case -EAGAIN:
		return (body_failed(c, 503, "no descriptor or thread is free to store the body"));
	default: return (body_failed(c, 500, "the body cannot be stored"));
	}
}

const struct conn_state *
conn_upload(struct conn *c)
{
	struct request *r = c->r;
	int err = 0;

	if (c->in_err != 0)
		return (no_body_came(c));
	if (r->upload == NULL && !upload_begin(c))
		return (upload_failed(c, -ENOMEM));
	if (!spool_full(r->upload))
		err = eat_body(c, r->upload);
	if (spool_added(r->upload) > upload_max(r))
		return (upload_failed(c, -EFBIG));
	if (err == 0 && r->in.left == 0)
		return (&st_handle); /* bytes that cannot be written stay in memory */
	if (err != 0 && err != -EAGAIN)
		return (upload_failed(c, err));
	if (spool_error(r->upload) != 0)
		return (upload_failed(c, spool_error(r->upload)));
	if (!spool_full(r->upload))
		return (conn_want_bytes(c, conn_body_ms(c)));
	return (conn_settle(c) ? WAIT : &st_close);
}
