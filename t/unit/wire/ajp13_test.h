/* t/unit/wire/ajp13_test.h -- messages of a servlet container in one line each. */
#ifndef T_WIRE_AJP13_TEST_H
#define T_WIRE_AJP13_TEST_H

#include <stdarg.h>
#include "base/buf.h"

static inline void
put_u16(struct buf *b, size_t n)
{
	buf_char(b, (char)(n >> 8));
	buf_char(b, (char)n);
}

static inline void
put_str(struct buf *b, struct text t)
{
	put_u16(b, t.n);
	buf_text(b, t);
	buf_char(b, '\0');
}

static inline void
message(struct buf *b, struct text payload)
{
	buf_str(b, "AB");
	put_u16(b, payload.n);
	buf_text(b, payload);
}

/* Fields as "Name: value", with a NULL at the end. */
static inline void
put_head(struct buf *b, unsigned status, ...)
{
	struct buf fields, m;
	const char *s, *colon;
	unsigned n = 0;
	va_list ap;

	buf_init(&fields, 0);
	buf_init(&m, 0);
	va_start(ap, status);
	while ((s = va_arg(ap, const char *)) != NULL) {
		colon = strchr(s, ':');
		put_str(&fields, (struct text){ s, (size_t)(colon - s) });
		put_str(&fields, text_of(colon + 2));
		n++;
	}
	va_end(ap);
	buf_char(&m, 4);
	put_u16(&m, status);
	put_str(&m, TEXT("OK"));
	put_u16(&m, n);
	buf_text(&m, buf_as_text(&fields));
	message(b, buf_as_text(&m));
	buf_free(&fields);
	buf_free(&m);
}

static inline void
put_chunk(struct buf *b, const char *s)
{
	struct buf m;

	buf_init(&m, 0);
	buf_char(&m, 3);
	put_str(&m, text_of(s));
	message(b, buf_as_text(&m));
	buf_free(&m);
}

static inline void
put_over(struct buf *b, unsigned reuse)
{
	const char end[] = { 5, (char)reuse };

	message(b, (struct text){ end, sizeof(end) });
}

#endif
