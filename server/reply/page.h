/* server/reply/page.h -- the bodies of error and redirect pages: what happened, and what to do.
 *
 * Pure.  One HTML document of about a kilobyte, without scripts or further requests.
 */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include "base/buf.h"
#include "base/text.h"

void page_error(struct buf *out, int status);
void page_redirect(struct buf *out, int status, struct text location);

#endif
