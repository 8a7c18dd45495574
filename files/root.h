/* files/root.h -- a directory, and the absolute names below it.
 *
 *   /srv/www is a link to /data/www    root_open("/srv/www/")
 *   /srv/www//a/b   --> a/b
 *   /data/www/a/b   --> a/b
 *   /srv/wwwroot/a  --> not below it
 *
 * A root has two names: as given, and without symbolic links.  Applications use either.  Only names
 * are compared: IO_BENEATH keeps ".." and links inside the directory.
 *
 * Errors   -errno of the directory that cannot be opened.
 * Thread   any; root_open() may block: at start and at reload.  root_tail() is pure.
 */
#ifndef FILES_ROOT_H
#define FILES_ROOT_H

#include <stdbool.h>
#include "base/text.h"

struct root {
	/* without a slash at the end, so "/" is empty; with a NUL after them */
	struct text name, real;
	int fd; /* for IO_OPEN; roots of the same directory share it */
};

int root_open(const char *dir, struct root *);
void root_close(struct root *);
/* True: path is below the root.  *tail is the rest, without leading slashes; empty for the root
 * itself. */
bool root_tail(const struct root *, struct text path, struct text *tail);

#endif
