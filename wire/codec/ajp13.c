/* wire/codec/ajp13.c -- AJP 1.3, one request at a time on a socket; wire/codec/ajp13_request.c has
 * the request.
 *
 *   to it     FORWARD REQUEST  [body packet]  a body packet for each GET BODY CHUNK, at last empty
 *   from it   GET BODY CHUNK...  SEND HEADERS  SEND BODY CHUNK...  END RESPONSE
 *
 * The first body packet is sent unasked, if there is a body of a known length.  All others are
 * answers.  So a container that stops reading has at most one packet, and credit() is 0 until it
 * asks.
 *
 * CPING instead of a request asks whether the container lives.  CPONG answers it, without a head.
 */
#include <errno.h>
#include "wire/codec/ajp13.h"
#include "wire/codec/codec.h"
#include "base/must.h"

#define HEAD (AJP13_HEAD + 1) /* with the type of the message */

struct ajp13 {
	uint8_t head[HEAD], fixed[2]; /* fixed: the number after the type */
	uint8_t nhead, nfixed;        /* received bytes of these two */
	uint16_t left;                /* bytes of the message after its type */
	uint16_t chunk;               /* bytes left of SEND BODY CHUNK */
	uint16_t credit;              /* bytes of the request's body that may go */
	bool open;                    /* the request's body has not ended */
	bool had_head;
	bool pinging;
};

static unsigned
be16(const uint8_t *p)
{
	return ((unsigned)p[0] << 8 | p[1]);
}

/* ---------------------------------------------------------------- to the application */

static int
ajp_request(void *state, const struct proxy_request *r, bool keep, struct buf *out)
{
	struct ajp13 *a = state;

	if (r->ping) {
		a->pinging = true;
		ajp13_head(out, 1);
		buf_char(out, AJP13_CPING);
		return (out->failed ? -E2BIG : 0);
	}
	a->open = r->unsized || r->content_length > 0;
	a->credit = r->content_length > 0 ? AJP13_DATA_MAX : 0;
	return (ajp13_put_request(r, out));
}

static size_t
ajp_credit(const void *state)
{
	const struct ajp13 *a = state;

	return (a->credit);
}

static void
ajp_body(void *state, struct text bytes, struct buf *out)
{
	struct ajp13 *a = state;

	must(bytes.n <= a->credit);
	ajp13_head(out, bytes.n + 2);
	ajp13_u16(out, bytes.n);
	buf_text(out, bytes);
	a->credit = 0;
}

static void
put_end(struct buf *out)
{
	ajp13_head(out, 0);
}

static void
ajp_body_end(void *state, struct buf *out)
{
	struct ajp13 *a = state;

	a->open = false;
	if (a->credit > 0)
		put_end(out);
	a->credit = 0;
}

/* ---------------------------------------------------------------- the head of a reply */

/* The first one is number 1. */
static const struct text names[] = { TEXT("Content-Type"), TEXT("Content-Language"),
	TEXT("Content-Length"), TEXT("Date"), TEXT("Last-Modified"), TEXT("Location"),
	TEXT("Set-Cookie"), TEXT("Set-Cookie2"), TEXT("Servlet-Engine"), TEXT("Status"),
	TEXT("WWW-Authenticate") };

static bool
get_u16(struct text *t, unsigned *v)
{
	if (t->n < 2)
		return (false);
	*v = be16((const uint8_t *)text_take(t, 2).p);
	return (true);
}

static bool
get_string(struct text *t, struct text *s)
{
	unsigned n;

	*s = TEXT("");
	if (!get_u16(t, &n))
		return (false);
	if (n == 0xffff)
		return (true);
	if (t->n < n + 1u || t->p[n] != '\0')
		return (false);
	*s = text_take(t, n);
	text_take(t, 1);
	return (true);
}

static bool
get_name(struct text *t, struct text *name)
{
	unsigned n;

	if (t->n < 2 || (be16((const uint8_t *)t->p) & 0xff00) != AJP13_CODED)
		return (get_string(t, name));
	get_u16(t, &n);
	n -= AJP13_CODED;
	if (n == 0 || n > NELEM(names))
		return (false);
	*name = names[n - 1];
	return (true);
}

static const char *
read_head(struct reply_head *h)
{
	static const char lengths[] = "the lengths in SEND HEADERS contradict each other";
	struct text t = buf_as_text(&h->raw), name, value;
	unsigned status, count;

	if (!get_u16(&t, &status) || !get_string(&t, &value) || !get_u16(&t, &count))
		return (lengths);
	if (status < 100 || status == 101 || status > 599)
		return ("expected a status from 200 to 599");
	for (; count > 0; count--) {
		if (!get_name(&t, &name) || !get_string(&t, &value))
			return (lengths);
		if (!reply_head_field(h, name, value))
			return (h->why);
	}
	if (t.n > 0)
		return (lengths);
	h->reply.status = (int)status;
	return (reply_head_sort(h) == HEAD_DONE ? NULL : h->why);
}

static void
on_headers(struct ajp13 *a, struct reply_head *h, struct text *in, struct proto_event *ev)
{
	struct text t = text_take(in, a->left);
	const char *why;

	buf_text(&h->raw, t);
	a->left = (uint16_t)(a->left - t.n);
	if (a->left > 0)
		return;
	why = h->raw.failed ? "out of memory" : read_head(h);
	if (why != NULL) {
		proto_bad(ev, why);
		return;
	}
	a->had_head = h->reply.status >= 200;
	ev->kind = a->had_head ? PROTO_HEAD : PROTO_INTERIM;
}

/* ---------------------------------------------------------------- messages */

/* Reads the number after the type; false: bytes are missing. */
static bool
number(struct ajp13 *a, size_t size, struct text *in)
{
	uint8_t had = a->nfixed;
	bool whole = proto_collect(a->fixed, &a->nfixed, size, in);

	a->left = (uint16_t)(a->left - (a->nfixed - had));
	return (whole);
}

static void
on_chunk(struct ajp13 *a, struct text *in, struct proto_event *ev)
{
	if (a->nfixed < 2) {
		if (!number(a, 2, in))
			return;
		a->chunk = (uint16_t)be16(a->fixed);
		/* a NUL follows the bytes; old containers omit it */
		if (a->chunk > a->left || a->left - a->chunk > 1)
			proto_bad(ev, "the lengths in SEND BODY CHUNK contradict each other");
		return;
	}
	if (a->chunk == 0) { /* the rest of the message, or all of a flush */
		a->left = (uint16_t)(a->left - text_take(in, a->left).n);
		return;
	}
	ev->bytes = text_take(in, a->chunk);
	a->chunk = (uint16_t)(a->chunk - ev->bytes.n);
	a->left = (uint16_t)(a->left - ev->bytes.n);
	ev->kind = PROTO_BODY;
}

static void
on_asked(struct ajp13 *a, struct text *in, struct buf *out, struct proto_event *ev)
{
	unsigned wanted;

	if (!number(a, 2, in))
		return;
	wanted = be16(a->fixed);
	if (!a->open)
		put_end(out);
	else if (a->credit > 0)
		proto_bad(ev, "GET BODY CHUNK came before the answer to the last one");
	else if (wanted == 0)
		proto_bad(ev, "GET BODY CHUNK wants 0 bytes");
	else
		a->credit = (uint16_t)(wanted < AJP13_DATA_MAX ? wanted : AJP13_DATA_MAX);
}

static void
on_end(struct ajp13 *a, struct text *in, struct proto_event *ev)
{
	if (!number(a, 1, in))
		return;
	ev->kind = PROTO_END;
	ev->reuse = a->fixed[0] == 1;
}

/* NULL, or why the message is wrong here. */
static const char *
fault_of(const struct ajp13 *a)
{
	static const char length[] = "a message has a wrong length";

	if (a->pinging && a->head[4] != AJP13_CPONG)
		return ("expected CPONG");
	switch (a->head[4]) {
	case AJP13_SEND_HEADERS:
		if (a->had_head)
			return ("a second SEND HEADERS");
		return (a->left >= 6 ? NULL : length);
	case AJP13_BODY_CHUNK:
		if (!a->had_head)
			return ("SEND BODY CHUNK came before SEND HEADERS");
		return (a->left >= 2 ? NULL : length);
	case AJP13_END_RESPONSE:
		if (!a->had_head)
			return ("END RESPONSE came before SEND HEADERS");
		return (a->left == 1 ? NULL : length);
	case AJP13_GET_BODY_CHUNK: return (a->left == 2 ? NULL : length);
	case AJP13_CPONG:
		if (!a->pinging)
			return ("CPONG without a CPING");
		return (a->left == 0 ? NULL : length);
	}
	return ("unknown type of message");
}

static void
message_begin(struct ajp13 *a, struct proto_event *ev)
{
	unsigned n = be16(a->head + 2);
	const char *why;

	if (a->head[0] != 'A' || a->head[1] != 'B' || n == 0) {
		proto_bad(ev, "expected a message of AJP 1.3 (41 42, its length)");
		return;
	}
	a->left = (uint16_t)(n - 1);
	a->nfixed = 0;
	why = fault_of(a);
	if (why != NULL) {
		proto_bad(ev, why);
		return;
	}
	if (a->head[4] == AJP13_CPONG) {
		ev->kind = PROTO_END;
		ev->reuse = true;
	}
}

static void
message(struct ajp13 *a, struct reply_head *h, struct text *in, struct buf *out,
    struct proto_event *ev)
{
	switch (a->head[4]) {
	case AJP13_SEND_HEADERS: on_headers(a, h, in, ev); break;
	case AJP13_BODY_CHUNK: on_chunk(a, in, ev); break;
	case AJP13_END_RESPONSE: on_end(a, in, ev); break;
	case AJP13_GET_BODY_CHUNK: on_asked(a, in, out, ev); break;
	}
	if (a->left == 0)
		a->nhead = 0;
}

static void
ajp_reply(void *state, struct reply_head *h, struct text *in, struct buf *out,
    struct proto_event *ev)
{
	struct ajp13 *a = state;

	*ev = (struct proto_event){ .kind = PROTO_MORE };
	while (in->n > 0 && ev->kind == PROTO_MORE) {
		if (a->nhead == HEAD)
			message(a, h, in, out, ev);
		else if (proto_collect(a->head, &a->nhead, HEAD, in)) {
			ev->messages++;
			message_begin(a, ev);
		}
	}
}

/* END RESPONSE ends a reply; the end of the stream does not. */
static void
ajp_eof(void *state, struct proto_event *ev)
{
	*ev = (struct proto_event){ 0 };
	proto_bad(ev, "the backend hung up within its reply");
}

const struct proto proto_ajp13 = {
	.name = "ajp13",
	.doc = "AJP 1.3, for servlet containers",
	.size = sizeof(struct ajp13),
	.unsized_body = true,
	.secret = true,
	.ping = true,
	.cuts_params = true,
	.request = ajp_request,
	.credit = ajp_credit,
	.body = ajp_body,
	.body_end = ajp_body_end,
	.reply = ajp_reply,
	.eof = ajp_eof,
};
