/* server/handler/handler.h -- the modules that answer requests.
 *
 * start() either puts a whole reply into the request and returns HANDLED_REPLY, or returns
 * HANDLED_LATER and calls conn_replied(), conn_route_again() or conn_end() later.  With
 * r->peeks it does only what needs no waiting; otherwise it changes nothing and returns
 * HANDLED_NOT_NOW.
 *
 * HANDLED_AGAIN: the handler has called route_again() (server/request/route.h) and has released all
 * it held.  The conditions are evaluated anew, and another handler may start.
 */
#ifndef SERVER_HANDLER_HANDLER_H
#define SERVER_HANDLER_HANDLER_H

#include "base/text.h"

struct conf;
struct file_entry;
struct file_scope;
struct reply_extra;
struct request;
struct upstream;
struct worker_base;

enum handled { HANDLED_REPLY, HANDLED_LATER, HANDLED_NOT_NOW, HANDLED_AGAIN };

/* Takes a request body while it arrives, and later the bytes of a tunnel. */
struct body_taker {
	bool (*wants)(const struct request *); /* or the body is collected */
	/* Bytes that it takes now; 0: conn_body_room() follows; SIZE_MAX: it drops all. */
	size_t (*room)(struct request *);
	void (*take)(struct request *, struct text bytes);
	void (*end)(struct request *);
	/* The rest of the body does not come.  status: for the client, if there is no reply yet. */
	void (*failed)(struct request *, int status);
};

struct handler {
	const char *name;
	bool reads_body;                /* the handler takes the request body itself */
	const struct body_taker *taker; /* NULL: bodies are collected */
	bool final;                     /* it does not depend on whether a file exists */
	/* Work for the client ends when the client leaves, also between two parts of the reply. */
	bool watches;
	bool before_body; /* the handler starts first: it routes again, or refuses and closes */
	enum handled (*start)(struct request *);
	void (*stop)(struct request *); /* the client is gone: no callback any more */
};

extern const struct handler handler_static, handler_index, handler_authorize, handler_proxy,
    handler_cgi, handler_status;

bool status_is_at(const struct request *); /* the path is one of the status.*-url settings */

/* Looks up lookup beneath scope and replies with the file (extra: headers of an application). */
enum handled static_send(struct request *, struct file_scope *, struct text lookup,
    const struct reply_extra *);
void static_stop(struct request *);

/* The pools of a block that has proxy-core.backends, or an authorizer: its sites share them.
 * -ENOMEM. */
int proxy_upstream(struct worker_base *, int block, bool authorizer, struct upstream **);

/* For status pages: the state of the exchange with an application, NULL if there is none; the name
 * of its backend, or "". */
const char *proxy_state(const struct request *);
const char *proxy_backend(const struct request *);
/* A client that sends no more counts as gone: proxy-core.abort-on-close, "tcp-fin-propagate". */
bool proxy_ends_with_client(const struct request *);
uint64_t proxy_progress_ns(const struct request *); /* 0 without an exchange */

#endif
