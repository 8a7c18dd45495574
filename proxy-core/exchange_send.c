/* proxy-core/exchange_send.c -- what goes to an application: the head of the request, its body, and
 * answers of the codec.
 *
 *   exchange_body() --> x->body --credit of the codec--> lease_out() --> socket
 */
#include <errno.h>
#include "proxy-core/exchange_impl.h"

/* ---------------------------------------------------------------- a body that is sent again */

/* True if the whole body fits into x->again. */
static bool
keeps_body(const struct exchange *x)
{
	return (x->req != NULL && x->req->idempotent && x->conf.next != 0 && !x->unsized &&
		x->req->content_length <= (int64_t)BODY_ROOM);
}

static void
keep(struct exchange *x, struct text bytes)
{
	if (keeps_body(x))
		buf_text(&x->again, bytes);
}

/* After a send that failed the caller's bytes are dropped. */
bool
exchange_holds_body(const struct exchange *x)
{
	return (keeps_body(x) && !x->again.failed && !(x->send_failed && x->body_left > 0));
}

void
exchange_rewind(struct exchange *x)
{
	buf_text(&x->again, buf_as_text(&x->body));
	buf_free(&x->body);
	x->body = x->again;
	buf_init(&x->again, BODY_ROOM);
	x->body_moved = false;
}

/* ---------------------------------------------------------------- to the application */

/* Moves as much of the body as the codec has credit for, and the end after all of it. */
static void
move_body(struct exchange *x, struct buf *out)
{
	const struct proto *p = x->u->proto;
	size_t n = p->credit != NULL ? p->credit(x->codec) : SIZE_MAX;

	if (x->state == x_tunnel) {
		buf_text(out, buf_as_text(&x->body));
		x->body.n = 0;
		return;
	}
	if (n > x->body.n)
		n = x->body.n;
	if (n > 0) {
		p->body(x->codec, (struct text){ x->body.p, n }, out);
		keep(x, (struct text){ x->body.p, n });
		buf_drop(&x->body, n);
		x->body_moved = true;
	}
	if (x->body_left == 0 && x->body.n == 0 && !x->end_framed) {
		p->body_end(x->codec, out);
		x->end_framed = true;
	}
}

void
exchange_push(struct exchange *x)
{
	struct buf *out;

	if (x->lease == NULL || x->send_failed || lease_sending(x->lease))
		return;
	out = lease_out(x->lease);
	buf_text(out, buf_as_text(&x->answer));
	x->answer.n = 0;
	move_body(x, out);
	if (!out->failed) {
		if (out->n > 0)
			lease_send(x->lease);
		else if (x->state == x_tunnel)
			tunnel_sent(x);
		return;
	}
	x->send_failed = true;
	if (x->state == x_head)
		exchange_broken(x, 502, -ENOMEM, "out of memory");
	else if (x->state == x_tunnel)
		exchange_fail(x, -ENOMEM);
}

static void
exchange_sent(void *arg, int err)
{
	struct exchange *x = arg;

	exchange_enter(x);
	if (err < 0) {
		/* The backend may have answered before it hung up, so what is received decides. */
		x->send_failed = true;
		keep(x, buf_as_text(&x->body));
		buf_free(&x->body);
	} else {
		x->progress_ns = io_now(x->u->io);
		exchange_push(x);
	}
	if (x->lease != NULL && x->end_framed && x->asked_ns == 0 && !x->send_failed &&
	    !lease_sending(x->lease)) {
		x->asked_ns = io_now(x->u->io);
		lease_asked(x->lease);
	}
	if (x->want_room && (x->send_failed || x->body.n < BODY_ROOM)) {
		x->want_room = false;
		if (x->sink.on_room != NULL)
			x->sink.on_room(x->arg);
	}
	exchange_leave(x);
}

static const struct lease_user exchange_uses = { .on_recv = exchange_recv,
	.on_sent = exchange_sent };

static const char *
request_error(int err)
{
	if (err == -E2BIG)
		return ("the request is too large for a backend");
	return (err == -EINVAL ? "the protocol cannot carry this request" : "out of memory");
}

void
exchange_ask(struct exchange *x)
{
	struct upstream *u = x->u;
	struct exchange_failure f;
	int err;

	x->state = x_head;
	x->progress_ns = io_now(u->io);
	x->keep = !u->proto->once && lease_will_keep(x->lease);
	x->end_framed = x->send_failed = false;
	memset(x->codec, 0, u->proto->size);
	lease_use(x->lease, &exchange_uses, x);
	err = u->proto->request(x->codec, x->req, x->keep, lease_out(x->lease));
	if (err < 0) {
		/* not a failure of the backend; otherwise a client could pause it with large
		 * requests */
		f = exchange_failure(x, err, request_error(err));
		exchange_refuse(x, err == -E2BIG ? 431 : 502, &f);
		return;
	}
	exchange_push(x);
	if (x->lease != NULL)
		lease_recv(x->lease);
}

/* True if the rest of the request body is not read. */
static bool
drops_body(const struct exchange *x)
{
	return (x->state == x_ended || x->send_failed || x->body_left == 0);
}

size_t
exchange_room(struct exchange *x)
{
	if (drops_body(x))
		return (SIZE_MAX);
	x->want_room = x->body.n >= BODY_ROOM;
	return (BODY_ROOM - x->body.n);
}

void
exchange_body_end(struct exchange *x)
{
	if (drops_body(x))
		return;
	if (!x->unsized)
		return; /* bytes are missing: no backend takes a part for all, a deadline ends it */
	x->body_left = 0;
	exchange_push(x);
}

/* Nothing waits before these bytes: they are framed at once, without a copy in x->body. */
static bool
frame_at_once(struct exchange *x, struct text bytes)
{
	const struct proto *p = x->u->proto;

	if (x->lease == NULL || x->state == x_tunnel || lease_sending(x->lease) ||
	    x->body.n + x->answer.n > 0 || bytes.n == 0 ||
	    (p->credit != NULL && p->credit(x->codec) < bytes.n))
		return (false);
	p->body(x->codec, bytes, lease_out(x->lease));
	keep(x, bytes);
	x->body_moved = true;
	return (true);
}

size_t
exchange_body(struct exchange *x, struct text bytes)
{
	size_t room, n;

	if (drops_body(x))
		return (bytes.n);
	room = BODY_ROOM - x->body.n;
	n = bytes.n < room ? bytes.n : room;
	if ((int64_t)n > x->body_left)
		n = (size_t)x->body_left;
	if (!frame_at_once(x, (struct text){ bytes.p, n }))
		buf_add(&x->body, bytes.p, n);
	if (!x->unsized)
		x->body_left -= (int64_t)n;
	x->want_room = n < bytes.n && x->body_left > 0;
	exchange_push(x);
	return (x->want_room ? n : bytes.n);
}
