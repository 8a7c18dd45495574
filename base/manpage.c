/* base/manpage.c -- writes one text as roff or as plain lines. */
#include <string.h>

#include "base/manpage.h"

#define TEXT_WIDTH 78
#define INDENT     8

/* roff gives a meaning to a backslash, and to a dot or quote at the start of a line. */
static void
roff_text(struct buf *out, const char *s)
{
	if (*s == '.' || *s == '\'')
		buf_str(out, "\\&");
	for (; *s != '\0'; s++) {
		if (*s == '\\')
			buf_str(out, "\\e");
		else if (*s == '-')
			buf_str(out, "\\-");
		else
			buf_char(out, *s);
	}
}

void
manpage_fill(struct buf *out, unsigned indent, const char *s)
{
	size_t col = 0, n;

	while (*s != '\0') {
		n = strcspn(s, " ");
		if (col == 0 || col + 1 + n > TEXT_WIDTH - indent) {
			buf_printf(out, "%s%*s", col > 0 ? "\n" : "", (int)indent, "");
			col = 0;
		} else {
			buf_char(out, ' ');
			col++;
		}
		buf_add(out, s, n);
		col += n;
		s += n;
		s += strspn(s, " ");
	}
	buf_char(out, '\n');
}

void
manpage_title(struct manpage *p, const char *name, const char *section)
{
	if (p->roff)
		/* the names of a long option fill a line that nothing can adjust */
		buf_printf(p->out, ".TH %s %s \"\" \"stat-accel " STAT_ACCEL_VERSION "\"\n.ad l\n",
		    name, section);
	else
		buf_printf(p->out, "%s(%s)\n", name, section);
}

static void
heading(struct manpage *p, const char *s)
{
	buf_printf(p->out, p->roff ? ".SH %s\n" : "\n%s\n", s);
}

static void
para(struct manpage *p, const char *s)
{
	if (p->roff) {
		buf_str(p->out, ".PP\n");
		roff_text(p->out, s);
		buf_char(p->out, '\n');
	} else
		manpage_fill(p->out, INDENT, s);
}

void
manpage_item(struct manpage *p, const char *term)
{
	if (p->roff) {
		buf_str(p->out, ".TP\n\\fB"); /* .B would remove the quotes */
		roff_text(p->out, term);
		buf_str(p->out, "\\fR\n");
	} else
		buf_printf(p->out, "\n    %s\n", term);
}

void
manpage_text(struct manpage *p, const char *s)
{
	if (*s == '\0')
		return;
	if (p->roff) {
		roff_text(p->out, s);
		buf_str(p->out, "\n.br\n");
	} else
		manpage_fill(p->out, INDENT, s);
}

static void
example_line(struct manpage *p, const char *s)
{
	if (p->roff)
		roff_text(p->out, s);
	else
		buf_printf(p->out, "%*s%s", INDENT, "", s);
	buf_char(p->out, '\n');
}

static void
example_edge(struct manpage *p, bool begins)
{
	buf_str(p->out, !p->roff ? "\n" : begins ? ".PP\n.nf\n" : ".fi\n");
}

static void
end_of_text(struct manpage *p, struct buf *b, bool item)
{
	if (b->n == 0)
		return;
	buf_char(b, '\0');
	(item ? manpage_text : para)(p, b->p);
	b->n = 0;
}

static void
put_marked(struct manpage *p, char mark, const char *s)
{
	if (mark == '#')
		heading(p, s);
	else if (mark == '=')
		manpage_item(p, s);
	else
		example_line(p, s);
}

/* The text ends with '\n', so the last line is empty and ends a paragraph or an example. */
const char *
manpage_marked(struct manpage *p, const char *text)
{
	struct text rest = text_of(text), line;
	bool example = false, item = false;
	char mark = '\0';
	struct buf b;

	buf_init(&b, 0);
	while (mark != '@' && text_next(&rest, '\n', &line)) {
		mark = line.n > 1 && line.p[1] == ' ' && strchr("#=|@", line.p[0]) != NULL
			   ? line.p[0]
			   : '\0';
		if (mark != '\0' || line.n == 0)
			end_of_text(p, &b, item);
		if (example != (mark == '|'))
			example_edge(p, example = !example);
		if (mark == '\0' && line.n != 0) {
			buf_str(&b, b.n != 0 ? " " : "");
			buf_text(&b, line);
		} else if (mark != '\0' && mark != '@') {
			item = mark == '=';
			buf_add(&b, line.p + 2, line.n - 2);
			buf_char(&b, '\0');
			put_marked(p, mark, b.p);
			b.n = 0;
		}
	}
	buf_free(&b);
	return (rest.p);
}
