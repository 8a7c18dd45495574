/* t/unit/wire/validate.c -- dates, tags, conditions, ranges: tables of what a client sent -> what
 * it gets. */
#include <errno.h>
#include "t/unit/test.h"
#include "wire/http1/http_date.h"
#include "wire/http1/validate.h"

#define DATE   "Sun, 06 Nov 1994 08:49:37 GMT"
#define DATE_S 784111777u

/* ---------------------------------------------------------------- dates */

static const struct {
	uint64_t s;
	const char *date;
} dates[] = {
	{ 0, "Thu, 01 Jan 1970 00:00:00 GMT" },
	{ 68169599, "Mon, 28 Feb 1972 23:59:59 GMT" },
	{ 68169600, "Tue, 29 Feb 1972 00:00:00 GMT" },
	{ DATE_S, DATE },
	{ 946684799, "Fri, 31 Dec 1999 23:59:59 GMT" },
	{ 951782400, "Tue, 29 Feb 2000 00:00:00 GMT" },
	{ 951868800, "Wed, 01 Mar 2000 00:00:00 GMT" },
	{ 4107542400, "Mon, 01 Mar 2100 00:00:00 GMT" },
	{ 253402300799, "Fri, 31 Dec 9999 23:59:59 GMT" },
};

TEST("/validate/date-put")
{
	char got[HTTP_DATE_LEN + 1];
	uint64_t back;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(dates); i++) {
		http_date_put(got, dates[i].s);
		g_assert_cmpstr(got, ==, dates[i].date);
		g_assert_cmpint(http_date_parse(text_of(got), &back), ==, 0);
		g_assert_cmpuint(back, ==, dates[i].s);
	}
	http_date_put(got, UINT64_MAX);
	g_assert_cmpuint(strlen(got), ==, HTTP_DATE_LEN);
}

/* The C library counts days in its own way; ours must agree with it on any day. */
TEST("/validate/date-any")
{
	char got[HTTP_DATE_LEN + 1], want[64];
	struct tm tm;
	uint64_t back;
	time_t t;

	for (t = 0; t < 5000000000; t += 86400 * 13 + 3601) {
		g_assert_nonnull(gmtime_r(&t, &tm));
		strftime(want, sizeof(want), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		http_date_put(got, (uint64_t)t);
		g_assert_cmpstr(got, ==, want);
		g_assert_cmpint(http_date_parse(text_of(got), &back), ==, 0);
		g_assert_cmpuint(back, ==, (uint64_t)t);
	}
}

static const struct {
	const char *date;
	uint64_t s; /* 0: refused */
} forms[] = {
	{ DATE, DATE_S },
	{ "Sunday, 06-Nov-94 08:49:37 GMT", DATE_S },
	{ "Sun Nov  6 08:49:37 1994", DATE_S },
	{ "Sun Nov 06 08:49:37 1994", DATE_S },
	{ "Tuesday, 19-Jan-38 03:14:07 GMT", 2147483647 },
	{ "Fri, 31 Dec 2016 23:59:60 GMT", 1483228800 },
	{ "", 0 },
	{ "0", 0 },
	{ "Sun, 06 Nov 1994 08:49:37", 0 },
	{ "Sun, 06 Nov 1994 08:49:37 gmt", 0 },
	{ "Sun, 06 Nov 1994 08:49:37 GMT ", 0 },
	{ "Sun, 06 Nov 1994 08:49:37 GMT; length=1", 0 },
	{ "Sun, 06 Nov 1994 08:49:37 +0000", 0 },
	{ "Sun, 6 Nov 1994 08:49:37 GMT", 0 },
	{ "Sun, 00 Nov 1994 08:49:37 GMT", 0 },
	{ "Sun, 31 Nov 1994 08:49:37 GMT", 0 },
	{ "Sun, 29 Feb 1994 08:49:37 GMT", 0 },
	{ "Sun, 06 Nov 1994 24:00:00 GMT", 0 },
	{ "Sun, 06 Nov 1994 08:60:37 GMT", 0 },
	{ "Sun, 06 Nov 1994 08:49:61 GMT", 0 },
	{ "Sun, 06 Nov 1969 08:49:37 GMT", 0 },
	{ "Sun, 06 Nov -994 08:49:37 GMT", 0 },
	{ "Xun, 06 Nov 1994 08:49:37 GMT", 0 },
	{ "Sun, 06 Xov 1994 08:49:37 GMT", 0 },
	{ DATE ", " DATE, 0 },
};

TEST("/validate/date-parse")
{
	uint64_t s;
	size_t i, n;

	for (i = 0; i < G_N_ELEMENTS(forms); i++) {
		s = 0;
		g_test_message("%s", forms[i].date);
		g_assert_cmpint(http_date_parse(text_of(forms[i].date), &s), ==,
		    forms[i].s != 0 ? 0 : -EINVAL);
		g_assert_cmpuint(s, ==, forms[i].s);
	}
	for (n = 0; n < HTTP_DATE_LEN; n++)
		g_assert_cmpint(http_date_parse((struct text){ DATE, n }, &s), ==, -EINVAL);
}

/* ---------------------------------------------------------------- tags */

static void
check_etag(unsigned parts, uint64_t unsettled, const char *want)
{
	struct statx sx = { .stx_ino = 0x1f,
		.stx_size = 0,
		.stx_mtime = { .tv_sec = 1000, .tv_nsec = 1 },
		.stx_ctime = { .tv_sec = 1000, .tv_nsec = 2 } };
	char tag[ETAG_MAX];
	size_t n = etag_make(tag, &sx, parts, unsettled);
	g_autofree char *got = g_strndup(tag, n);

	g_assert_cmpstr(got, ==, want);
}

TEST("/validate/etag")
{
	struct statx sx = { .stx_ino = UINT64_MAX,
		.stx_size = UINT64_MAX,
		.stx_mtime = { .tv_sec = -1 },
		.stx_ctime = { .tv_sec = -1 } };
	char tag[ETAG_MAX];

	check_etag(ETAG_SIZE | ETAG_MTIME, 0, "\"0-e8d4a51001\"");
	check_etag(ETAG_SIZE | ETAG_MTIME | ETAG_INODE, 0, "\"1f-0-e8d4a51001\"");
	check_etag(ETAG_SIZE, 0, "\"0\"");
	check_etag(ETAG_INODE, 0, "\"1f\"");
	check_etag(ETAG_MTIME, 0, "\"e8d4a51001\"");
	check_etag(0, 0, "");
	check_etag(ETAG_CTIME, 0, "\"e8d4a51002\"");
	check_etag(ETAG_SIZE | ETAG_CTIME, 0, "\"0-e8d4a51002\"");
	/* without W/ it matches no other look's, nor the strong one */
	check_etag(ETAG_SIZE, 0xabc, "W/\"0-abc\"");
	check_etag(0, 0xabc, "");
	g_assert_cmpuint(etag_make(tag, &sx, 15, UINT64_MAX), ==, 2 + 2 + 5 * 16 + 4);
	g_assert_cmpuint(etag_make(tag, &sx, 15, UINT64_MAX), <=, ETAG_MAX);
}

/* ---------------------------------------------------------------- conditions */

/* head: the fields after the request line, as sent. */
static void
request(struct http_request *r, const char *method, const char *fields)
{
	g_autofree char *head =
	    g_strdup_printf("%s / HTTP/1.1\r\nHost: h\r\n%s\r\n", method, fields);
	static char kept[8192]; /* the request points into it */
	const char *why;
	size_t used;
	int status;

	g_strlcpy(kept, head, sizeof(kept));
	g_assert_cmpint(http1_head(text_of(kept), sizeof(kept), r, &used, &status, &why), ==,
	    PARSE_DONE);
}

#define TAG "\"v1\""

static const struct validators strong = { .etag = { TAG, 4 }, .mtime_s = DATE_S };
static const struct validators weak = { .etag = { "W/" TAG, 6 },
	.mtime_s = DATE_S,
	.date_is_weak = true };
static const struct validators none;

static const struct {
	const char *method, *fields;
	const struct validators *v;
	int want;
} conditions[] = {
	{ "GET", "", &strong, 0 },
	{ "GET", "If-None-Match: " TAG "\r\n", &strong, 304 },
	{ "HEAD", "If-None-Match: " TAG "\r\n", &strong, 304 },
	{ "PUT", "If-None-Match: " TAG "\r\n", &strong, 412 },
	{ "GET", "If-None-Match: W/" TAG "\r\n", &strong, 304 },
	{ "GET", "If-None-Match: " TAG "\r\n", &weak, 304 },
	{ "GET", "If-None-Match: \"a\", W/\"b,c\" ," TAG "\r\n", &strong, 304 },
	{ "GET", "If-None-Match: \"a\"\r\nIf-None-Match: " TAG "\r\n", &strong, 304 },
	{ "GET", "If-None-Match: \"a\", \"b\"\r\n", &strong, 0 },
	{ "GET", "If-None-Match: \"a," TAG "\r\n", &strong, 0 },
	{ "GET", "If-None-Match: v1\r\n", &strong, 0 },
	{ "GET", "If-None-Match: v1, " TAG "\r\n", &strong, 304 },
	{ "GET", "If-None-Match: W/\r\n", &strong, 0 },
	{ "GET", "If-None-Match: w/" TAG "\r\n", &strong, 0 },
	{ "GET", "If-None-Match: \"\r\n", &strong, 0 },
	{ "GET", "If-None-Match:\r\n", &strong, 0 },
	{ "GET", "If-None-Match: *\r\n", &strong, 304 },
	{ "PUT", "If-None-Match: *\r\n", &none, 412 },
	{ "GET", "If-None-Match: \"\"\r\n", &none, 0 },
	{ "GET", "If-Match: " TAG "\r\n", &strong, 0 },
	{ "GET", "If-Match: " TAG "\r\n", &weak, 412 },
	{ "GET", "If-Match: W/" TAG "\r\n", &weak, 412 },
	{ "GET", "If-Modified-Since: " DATE "\r\n", &weak, 0 },
	{ "GET", "If-Unmodified-Since: " DATE "\r\n", &weak, 412 },
	{ "GET", "If-Match: W/" TAG "\r\n", &strong, 412 },
	{ "GET", "If-Match: \"x\"\r\nIf-Match: \"y\", " TAG "\r\n", &strong, 0 },
	{ "GET", "If-Match: *\r\n", &none, 0 },
	{ "GET", "If-Match: " TAG "\r\n", &none, 412 },
	{ "GET", "If-Match:\r\n", &strong, 412 },
	{ "GET", "If-Match: " TAG "\r\nIf-None-Match: " TAG "\r\n", &strong, 304 },
	{ "GET", "If-Modified-Since: " DATE "\r\n", &strong, 304 },
	{ "GET", "If-Modified-Since: Sun, 06 Nov 1994 08:49:38 GMT\r\n", &strong, 304 },
	{ "GET", "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", &strong, 0 },
	{ "GET", "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", &strong, 304 },
	{ "GET", "If-Modified-Since: yesterday\r\n", &strong, 0 },
	{ "GET", "If-Modified-Since: " DATE "\r\n", &none, 0 },
	{ "POST", "If-Modified-Since: " DATE "\r\n", &strong, 0 },
	{ "GET", "If-Modified-Since: " DATE "\r\nIf-Modified-Since: " DATE "\r\n", &strong, 0 },
	{ "GET", "If-Modified-Since: " DATE "\r\nIf-None-Match: \"x\"\r\n", &strong, 0 },
	{ "GET", "If-Unmodified-Since: " DATE "\r\n", &strong, 0 },
	{ "GET", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", &strong, 412 },
	{ "GET", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\nIf-Match: " TAG "\r\n",
	    &strong, 0 },
	{ "GET", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\nIf-None-Match: " TAG "\r\n",
	    &strong, 412 },
	{ "GET", "If-Unmodified-Since: tomorrow\r\n", &strong, 0 },
	{ "GET", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", &none, 0 },
	{ "OPTIONS", "If-Match: \"x\"\r\n", &strong, 0 },
};

TEST("/validate/conditions")
{
	struct http_request r;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(conditions); i++) {
		g_test_message("%s %s", conditions[i].method, conditions[i].fields);
		request(&r, conditions[i].method, conditions[i].fields);
		g_assert_cmpint(conditions_check(&r, conditions[i].v), ==, conditions[i].want);
	}
}

/* ---------------------------------------------------------------- ranges */

#define HUGE "99999999999999999999999999"

static const struct {
	const char *range;
	uint64_t size;
	const char *want; /* "off+len off+len", "whole", or "416" */
} ranges[] = {
	{ "bytes=0-0", 1000, "0+1" },
	{ "bytes=0-", 1000, "0+1000" },
	{ "bytes=0-999", 1000, "0+1000" },
	{ "bytes=0-1000", 1000, "0+1000" },
	{ "bytes=999-", 1000, "999+1" },
	{ "bytes=1000-", 1000, "416" },
	{ "bytes=1000-2000", 1000, "416" },
	{ "bytes=-1", 1000, "999+1" },
	{ "bytes=-1000", 1000, "0+1000" },
	{ "bytes=-1001", 1000, "0+1000" },
	{ "bytes=-0", 1000, "416" },
	{ "bytes=-0,0-1", 1000, "0+2" },
	{ "bytes=5000-,1-2", 1000, "1+2" },
	{ "bytes=5-4", 1000, "whole" },
	{ "bytes=0-1,5-4", 1000, "whole" },
	{ "bytes=" HUGE "-", 1000, "416" },
	{ "bytes=0-" HUGE, 1000, "0+1000" },
	{ "bytes=-" HUGE, 1000, "0+1000" },
	{ "bytes=" HUGE "-" HUGE, 1000, "416" },
	{ "bytes=18446744073709551615-", 1000, "416" },
	{ "bytes=1-18446744073709551615", 1000, "1+999" },
	{ "bytes=0-18446744073709551615", UINT64_MAX, "0+18446744073709551615" },
	{ "bytes=-18446744073709551615", UINT64_MAX, "0+18446744073709551615" },
	{ "bytes=0-,0-", UINT64_MAX, "whole" },
	{ "BYTES=1-2", 1000, "1+2" },
	{ "bytes= 1-2", 1000, "whole" },
	{ "bytes =1-2", 1000, "whole" },
	{ "bytes\t=\t1-2", 1000, "whole" },
	{ "bytes=1-2\t, ,5-6 ,", 1000, "1+2 5+2" },
	{ "bytes=5-6,1-2", 1000, "5+2 1+2" },
	{ "bytes=1-2,3-4", 1000, "1+4" },
	{ "bytes=3-4,1-2", 1000, "1+4" },
	{ "bytes=0-9,20-29,5-24", 1000, "0+30" },
	{ "bytes=50-59,0-9,20-29,5-24", 1000, "50+10 0+30" },
	{ "bytes=0-9,50-59,20-29,55-64", 1000, "0+10 50+15 20+10" },
	{ "bytes=-1,0-0", 1000, "999+1 0+1" },
	{ "bytes=0-,0-0", 1000, "whole" },
	{ "bytes=0-499,500-999", 1000, "0+1000" },
	{ "bytes=0-599,500-999", 1000, "whole" },
	{ "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18,20-20,22-22,24-24,26-26,28-28,"
	  "30-30",
	    1000, "0+1 2+1 4+1 6+1 8+1 10+1 12+1 14+1 16+1 18+1 20+1 22+1 24+1 26+1 28+1 30+1" },
	{ "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18,20-20,22-22,24-24,26-26,28-28,"
	  "30-30,32-32",
	    1000, "whole" },
	{ "bytes=0-", 0, "416" },
	{ "bytes=0-0", 0, "416" },
	{ "bytes=-1", 0, "whole" },
	{ "bytes=-0", 0, "416" },
	{ "bytes=", 1000, "whole" },
	{ "bytes=,", 1000, "whole" },
	{ "bytes=-", 1000, "whole" },
	{ "bytes=--1", 1000, "whole" },
	{ "bytes=1--2", 1000, "whole" },
	{ "bytes=1-2-3", 1000, "whole" },
	{ "bytes=1", 1000, "whole" },
	{ "bytes=a-b", 1000, "whole" },
	{ "bytes=0x1-2", 1000, "whole" },
	{ "bytes=+1-2", 1000, "whole" },
	{ "bytes=1 -2", 1000, "whole" },
	{ "bytes 1-2", 1000, "whole" },
	{ "bytes", 1000, "whole" },
	{ "lines=1-2", 1000, "whole" },
	{ "1-2", 1000, "whole" },
	{ "", 1000, "whole" },
};

static char *
select_ranges(const struct http_request *r, const struct validators *v, uint64_t size)
{
	struct range_part out[RANGES_MAX];
	int n = ranges_select(r, v, size, out), i;
	GString *s = g_string_new(n < 0 ? "416" : n == 0 ? "whole" : "");

	for (i = 0; i < n; i++)
		g_string_append_printf(s, "%s%" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT,
		    i > 0 ? " " : "", out[i].from, out[i].to - out[i].from);
	return (g_string_free(s, FALSE));
}

TEST("/validate/ranges")
{
	struct http_request r;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(ranges); i++) {
		g_autofree char *fields = g_strdup_printf("Range: %s\r\n", ranges[i].range);
		g_autofree char *got = NULL;

		g_test_message("%s", fields);
		request(&r, "GET", fields);
		got = select_ranges(&r, &strong, ranges[i].size);
		g_assert_cmpstr(got, ==, ranges[i].want);
	}
}

static const struct {
	const char *method, *fields;
	const struct validators *v;
	const char *want;
} if_ranges[] = {
	{ "GET", "", &strong, "whole" },
	{ "HEAD", "Range: bytes=0-1\r\n", &strong, "whole" },
	{ "POST", "Range: bytes=0-1\r\n", &strong, "whole" },
	{ "GET", "Range: bytes=0-1\r\nRange: bytes=0-1\r\n", &strong, "whole" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: " TAG "\r\n", &strong, "0+2" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n", &strong, "whole" },
	{ "GET", "Range: bytes=5000-\r\nIf-Range: \"x\"\r\n", &strong, "whole" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: W/" TAG "\r\n", &strong, "whole" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: W/" TAG "\r\n", &weak, "whole" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: " TAG ", " TAG "\r\n", &strong, "whole" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range:\r\n", &strong, "whole" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: " TAG "\r\n", &none, "whole" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: " DATE "\r\n", &strong, "0+2" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: " DATE "\r\n", &weak, "whole" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: Sun, 06 Nov 1994 08:49:38 GMT\r\n", &strong,
	    "whole" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: Thu, 01 Jan 1970 00:00:00 GMT\r\n", &none,
	    "whole" },
	{ "GET", "Range: bytes=0-1\r\nIf-Range: soon\r\n", &strong, "whole" },
};

TEST("/validate/if-range")
{
	struct http_request r;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(if_ranges); i++) {
		g_autofree char *got = NULL;

		g_test_message("%s %s", if_ranges[i].method, if_ranges[i].fields);
		request(&r, if_ranges[i].method, if_ranges[i].fields);
		got = select_ranges(&r, if_ranges[i].v, 1000);
		g_assert_cmpstr(got, ==, if_ranges[i].want);
	}
}
