/* t/unit/server/meet_speak.h -- five protocols as an application reads and writes them.  A request
 * is read from its beginning each time, so a reader keeps nothing. */
#ifndef MEET_SPEAK_H
#define MEET_SPEAK_H

#include "t/unit/server/meet.h"
#include "t/unit/wire/ajp13_test.h"
#include "t/unit/wire/wire_test.h"

struct speaks {
	const char *name;
	/* sets has_head, head, body, whole and used */
	void (*read)(struct app *, struct text in);
	/* a head with these lines, and a body; NULL: the head says so */
	void (*write)(struct app *, int status, const char *lines, struct text body, bool head);
	bool once;
};

/* The bytes after this name in the head, skip bytes further. */
static const char *
in_head(const struct app *a, const char *name, size_t skip)
{
	const char *p = memmem(a->head.p, a->head.n, name, strlen(name));

	return (p != NULL ? p + strlen(name) + skip : NULL);
}

static void
whole_at(struct app *a, struct text in, size_t head, const char *length)
{
	size_t want = length != NULL ? strtoul(length, NULL, 10) : 0, n = MIN(want, in.n - head);

	g_string_append_len(a->body, in.p + head, (gssize)n);
	a->whole = n == want;
	a->used = head + n;
}

/* ---------------------------------------------------------------- FastCGI */

static void
fastcgi_read(struct app *a, struct text in)
{
	const guint8 *p = (const guint8 *)in.p;
	size_t at, n;

	for (at = 0; at + 8 <= in.n && !a->whole; at += n) {
		n = 8u + (size_t)(p[at + 4] << 8 | p[at + 5]) + p[at + 6];
		if (at + n > in.n)
			break;
		if (p[at + 1] == 4 && n == 8) {
			a->has_head = true;
			a->head = (struct text){ in.p, at };
		} else if (p[at + 1] == 5 && n > 8) {
			g_string_append_len(a->body, in.p + at + 8, (gssize)n - 8);
		} else if (p[at + 1] == 5 && a->has_head) {
			a->whole = true;
		}
		law(p[at + 1] == 1 || p[at + 1] == 4 || p[at + 1] == 5, "record of type %u",
		    p[at + 1]);
		law((p[at + 1] == 1) == (at == 0), "a second request within the first");
		a->used = at + n;
	}
}

static void
fastcgi_write(struct app *a, int status, const char *lines, struct text body, bool head)
{
	struct buf b;
	char *h =
	    g_strdup_printf("Status: %d x\r\n%sContent-Length: %zu\r\n\r\n", status, lines, body.n);

	buf_init(&b, 0);
	put_stdout(&b, h);
	while (!head && body.n != 0)
		record(&b, 1, 6, 1, text_take(&body, 1 + below(65535)), below(8));
	put_end(&b, 0);
	g_string_append_len(a->to_say, b.p, (gssize)b.n);
	buf_free(&b);
	g_free(h);
}

/* ---------------------------------------------------------------- SCGI, uwsgi, HTTP */

static void
scgi_read(struct app *a, struct text in)
{
	const char *colon = memchr(in.p, ':', MIN(in.n, 12));
	size_t n = colon != NULL ? strtoul(in.p, NULL, 10) : 0;

	if (colon == NULL || (size_t)(colon - in.p) + n + 2 > in.n)
		return;
	a->has_head = true;
	a->head = (struct text){ colon + 1, n };
	whole_at(a, in, (size_t)(colon - in.p) + n + 2, in_head(a, "CONTENT_LENGTH", 1));
}

static void
uwsgi_read(struct app *a, struct text in)
{
	const guint8 *p = (const guint8 *)in.p;
	size_t n = in.n >= 4 ? 4u + p[1] + 256u * p[2] : SIZE_MAX;

	if (n > in.n)
		return;
	a->has_head = true;
	a->head = (struct text){ in.p, n };
	whole_at(a, in, n, in_head(a, "CONTENT_LENGTH", 2));
}

static void
http_chunks(struct app *a, struct text in, size_t at)
{
	const char *end;
	size_t n;

	while ((end = memmem(in.p + at, in.n - at, "\r\n", 2)) != NULL) {
		n = strtoul(in.p + at, NULL, 16);
		law(n != 0 || in.p[at] == '0', "a chunk without a size: %.10s", in.p + at);
		at = (size_t)(end - in.p) + 2;
		if (at + n + 2 > in.n)
			return;
		g_string_append_len(a->body, in.p + at, (gssize)n);
		at += n + 2;
		a->whole = n == 0;
		a->used = at;
		if (a->whole)
			return;
	}
}

static void
http_read(struct app *a, struct text in)
{
	const char *end = memmem(in.p, in.n, "\r\n\r\n", 4);

	if (end == NULL)
		return;
	a->has_head = true;
	a->head = (struct text){ in.p, (size_t)(end - in.p) + 4 };
	if (in_head(a, "ransfer-Encoding: chunked", 0) != NULL)
		http_chunks(a, in, a->head.n);
	else
		whole_at(a, in, a->head.n, in_head(a, "ontent-Length: ", 0));
}

/* SCGI: the head begins with Status. */
static void
stream_write(struct app *a, int status, const char *lines, struct text body, bool head)
{
	bool scgi = strcmp(a->speaks->name, "scgi") == 0, chunked = one_in(3) && !scgi && !head;
	bool http = strcmp(a->speaks->name, "http") == 0;
	struct text piece;

	g_string_append_printf(a->to_say, scgi ? "Status: %d x\r\n%s" : "HTTP/1.1 %d x\r\n%s",
	    status, lines);
	a->closes = !http;
	if (chunked && http)
		g_string_append(a->to_say, "Transfer-Encoding: chunked\r\n\r\n");
	else
		g_string_append_printf(a->to_say, "Content-Length: %zu\r\n\r\n", body.n);
	while (!head && body.n != 0) {
		piece = text_take(&body, chunked && http ? 1 + below(20000) : SIZE_MAX);
		if (chunked && http)
			g_string_append_printf(a->to_say, "%zx\r\n", piece.n);
		g_string_append_len(a->to_say, piece.p, (gssize)piece.n);
		if (chunked && http)
			g_string_append(a->to_say, "\r\n");
	}
	if (chunked && http)
		g_string_append(a->to_say, "0\r\n\r\n");
}

/* ---------------------------------------------------------------- AJP 1.3 */

#define AJP_POST 4
#define AJP_PUT  5

static void
ajp13_read(struct app *a, struct text in)
{
	const guint8 *p = (const guint8 *)in.p;
	size_t at, n, packets = 0, want = 0;
	const char *length = NULL;

	for (at = 0; at + 4 <= in.n && !a->whole; at += n) {
		n = 4u + (size_t)(p[at + 2] << 8 | p[at + 3]);
		law(p[at] == 0x12 && p[at + 1] == 0x34, "a packet without its mark");
		if (at + n > in.n)
			break;
		if (at == 0) {
			a->has_head = true;
			a->head = (struct text){ in.p, n };
			length = in_head(a, "\xa0\x08", 2);
			want = length != NULL ? strtoul(length, NULL, 10) : 0;
			a->asked = MAX(a->asked, want != 0);
		} else {
			packets++;
			if (n > 6)
				g_string_append_len(a->body, in.p + at + 6, (gssize)n - 6);
		}
		a->used = at + n;
		if (length == NULL &&
		    (p[5] == AJP_POST || p[5] == AJP_PUT)) /* its length is not known */
			a->whole = at != 0 && n <= 6;
		else
			a->whole = a->body->len >= want;
	}
	law(packets <= a->asked, "%zu packets of a body, %zu were asked for", packets, a->asked);
}

static void
ajp13_write(struct app *a, int status, const char *lines, struct text body, bool head)
{
	struct text rest = text_of(lines), line, name;
	struct buf b, f, h;
	size_t n = 1;

	buf_init(&b, 0);
	buf_init(&f, 0);
	buf_init(&h, 0);
	while (text_next(&rest, '\n', &line)) {
		line.n -= line.n != 0;
		if (line.n == 0 || !text_next(&line, ':', &name))
			continue;
		put_str(&f, name);
		text_take(&line, 1);
		put_str(&f, line);
		n++;
	}
	put_str(&f, TEXT("Content-Length"));
	buf_u64(&b, body.n);
	put_str(&f, buf_as_text(&b));
	buf_drop(&b, b.n);
	buf_char(&h, 4);
	put_u16(&h, (size_t)status);
	put_str(&h, TEXT("x"));
	put_u16(&h, n);
	buf_text(&h, buf_as_text(&f));
	message(&b, buf_as_text(&h));
	while (!head && body.n != 0) {
		buf_drop(&h, h.n);
		buf_char(&h, 3);
		put_str(&h, text_take(&body, 1 + below(8000)));
		message(&b, buf_as_text(&h));
	}
	put_over(&b, a->whole);
	g_string_append_len(a->to_say, b.p, (gssize)b.n);
	buf_free(&b);
	buf_free(&f);
	buf_free(&h);
}

static const struct speaks languages[] = {
	{ "fastcgi", fastcgi_read, fastcgi_write, false },
	{ "scgi", scgi_read, stream_write, true },
	{ "http", http_read, stream_write, false },
	{ "ajp13", ajp13_read, ajp13_write, false },
	{ "uwsgi", uwsgi_read, stream_write, true },
};

static const struct speaks *
language(const char *name)
{
	size_t i = 0;

	while (strcmp(languages[i].name, name) != 0)
		i++;
	return (&languages[i]);
}

#endif
