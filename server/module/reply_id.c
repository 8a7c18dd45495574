/* server/module/reply_id.c -- server.request-id = ( "client" ): each reply has the id of its
 * request, and no other one, whatever an application says. */
#include "server/module/module.h"

#include "base/buf.h"
#include "server/request/id.h"

static const struct text name = TEXT("X-Request-ID");

static void
head_reply_id(struct request *r, int status, const struct file_entry *e, struct buf *lines)
{
	(void)status;
	(void)e;
	buf_text(lines, name);
	buf_str(lines, ": ");
	buf_text(lines, request_id(r));
	buf_str(lines, "\r\n");
}

static size_t
edit_reply_id(const struct request *r, char *head, size_t n)
{
	(void)r;
	return (head_without(head, n, &name, 1));
}

static bool
is_used(const struct conf *c)
{
	return ((request_ids(c) & IDS_CLIENT) != 0);
}

const struct module module_reply_id = {
	.name = "request-id",
	.is_used = is_used,
	.head = head_reply_id,
	.edit = edit_reply_id,
};
