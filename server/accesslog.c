/* server/accesslog.c -- the combined log format. */
#include <stdio.h>
#include <time.h>
#include "server/accesslog.h"

#define DATE_MAX 64

/* Months by hand: strftime() would ask the locale. */
static const char month[12][4] = {
	"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
};

static size_t
date_make(char dst[DATE_MAX], uint64_t wall_s)
{
	time_t t = (time_t)wall_s;
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL)
		return ((size_t)snprintf(dst, DATE_MAX, "-"));
	return ((size_t)snprintf(dst, DATE_MAX, "%02d/%s/%04d:%02d:%02d:%02d +0000", tm.tm_mday,
	    month[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec));
}

/* Thousands of lines share a second, and gmtime_r() costs more than the rest of the line. */
static struct text
date_of(uint64_t wall_s)
{
	static __thread struct {
		uint64_t wall_s;
		size_t n;
		char text[DATE_MAX];
	} last;

	if (last.n == 0 || last.wall_s != wall_s) {
		last.n = date_make(last.text, wall_s);
		last.wall_s = wall_s;
	}
	return ((struct text){last.text, last.n});
}

static void
put(struct buf *out, struct text t)
{
	if (t.n == 0)
		buf_char(out, '-');
	else
		buf_log_quoted(out, t);
}

/* A field that stands without quotes ends at a blank, so a blank in it is escaped too. */
static void
put_bare(struct buf *out, struct text t)
{
	struct text part;
	bool first = true;

	if (t.n == 0)
		buf_char(out, '-');
	while (text_next(&t, ' ', &part)) {
		if (!first)
			buf_str(out, "\\x20");
		buf_log_quoted(out, part);
		first = false;
	}
}

void
accesslog_line(struct buf *out, const struct access *a)
{
	put_bare(out, a->remote);
	buf_str(out, " - ");
	put_bare(out, a->user);
	buf_str(out, " [");
	buf_text(out, date_of(a->wall_s));
	buf_str(out, "] \"");
	put(out, a->line);
	buf_str(out, "\" ");
	buf_u64(out, (uint64_t)a->status);
	buf_char(out, ' ');
	buf_u64(out, a->bytes);
	buf_str(out, " \"");
	put(out, a->referer);
	buf_str(out, "\" \"");
	put(out, a->agent);
	buf_str(out, "\"\n");
}
