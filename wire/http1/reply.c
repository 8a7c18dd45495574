/* wire/http1/reply.c -- see reply.h */
#include "wire/http1/reply.h"
#include "wire/http1/scan.h"

#define STATUS_END 12 /* of "HTTP/1.1 200" */

struct seen {
	unsigned lengths, codings;
	bool close, keep_alive;
	const char *why; /* NULL: no fault yet */
};

/* The line at *p without its end, and *p past it.  False: it is not complete. */
static bool
line_next(const char **p, const char *end, struct text *line, const char **why)
{
	const char *stop = skip_value(*p, end);

	*line = (struct text){ *p, (size_t)(stop - *p) };
	if (stop < end && *stop == '\r')
		stop++;
	if (stop == end)
		return (false);
	if (*stop != '\n')
		*why = "a control character in the head";
	*p = stop + 1;
	return (true);
}

static const char *
status_line(struct text line, struct http1_reply *r)
{
	const char *p = line.p;

	if (line.n < STATUS_END || memcmp(p, "HTTP/1.", 7) != 0 || !byte_is_digit(p[7]) ||
	    p[8] != ' ')
		return ("expected HTTP/1.x and a status");
	if (!byte_is_digit(p[9]) || !byte_is_digit(p[10]) || !byte_is_digit(p[11]) ||
	    (line.n > STATUS_END && p[12] != ' '))
		return ("expected three digits of a status");
	r->minor = (uint8_t)(p[7] - '0');
	r->status = (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
	return (r->status < 100 || r->status > 599 ? "expected a status from 100 to 599" : NULL);
}

static void
content_length(struct text v, struct http1_reply *r, struct seen *s)
{
	uint64_t n;

	if (s->lengths++ > 0)
		s->why = "Content-Length twice";
	else if (text_u64(v, &n) != 0 || n > INT64_MAX)
		s->why = "Content-Length is not a number";
	else
		r->content_length = (int64_t)n;
}

void
http1_content_range(struct text v, int64_t *out_first, int64_t *out_total)
{
	struct text first, total;
	uint64_t n;

	if (!text_istarts(v, TEXT("bytes ")))
		return;
	text_take(&v, 6);
	if (!text_next(&v, '/', &first) || !text_next(&v, '/', &total))
		return;
	if (text_u64(total, &n) == 0 && n <= INT64_MAX)
		*out_total = (int64_t)n;
	if (text_next(&first, '-', &v) && text_u64(v, &n) == 0 && n <= INT64_MAX)
		*out_first = (int64_t)n;
}

/* Compares the length of a name first: most fields cost no more than that. */
static void
field(struct text name, struct text v, struct http1_reply *r, struct seen *s)
{
	switch (name.n) {
	case sizeof("Connection") - 1:
		if (text_ieq(name, TEXT("Connection")))
			http1_connection(v, &s->close, &s->keep_alive);
		break;
	case sizeof("Content-Range") - 1:
		if (text_ieq(name, TEXT("Content-Range")))
			http1_content_range(v, &r->first, &r->total);
		break;
	case sizeof("Content-Length") - 1:
		if (text_ieq(name, TEXT("Content-Length")))
			content_length(v, r, s);
		break;
	case sizeof("Transfer-Encoding") - 1:
		if (!text_ieq(name, TEXT("Transfer-Encoding")))
			break;
		s->codings++;
		r->chunked = text_ieq(v, TEXT("chunked"));
	}
}

static void
field_line(struct text line, struct http1_reply *r, struct seen *s)
{
	const char *end = line.p + line.n, *colon = skip(line.p, end, C_TOKEN);
	struct text name = { line.p, (size_t)(colon - line.p) }, value;

	if (name.n == 0 || colon == end || *colon != ':') {
		s->why = "expected \"name: value\"";
		return;
	}
	value = (struct text){ colon + 1, (size_t)(end - colon - 1) };
	field(name, text_trim(value), r, s);
}

/* NULL, or why the length of the body is not clear. */
static const char *
fault_of(const struct http1_reply *r, const struct seen *s)
{
	if (s->codings > 0 && s->lengths > 0)
		return ("Content-Length beside Transfer-Encoding");
	if (s->codings > 0 && r->minor == 0)
		return ("Transfer-Encoding in HTTP/1.0");
	if (s->codings > 1 || (s->codings == 1 && !r->chunked))
		return ("expected chunked as the only Transfer-Encoding");
	if (r->status == 101)
		return ("101 without a request for an upgrade");
	return (NULL);
}

enum parse
http1_reply(struct text in, struct http1_reply *r, size_t *used, const char **why)
{
	const char *p = in.p, *end = in.p + in.n;
	struct seen s = { 0 };
	struct text line;
	bool first = true;

	*r = (struct http1_reply){ .content_length = -1, .first = -1, .total = -1 };
	while (line_next(&p, end, &line, &s.why)) {
		if (s.why == NULL && first)
			s.why = status_line(line, r);
		else if (s.why == NULL && line.n > 0)
			field_line(line, r, &s);
		else if (s.why == NULL)
			s.why = fault_of(r, &s);
		*why = s.why;
		*used = (size_t)(p - in.p);
		if (s.why != NULL)
			return (PARSE_BAD);
		if (line.n == 0) {
			r->keep_alive = !s.close && (r->minor > 0 || s.keep_alive);
			return (PARSE_DONE);
		}
		first = false;
	}
	return (PARSE_MORE);
}
