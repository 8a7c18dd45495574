/* server/request/request.h -- the state of a connection while it works on requests; an idle
 * connection has none.
 *
 * Owner    the connection; the worker recycles it.  Handlers fill the body and call
 *          server/request/client.h.
 */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/client_addr.h"
#include "base/list.h"
#include "io/body.h"
#include "io/io.h"
#include "io/sender.h"
#include "server/request/slots.h"
#include "wire/http1/http1.h"
#include "files/lookup.h"

struct conf;
struct file_entry;
struct file_scope;
struct proxy_field;
struct reply_extra;
struct root;
struct site;
struct worker_base;
struct conn;
struct spool;

#define REQUEST_ARENA 2048

/* Where the path of a request lies in the file system: DIR + path.
 *
 *   scope  /srv/hosts                            an open directory
 *   below  www.example.com/htdocs/               below it; empty if dir is the scope's
 *   dir    /srv/hosts/www.example.com/htdocs
 *   path   /a/b
 */
struct place {
	struct file_scope *scope;
	/* The directories between the scope and path in a look-up; see IO_LINKS in io/io.h. */
	struct text below;
	struct text dir; /* without a slash at its end, so "/" stays */
	/* begins with a slash, NUL after it; the path of the URL, or in the arena */
	struct text path;
};

/* Two parts.  The second one is all zero when a head begins: request_reset() clears it at once, so
 * a field cannot be forgotten.  The fields of the first one have an owner that sets them. */
struct request {
	struct conn *conn;
	struct worker_base *worker;
	const struct conf *conf; /* request_use() */
	struct site *site;
	struct http_request http; /* the parser sets all of it */
	union io_addr client; /* whose request this is: the peer, or what a trusted proxy said */
	bool https;           /* the client used TLS, to this server or to a proxy in front */
	uint64_t started_ns;  /* time at which the last head was complete */
	/* Replies that wait to be sent, also of earlier requests. */
	struct body body;
	struct sender sender;
	struct arena arena;
	struct list link; /* in the worker's free list */
	char lent[REQUEST_ARENA];

	char zeroed[0]; /* ---- from here on: of one request */

	struct text head; /* the bytes that http was parsed from */
	char *path;       /* decoded and clean, with a NUL after it; in the arena */
	size_t path_len;
	struct place place;
	/* Up to here, place.path is a file; the rest is PATH_INFO.  0: not looked up. */
	size_t script_len;
	struct text user; /* authenticated; in the arena; .n 0: none */
	/* Of the last rewrite: path and query, encoded, in the arena; .p NULL: the path has changed
	 * since, or has steps that r->path has not. */
	struct text target;
	unsigned changes;    /* how often path or query were replaced */
	unsigned reroutes;   /* of these, by handlers */
	unsigned steps;      /* handlers and look-ups that began, for server/conn/overdue.c */
	int status;          /* of the reply; 0: none yet */
	bool head_lent;      /* the bytes of head are in a lent buffer, not in the arena */
	bool host_changed;   /* http.host is not the client's */
	bool by_index;       /* the path names an index file that was found */
	bool peeks;          /* earlier replies wait to be sent: its handler must not wait now */
	bool cold;           /* the request waited for the file system */
	bool proxied;        /* an application was asked, see server/handler/proxy_impl.h */
	uint64_t sent;       /* bytes that the client took, without the current send */
	uint64_t body_bytes; /* bytes of the reply without its head */
	/* look-up of a file */
	struct lookup_wait wait;
	struct file_scope *scope; /* of the running look-up */
	struct text lookup;       /* path below the scope; in the arena */
	const struct reply_extra *extra;
	const struct reply_extra *carried; /* of X-Accel-Redirect, for the file that it names */
	struct io_stamps open; /* of the op that opened the file, if this request waited for it */
	struct {               /* what server.error-handler answers */
		int status;    /* of the refusal; 0: none */
		bool missing;  /* by server.error-handler-404: method and body stay */
	} refused;
	struct {                   /* the request body */
		int64_t left;      /* -1: chunked */
		uint64_t received; /* bytes so far */
		bool streams;      /* it goes to the handler while it arrives */
		uint64_t streamed; /* bytes of it so far */
		struct http1_chunked chunked;
	} in;
	struct spool *upload; /* body for an application; NULL: none */
	/* Reply bytes of an application that the client has not read yet; NULL: none. */
	struct spool *kept;
	struct sender_times times; /* all zero except .hot, which begins as true */

	/* Bytes of single files of server/; no other file names them: server/request/slots.h. */
	char slots[] __attribute__((aligned(SLOT_ALIGN)));
};

size_t request_bytes(void); /* with all slots */
/* A connection takes it: sets to zero, in the first part, what the sends of one client share. */
void request_taken(struct request *);
/* A new head: forgets all of the last request but the replies that wait to be sent. */
void request_reset(struct request *);
/* Copies the head to the arena.  Call it before waiting for anything. */
bool request_keep(struct request *);

/* Holds these values for the request, in place of the old ones; NULL: none. */
void request_use(struct request *, const struct conf *);
/* Sets a variable for applications; the texts live as long as the request.  False: no memory, or
 * VARIABLES_MAX. */
enum variable_rule {
	VARIABLE_DEFAULT, /* unless it is set */
	VARIABLE_REPLACE, /* but not a variable that the server makes itself */
	VARIABLE_SET,     /* by the configuration: also in place of one that the server makes */
};
bool request_variable(struct request *, struct text name, struct text value, enum variable_rule);
struct request_variables {
	const struct proxy_field *v; /* in the arena */
	size_t n;
};
const struct request_variables *request_variables(const struct request *);
/* Drops waiting bodies; no callback comes any more. */
void request_drop_spools(struct request *);

/* The path and query are not those that the client sent. */
static inline bool
request_is_changed(const struct request *r)
{
	return (r->changes != 0);
}

static inline struct text
request_path(const struct request *r)
{
	return ((struct text){ r->path, r->path_len });
}

#endif
