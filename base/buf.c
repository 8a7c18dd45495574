/* base/buf.c -- the growable buffer, and the escapes that write to it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/buf.h"
#include "base/must.h"
#include "base/utf8.h"

#define BUF_FIRST 256 /* most heads and log lines fit, so that one malloc() is enough */

static const char hex_lower[] = "0123456789abcdef";
static const char hex_upper[] = "0123456789ABCDEF";

void
buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void
buf_free(struct buf *b)
{
	free(b->p);
	buf_init(b, b->max);
}

static bool
buf_grow(struct buf *b, size_t need)
{
	size_t cap = b->cap > BUF_FIRST / 2 ? b->cap * 2 : BUF_FIRST;
	char *p;

	if (cap < need)
		cap = need;
	if (b->max != 0 && cap > b->max)
		cap = b->max;
	p = realloc(b->p, cap);
	if (p == NULL)
		return (false);
	b->p = p;
	b->cap = cap;
	return (true);
}

static bool
buf_reserve(struct buf *b, size_t more)
{
	size_t need;

	if (b->failed)
		return (false);
	if (__builtin_add_overflow(b->n, more, &need) || (b->max != 0 && need > b->max)) {
		b->failed = true;
		return (false);
	}
	if (need > b->cap && !buf_grow(b, need))
		b->failed = true;
	return (!b->failed);
}

char *
buf_extend(struct buf *b, size_t n)
{
	static char none[1];

	if (!buf_reserve(b, n))
		return (NULL);
	if (b->p == NULL)
		return (none); /* no byte of an empty buffer */
	b->n += n;
	return (b->p + b->n - n);
}

void
buf_add_more(struct buf *b, const void *p, size_t n)
{
	char *room = buf_extend(b, n);

	if (room != NULL)
		memcpy(room, p, n);
}

void
buf_u64(struct buf *b, uint64_t v)
{
	char tmp[20];
	size_t n = text_put_u64(tmp, v);

	buf_add(b, tmp, n);
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	char tmp[512], *big;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(tmp, sizeof(tmp), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(tmp)) {
		buf_add(b, tmp, (size_t)n);
		return;
	}
	va_start(ap, fmt);
	n = vasprintf(&big, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return;
	}
	buf_add(b, big, (size_t)n);
	free(big);
}

void
buf_drop(struct buf *b, size_t n)
{
	must(n <= b->n);
	b->n -= n;
	if (b->n > 0 && n > 0)
		memmove(b->p, b->p + n, b->n);
}

/* ---------------------------------------------------------------- escapes */

static void
add_hex(struct buf *b, struct text t)
{
	unsigned char c;
	size_t i;

	for (i = 0; i < t.n; i++) {
		c = (unsigned char)t.p[i];
		buf_add(b, (const char[]){ '\\', 'x', hex_lower[c >> 4], hex_lower[c & 15] }, 4);
	}
}

void
buf_log_quoted(struct buf *b, struct text t)
{
	struct text odd;

	while (t.n > 0) {
		buf_text(b, utf8_quotable(&t, &odd));
		add_hex(b, odd);
	}
}

static const char *
html_entity(char c)
{
	switch (c) {
	case '&': return ("&amp;");
	case '<': return ("&lt;");
	case '>': return ("&gt;");
	case '"': return ("&quot;");
	case '\'': return ("&#39;");
	default: return (NULL);
	}
}

static void
add_html(struct buf *b, struct text t)
{
	const char *entity;
	size_t i, done = 0;

	for (i = 0; i < t.n; i++) {
		entity = html_entity(t.p[i]);
		if (entity == NULL)
			continue;
		buf_add(b, t.p + done, i - done);
		buf_str(b, entity);
		done = i + 1;
	}
	buf_add(b, t.p + done, t.n - done);
}

void
buf_html(struct buf *b, struct text t)
{
	struct text odd;

	while (t.n > 0) {
		add_html(b, utf8_visible(&t, &odd));
		add_hex(b, odd);
	}
}

static bool
url_plain(char c)
{
	return (byte_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~' || c == '/');
}

void
buf_urlenc(struct buf *b, struct text t)
{
	size_t i, done = 0;
	unsigned char c;

	for (i = 0; i < t.n; i++) {
		c = (unsigned char)t.p[i];
		if (url_plain((char)c))
			continue;
		buf_add(b, t.p + done, i - done);
		buf_add(b, (const char[]){ '%', hex_upper[c >> 4], hex_upper[c & 15] }, 3);
		done = i + 1;
	}
	buf_add(b, t.p + done, t.n - done);
}

/* An invisible or misleading character as its number: all of them have four digits. */
static void
json_odd(struct buf *b, struct text odd)
{
	uint32_t c = utf8_char(odd);

	switch (c) {
	case '"': buf_str(b, "\\\""); break;
	case '\\': buf_str(b, "\\\\"); break;
	case '\n': buf_str(b, "\\n"); break;
	case '\r': buf_str(b, "\\r"); break;
	case '\t': buf_str(b, "\\t"); break;
	case UTF8_NONE: buf_str(b, "\xef\xbf\xbd"); break;
	default: buf_printf(b, "\\u%04x", c);
	}
}

void
buf_json(struct buf *b, struct text t)
{
	struct text odd;

	buf_char(b, '"');
	while (t.n > 0) {
		buf_text(b, utf8_quotable(&t, &odd));
		if (odd.n != 0)
			json_odd(b, odd);
	}
	buf_char(b, '"');
}
