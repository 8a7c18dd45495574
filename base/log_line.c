/* base/log_line.c -- the form of a line: key=value or JSON, built on the stack.
 *
 *   ts=1173101341.237616 level=warn ev=file.slow path="a b" waited-ms=30
 *   {"ts":1173101341.237616,"level":"warn","ev":"file.slow","path":"a b","waited-ms":30}
 */
#include <errno.h>
#include <stdio.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#define LOG_CUT   "...\n"
#define JSON_CUT  ",\"cut\":true}\n"
#define JSON_ROOM (LOG_LINE_MAX - (sizeof("...\"" JSON_CUT) - 1))

struct line {
	size_t n;
	bool cut;
	char *b; /* LOG_LINE_MAX bytes */
};

static const char *const level_names[] = {
	[LOG_INFO] = "info",
	[LOG_WARN] = "warn",
	[LOG_ERROR] = "error",
	[LOG_ALERT] = "alert",
};

/* Space for the cut mark is reserved, so that a cut line still ends with it. */
static void
line_add(struct line *l, const char *p, size_t n)
{
	size_t room = LOG_LINE_MAX - (sizeof(LOG_CUT) - 1) - l->n;

	if (l->cut)
		return;
	if (n > room) {
		for (n = room; n > 0 && ((unsigned char)p[n] & 0xc0) == 0x80; n--)
			; /* not inside a character */
		l->cut = true;
	}
	memcpy(l->b + l->n, p, n);
	l->n += n;
}

static void
line_str(struct line *l, const char *s)
{
	line_add(l, s, strlen(s));
}

static void
line_u64(struct line *l, uint64_t v)
{
	char tmp[20];

	line_add(l, tmp, text_put_u64(tmp, v));
}

static void
line_i64(struct line *l, int64_t v)
{
	if (v < 0)
		line_add(l, "-", 1);
	line_u64(l, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static bool
plain_char(char c)
{
	return (byte_is_alnum(c) || (c != '\0' && strchr("./:_-+@", c) != NULL));
}

static bool
plain(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if (!plain_char(t.p[i]))
			return (false);
	return (t.n > 0);
}

static void
line_value(struct line *l, struct text t)
{
	static const char hex[] = "0123456789abcdef";
	struct text odd;
	unsigned char c;
	size_t i;

	if (plain(t)) {
		line_add(l, t.p, t.n);
		return;
	}
	line_add(l, "\"", 1);
	while (t.n > 0 && !l->cut) {
		struct text shown = utf8_quotable(&t, &odd);

		line_add(l, shown.p, shown.n);
		for (i = 0; i < odd.n; i++) {
			c = (unsigned char)odd.p[i];
			line_add(l, (const char[]){ '\\', 'x', hex[c >> 4], hex[c & 15] }, 4);
		}
	}
	line_add(l, "\"", 1);
}

#define WORDS 128 /* of an error number */

/* The value of a field that is not a number. */
static struct text
words_of(const struct log_field *f, char words[WORDS])
{
	if (f->kind == LF_KIND_ERR)
		return (text_of(strerror_r((int)(f->i < 0 ? -f->i : f->i), words, WORDS)));
	return (f->kind == LF_KIND_TEXT ? f->t : text_of(f->s));
}

/* "error=Success" would mislead. */
static bool
says_nothing(const struct log_field *f)
{
	return (f->kind == LF_KIND_ERR && f->i == 0);
}

#define STAMP 48

static const char *
stamp(char out[STAMP])
{
	uint64_t us = clock_wall_ns() / 1000;

	snprintf(out, STAMP, "%llu.%06llu", (unsigned long long)(us / 1000000),
	    (unsigned long long)(us % 1000000));
	return (out);
}

static void
line_field(struct line *l, const struct log_field *f)
{
	char words[WORDS];

	line_add(l, " ", 1);
	line_str(l, f->key);
	line_add(l, "=", 1);
	switch (f->kind) {
	case LF_KIND_U64: line_u64(l, f->u); break;
	case LF_KIND_I64: line_i64(l, f->i); break;
	case LF_KIND_STR:
	case LF_KIND_TEXT:
	case LF_KIND_ERR: line_value(l, words_of(f, words)); break;
	}
}

static void
line_end(struct line *l)
{
	const char *end = l->cut ? LOG_CUT : "\n";

	memcpy(l->b + l->n, end, strlen(end));
	l->n += strlen(end);
}

/* From the name of the event on. */
static void
line_event(struct line *l, const struct log_entry *e)
{
	size_t i;

	line_str(l, e->ev);
	if (e->id != NULL) {
		line_str(l, " id=");
		line_value(l, text_of(e->id));
	}
	for (i = 0; i < e->n; i++)
		if (!says_nothing(&e->f[i]))
			line_field(l, &e->f[i]);
	line_end(l);
}

size_t
log_line_event(char out[LOG_LINE_MAX], const struct log_entry *e)
{
	struct line l = { .b = out };

	line_event(&l, e);
	return (l.n);
}

static size_t
text_line(char out[LOG_LINE_MAX], const struct log_entry *e)
{
	struct line l = { .b = out };
	char now[STAMP];

	line_str(&l, "ts=");
	line_str(&l, stamp(now));
	line_str(&l, " level=");
	line_str(&l, level_names[e->level]);
	line_str(&l, " ev=");
	line_event(&l, e);
	return (l.n);
}

/* ---------------------------------------------------------------- JSON
 *
 * A buf in memory of a fixed size: what finds no room fails, and is taken back. */

static bool
json_fits(struct buf *b, size_t start, struct text t)
{
	b->n = start;
	b->failed = false;
	buf_json(b, t);
	return (!b->failed);
}

/* The longest beginning that has room, with "..." in the bytes that are kept free for it. */
static void
json_beginning(struct buf *b, struct text t)
{
	size_t start = b->n, fits = 0, over = t.n, half, i;

	while (over - fits > 1) {
		half = fits + (over - fits) / 2;
		if (json_fits(b, start, (struct text){ t.p, half }))
			fits = half;
		else
			over = half;
	}
	for (i = 0; i < 3 && fits > 0 && ((unsigned char)t.p[fits] & 0xc0) == 0x80; i++)
		fits--; /* not inside a character */
	if (!json_fits(b, start, (struct text){ t.p, fits }))
		return;
	b->n--; /* its quotation mark */
	b->cap = b->max = LOG_LINE_MAX;
	buf_str(b, "...\"");
}

static void
json_value(struct buf *b, const struct log_field *f)
{
	char words[WORDS];
	size_t start = b->n;

	switch (f->kind) {
	case LF_KIND_U64: buf_u64(b, f->u); return;
	case LF_KIND_I64:
		if (f->i < 0)
			buf_char(b, '-');
		buf_u64(b, f->i < 0 ? -(uint64_t)f->i : (uint64_t)f->i);
		return;
	case LF_KIND_STR:
	case LF_KIND_TEXT:
	case LF_KIND_ERR: break;
	}
	if (!b->failed && !json_fits(b, start, words_of(f, words))) {
		b->n = start;
		json_beginning(b, words_of(f, words));
	}
}

/* False: the field was cut or left out. */
static bool
json_field(struct buf *b, const struct log_field *f)
{
	size_t start = b->n;

	buf_str(b, ",\"");
	buf_str(b, f->key);
	buf_str(b, "\":");
	json_value(b, f);
	if (b->failed)
		b->n = start;
	return (!b->failed && b->max != LOG_LINE_MAX);
}

/* Splits the id of a line into fields: connection and, if it is there, request.  Returns their
 * number. */
static size_t
id_fields(const struct log_entry *e, struct log_field f[2])
{
	struct text request, id;
	size_t n = 0;

	if (e->id == NULL)
		return (0);
	request = text_of(e->id);
	(void)text_next(&request, LOG_ID_REQUEST, &id);
	f[n++] = LF_TEXT("id", id);
	if (request.p != NULL)
		f[n++] = LF_TEXT("request", request);
	return (n);
}

static size_t
json_line(char out[LOG_LINE_MAX], const struct log_entry *e)
{
	struct buf b = { .p = out, .cap = JSON_ROOM, .max = JSON_ROOM };
	struct log_field id[2];
	bool whole = true;
	char now[STAMP];
	size_t i, n = id_fields(e, id);

	buf_str(&b, "{\"ts\":");
	buf_str(&b, stamp(now));
	whole = json_field(&b, &LF_STR("level", level_names[e->level])) &&
		json_field(&b, &LF_STR("ev", e->ev));
	for (i = 0; whole && i < n; i++)
		whole = json_field(&b, &id[i]);
	for (i = 0; whole && i < e->n; i++)
		whole = says_nothing(&e->f[i]) || json_field(&b, &e->f[i]);
	b.failed = false;
	b.cap = b.max = LOG_LINE_MAX;
	buf_str(&b, whole ? "}\n" : JSON_CUT);
	return (b.n);
}

/* ---------------------------------------------------------------- either */

static bool as_json; /* atomic */

void
log_set_json(bool json)
{
	__atomic_store_n(&as_json, json, __ATOMIC_RELAXED);
}

bool
log_is_json(void)
{
	return (__atomic_load_n(&as_json, __ATOMIC_RELAXED));
}

size_t
log_line(char out[LOG_LINE_MAX], const struct log_entry *e)
{
	return ((log_is_json() ? json_line : text_line)(out, e));
}

/* The level is the second field, after ts. */
enum log_level
log_level_of(struct text line)
{
	bool json = text_starts(line, TEXT("{\"ts\":"));
	struct text before = json ? TEXT("\"level\":\"") : TEXT("level="), head;
	size_t i;

	if ((!json && !text_starts(line, TEXT("ts="))) ||
	    !text_next(&line, json ? ',' : ' ', &head) || !text_starts(line, before))
		return (LOG_INFO);
	text_take(&line, before.n);
	for (i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++)
		if (text_starts(line, text_of(level_names[i])))
			return ((enum log_level)i);
	return (LOG_INFO);
}
