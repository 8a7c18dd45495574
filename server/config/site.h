/* server/config/site.h -- what a worker has made from one merged struct conf: scopes, tables and
 * pools; see server/route/sites.h.
 *
 * Owner    the worker's conf_view; lives until its set of conditions was dropped and no request
 *          holds it.
 * Thread   the worker's.
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
struct page; /* server/config/page.h */
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
	struct site_root *roots; /* those that were asked for, see reply_scope() */
	size_t nroots;
	struct upstream *upstream;   /* NULL: not proxied */
	struct upstream *authorizer; /* asked first; NULL: none */
	const struct rewrite *rewrite_request, *rewrite_response;
	unsigned forward;       /* FORWARD_*: what applications get about the client */
	unsigned ids;           /* IDS_* of server/request/id.h */
	struct logfile *access; /* NULL: none */
	bool wants_head;        /* a log shows parts of the heads of replies */
	bool debug;             /* a debug.log-* setting is on */
	enum timing_format timing;
	const struct page *pages; /* by status: those of server.errorfile-prefix; NULL: none */
	struct site_modules modules;
	struct deflate deflate;
	const void *rules[RULES + 1]; /* what settings were compiled to; NULL: not set */
};

#endif
