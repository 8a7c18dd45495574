/* server/module/dirlisting_page.c -- see dirlisting_page.h */
#include "server/module/dirlisting_page.h"

#include <stdlib.h>
#include <time.h>

#include "base/must.h"

static const char css[] =
#include "server/module/dirlisting.css.inc"
    ;

/* ---- the order */

struct order {
	enum dirlisting_sort sort;
	bool down;
};

static int
compare(uint64_t a, uint64_t b)
{
	return (a < b ? -1 : a > b);
}

/* Directories come first in every order.  Equal ones are sorted by name. */
static int
by_order(const void *pa, const void *pb, void *arg)
{
	const struct dir_entry *a = pa, *b = pb;
	const struct order *o = arg;
	int c = 0;

	if (a->is_dir != b->is_dir)
		return (a->is_dir ? -1 : 1);
	if (o->sort == DIR_BY_SIZE && !a->is_dir)
		c = compare(a->size, b->size);
	else if (o->sort == DIR_BY_TIME)
		c = a->mtime < b->mtime ? -1 : a->mtime > b->mtime;
	if (c == 0)
		c = strcmp(a->name, b->name);
	return (o->down ? -c : c);
}

/* ---- parts */

/* In an encoding other than UTF-8 the bytes above 127 are characters that the browser knows. */
static void
put_name(struct buf *out, struct text encoding, struct text name)
{
	struct text one;

	if (text_ieq(encoding, TEXT("utf-8"))) {
		buf_html(out, name);
		return;
	}
	while (name.n != 0) {
		one = text_take(&name, 1);
		if ((unsigned char)one.p[0] >= 0x80)
			buf_text(out, one);
		else
			buf_html(out, one);
	}
}

static void
put_size(struct buf *out, uint64_t n)
{
	static const char units[] = "kMGTPE";
	uint64_t unit = 1000;
	size_t i = 0;

	buf_str(out, "<data value=");
	buf_u64(out, n);
	if (n < 1000) {
		buf_printf(out, ">%u B</data>", (unsigned)n);
		return;
	}
	while (n / unit >= 1000 && i + 2 < sizeof(units)) {
		unit *= 1000;
		i++;
	}
	buf_printf(out, ">%u.%u %cB</data>", (unsigned)(n / unit),
	    (unsigned)(n % unit / (unit / 10)), units[i]);
}

static void
put_time(struct buf *out, int64_t mtime)
{
	char machine[40], reader[40];
	time_t t = (time_t)mtime;
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL || tm.tm_year < 0 || tm.tm_year > 8099)
		return;
	strftime(machine, sizeof(machine), "%Y-%m-%dT%H:%M:%SZ", &tm);
	strftime(reader, sizeof(reader), "%Y-%m-%d %H:%M", &tm);
	buf_printf(out, "<time datetime=\"%s\">%s</time>", machine, reader);
}

static void
put_row(struct buf *out, const struct dirlisting_look *k, const struct dir_entry *e)
{
	const struct text name = { e->name, e->n };
	const char *slash = e->is_dir ? "/" : "";

	buf_str(out, "<tr><td><a href=\"");
	buf_urlenc(out, name);
	buf_printf(out, "%s\">", slash);
	put_name(out, k->encoding, name);
	buf_printf(out, "%s</a><td class=s>", slash);
	if (!e->is_dir && e->known)
		put_size(out, e->size);
	buf_str(out, "<td class=t>");
	if (e->known)
		put_time(out, e->mtime);
	buf_char(out, '\n');
}

/* A link that sorts by this column; it reverses the order if the page is sorted by it. */
static void
put_column(struct buf *out, const struct dirlisting_look *k, enum dirlisting_sort sort,
    const char *title, const char *word, const char *class)
{
	bool now = k->sort == sort;

	buf_printf(out, "<th%s>", class);
	if (!k->sorted) {
		buf_str(out, title);
		return;
	}
	buf_printf(out, "<a href=\"?sort=%s&amp;order=%s\">%s</a>%s", word,
	    now && !k->down ? "desc" : "asc", title,
	    !now      ? ""
	    : k->down ? " &darr;"
		      : " &uarr;");
}

static void
put_text(struct buf *out, const struct buf *bytes, bool encode)
{
	struct text t = buf_as_text(bytes), line;

	if (t.n == 0)
		return;
	if (!encode) {
		buf_text(out, t);
		return;
	}
	buf_str(out, "<pre>");
	while (text_next(&t, '\n', &line)) {
		buf_html(out, text_trim_cr(line));
		buf_char(out, '\n');
	}
	buf_str(out, "</pre>\n");
}

static void
put_top(struct buf *out, const struct dirlisting_look *k)
{
	buf_str(out, "<!doctype html><html lang=en><meta charset=\"");
	buf_html(out, k->encoding);
	buf_str(out, "\">\n<meta name=viewport content=\"width=device-width\">\n<title>");
	put_name(out, k->encoding, k->url);
	buf_str(out, "</title>\n");
	if (k->css.n != 0) {
		buf_str(out, "<link rel=stylesheet href=\"");
		buf_html(out, k->css);
		buf_str(out, "\">\n");
	} else
		buf_printf(out, "<style>\n%s</style>\n", css);
	buf_str(out, "<h1>");
	put_name(out, k->encoding, k->url);
	buf_str(out, "</h1>\n");
}

static void
put_bottom(struct buf *out, const struct dirlisting_look *k)
{
	if (k->footer.n != 0) {
		buf_str(out, "<footer class=foot>");
		buf_text(out, k->footer);
		buf_str(out, "</footer>\n");
	}
	if (k->js.n != 0) {
		buf_str(out, "<script src=\"");
		buf_html(out, k->js);
		buf_str(out, "\"></script>\n");
	}
	buf_str(out, "</html>\n");
}

static void
put_notes(struct buf *out, const struct dir_list *l)
{
	if (l->left_out != 0)
		buf_printf(out, "<p>%zu more entries are not shown.</p>\n", l->left_out);
	if (l->unread != 0)
		buf_printf(out,
		    "<p>Sizes and times of %zu entries are missing: the disk is slow.</p>\n",
		    l->unread);
}

void
dirlisting_page(struct buf *out, struct dir_list *l, const struct dirlisting_look *k)
{
	struct order order = { k->sort, k->down };
	size_t i;

	if (k->sorted && l->n != 0)
		qsort_r(l->entries, l->n, sizeof(*l->entries), by_order, &order);
	if (k->layout)
		put_top(out, k);
	put_text(out, &l->bytes[0], k->encode[0]);
	buf_str(out, "<table><thead><tr>");
	put_column(out, k, DIR_BY_NAME, "Name", "name", "");
	put_column(out, k, DIR_BY_SIZE, "Size", "size", " class=s");
	put_column(out, k, DIR_BY_TIME, "Changed (UTC)", "time", " class=t");
	buf_str(out, "</thead>\n<tbody>\n");
	if (k->url.n > 1)
		buf_str(out, "<tr><td><a href=\"../\">../</a><td class=s><td class=t>\n");
	for (i = 0; i < l->n; i++)
		put_row(out, k, &l->entries[i]);
	buf_str(out, "</tbody></table>\n");
	put_notes(out, l);
	put_text(out, &l->bytes[1], k->encode[1]);
	if (k->layout)
		put_bottom(out, k);
}
