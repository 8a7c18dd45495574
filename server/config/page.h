/* server/config/page.h -- a constant error reply, made once: a file of server.errorfile-prefix, or
 * the built-in page.
 */
#ifndef SERVER_CONFIG_PAGE_H
#define SERVER_CONFIG_PAGE_H

#include <stdbool.h>
#include "base/text.h"

struct page {
	struct text head, body; /* the prepared part of the head */
};
#define PAGES 600 /* by status */

/* Makes a page of an HTML body, which is copied.  False: no memory. */
bool page_make(struct page *, int status, const char *type, struct text html);
void page_free(struct page *);

#endif
