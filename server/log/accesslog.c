/* server/log/accesslog.c -- the combined log format.
 *
 * The same fields through accesslog_format.c are other bytes, which are those of lighttpd: there
 * all bytes from 0x7f on become \xHH with capital letters, and a tab is \t.  Here UTF-8 stays
 * readable, and blanks of a bare field are escaped. */
#include "server/log/accesslog.h"

/* "Sun, 06 Nov 1994 08:49:37 GMT" as "06/Nov/1994:08:49:37 +0000". */
static void
put_date(struct buf *out, const char *date)
{
	char text[] = "dd/mmm/yyyy:hh:mm:ss +0000";

	memcpy(text, date + 5, 20);
	text[2] = text[6] = '/';
	text[11] = ':';
	buf_str(out, text);
}

static void
put(struct buf *out, struct text t)
{
	if (t.n == 0)
		buf_char(out, '-');
	else
		buf_log_quoted(out, t);
}

/* A field without quotes ends at a blank, so blanks in it are escaped, too. */
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
	put_date(out, a->date);
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
