/* base/manpage.h -- a manual page, as roff for man(1) or as plain lines for a terminal.
 *
 * Who writes a page calls these in the order in which it is read.  Texts are plain: nothing in them means something
 * to roff.  Errors stand in .out, see base/buf.h.
 */
#ifndef BASE_MANPAGE_H
#define BASE_MANPAGE_H

#include "base/buf.h"

struct manpage {
	struct buf *out;
	bool roff;
};

void manpage_title(struct manpage *, const char *name, const char *section);
void manpage_heading(struct manpage *, const char *); /* "OPTIONS" */
void manpage_para(struct manpage *, const char *);
void manpage_item(struct manpage *, const char *term);  /* what follows by manpage_said() explains it */
void manpage_said(struct manpage *, const char *);      /* may be empty */
void manpage_example(struct manpage *, const char *const *lines); /* as they stand; ends with NULL */

#endif
