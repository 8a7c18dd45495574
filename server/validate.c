/* server/validate.c -- which version of a file a client means, and which part of it. */
#include <errno.h>
#include "base/must.h"
#include "server/validate.h"

#define DATE_MAX 253402300799u  /* 9999-12-31 23:59:59: the form has four digits for the year */

/* ---------------------------------------------------------------- dates */

static const char weekdays[7][10] = {
	"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
};
static const char months[12][4] = {
	"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
};

struct date {
	unsigned year, month, day, hour, minute, second;        /* month and day from 1 */
};

static bool
leap(unsigned y)
{
	return (y % 4 == 0 && (y % 100 != 0 || y % 400 == 0));
}

static unsigned
month_days(unsigned y, unsigned m)
{
	static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return (m == 2 && leap(y) ? 29 : days[m - 1]);
}

/* Days from 1970-01-01 to January 1st of y. */
static uint64_t
year_start(unsigned y)
{
	uint64_t before = y - 1;

	return ((uint64_t)(y - 1970) * 365 + (before / 4 - before / 100 + before / 400) -
	    (1969 / 4 - 1969 / 100 + 1969 / 400));
}

static void
date_split(uint64_t days, struct date *d)
{
	d->year = 1970 + (unsigned)(days / 366);        /* never too late, at most some years early */
	while (year_start(d->year + 1) <= days)
		d->year++;
	days -= year_start(d->year);
	for (d->month = 1; days >= month_days(d->year, d->month); d->month++)
		days -= month_days(d->year, d->month);
	d->day = (unsigned)days + 1;
}

static char *
put_digits(char *p, unsigned v, int width)
{
	int i;

	for (i = width - 1; i >= 0; i--, v /= 10)
		p[i] = (char)('0' + v % 10);
	return (p + width);
}

static char *
put_str(char *p, const char *s, size_t n)
{
	memcpy(p, s, n);
	return (p + n);
}

void
http_date_put(char dst[HTTP_DATE_LEN + 1], uint64_t unix_s)
{
	struct date d;
	unsigned sec;
	char *p = dst;

	if (unix_s > DATE_MAX)
		unix_s = DATE_MAX;
	date_split(unix_s / 86400, &d);
	sec = (unsigned)(unix_s % 86400);
	p = put_str(p, weekdays[(unix_s / 86400 + 4) % 7], 3);  /* 1970-01-01 was a Thursday */
	p = put_str(p, ", ", 2);
	p = put_digits(p, d.day, 2);
	p = put_str(p, " ", 1);
	p = put_str(p, months[d.month - 1], 3);
	p = put_str(p, " ", 1);
	p = put_digits(p, d.year, 4);
	p = put_str(p, " ", 1);
	p = put_digits(p, sec / 3600, 2);
	p = put_str(p, ":", 1);
	p = put_digits(p, sec / 60 % 60, 2);
	p = put_str(p, ":", 1);
	p = put_digits(p, sec % 60, 2);
	put_str(p, " GMT", 5);
}

static bool
take(struct text *t, const char *s, size_t n)
{
	if (!text_starts(*t, (struct text){s, n}))
		return (false);
	t->p += n;
	t->n -= n;
	return (true);
}

static bool
take_digits(struct text *t, size_t width, unsigned *out)
{
	uint64_t v;

	if (t->n < width || text_u64((struct text){t->p, width}, &v) != 0)
		return (false);
	t->p += width;
	t->n -= width;
	*out = (unsigned)v;
	return (true);
}

static bool
take_weekday(struct text *t, bool whole)
{
	size_t i;

	for (i = 0; i < NELEM(weekdays); i++)
		if (take(t, weekdays[i], whole ? strlen(weekdays[i]) : 3))
			return (true);
	return (false);
}

static bool
take_month(struct text *t, unsigned *month)
{
	unsigned i;

	for (i = 0; i < NELEM(months); i++)
		if (take(t, months[i], 3)) {
			*month = i + 1;
			return (true);
		}
	return (false);
}

/* RFC 9110 5.6.7 wants a two-digit year to lie at most 50 years ahead; a fixed turn at 1970 agrees
 * with that and needs no clock. */
static bool
take_short_year(struct text *t, unsigned *year)
{
	if (!take_digits(t, 2, year))
		return (false);
	*year += *year < 70 ? 2000 : 1900;
	return (true);
}

static bool
take_part(struct text *t, char part, struct date *d)
{
	switch (part) {
	case 'w': return (take_weekday(t, false));
	case 'W': return (take_weekday(t, true));
	case 'd': return (take_digits(t, 2, &d->day));
	case 'e': return (take(t, " ", 1) ? take_digits(t, 1, &d->day) : take_digits(t, 2, &d->day));
	case 'm': return (take_month(t, &d->month));
	case 'Y': return (take_digits(t, 4, &d->year));
	case 'y': return (take_short_year(t, &d->year));
	case 'h': return (take_digits(t, 2, &d->hour));
	case 'i': return (take_digits(t, 2, &d->minute));
	case 's': return (take_digits(t, 2, &d->second));
	default:  return (take(t, &part, 1));
	}
}

static bool
date_valid(const struct date *d)
{
	return (d->year >= 1970 && d->day >= 1 && d->day <= month_days(d->year, d->month) && d->hour < 24 &&
	    d->minute < 60 && d->second <= 60);         /* 60: a leap second */
}

static uint64_t
date_join(const struct date *d)
{
	uint64_t days = year_start(d->year) + d->day - 1;
	unsigned m;

	for (m = 1; m < d->month; m++)
		days += month_days(d->year, m);
	return (days * 86400 + d->hour * 3600 + d->minute * 60 + d->second);
}

int
http_date_parse(struct text t, uint64_t *unix_s)
{
	static const char *const forms[] = {
		"w, d m Y h:i:s GMT",           /* Sun, 06 Nov 1994 08:49:37 GMT */
		"W, d-m-y h:i:s GMT",           /* Sunday, 06-Nov-94 08:49:37 GMT */
		"w m e h:i:s Y",                /* Sun Nov  6 08:49:37 1994 */
	};
	struct date d = {0};
	struct text rest;
	const char *f;
	size_t i;

	for (i = 0; i < NELEM(forms); i++) {
		rest = t;
		for (f = forms[i]; *f != '\0' && take_part(&rest, *f, &d); f++)
			;
		if (*f == '\0' && rest.n == 0 && date_valid(&d)) {
			*unix_s = date_join(&d);
			return (0);
		}
	}
	return (-EINVAL);
}

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

/* now_wall_s has lost its fraction, so only from two whole seconds on is a second sure to have passed. */
static bool
fresh(const struct statx *sx, uint64_t now_wall_s)
{
	return (sx->stx_mtime.tv_sec > (int64_t)now_wall_s - 2);
}

size_t
etag_make(char dst[ETAG_MAX], const struct statx *sx, unsigned parts, uint64_t now_wall_s)
{
	uint64_t mtime_ns = (uint64_t)sx->stx_mtime.tv_sec * 1000000000u + sx->stx_mtime.tv_nsec;
	size_t n = 0;

	if ((parts & (ETAG_INODE | ETAG_MTIME | ETAG_SIZE)) == 0)
		return (0);
	if (fresh(sx, now_wall_s)) {
		dst[n++] = 'W';
		dst[n++] = '/';
	}
	dst[n++] = '"';
	if (parts & ETAG_INODE) {
		n += put_hex(dst + n, sx->stx_ino);
		dst[n++] = '-';
	}
	if (parts & ETAG_SIZE) {
		n += put_hex(dst + n, sx->stx_size);
		dst[n++] = '-';
	}
	if (parts & ETAG_MTIME)
		n += put_hex(dst + n, mtime_ns);
	else
		n--;                            /* the last '-' separates nothing */
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
	return (is_weak(tag) ? (struct text){tag.p + 2, tag.n - 2} : tag);
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
	while (t->n > 0 && (*t->p == ' ' || *t->p == '\t' || *t->p == ',')) {
		t->p++;
		t->n--;
	}
}

/* Splits the next tag off *list; a comma inside quotes does not end it.  What has no quotes runs to
 * the next comma, and is like no tag of ours. */
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
	*tag = (struct text){list->p, (size_t)(end - list->p)};
	list->p = end;
	list->n -= tag->n;
	return (true);
}

static bool
tags_hold(struct text list, struct text etag, bool (*same)(struct text, struct text))
{
	struct text tag;

	if (text_eq(text_trim(list), TEXT("*")))
		return (true);                  /* the file exists, or nobody would have asked */
	while (next_tag(&list, &tag))
		if (etag.n > 0 && same(tag, etag))
			return (true);
	return (false);
}

/* The list may be spread over several lines; known[] holds the first. */
static bool
any_tags_hold(const struct http_request *r, enum http_known id, struct text name, struct text etag,
    bool (*same)(struct text, struct text))
{
	unsigned i;

	if (tags_hold(r->known[id], etag, same))
		return (true);
	for (i = 0; i < r->nheaders; i++)
		if (text_ieq(r->headers[i].name, name) && tags_hold(r->headers[i].value, etag, same))
			return (true);
	return (false);
}

/* ---------------------------------------------------------------- conditions */

/* A date that cannot be read, or a file without one: the condition is ignored, so "false" for both. */
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

/* If-Match, or without it If-Unmodified-Since: may the request be done at all? */
static bool
may_be_done(const struct http_request *r, const struct validators *v)
{
	if (r->known[HH_IF_MATCH].p != NULL)
		return (any_tags_hold(r, HH_IF_MATCH, TEXT("if-match"), v->etag, same_strong));
	if (r->known[HH_IF_UNMODIFIED_SINCE].p != NULL)
		return (!changed_since(r->known[HH_IF_UNMODIFIED_SINCE], v->mtime_s));
	return (true);
}

int
conditions_check(const struct http_request *r, const struct validators *v)
{
	bool reads = r->verb == HTTP_GET || r->verb == HTTP_HEAD;

	if (r->verb == HTTP_OPTIONS || r->verb == HTTP_TRACE || r->verb == HTTP_CONNECT)
		return (0);                     /* RFC 9110 13.2.1: they select no representation */
	if (!may_be_done(r, v))
		return (412);
	if (r->known[HH_IF_NONE_MATCH].p != NULL) {
		if (!any_tags_hold(r, HH_IF_NONE_MATCH, TEXT("if-none-match"), v->etag, same_weak))
			return (0);
		return (reads ? 304 : 412);
	}
	if (reads && r->known[HH_IF_MODIFIED_SINCE].p != NULL &&
	    unchanged_since(r->known[HH_IF_MODIFIED_SINCE], v->mtime_s))
		return (304);
	return (0);
}

/* ---------------------------------------------------------------- ranges */

/* Does the client hold a part of this very version?  A date says so only if it is the same to the
 * second, and the file had that second to itself: its tag is weak while it has not. */
static bool
if_range_holds(struct text want, const struct validators *v)
{
	uint64_t t;

	if (want.n > 0 && (want.p[0] == '"' || is_weak(want)))
		return (v->etag.n > 0 && same_strong(want, v->etag));
	return (v->mtime_s != 0 && !is_weak(v->etag) && http_date_parse(want, &t) == 0 && t == v->mtime_s);
}

/* A number too large for us is as good as infinite: no file has that many bytes. */
static bool
range_number(struct text t, uint64_t *out)
{
	int err = text_u64(t, out);

	if (err == -ERANGE)
		*out = UINT64_MAX;
	return (err != -EINVAL);
}

enum range_kind { RANGE_BAD, RANGE_NONE, RANGE_ALL, RANGE_SOME };       /* NONE: cannot be satisfied */

static enum range_kind
suffix_range(struct text digits, uint64_t size, struct byte_range *out)
{
	uint64_t n;

	if (!range_number(digits, &n))
		return (RANGE_BAD);
	if (n == 0)
		return (RANGE_NONE);
	if (size == 0)                  /* satisfiable says RFC 9110 14.1.2, but no Content-Range can say it */
		return (RANGE_ALL);
	out->len = n < size ? n : size;
	out->off = size - out->len;
	return (RANGE_SOME);
}

static enum range_kind
one_range(struct text spec, uint64_t size, struct byte_range *out)
{
	struct text first;
	uint64_t from, last = UINT64_MAX;

	if (!text_next(&spec, '-', &first) || spec.p == NULL)
		return (RANGE_BAD);
	if (first.n == 0)
		return (suffix_range(spec, size, out));
	if (!range_number(first, &from) || (spec.n > 0 && !range_number(spec, &last)) || last < from)
		return (RANGE_BAD);
	if (from >= size)
		return (RANGE_NONE);
	if (last > size - 1)
		last = size - 1;
	*out = (struct byte_range){from, last - from + 1};
	return (RANGE_SOME);
}

static bool
touch(const struct byte_range *a, const struct byte_range *b)
{
	return (a->off <= b->off + b->len && b->off <= a->off + a->len);
}

static struct byte_range
join(const struct byte_range *a, const struct byte_range *b)
{
	uint64_t off = a->off < b->off ? a->off : b->off;
	uint64_t a_end = a->off + a->len, b_end = b->off + b->len;

	return ((struct byte_range){off, (a_end > b_end ? a_end : b_end) - off});
}

/* No two of the n in out touch; nor do they afterwards.  A joined one stands where its first member
 * stood, so the order asked for is kept. */
static int
add_joined(struct byte_range *out, int n, struct byte_range r)
{
	int at = n, i = 0;

	while (i < n) {
		if (!touch(&out[i], &r)) {
			i++;
			continue;
		}
		r = join(&out[i], &r);
		n--;
		memmove(&out[i], &out[i + 1], (size_t)(n - i) * sizeof(*out));
		if (i < at)
			at = i;
		i = 0;                          /* having grown, it may touch one that it did not */
	}
	if (at > n)
		at = n;
	memmove(&out[at + 1], &out[at], (size_t)(n - at) * sizeof(*out));
	out[at] = r;
	return (n + 1);
}

static int
range_set(struct text set, uint64_t size, struct byte_range out[RANGES_MAX])
{
	int asked = 0, n = 0;
	struct byte_range r = {0, 0};
	struct text spec;
	uint64_t sum = 0;

	while (text_next(&set, ',', &spec)) {
		spec = text_trim(spec);
		if (spec.n == 0)
			continue;
		if (++asked > RANGES_MAX)
			return (0);
		switch (one_range(spec, size, &r)) {
		case RANGE_BAD:
		case RANGE_ALL:
			return (0);
		case RANGE_NONE:
			break;
		case RANGE_SOME:
			/* "0-,0-,0-": more bytes than the file has is an attack or a mistake */
			if (__builtin_add_overflow(sum, r.len, &sum) || sum > size)
				return (0);
			n = add_joined(out, n, r);
			break;
		}
	}
	return (asked == 0 ? 0 : n == 0 ? -1 : n);
}

int
ranges_select(const struct http_request *r, const struct validators *v, uint64_t size,
    struct byte_range out[RANGES_MAX])
{
	struct text set = r->known[HH_RANGE], unit;

	if (set.p == NULL || r->verb != HTTP_GET)       /* RFC 9110 14.2: defined for GET only */
		return (0);
	if (r->known[HH_IF_RANGE].p != NULL && !if_range_holds(r->known[HH_IF_RANGE], v))
		return (0);
	if (!text_next(&set, '=', &unit) || set.p == NULL || !text_ieq(text_trim(unit), TEXT("bytes")))
		return (0);
	return (range_set(set, size, out));
}
