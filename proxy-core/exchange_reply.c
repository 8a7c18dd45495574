/* proxy-core/exchange_reply.c -- what an application sends: events of the codec, stderr,
 * the end. */
#include <errno.h>
#include <stdlib.h>
#include "base/log.h"
#include "io/lent.h"
#include "proxy-core/exchange_impl.h"

#define DRAIN_BYTES (64u << 10)

/* ---------------------------------------------------------------- stderr of the application */

void
note_flush(struct exchange *x)
{
	if (x->note.n > 0 && x->req != NULL)
		log_limited(LINES_PER_SECOND, LOG_WARN, x->req->id, "app.stderr",
		    LF_STR("backend", exchange_backend(x)), LF_TEXT("client", x->req->remote_addr),
		    LF_TEXT("url", x->req->target), LF_TEXT("line", buf_as_text(&x->note)));
	x->note.n = 0;
}

static void
note_add(struct exchange *x, struct text bytes)
{
	size_t i;

	for (i = 0; i < bytes.n; i++) {
		if (bytes.p[i] == '\n' || x->note.n == NOTE_MAX)
			note_flush(x);
		if (bytes.p[i] != '\n' && bytes.p[i] != '\r')
			buf_char(&x->note, bytes.p[i]);
	}
}

/* ---------------------------------------------------------------- from the application */

/* Takes the length from the head.  The caller relies on it and does not count. */
static void
body_expect(struct exchange *x)
{
	struct proxy_reply *r = &x->head.reply;

	r->has_body = status_has_body(r->status) && !text_eq(x->req->method, TEXT("HEAD"));
	if (!status_has_body(r->status))
		r->content_length = -1;
	x->has_body = r->has_body;
	x->reply_left = r->content_length;
}

/* A head of 1xx.  Without bounds an application could keep its socket and the client for ever. */
static bool
on_interim(struct exchange *x)
{
	x->interim_bytes += x->head.raw.n;
	if (++x->interims > INTERIM_MAX || x->interim_bytes > INTERIM_BYTES) {
		exchange_broken(x, 502, -EPROTO, "too many 1xx replies before the reply");
		return (false);
	}
	if (x->state == x_head && x->sink.on_interim != NULL)
		x->sink.on_interim(x->arg, &x->head.reply);
	reply_head_free(&x->head);
	return (true);
}

/* A check is not a request. */
static void
count_head(const struct exchange *x, int status)
{
	struct backend *b = pool_backend(x->pool);

	if (x->wait.check)
		return;
	backend_add(b, replies, 1);
	if (status >= 500)
		backend_add(b, replies_5xx, 1);
}

static void
on_head(struct exchange *x)
{
	if (x->head.reply.status == 101) {
		tunnel_begin(x);
		return;
	}
	hedge_cancel(x);
	if (x->state != x_drain)
		count_head(x, x->head.reply.status);
	if (x->head.reply.status >= 500 && exchange_status_goes_on(x))
		return;
	x->times.head = x->progress_ns = io_now(x->u->io);
	if (x->state == x_drain) {
		reply_head_free(&x->head);
		return;
	}
	buf_free(&x->again);
	body_expect(x);
	x->state = x_body;
	x->sink.on_head(x->arg, &x->head.reply);
	reply_head_free(&x->head);
}

static void
on_drained(struct exchange *x, struct text bytes)
{
	x->drained += bytes.n;
	if (x->drained > DRAIN_BYTES)
		exchange_fail(x, 0);
}

/* HEAD, 204 or 304: the client has the whole reply, and waits only for the socket to become fit for
 * another request. */
static void
on_unwanted(struct exchange *x, struct text bytes)
{
	x->drained += bytes.n;
	if (x->drained <= DRAIN_BYTES)
		return;
	lease_replied(x->lease);
	exchange_release(x, false);
	exchange_end(x, 0);
}

static void
on_body(struct exchange *x, struct text bytes)
{
	if (x->state == x_drain) {
		on_drained(x, bytes);
		return;
	}
	x->progress_ns = io_now(x->u->io);
	if (!x->has_body) {
		on_unwanted(x, bytes);
		return;
	}
	/* Surplus bytes would be the start of another reply for the client. */
	if (x->reply_left >= 0 && bytes.n > (uint64_t)x->reply_left) {
		x->surplus = true;
		bytes.n = (size_t)x->reply_left;
	}
	if (x->reply_left > 0)
		x->reply_left -= (int64_t)bytes.n;
	if (bytes.n > 0)
		x->sink.on_body(x->arg, bytes);
}

static void
on_trailers(struct exchange *x)
{
	if (x->state == x_body && x->has_body && x->sink.on_trailers != NULL)
		x->sink.on_trailers(x->arg, &x->head.reply);
	reply_head_free(&x->head);
}

static void
on_complete(struct exchange *x, bool reuse, size_t left)
{
	bool fit = reuse && left == 0 && x->end_framed && !x->send_failed && !x->surplus &&
		   x->answer.n == 0 && !lease_sending(x->lease);
	bool drained = x->state == x_drain;

	if (!drained && x->has_body && x->reply_left > 0) {
		exchange_broken(x, 502, -EPROTO, "the reply is shorter than its Content-Length");
		return;
	}
	lease_replied(x->lease);
	exchange_release(x, fit);
	if (drained)
		x->forgotten = true;
	else
		exchange_end(x, 0);
}

/* One event; false when parsing has to stop. */
static bool
exchange_event(struct exchange *x, const struct proto_event *ev, size_t left)
{
	switch (ev->kind) {
	case PROTO_MORE: return (false);
	case PROTO_INTERIM: return (on_interim(x));
	case PROTO_HEAD: on_head(x); return (true);
	case PROTO_BODY: on_body(x, ev->bytes); return (true);
	case PROTO_NOTE: note_add(x, ev->bytes); return (true);
	case PROTO_END:
		if (ev->trailers)
			on_trailers(x);
		on_complete(x, ev->reuse, left);
		return (false);
	case PROTO_REFUSED: exchange_refused(x, ev->why); return (false);
	case PROTO_BAD: exchange_broken(x, 502, -EPROTO, ev->why); return (false);
	}
	return (false);
}

static bool
may_parse(const struct exchange *x)
{
	return (x->lease != NULL && !(x->paused && (x->state == x_body || x->state == x_tunnel)));
}

static void
exchange_parse(struct exchange *x, struct text *in)
{
	struct lease *l = x->lease;
	struct proto_event ev;

	/* Another lease: the next backend has the request. */
	while (x->lease == l && may_parse(x)) {
		if (x->state == x_tunnel) {
			tunnel_bytes(x, in);
			break;
		}
		x->u->proto->reply(x->codec, &x->head, in, &x->answer, &ev);
		io_events(x->u->io, 1 + ev.messages);
		if (!exchange_event(x, &ev, in->n))
			break;
	}
	if (x->answer.failed && x->lease != NULL)
		exchange_broken(x, 502, -EPROTO,
		    "the backend asks for more of the body but does not read what was sent");
	if (x->answer.n > 0 || x->body.n > 0) /* more of it may go now */
		exchange_push(x);
	if (x->state == x_body && x->lease != NULL && x->sink.on_flush != NULL)
		x->sink.on_flush(x->arg);
}

/* The caller paused.  Copies the rest, because lent buffers are large and slow clients are many.
 * An empty rest is held, too: the codec may have an event that needs no input. */
static void
exchange_hold(struct exchange *x, struct text in)
{
	char *copy = malloc(in.n + 1);

	if (copy == NULL) {
		exchange_broken(x, 502, -ENOMEM, "out of memory");
		return;
	}
	memcpy(copy, in.p, in.n);
	x->held = copy;
	x->rest = (struct text){ copy, in.n };
}

/* No more bytes come.  0: the stream ended, and the codec judges; -errno: it broke. */
static void
exchange_lost(struct exchange *x, int err)
{
	struct proto_event ev = { .why = "the backend hung up without a reply" };

	if (x->state == x_tunnel) {
		tunnel_lost(x, err);
		return;
	}
	if (x->state == x_head && exchange_repeat(x, err < 0 ? err : -ECONNRESET))
		return;
	if (err < 0)
		ev.why = "receiving from the backend failed";
	else if (lease_heard(x->lease))
		x->u->proto->eof(x->codec, &ev);
	if (ev.kind == PROTO_END)
		on_complete(x, false, 0);
	else
		exchange_broken(x, 502, err < 0 ? err : -ECONNRESET, ev.why);
}

struct io_lent *
exchange_keep(struct exchange *x)
{
	if (x->lent == NULL && x->input != NULL)
		x->lent = io_lent_keep(x->input);
	return (x->lent != NULL ? io_lent_ref(x->lent) : NULL);
}

void
exchange_recv(void *arg, struct io_op *op)
{
	struct exchange *x = arg;
	struct lease *l = x->lease;
	struct text in = { op->buf, op->res > 0 ? (size_t)op->res : 0 };

	exchange_enter(x);
	must(x->held == NULL); /* nothing is received before the held bytes are parsed */
	if (op->res <= 0) {
		exchange_lost(x, (int)op->res);
		exchange_leave(x);
		return;
	}
	x->input = op;
	exchange_parse(x, &in);
	if (x->lease == l && !may_parse(x))
		exchange_hold(x, in);
	x->input = NULL;
	if (x->lent != NULL)
		io_lent_drop(x->lent);
	x->lent = NULL;
	if (x->lease == l && may_parse(x))
		lease_recv(l);
	exchange_leave(x);
}

/* The caller has room again: first the held bytes, then the socket. */
void
exchange_unhold(struct exchange *x)
{
	struct lease *l = x->lease;
	struct text in = x->rest;
	char *held = x->held;

	if (l == NULL || !may_parse(x))
		return;
	x->held = NULL; /* the caller may forget the exchange and still read these bytes */
	x->rest = TEXT_NONE;
	exchange_parse(x, &in);
	if (x->lease == l && !may_parse(x)) {
		x->held = held;
		x->rest = in;
		return;
	}
	free(held);
	if (x->lease == l && may_parse(x) && !x->eof)
		lease_recv(l);
}
