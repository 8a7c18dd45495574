#include "walk/lines.h"

void
lines_init(struct lines *l, char end, size_t max)
{
	*l = (struct lines){ .end = end, .max = max, .rest = g_string_new(NULL) };
}

void
lines_free(struct lines *l)
{
	g_string_free(l->rest, TRUE);
}

void
lines_add(struct lines *l, const char *p, size_t n)
{
	g_string_erase(l->rest, 0, (gssize)l->at);
	l->at = 0;
	g_string_append_len(l->rest, p, (gssize)n);
}

static struct text
untaken(const struct lines *l)
{
	return ((struct text){ l->rest->str + l->at, l->rest->len - l->at });
}

/* The rest has no line end: waits for more bytes, or gives the line up. */
static enum line_kind
unfinished(struct lines *l, struct text *line)
{
	const bool told = l->skipping;

	*line = untaken(l);
	if (line->n < l->max && !told)
		return (LINE_NONE);
	l->at = l->rest->len;
	l->skipping = true;
	return (told ? LINE_NONE : LINE_TOO_LONG);
}

enum line_kind
lines_next(struct lines *l, struct text *line)
{
	struct text rest = untaken(l);
	const char *stop;

	while ((stop = memchr(rest.p, l->end, rest.n)) != NULL) {
		*line = text_take(&rest, (size_t)(stop - rest.p));
		text_take(&rest, 1);
		l->at = l->rest->len - rest.n;
		if (!l->skipping)
			return (line->n < l->max ? LINE_WHOLE : LINE_TOO_LONG);
		l->skipping = false;
	}
	return (unfinished(l, line));
}

bool
lines_last(struct lines *l, struct text *line)
{
	*line = untaken(l);
	l->at = l->rest->len;
	return (line->n > 0 && !l->skipping);
}
