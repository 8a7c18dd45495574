/* server/module/module.h -- the everyday modules of lighttpd: each is a small file that changes a
 * request, says where its file lies, or adds to the head of its reply.
 *
 *   conditions --> route: rewrite, redirect, access ... --> place: alias, vhosts --> handler
 *                  |                                                     head of the reply <--'
 *                  `--> a handler of its own answers: refused, redirected, routed again
 *
 * A site has the list of modules that its settings use, in the order of modules.def, so a request
 * of a site without them pays one comparison for each stage.  server.modules does not change the
 * order.
 *
 * The bytes of a module in a request or a worker are slots of its file: server/request/slots.h.
 *
 * Thread   the worker's, except make() and free() of rules: at start and at reload.
 */
#ifndef SERVER_MODULE_MODULE_H
#define SERVER_MODULE_MODULE_H

#include "base/text.h"

struct buf;
struct conf;
struct file_entry;
struct handler;
struct request;
struct route_change;
struct site;

struct worker_base;

enum formed {
	FORMED_NOT,  /* the file is sent as it is */
	FORMED_SENT, /* the reply is complete */
	FORMED_LATER,
	FORMED_NOT_NOW, /* r->peeks; the entry is still the caller's */
};

struct module {
	const char *name; /* "access" is mod_access in server.modules */
	bool (*is_used)(const struct conf *);
	/* Each may be NULL.  None of them waits. */
	/* The conditions are decided, nothing is looked up.  Returns the handler that answers;
	 * NULL: the request goes on.  It runs again after route_again(). */
	const struct handler *(*route)(struct request *);
	/* Changes r->place.  0, or the status of a refusal. */
	int (*place)(struct request *);
	/* r->place is known, nothing is looked up.  As route(). */
	const struct handler *(*placed)(struct request *);
	/* Adds lines, each with CRLF, to the head of the reply.  e: the file that is sent, or
	 * NULL. */
	void (*head)(struct request *, int status, const struct file_entry *e, struct buf *lines);
	/* Removes lines of others from a finished part of the head; returns its new length. */
	size_t (*edit)(const struct request *, char *head, size_t n);
	/* ---- for server/handler/static.c; at most one module of a site has each */
	/* A file was found.  Takes the entry unless it is not answered. */
	enum formed (*form)(struct request *, struct file_entry *);
	/* A directory without an index file, which r->scope and r->lookup name. */
	enum handled (*directory)(struct request *, const struct file_entry *dir);
	/* The request is to be refused.  True: it has another target, and is routed again instead.
	 * The caller has released all it held. */
	bool (*refused)(struct request *, int status);
	/* Files of this name are run, not sent; named: an application names the file. */
	bool (*runs)(const struct conf *, struct text path, bool named);
	/* The client leaves before form() or directory() has answered; also called if neither
	 * was. */
	void (*stop)(struct request *);
	/* A site that uses the module has its rules; sets what it reads for each request. */
	void (*site_begin)(struct site *);
	void (*site_end)(
	    const struct site *); /* forgets what the module holds of it, used or not */
	/* The worker ends: no request is left.  Frees what a WORKER_SLOT holds, and may run the
	 * loop. */
	void (*worker_stop)(struct worker_base *);
};

void *rules_no_memory(char *err, size_t errsize); /* what make() returns then */

void modules_stop(struct worker_base *); /* before its cache of files ends */

/* The modules that a site uses, for each stage; s->conf and s->rules are set. */
void modules_of(struct site *s);
void modules_site_end(const struct site *);
/* True: the request is routed again instead of refused. */
bool modules_refused(struct request *, int status);
/* The client is gone, or another handler answers; form() and directory() will not. */
void modules_request_stop(struct request *);
/* The rest up to head_without() is in server/request/hooks.c: it names no module. */
const struct handler *modules_route(struct request *);
int modules_place(struct request *);
const struct handler *modules_placed(struct request *);
/* The lines of all modules, valid until the next call.  r->site may be NULL: none.  given, type:
 * what the reply has already, for reply_given(). */
struct text modules_head(struct request *, int status, const struct file_entry *e,
    struct text given, struct text type);
/* A field that the reply has without the modules; .p NULL: not there.  For head(). */
struct text reply_given(const struct request *, struct text name);
/* Parts of the head, on their way to the client: without the lines that modules replace.  The
 * second one copies if it must, valid until the next call; .p NULL: no memory. */
char *modules_edit(const struct request *, char *head, char *end);
struct text modules_edited(struct request *, struct text lines);

/* For edit(): removes whole lines by name from a part of a head; returns its new length. */
size_t head_without(char *head, size_t n, const struct text *names, size_t nnames);

/* ---- answers of modules */

/* Refuses the request.  lines: further header lines, each with CRLF, in the arena. */
const struct handler *module_refuses(struct request *, int status, struct text lines);
/* The module has changed the request; the conditions are evaluated anew. */
const struct handler *module_changed(struct request *, const struct route_change *);

#endif
