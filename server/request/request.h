/* server/request/request.h -- the state of a connection while it works on requests; an idle connection has
 * none.
 *
 * Owner    the connection; the worker recycles it.  Handlers fill the body and call server/conn/conn.h.
 */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/client_addr.h"
#include "base/list.h"
#include "base/rate.h"
#include "base/unique.h"
#include "io/body.h"
#include "io/io.h"
#include "io/sender.h"
#include "wire/http1/http1.h"
#include "files/lookup.h"

struct conf;
struct file_entry;
struct file_scope;
struct meters;
struct proxy_field;
struct reply_extra;
struct root;
struct site;
struct worker_base;
struct auth_try;
struct conn;
struct listing; /* server/module/dirlisting.c */
struct relay;   /* server/handler/proxy_impl.h */
struct spool;
struct status_wait;
struct upstream;

enum fault_cause {
	FAULT_NONE,
	FAULT_APPLICATION,
	FAULT_FILE,
	FAULT_DESCRIPTORS,
	FAULT_MEMORY,
	FAULT_OTHER
};

#define REQUEST_ARENA 2048
#define VHOST_TOLD    4u /* directories that one request may ask for, see server/module/vhost.h */

/* Where the path of a request lies in the file system: DIR + path.
 *
 *   scope  /srv/hosts                            an open directory
 *   below  www.example.com/htdocs/               below it; empty if dir is the scope's
 *   dir    /srv/hosts/www.example.com/htdocs
 *   path   /a/b
 */
struct place {
	struct file_scope *scope;
	/* What stands in front of path in a look-up below the scope; see IO_LINKS in io/io.h. */
	struct text below;
	struct text dir; /* without a slash at its end, so "/" stays */
	/* begins with a slash, NUL behind it; the path of the URL, or in the arena */
	struct text path;
};

/* Two parts.  The second one is all zero when a head begins: request_reset() clears it at once, so a
 * field cannot be forgotten.  The first one has an owner that sets it. */
struct request {
	struct conn *conn;
	struct worker_base *worker;
	const struct conf *conf; /* request_use() */
	struct site *site;
	struct http_request http; /* the parser sets all of it */
	union io_addr client; /* whose request this is: the peer, or what a trusted proxy said */
	bool https;           /* the client used TLS, to a proxy in front */
	uint64_t started_ns;  /* time at which the last head was complete */
	/* Replies that wait to be sent, also of earlier requests. */
	struct body body;
	struct sender sender;
	struct request_share { /* server.kbytes-per-second-per-address; server/module/rate.c */
		struct pace_share rate;
		struct meters *meters;
		struct client_addr client;
	} share; /* as long as sender.turns */
	struct arena arena;
	struct list link; /* in the worker's free list */
	char lent[REQUEST_ARENA];

	char zeroed[0]; /* ---- from here on: of one request */

	struct text head; /* the bytes that http was parsed from */
	bool head_lent;   /* these bytes are in a lent buffer, not in the arena */
	char *path;       /* decoded and clean, with a NUL behind it; in the arena */
	size_t path_len;
	struct place place;
	/* Up to here, place.path is a file; the rest is PATH_INFO.  0: not looked up. */
	size_t script_len;
	size_t probe_low, probe_high; /* server/conn/probe.c: a directory, and more than a file */
	struct {                      /* of a module, for the client */
		int status;
		struct text lines; /* of the head, or the URL of a redirect; in the arena */
	} refusal;
	struct { /* what the reply has without modules, while they add to its head */
		struct text lines, type;
	} given;
	const void *fields_added; /* the setenv.add-request-header that was applied; NULL: none */
	struct text user;         /* authenticated; in the arena; .n 0: none */
	struct {                  /* of server/module/vhost.c */
		const struct root *root;
		struct text name; /* to look up next, below root */
		int status;
		unsigned n;
		struct vhost_told { /* what was looked up for this request */
			const struct root *root;
			struct text name;
			int err;
			bool is_dir;
		} v[VHOST_TOLD];
	} vhost;
	/* The rules of auth.require that let it go on, the newest first: that of the URL, and that
	 * of a block of existing files.  NULL: none. */
	const void *auth_granted[2];
	struct auth_try *auth_try; /* while a thread checks or a timer runs */
	bool host_changed;         /* http.host is not the client's */
	/* The refusal that server.error-handler answers; 0: none. */
	int error_status;
	bool error_keeps; /* by server.error-handler-404: method and body are the client's */
	/* Of the last rewrite: path and query, encoded, in the arena; .p NULL: the path is another
	 * one, or has steps that r->path has not. */
	struct text target;
	enum { METERED_NOT, METERED_GOES, METERED_REFUSED } metered; /* by server/module/limits.c */
	unsigned rewrites;   /* how often url.rewrite-* changed it */
	bool rewritten_once; /* no further rewrite */
	bool is_file_known;  /* whether place.path is a file was asked for url.rewrite-* */
	unsigned reroutes;   /* how often a handler had it routed again */
	int status;          /* of the reply; 0: none yet */
	bool peeks;          /* earlier replies wait to be sent: its handler must not wait now */
	uint64_t sent;       /* bytes that the client took, without the current send */
	uint64_t body_bytes; /* bytes of the reply without its head */
	uint64_t received;   /* bytes of the request body so far */
	struct { /* server/conn/slow.c: the last look at it, and how far it was behind */
		uint64_t at_ns, seen, behind_ns;
	} slow;
	/* The head of the reply, in the arena, if its site wants_head. */
	struct text replied_head;
	/* Fields X-LIGHTTPD-* of an application, which are for the log only; likewise. */
	struct text log_fields;
	bool cold;       /* the request waited for the file system */
	struct {         /* server/request/fault.h */
		int err; /* of its look-up; 0: none failed */
		bool started, opened, told;
		/* Why the server answers with 5xx; it stays if an error handler answers. */
		enum fault_cause cause;
	} fault;
	/* look-up of a file */
	struct lookup_wait wait;
	struct {
		struct list link;
		struct listing *of; /* the page that it waits for; NULL: none */
	} listing;
	struct file_scope *scope; /* of the running look-up */
	struct text lookup;       /* path below the scope; in the arena */
	unsigned index_try;       /* index files tried so far */
	struct text index;        /* path of the URL that the running look-up tries; in the arena */
	bool by_index;            /* the path is that of an index file that was found */
	const struct reply_extra *extra;
	const struct reply_extra *carried; /* of X-Accel-Redirect, for the file that it names */
	struct io_stamps open; /* of the op that opened the file, if this request waited for it */
	struct { /* a request that waits for a compressed form; server/module/deflate.h */
		struct list link;
		struct file_entry *entry; /* counted while it waits, also for a sibling */
		unsigned sibling;         /* the one that is looked up */
	} deflate;
	/* request body */
	int64_t body_left; /* -1: chunked */
	bool streams;      /* the body goes to the handler while it arrives */
	uint64_t streamed; /* bytes of it so far */
	struct http1_chunked chunked;
	struct spool *upload; /* body for an application; NULL: none */
	/* Reply bytes of an application that the client has not read yet; NULL: none. */
	struct spool *kept;
	struct relay *relay; /* in the arena; NULL: not proxied */
	/* The authorizer that let it go on, and variables for the application; in the arena. */
	const struct upstream *granted;
	const struct proxy_field *variables;
	size_t nvariables;
	struct text pinned; /* the backend that X-Rewrite-Backend named; .p NULL: none */
	uint64_t proxy_queue_ns, proxy_ns;
	struct text backend; /* that was asked last; .p NULL: none; in the arena */
	struct text id;      /* of request_id(); .p NULL: nobody has asked yet */
	char made_id[UNIQUE_HEX];
	/* Of request_trace(): the trace id, .p NULL: not asked yet; and the field that it made. */
	struct text trace, traceparent;
	struct status_wait *status_wait; /* of server/handler/status.c */
	/* reply */
	struct sender_times times; /* but .hot begins as true */
};

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
/* Drops waiting bodies; no callback comes any more. */
void request_drop_spools(struct request *);

/* The path and query are not those that the client sent. */
static inline bool
request_is_changed(const struct request *r)
{
	return (r->reroutes != 0 || r->rewrites != 0);
}

static inline struct text
request_path(const struct request *r)
{
	return ((struct text){ r->path, r->path_len });
}

#endif
