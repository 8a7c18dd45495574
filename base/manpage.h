/* base/manpage.h -- a manual page, as roff for man(1) or as plain lines for a terminal.
 *
 * Texts are plain: roff markup in them is escaped.  Errors: .out has them, see base/buf.h.
 */
#ifndef BASE_MANPAGE_H
#define BASE_MANPAGE_H

#include "base/buf.h"

struct manpage {
	struct buf *out;
	bool roff;
};

void manpage_title(struct manpage *, const char *name, const char *section);

/* A text as in manual.txt of a program, whose lines end with '\n':
 *
 *	# HEADING
 *	A paragraph, which may have several lines.
 *
 *	Another one, after an empty line.
 *	= term
 *	What explains the term.
 *	| a line of an example
 *	@ the text stops here for what is made from a table
 *
 * Returns what follows the line with "@"; NULL after the last line.
 */
const char *manpage_marked(struct manpage *, const char *);

/* What is made from a table. */
void manpage_item(struct manpage *, const char *term);
void manpage_text(struct manpage *, const char *); /* explains the item; may be empty */

/* Appends plain lines of at most 78 columns, each after indent spaces. */
void manpage_fill(struct buf *, unsigned indent, const char *);

#endif
