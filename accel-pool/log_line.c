#include "accel-pool/log_line.h"

/* Finds the request after the quote that begins it.  A user may have a quote in the name, so this
 * first looks for the time, which ends with a bracket. */
static bool
find_request(struct text line, struct text *rest)
{
	const char *p = line.n > 0 ? memmem(line.p, line.n, "] \"", 3) : NULL;

	if (p != NULL)
		p += 2;
	else if (line.n > 0)
		p = memchr(line.p, '"', line.n);
	if (p == NULL)
		return (false);
	p++;
	*rest = (struct text){ p, (size_t)(line.p + line.n - p) };
	return (true);
}

/* The byte that "\n" and the like stand for; '\0': none. */
static char
control_of(char c)
{
	static const char names[] = "bfnrtv", bytes[] = "\b\f\n\r\t\v";
	const char *p = c != '\0' ? strchr(names, c) : NULL;

	return (p != NULL ? bytes[p - names] : '\0');
}

/* Takes the escape that follows a backslash. */
static char
take_escape(struct text *t)
{
	char c = t->p[0];
	int high, low;

	text_take(t, 1);
	if (c == 'x' && t->n >= 2) {
		high = text_hex_digit(t->p[0]);
		low = text_hex_digit(t->p[1]);
		if (high >= 0 && low >= 0) {
			text_take(t, 2);
			return ((char)(high << 4 | low));
		}
	}
	return (control_of(c) != '\0' ? control_of(c) : c);
}

/* Takes the bytes up to the quote that ends them, and the quote. */
static bool
take_quoted(struct text *t, char *buf, struct text *out)
{
	size_t n = 0;
	char c;

	while (t->n > 0) {
		c = t->p[0];
		text_take(t, 1);
		if (c == '"') {
			*out = (struct text){ buf, n };
			return (true);
		}
		buf[n++] = c == '\\' && t->n > 0 ? take_escape(t) : c;
	}
	return (false);
}

static bool
take_status(struct text rest, unsigned *status)
{
	struct text word;
	uint64_t n;

	rest = text_trim(text_trim_cr(rest));
	if (!text_next(&rest, ' ', &word) || word.n != 3 || text_u64(word, &n) != 0 || n < 100)
		return (false);
	*status = (unsigned)n;
	return (true);
}

static struct text
without_protocol(struct text t)
{
	const char *space = t.n > 0 ? memrchr(t.p, ' ', t.n) : NULL;

	if (space != NULL && t.n - (size_t)(space - t.p) > 6 && memcmp(space, " HTTP/", 6) == 0)
		t.n = (size_t)(space - t.p);
	return (t);
}

bool
log_line_parse(struct text line, char *buf, struct log_request *r)
{
	struct text rest, request;

	if (!find_request(line, &rest) || !take_quoted(&rest, buf, &request) ||
	    !take_status(rest, &r->status))
		return (false);
	if (!text_next(&request, ' ', &r->method))
		r->method = TEXT("");
	r->target = request.p != NULL ? without_protocol(request) : TEXT("");
	return (true);
}

bool
log_target_path(struct text target, struct text *path)
{
	const size_t scheme = text_istarts(target, TEXT("http://"))    ? 7
			      : text_istarts(target, TEXT("https://")) ? 8
								       : 0;
	const char *p = target.p;

	if (scheme > 0)
		p = memchr(target.p + scheme, '/', target.n - scheme);
	if (p == NULL)
		return (false);
	*path = (struct text){ p, target.n - (size_t)(p - target.p) };
	return (path->n > 0 && path->p[0] == '/');
}
