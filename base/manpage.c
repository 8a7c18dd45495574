/* base/manpage.c -- one text, written as roff or as plain lines. */
#include <string.h>

#include "base/manpage.h"

#define TEXT_WIDTH 78
#define INDENT 8

/* A backslash, and a dot or quote at the start of a line, mean something to roff. */
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

static void
fill(struct buf *out, unsigned indent, const char *s)
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
		buf_printf(p->out, ".TH %s %s \"\" \"stat-accel " STAT_ACCEL_VERSION "\"\n", name, section);
	else
		buf_printf(p->out, "%s(%s)\n", name, section);
}

void
manpage_heading(struct manpage *p, const char *s)
{
	buf_printf(p->out, p->roff ? ".SH %s\n" : "\n%s\n", s);
}

void
manpage_para(struct manpage *p, const char *s)
{
	if (p->roff) {
		buf_str(p->out, ".PP\n");
		roff_text(p->out, s);
		buf_char(p->out, '\n');
	} else
		fill(p->out, INDENT, s);
}

void
manpage_item(struct manpage *p, const char *term)
{
	if (p->roff) {
		buf_str(p->out, ".TP\n\\fB");   /* .B would take the quotes away */
		roff_text(p->out, term);
		buf_str(p->out, "\\fR\n");
	} else
		buf_printf(p->out, "\n    %s\n", term);
}

void
manpage_said(struct manpage *p, const char *s)
{
	if (*s == '\0')
		return;
	if (p->roff) {
		roff_text(p->out, s);
		buf_str(p->out, "\n.br\n");
	} else
		fill(p->out, INDENT, s);
}

void
manpage_example(struct manpage *p, const char *const *lines)
{
	buf_str(p->out, p->roff ? ".PP\n.nf\n" : "\n");
	for (; *lines != NULL; lines++) {
		if (p->roff)
			roff_text(p->out, *lines);
		else
			buf_printf(p->out, "%*s%s", INDENT, "", *lines);
		buf_char(p->out, '\n');
	}
	buf_str(p->out, p->roff ? ".fi\n" : "\n");
}
