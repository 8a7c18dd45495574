/* server/handler/proxy_file.c -- names that an application gives: which file may be sent.
 *
 *   X-Sendfile: PATH                 --> below a directory of proxy-core.x-sendfile-docroot
 *   X-LIGHTTPD-send-tempfile: PATH   --> below a directory of proxy-core.x-sendfile-tempdir
 *   X-Accel-Redirect: URI            --> routed as a request of a client, see proxy_rewrite.c
 *
 * Without proxy-core.x-sendfile-docroot a PATH is below the document root of the request: that of
 * its virtual host, but not the target of an alias.  An alias is reached by its URI.
 *
 * A name is only compared here.  IO_BENEATH keeps ".." and links inside the directory when the
 * file is opened.
 */
#include <errno.h>

#include "base/arena.h"
#include "base/log.h"
#include "files/root.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/request.h"
#include "server/handler/counters.h"
#include "wire/urlpath.h"
#include "server/request/route.h"
#include "server/request/client.h"
#include "server/handler/cgi.h"
#include "server/handler/proxy_impl.h"

/* True: the document root of this request is not server.document-root. */
static bool
has_own_root(struct request *r, struct place *root)
{
	return (route_place(r, TEXT("/"), root) == 0 && root->scope != r->site->docroot);
}

/* A name below the directory of a virtual host.  0, or the status for the client. */
static int
resolve_in_place(struct request *r, const struct place *at, struct text path,
    struct proxy_named *out)
{
	if (path.n <= at->dir.n + 1 || !text_starts(path, at->dir) || path.p[at->dir.n] != '/' ||
	    urlpath_has_steps(path))
		return (403);
	text_take(&path, at->dir.n);
	while (path.n > 1 && path.p[1] == '/')
		text_take(&path, 1);
	out->scope = at->scope;
	out->rest = place_name(r, at, path);
	return (out->rest.p != NULL ? 0 : 500);
}

#define BAD_ESCAPE        "a % in it begins no byte of a name: write %25 for %"
#define BAD_ESCAPE_OR_RAW BAD_ESCAPE ", or set proxy-core.x-sendfile-decode = \"disable\""

/* The directories of a control header. */
struct send_file_list {
	const struct send_file_root *v;
	size_t n;
	bool of_host; /* the configuration names none: the document root of the virtual host */
};

static struct send_file_list
roots_of(const struct relay *rl, enum control c)
{
	const struct site *s = rl->r->site;
	const struct conf *conf = rl->r->conf;
	bool vhost = s->modules.nplace != 0;

	if (controls[c].allowed == CONTROL_BY_TEMPDIR)
		return ((struct send_file_list){ s->temp_file_roots, s->ntemp_file_roots, false });
	if (rl->program)
		return ((struct send_file_list){ s->cgi_roots, s->ncgi_roots,
		    vhost && conf->cgi_x_sendfile_root.n == 0 });
	return ((struct send_file_list){ s->send_file_roots, s->nsend_file_roots,
	    vhost && conf->proxy_x_sendfile_root.n == 0 });
}

/* Copies the name to dst, which has room for the name and a NUL.  0, or the status for the client;
 * then *why may be a better reason. */
static int
resolve_path(const struct relay *rl, enum control c, struct text path, char *dst,
    struct proxy_named *out, const char **why)
{
	struct send_file_list roots = roots_of(rl, c);
	struct request *r = rl->r;
	struct place own;
	size_t i;
	int len = (int)path.n;

	if (r->conf->proxy_x_sendfile_decode || controls[c].value == CONTROL_PIECES)
		len = urlpath_decode(path, dst);
	else
		memcpy(dst, path.p, path.n);
	if (len < 0) {
		*why = controls[c].value == CONTROL_PIECES ? BAD_ESCAPE : BAD_ESCAPE_OR_RAW;
		return (403);
	}
	dst[len] = '\0';
	if (dst[0] != '/') {
		*why = "it does not begin with /";
		return (403);
	}
	if (cgi_is_beside(r, (struct text){ dst, (size_t)len }))
		return (403);
	if (roots.of_host && has_own_root(r, &own))
		return (resolve_in_place(r, &own, (struct text){ dst, (size_t)len }, out));
	for (i = 0; i < roots.n; i++) {
		if (!root_tail(roots.v[i].root, (struct text){ dst, (size_t)len }, &out->rest))
			continue;
		out->root = roots.v[i].root;
		out->scope = roots.v[i].scope;
		return (0);
	}
	return (403);
}

#define BAD_STEPS "it has an encoded slash, a backslash, or leads above the document root by .."

/* A URI path below the document root; the query is not a part of it. */
static int
resolve_uri(struct request *r, struct text uri, char *dst, struct proxy_named *out,
    const char **why)
{
	const char *query = memchr(uri.p, '?', uri.n);
	int n;

	if (query != NULL)
		uri.n = (size_t)(query - uri.p);
	n = urlpath_clean(uri, dst);
	if (n < 1) {
		*why = uri.n == 0 || uri.p[0] != '/' ? "it does not begin with /"
		       : n == -EINVAL                ? BAD_ESCAPE
						     : BAD_STEPS;
		return (403);
	}
	out->rest = (struct text){ dst + 1, (size_t)n - 1 };
	out->scope = r->site->docroot;
	return (0);
}

void
proxy_name_refused(const struct relay *rl, enum control c, struct text name, const char *why)
{
	log_limited(10, LOG_WARN, conn_id(rl->r), "sendfile.refused",
	    LF_TEXT("url", rl->r->http.target), LF_STR("backend", exchange_backend(rl->ex)),
	    LF_TEXT("header", controls[c].name), LF_TEXT("path", name), LF_STR("why", why),
	    conn_client(rl->r));
}

static const char *
why_refused(const struct relay *rl, enum control c)
{
	if (controls[c].value == CONTROL_URI)
		return ("no path below the document root");
	if (controls[c].allowed == CONTROL_BY_TEMPDIR)
		return ("not below proxy-core.x-sendfile-tempdir");
	return (rl->program
		    ? "not below cgi.x-sendfile-docroot or the document root, or beside a program"
		    : "not below proxy-core.x-sendfile-docroot or the document root");
}

int
proxy_name(const struct relay *rl, enum control c, struct text name, struct proxy_named *out)
{
	struct request *r = rl->r;
	char *copy = arena_get(&r->arena, name.n + 1);
	const char *why = why_refused(rl, c);
	int status;

	*out = (struct proxy_named){ .rest = TEXT_NONE };
	if (copy == NULL)
		return (500);
	if (controls[c].value == CONTROL_URI)
		status = resolve_uri(r, name, copy, out, &why);
	else
		status = resolve_path(rl, c, name, copy, out, &why);
	if (status == 0 && memchr(out->rest.p, '\0', out->rest.n) != NULL)
		status = 403;
	if (status == 0 && controls[c].value != CONTROL_URI && reply_excludes(r, out->rest)) {
		why = "static-file.exclude-extensions or cgi.assign has its ending";
		status = 403;
	}
	if (status == 403)
		proxy_name_refused(rl, c, name, why);
	return (status);
}

void
proxy_send_file(struct relay *rl, const struct proxy_reply *p, enum control c)
{
	struct request *r = rl->r;
	struct proxy_named to;
	int status;

	count(r->worker->counts.handler, sendfile_headers);
	rl->extra.status = p->status;
	rl->extra.lines = proxy_lines(rl, p, &rl->extra);
	status = proxy_name(rl, c, p->control[c], &to);
	if (rl->extra.lines.p == NULL)
		status = 502;
	exchange_forget(&rl->ex, true);
	if (status != 0) {
		proxy_answer_error(rl, status);
		return;
	}
	if (r->http.verb != HTTP_HEAD)
		/* the reply is a file, also for a POST */
		r->http.verb = HTTP_GET;
	proxy_answer(rl, static_send(r, to.scope, to.rest, &rl->extra));
}
