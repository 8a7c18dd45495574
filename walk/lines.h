/* walk/lines.h -- lines out of bytes that come in pieces of any length.  Pure.
 *
 *	lines_add("one\ntw")  --> lines_next(): "one"
 *	lines_add("o\nthr")   --> lines_next(): "two"
 *	end of file           --> lines_last(): "thr"
 *
 * A line of max bytes or more is reported once, with its first bytes, and skipped to its end.
 */
#ifndef WALK_LINES_H
#define WALK_LINES_H

#include <glib.h>

#include "base/text.h"

struct lines {
	char end; /* '\n', or '\0' */
	size_t max;
	GString *rest; /* bytes that were not taken yet, from at on */
	size_t at;
	bool skipping; /* to the end of a line that is too long */
};

enum line_kind { LINE_NONE, LINE_WHOLE, LINE_TOO_LONG };

void lines_init(struct lines *, char end, size_t max);
void lines_free(struct lines *);
void lines_add(struct lines *, const char *p, size_t n);
/* The line without its end, until the next call. */
enum line_kind lines_next(struct lines *, struct text *line);
bool lines_last(struct lines *, struct text *line); /* the last line, if it has no end */

#endif
