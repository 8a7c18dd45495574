/* wire/http1/validate.c -- which version of a file a client means, and which part. */
#include "base/must.h"
#include "wire/http1/http_date.h"
#include "wire/http1/validate.h"

/* ---------------------------------------------------------------- entity tags */

static size_t
put_hex(char *dst, uint64_t v)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 1, i;

	while (n < 16 && v >> (4 * n) != 0)
		n++;
	for (i = 0; i < n; i++)
		dst[i] = hex[v >> (4 * (n - 1 - i)) & 15];
	return (n);
}

static uint64_t
time_ns(struct statx_timestamp t)
{
	return ((uint64_t)t.tv_sec * 1000000000u + t.tv_nsec);
}

/* "1f-3e8-de0b6b3a7640001" without its quotes. */
static size_t
put_parts(char *dst, const uint64_t *v, unsigned use, unsigned nparts)
{
	size_t n = 0;
	unsigned i;

	for (i = 0; i < nparts; i++) {
		if ((use & 1u << i) == 0)
			continue;
		if (n != 0)
			dst[n++] = '-';
		n += put_hex(dst + n, v[i]);
	}
	return (n);
}

size_t
etag_make(char dst[ETAG_MAX], const struct statx *sx, unsigned parts, uint64_t unsettled)
{
	const uint64_t v[] = { sx->stx_ino, sx->stx_size, time_ns(sx->stx_mtime),
		time_ns(sx->stx_ctime), unsettled };
	unsigned use = (parts & ETAG_INODE ? 1 : 0) | (parts & ETAG_SIZE ? 2 : 0) |
		       (parts & ETAG_MTIME ? 4 : 0) | (parts & ETAG_CTIME ? 8 : 0);
	size_t n = 0;

	if (use == 0)
		return (0);
	if (unsettled != 0) {
		use |= 16;
		dst[n++] = 'W';
		dst[n++] = '/';
	}
	dst[n++] = '"';
	n += put_parts(dst + n, v, use, NELEM(v));
	dst[n++] = '"';
	return (n);
}

static bool
is_weak(struct text tag)
{
	return (text_starts(tag, TEXT("W/")));
}

static struct text
opaque(struct text tag)
{
	return (is_weak(tag) ? (struct text){ tag.p + 2, tag.n - 2 } : tag);
}

static bool
same_strong(struct text a, struct text b)
{
	return (!is_weak(a) && !is_weak(b) && text_eq(a, b));
}

static bool
same_weak(struct text a, struct text b)
{
	return (text_eq(opaque(a), opaque(b)));
}

static void
skip_blank(struct text *t)
{
	while (t->n > 0 && (*t->p == ' ' || *t->p == '\t' || *t->p == ','))
		text_take(t, 1);
}

/* Splits the next tag off *list; a comma inside quotes does not end it.  A tag without quotes ends
 * at the next comma, and matches no tag of this server. */
static bool
next_tag(struct text *list, struct text *tag)
{
	const char *end;
	size_t open;

	skip_blank(list);
	if (list->n == 0)
		return (false);
	open = is_weak(*list) ? 3 : 1;
	if (list->n > open && list->p[open - 1] == '"') {
		end = memchr(list->p + open, '"', list->n - open);
		end = end != NULL ? end + 1 : list->p + list->n;
	} else {
		end = memchr(list->p, ',', list->n);
		end = end != NULL ? end : list->p + list->n;
	}
	*tag = text_take(list, (size_t)(end - list->p));
	return (true);
}

static bool
tags_hold(struct text list, struct text etag, bool (*same)(struct text, struct text))
{
	struct text tag;

	if (text_eq(text_trim(list), TEXT("*")))
		return (true); /* the file exists, or there would be no conditions to check */
	while (next_tag(&list, &tag))
		if (etag.n > 0 && same(tag, etag))
			return (true);
	return (false);
}

/* The list may be in several lines; known[] has the first. */
static bool
any_tags_hold(const struct http_request *r, enum http_known id, struct text name, struct text etag,
    bool (*same)(struct text, struct text))
{
	unsigned i;

	if (tags_hold(r->known[id], etag, same))
		return (true);
	for (i = 0; i < r->nheaders; i++)
		if (text_ieq(r->headers[i].name, name) &&
		    tags_hold(r->headers[i].value, etag, same))
			return (true);
	return (false);
}

/* ---------------------------------------------------------------- conditions */

/* A malformed date, or a file without a date: the condition is ignored, so both results are
 * false. */
static bool
changed_since(struct text date, uint64_t mtime_s)
{
	uint64_t t;

	return (mtime_s != 0 && http_date_parse(date, &t) == 0 && mtime_s > t);
}

static bool
unchanged_since(struct text date, uint64_t mtime_s)
{
	uint64_t t;

	return (mtime_s != 0 && http_date_parse(date, &t) == 0 && mtime_s <= t);
}

/* The second since which the file has had no other contents.  0: the file has no date. */
static uint64_t
surely_since(const struct validators *v)
{
	return (v->mtime_s != 0 ? v->mtime_s + v->date_is_weak : 0);
}

/* If-Match, or without it If-Unmodified-Since: true if the request may be served. */
static bool
may_be_done(const struct http_request *r, const struct validators *v)
{
	if (r->known[HH_IF_MATCH].p != NULL)
		return (any_tags_hold(r, HH_IF_MATCH, TEXT("if-match"), v->etag, same_strong));
	if (r->known[HH_IF_UNMODIFIED_SINCE].p != NULL)
		return (!changed_since(r->known[HH_IF_UNMODIFIED_SINCE], surely_since(v)));
	return (true);
}

int
conditions_check(const struct http_request *r, const struct validators *v)
{
	bool reads = r->verb == HTTP_GET || r->verb == HTTP_HEAD;

	if (r->verb == HTTP_OPTIONS || r->verb == HTTP_TRACE || r->verb == HTTP_CONNECT)
		return (0); /* RFC 9110 13.2.1: they select no representation */
	if (!may_be_done(r, v))
		return (412);
	if (r->known[HH_IF_NONE_MATCH].p != NULL) {
		if (!any_tags_hold(r, HH_IF_NONE_MATCH, TEXT("if-none-match"), v->etag, same_weak))
			return (0);
		return (reads ? 304 : 412);
	}
	if (reads && r->known[HH_IF_MODIFIED_SINCE].p != NULL &&
	    unchanged_since(r->known[HH_IF_MODIFIED_SINCE], surely_since(v)))
		return (304);
	return (0);
}

/* ---------------------------------------------------------------- ranges */

/* True if the client holds a part of this very version.  A date proves it only if it is equal to
 * the second, and that second has passed. */
static bool
if_range_holds(struct text want, const struct validators *v)
{
	uint64_t t;

	if (want.n > 0 && (want.p[0] == '"' || is_weak(want)))
		return (v->etag.n > 0 && same_strong(want, v->etag));
	return (v->mtime_s != 0 && !v->date_is_weak && http_date_parse(want, &t) == 0 &&
		t == v->mtime_s);
}

static int
range_set(struct text set, uint64_t size, struct range_part out[RANGES_MAX])
{
	unsigned asked = 0, n = 0;
	struct range_part p;
	uint64_t sum = 0;
	int more;

	while ((more = range_next(&set, &p)) == 1) {
		if (++asked > RANGES_MAX)
			return (0);
		/* RFC 9110 14.1.2 calls it satisfiable, but no Content-Range can express it */
		if (p.from == RANGE_TAIL && p.to > 0 && size == 0)
			return (0);
		p = range_clip(p, size);
		if (p.from >= p.to)
			continue;
		/* "0-,0-,0-": more bytes than the file has are an attack or a mistake */
		if (__builtin_add_overflow(sum, p.to - p.from, &sum) || sum > size)
			return (0);
		n = range_join(out, n, p);
	}
	return (more != 0 || asked == 0 ? 0 : n == 0 ? -1 : (int)n);
}

int
ranges_select(const struct http_request *r, const struct validators *v, uint64_t size,
    struct range_part out[RANGES_MAX])
{
	struct text set;

	/* RFC 9110 14.2: defined for GET only */
	if (r->known[HH_RANGE].p == NULL || r->verb != HTTP_GET)
		return (0);
	if (r->known[HH_IF_RANGE].p != NULL && !if_range_holds(r->known[HH_IF_RANGE], v))
		return (0);
	if (!range_bytes(r->known[HH_RANGE], &set))
		return (0);
	return (range_set(set, size, out));
}
