/* wire/http2/reply.c -- see reply.h */
#include "wire/http2/reply.h"
#include "wire/http2/fields.h"

/* Of the handshake of HTTP/1 only. */
static bool
is_of_switch(const struct http2_reply *r, struct text name)
{
	return (r->status == 101 && text_eq(name, TEXT("sec-websocket-accept")));
}

static bool
add_field(struct http2_reply *r, struct text name, struct text value)
{
	uint64_t n;

	if (http2_is_of_connection(name) || is_of_switch(r, name))
		return (true);
	if (r->n == HTTP2_REPLY_FIELDS)
		return (false);
	if (text_eq(name, TEXT("content-length")) && text_u64(value, &n) == 0 && n <= INT64_MAX)
		r->length = (int64_t)n;
	r->field[r->n++] = (struct http2_field){ name, value };
	return (true);
}

/* One line without its end. */
static bool
read_field(struct http2_reply *r, char *line, size_t n)
{
	char *colon = memchr(line, ':', n), *p;

	if (colon == NULL || colon == line)
		return (false);
	for (p = line; p < colon; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p |= 0x20;
	return (add_field(r, (struct text){ line, (size_t)(colon - line) },
	    text_trim((struct text){ colon + 1, n - (size_t)(colon + 1 - line) })));
}

static bool
read_status(const char *p, size_t n, int *status)
{
	if (n < 12 || memcmp(p, "HTTP/1.", 7) != 0 || !byte_is_digit(p[9]) ||
	    !byte_is_digit(p[10]) || !byte_is_digit(p[11]))
		return (false);
	*status = 100 * (p[9] - '0') + 10 * (p[10] - '0') + p[11] - '0';
	return (*status >= 100);
}

/* The end of the line at p: where its CR is.  NULL: it has not come. */
static char *
line_end(char *p, const char *end)
{
	char *eol = memchr(p, '\r', (size_t)(end - p));

	return (eol != NULL && end - eol >= 2 ? eol : NULL);
}

enum parse
http2_reply_read(char *head, size_t n, struct http2_reply *r, size_t *used)
{
	char *p = head, *end = head + n, *eol;

	r->n = 0;
	r->length = -1;
	eol = line_end(p, end);
	if (eol != NULL && !read_status(p, (size_t)(eol - p), &r->status))
		return (PARSE_BAD);
	while (eol != NULL) {
		if (eol[1] != '\n')
			return (PARSE_BAD);
		p = eol + 2;
		eol = line_end(p, end);
		if (eol == p && p[1] == '\n') {
			*used = (size_t)(p + 2 - head);
			return (PARSE_DONE);
		}
		if (eol != NULL && !read_field(r, p, (size_t)(eol - p)))
			return (PARSE_BAD);
	}
	return (PARSE_MORE);
}

bool
http2_trailers_read(char *lines, size_t n, struct http2_reply *r)
{
	char *p = lines, *end = lines + n, *eol;

	r->n = 0;
	r->status = 0;
	r->length = -1;
	for (; p < end; p = eol + 2) {
		eol = line_end(p, end);
		if (eol == NULL || eol[1] != '\n' || !read_field(r, p, (size_t)(eol - p)))
			return (false);
	}
	return (true);
}
