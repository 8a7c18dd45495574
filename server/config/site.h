/* server/config/site.h -- made by a worker from one merged struct conf: scopes, tables, pools.
 *
 * Nothing is opened or read here, because a request waits.  server/config/resources.h has done it.
 *
 * Owner    the worker's conf_view; lives until its set of conditions was dropped and no request
 *          holds it.
 * Thread   the worker's; made at start for the global values, on first use for the values of
 *          conditions.
 */
#ifndef SERVER_CONFIG_SITE_H
#define SERVER_CONFIG_SITE_H

#include "base/text.h"
#include "base/timing.h"
#include "io/code/coder.h"
#include "server/module/rules.h"
#include "server/reply/style.h"

struct code_cache;
struct conf;
struct file_scope;
struct logfile;
struct rewrite;
struct root;
struct upstream;
struct worker_base;

struct send_file_root { /* a root for X-Sendfile */
	const struct root *root;
	struct file_scope *scope; /* NULL: of temporary files, which are not looked up */
};

struct site_root { /* a directory of a module */
	const struct root *root;
	struct file_scope *scope;
};

struct page { /* A constant error reply: the prepared part of the head, and the body. */
	struct text head, body;
};
#define PAGES 600

struct module; /* server/module/module.h */

#define SITE_MODULES_MAX 32u
struct site_modules { /* those that its settings use, in the order in which they run */
	unsigned nroute, nplaced, nplace, nhead, nedit;
	const struct module *route[SITE_MODULES_MAX];
	const struct module *place[SITE_MODULES_MAX];
	const struct module *placed[SITE_MODULES_MAX];
	const struct module *head[SITE_MODULES_MAX];
	const struct module *edit[SITE_MODULES_MAX];
	/* NULL: none */
	const struct module *form, *directory, *refused, *runs;
};

/* deflate.*, see server/module/deflate.h */
struct deflate {
	bool on; /* files may have compressed forms */
	uint8_t order[CODINGS], siblings[CODINGS];
	unsigned n, nsiblings;
	struct coder_conf conf[CODINGS];
	struct code_cache *cache; /* NULL: none */
	unsigned max_load;        /* hundredths; 0: any */
};

/* Who gets the id of a request: server.request-id and server.traceparent. */
#define IDS_APPLICATION 1u
#define IDS_CLIENT      2u
#define IDS_TRACE       4u

struct site {
	const struct conf *conf;
	struct worker_base *worker;
	struct file_scope *docroot;
	struct text docroot_dir; /* without a trailing slash */
	struct reply_style style;
	struct send_file_root *send_file_roots;
	size_t nsend_file_roots;
	struct send_file_root *cgi_roots; /* cgi.x-sendfile-docroot */
	size_t ncgi_roots;
	struct send_file_root *temp_file_roots;
	size_t ntemp_file_roots;
	struct site_root *roots; /* those that were asked for, see site_scope() */
	size_t nroots;
	struct upstream *upstream;   /* NULL: not proxied */
	struct upstream *authorizer; /* asked first; NULL: none */
	const struct rewrite *rewrite_request, *rewrite_response;
	unsigned forward;       /* FORWARD_*: what applications get about the client */
	unsigned ids;           /* IDS_* */
	struct logfile *access; /* NULL: none */
	bool wants_head;        /* a log shows parts of the heads of replies */
	bool debug;             /* a debug.log-* setting is on */
	enum timing_format timing;
	const struct page *pages; /* by status: those of server.errorfile-prefix; NULL: none */
	struct site_modules modules;
	struct deflate deflate;
	const void *rules[RULES + 1]; /* what settings were compiled to; NULL: not set */
};

int site_new(struct worker_base *, const struct conf *,
    struct site **); /* logs the mistake; -errno */
void site_free(struct site *);
/* The scope of an open directory, for the replies of this site; lives as long as the site. */
struct file_scope *site_scope(struct site *, const struct root *); /* NULL: no memory */
unsigned site_ids(const struct conf *);                            /* IDS_* */
/* Backends and pools of a block that has proxy-core.backends.  -ENOMEM. */
int site_upstream(struct worker_base *, int block, struct upstream **);

#endif
