/* server/config/site.h -- what a worker makes of one merged struct conf: scopes, tables, pools.
 *
 * Nothing is opened or read here, because a request waits: server/config/places.h has done it.
 *
 * Owner    the worker's conf_view; lives until its set of conditions has made room for another and no request holds it.
 * Thread   the worker's; built at start for the global values, on first use for the values of conditions.
 */
#ifndef SERVER_CONFIG_SITE_H
#define SERVER_CONFIG_SITE_H

#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/files/scope.h"

struct worker;

struct send_root { /* below which X-Sendfile may point */
	struct text dir;   /* as configured, no trailing slash */
	struct text real;  /* the same without symbolic links; of the places */
	struct stat_scope *scope;
};

struct page { /* an error reply that never changes: head up to what put_end() adds, and body */
	struct text head, body;
};
#define PAGES 600

enum timing_mode { TIMING_OFF, TIMING_LINE, TIMING_JSON };

struct site {
	const struct conf *conf;
	struct worker *worker;
	struct stat_scope *docroot;
	struct text docroot_dir; /* no trailing slash */
	struct file_style style;
	struct send_root *send_roots;
	size_t nsend_roots;
	struct upstream *upstream; /* NULL: not proxied */
	const struct rewrite *rewrite_request, *rewrite_response;
	struct logfile *access;    /* NULL: none */
	enum timing_mode timing;
	const struct page *pages;  /* by status: those of server.errorfile-prefix; NULL: none */
};

int site_new(struct worker *, const struct conf *, struct site **); /* logs what is wrong; -errno */
void site_free(struct site *);

#endif
