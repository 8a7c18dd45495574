/* server/page.h -- the bodies of error and redirect pages: what happened, and what to do about it.
 *
 * Pure.  One HTML document of about a kilobyte: no script, nothing fetched from elsewhere.
 */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include "base/buf.h"
#include "base/text.h"

void page_error(struct buf *out, int status, struct text detail); /* detail is escaped here; may be empty */
void page_redirect(struct buf *out, int status, struct text location);

#endif
