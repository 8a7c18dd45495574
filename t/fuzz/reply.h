/* t/fuzz/reply.h -- any bytes from an application, as an exchange would see them: cut anywhere,
 * they mean the same, and so does the end of the stream after them. */
#ifndef FUZZ_REPLY_H
#define FUZZ_REPLY_H

#include <stdlib.h>
#include "base/buf.h"
#include "base/must.h"
#include "wire/codec/codec.h"

/* The results that an exchange would see. */
struct seen {
	struct buf body, note, head, answer;
	enum proto_kind end;
	int64_t length; /* of the body, as the head says */
	bool more;
};

static void
see_head(struct seen *s, const struct proxy_reply *r)
{
	size_t i;

	s->length = r->content_length;
	must(s->head.n == 0 && r->status >= 100 && r->status <= 599 && r->content_length >= -1);
	buf_printf(&s->head, "%d %lld\n", r->status, (long long)r->content_length);
	for (i = 0; i < r->nheaders; i++) {
		must(header_is_token(r->headers[i].name) && header_value_ok(r->headers[i].value));
		must(!header_is_control(r->headers[i].name));
		buf_text(&s->head, r->headers[i].name);
		buf_char(&s->head, ':');
		buf_text(&s->head, r->headers[i].value);
		buf_char(&s->head, '\n');
	}
	for (i = 0; i < CONTROLS; i++)
		buf_text(&s->head, r->control[i]);
}

static bool
see(struct seen *s, const struct proto_event *ev, struct reply_head *h)
{
	switch (ev->kind) {
	case PROTO_MORE: return (false);
	case PROTO_INTERIM:
		must(s->head.n == 0 && h->reply.status >= 100 && h->reply.status <= 199);
		reply_head_free(h);
		return (true);
	case PROTO_HEAD: see_head(s, &h->reply); return (true);
	case PROTO_BODY:
		must(s->head.n > 0 && ev->bytes.n > 0);
		buf_text(&s->body, ev->bytes);
		return (true);
	case PROTO_NOTE:
		must(ev->bytes.n > 0);
		buf_text(&s->note, ev->bytes);
		return (true);
	case PROTO_REFUSED:
	case PROTO_BAD: must(ev->why != NULL); break;
	case PROTO_END: must(s->head.n > 0); break;
	}
	s->end = ev->kind;
	s->more = false;
	return (false);
}

/* Feeds the bytes in pieces of step.  Each piece has memory of its own, so that the sanitizer sees
 * reads past it. */
static void
run(const struct proto *p, struct seen *s, struct text all, size_t step)
{
	void *state = calloc(1, p->size);
	struct proto_event ev;
	struct reply_head h;
	struct text in;
	char *piece;

	must(state != NULL);
	reply_head_init(&h);
	s->more = true;
	while (all.n > 0 && s->more) {
		in.n = step < all.n ? step : all.n;
		in.p = piece = malloc(in.n);
		must(piece != NULL);
		memcpy(piece, all.p, in.n);
		all.p += in.n;
		all.n -= in.n;
		do
			p->reply(state, &h, &in, &s->answer, &ev);
		while (see(s, &ev, &h));
		must(!s->more || in.n == 0);
		free(piece);
	}
	if (s->more) {
		p->eof(state, &ev);
		must(ev.kind == PROTO_END || ev.kind == PROTO_BAD);
		must(!see(s, &ev, &h));
	}
	reply_head_free(&h);
	free(state);
}

static void
same(const struct seen *a, const struct seen *b)
{
	must(!a->more && !b->more && a->end == b->end);
	must(text_eq(buf_as_text(&a->head), buf_as_text(&b->head)));
	must(text_eq(buf_as_text(&a->body), buf_as_text(&b->body)));
	must(text_eq(buf_as_text(&a->note), buf_as_text(&b->note)));
	must(text_eq(buf_as_text(&a->answer), buf_as_text(&b->answer)));
}

static void
seen_free(struct seen *s)
{
	buf_free(&s->head);
	buf_free(&s->body);
	buf_free(&s->note);
	buf_free(&s->answer);
}

static void
fuzz_reply(const struct proto *p, struct text all)
{
	static const size_t steps[] = { 1, 3, 11 };
	struct seen whole = { .length = -1 }, cut;
	size_t i;

	run(p, &whole, all, all.n > 0 ? all.n : 1);
	must(!p->once || whole.length < 0 || whole.body.n <= (uint64_t)whole.length);
	for (i = 0; i < NELEM(steps); i++) {
		cut = (struct seen){ .length = -1 };
		run(p, &cut, all, steps[i]);
		same(&whole, &cut);
		seen_free(&cut);
	}
	seen_free(&whole);
}

#endif
