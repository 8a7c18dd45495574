/* t/unit/wire/events.h -- what a codec makes of some bytes, however they are cut. */
#ifndef T_WIRE_EVENTS_H
#define T_WIRE_EVENTS_H

#include <stdlib.h>
#include "t/unit/test.h"
#include "wire/codec/codec.h"

/* The events of some bytes, and of the end of the stream, as one line: "H200 b:body n:note E+". */
static inline char *
events_of(const struct proto *p, struct text all, size_t first, size_t step)
{
	GString *out = g_string_new(NULL), *body = g_string_new(NULL), *note = g_string_new(NULL);
	struct reply_head h;
	struct buf answer;
	struct proto_event ev = { .kind = PROTO_MORE };
	void *state = calloc(1, p->size);
	struct text in;
	size_t at = 0, n = first;

	reply_head_init(&h);
	buf_init(&answer, 0);
	while (at < all.n && ev.kind == PROTO_MORE) {
		n = n < all.n - at ? n : all.n - at;
		in = (struct text){ g_memdup2(all.p + at, n),
			n }; /* of its own, so that ASan sees an overrun */
		at += n;
		const char *mem = in.p;
		do {
			p->reply(state, &h, &in, &answer, &ev);
			if (ev.kind == PROTO_INTERIM)
				reply_head_free(&h);
			else if (ev.kind == PROTO_HEAD)
				g_string_append_printf(out, "H%d", h.reply.status);
			else if (ev.kind == PROTO_BODY)
				g_string_append_len(body, ev.bytes.p, (gssize)ev.bytes.n);
			else if (ev.kind == PROTO_NOTE)
				g_string_append_len(note, ev.bytes.p, (gssize)ev.bytes.n);
		} while (ev.kind >= PROTO_INTERIM && ev.kind <= PROTO_NOTE);
		g_free((void *)mem);
		n = step;
	}
	if (ev.kind == PROTO_MORE)
		p->eof(state, &ev);
	if (body->len > 0)
		g_string_append_printf(out, " b:%s", body->str);
	if (note->len > 0)
		g_string_append_printf(out, " n:%s", note->str);
	if (ev.kind == PROTO_END)
		g_string_append(out, ev.reuse ? " E+" : " E-");
	for (n = 0; ev.kind == PROTO_END && ev.trailers && n < h.reply.nheaders; n++)
		g_string_append_printf(out, " %.*s=%.*s", (int)h.reply.headers[n].name.n,
		    h.reply.headers[n].name.p, (int)h.reply.headers[n].value.n,
		    h.reply.headers[n].value.p);
	if (ev.kind == PROTO_REFUSED)
		g_string_append(out, " refused");
	if (ev.kind == PROTO_BAD)
		g_string_append_printf(out, " bad");
	reply_head_free(&h);
	buf_free(&answer);
	free(state);
	g_string_free(body, TRUE);
	g_string_free(note, TRUE);
	return (g_string_free(out, FALSE));
}

static inline void
check_events(const struct proto *p, struct buf *b, const char *want)
{
	size_t first;
	char *s;

	for (first = 1; first <= b->n; first++) { /* every split in two, and then byte by byte */
		s = events_of(p, buf_as_text(b), first, b->n);
		g_assert_cmpstr(s, ==, want);
		g_free(s);
	}
	s = events_of(p, buf_as_text(b), 1, 1);
	g_assert_cmpstr(s, ==, want);
	g_free(s);
	buf_free(b);
}

#endif
