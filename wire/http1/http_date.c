/* wire/http1/http_date.c -- see http_date.h */
#include <errno.h>
#include <string.h>
#include "base/must.h"
#include "wire/http1/http_date.h"

#define DATE_MAX 253402300799u /* 9999-12-31 23:59:59: the year has four digits */

static const char weekdays[7][10] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday",
	"Friday", "Saturday" };
static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep",
	"Oct", "Nov", "Dec" };

struct date {
	unsigned year, month, day, hour, minute, second; /* month and day from 1 */
};

static bool
leap(unsigned y)
{
	return (y % 4 == 0 && (y % 100 != 0 || y % 400 == 0));
}

static unsigned
month_days(unsigned y, unsigned m)
{
	static const uint8_t days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

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
	/* never too late, at most some years too early */
	d->year = 1970 + (unsigned)(days / 366);
	while (year_start(d->year + 1) <= days)
		d->year++;
	days -= year_start(d->year);
	for (d->month = 1; days >= month_days(d->year, d->month); d->month++)
		days -= month_days(d->year, d->month);
	d->day = (unsigned)days + 1;
}

static void
put_digits(char *p, unsigned v, int width)
{
	while (width-- > 0) {
		p[width] = (char)('0' + v % 10);
		v /= 10;
	}
}

void
http_date_put(char dst[HTTP_DATE_LEN + 1], uint64_t unix_s)
{
	struct date d;
	unsigned sec;

	if (unix_s > DATE_MAX)
		unix_s = DATE_MAX;
	date_split(unix_s / 86400, &d);
	sec = (unsigned)(unix_s % 86400);
	memcpy(dst, "Www, dd Mmm yyyy hh:mm:ss GMT", HTTP_DATE_LEN + 1);
	memcpy(dst, weekdays[(unix_s / 86400 + 4) % 7], 3); /* 1970-01-01 was a Thursday */
	put_digits(dst + 5, d.day, 2);
	memcpy(dst + 8, months[d.month - 1], 3);
	put_digits(dst + 12, d.year, 4);
	put_digits(dst + 17, sec / 3600, 2);
	put_digits(dst + 20, sec / 60 % 60, 2);
	put_digits(dst + 23, sec % 60, 2);
}

static bool
take(struct text *t, const char *s, size_t n)
{
	if (!text_starts(*t, (struct text){ s, n }))
		return (false);
	text_take(t, n);
	return (true);
}

static bool
take_digits(struct text *t, size_t width, unsigned *out)
{
	uint64_t v;

	if (t->n < width || text_u64(text_take(t, width), &v) != 0)
		return (false);
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

/* RFC 9110 5.6.7: a two-digit year is at most 50 years in the future.  The fixed limit 1970
 * complies and needs no clock. */
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
	case 'e':
		return (take(t, " ", 1) ? take_digits(t, 1, &d->day) : take_digits(t, 2, &d->day));
	case 'm': return (take_month(t, &d->month));
	case 'Y': return (take_digits(t, 4, &d->year));
	case 'y': return (take_short_year(t, &d->year));
	case 'h': return (take_digits(t, 2, &d->hour));
	case 'i': return (take_digits(t, 2, &d->minute));
	case 's': return (take_digits(t, 2, &d->second));
	default: return (take(t, &part, 1));
	}
}

static bool
date_valid(const struct date *d)
{
	return (d->year >= 1970 && d->day >= 1 && d->day <= month_days(d->year, d->month) &&
		d->hour < 24 && d->minute < 60 && d->second <= 60); /* 60: a leap second */
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
		"w, d m Y h:i:s GMT", /* Sun, 06 Nov 1994 08:49:37 GMT */
		"W, d-m-y h:i:s GMT", /* Sunday, 06-Nov-94 08:49:37 GMT */
		"w m e h:i:s Y",      /* Sun Nov  6 08:49:37 1994 */
	};
	struct date d = { 0 };
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
