/* server/config/page.c -- see page.h */
#include "server/config/page.h"

#include <stdlib.h>

#include "base/buf.h"
#include "wire/http1/http1.h"

bool
page_make(struct page *page, int status, const char *type, struct text html)
{
	struct buf body, head;

	buf_init(&body, 0);
	buf_init(&head, 0);
	buf_text(&body, html);
	buf_printf(&head, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n", status,
	    http1_reason(status), type, body.n);
	if (body.failed || head.failed) {
		buf_free(&body);
		buf_free(&head);
		return (false);
	}
	page->head = buf_as_text(&head);
	page->body = buf_as_text(&body);
	return (true);
}

void
page_free(struct page *page)
{
	free((char *)page->head.p);
	free((char *)page->body.p);
}
