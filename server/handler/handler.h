/* server/handler/handler.h -- who answers.
 *
 * start() either puts a whole reply into the request and returns HANDLED_REPLY, or returns HANDLED_LATER and calls
 * conn_replied() or conn_cut() later.  peek: only what needs no waiting, else HANDLED_NOT_NOW and nothing has happened.
 */
#ifndef SERVER_HANDLER_HANDLER_H
#define SERVER_HANDLER_HANDLER_H

#include "server/request.h"

enum handled { HANDLED_REPLY, HANDLED_LATER, HANDLED_NOT_NOW };

struct handler {
	const char *name;
	bool reads_body; /* takes the request body itself */
	enum handled (*start)(struct request *, bool peek);
	void (*stop)(struct request *); /* client is gone: no call back any more */
};

extern const struct handler handler_static, handler_proxy, handler_status;

bool status_is_at(const struct request *); /* its path is one of those that status.* name */

/* Looks lookup up beneath scope and replies with it as a file (extra: what an application said). */
enum handled static_send(struct request *, struct stat_scope *, struct text lookup, const struct reply_extra *, bool peek);
void static_stop(struct request *);

#endif
