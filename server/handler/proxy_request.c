/* server/handler/proxy_request.c -- the request for an application. */
#include "base/address.h"
#include "base/must.h"
#include "io/tls/facts.h"
#include "proxy-core/exchange.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/config/check/rewrite.h"
#include "server/request/id.h"
#include "server/request/request.h"
#include "wire/codec/control.h"
#include "wire/http1/http1.h"
#include "wire/urlpath.h"
#include "server/request/route.h"

static bool
lists(struct text list, struct text name)
{
	struct text member;

	while (text_next(&list, ',', &member))
		if (text_ieq(text_trim(member), name))
			return (true);
	return (false);
}

bool
proxy_client_says(const struct request *r, struct text field, struct text member)
{
	size_t i;

	for (i = 0; i < r->http.nheaders; i++)
		if (text_ieq(r->http.headers[i].name, field) &&
		    lists(r->http.headers[i].value, member))
			return (true);
	return (false);
}

/* The first protocol of proxy-core.upgrade that the client offers. */
struct text
proxy_upgrade(const struct request *r)
{
	const struct conf_list *allowed = &r->conf->proxy_upgrade;
	size_t i;

	if (allowed->n == 0 || r->http.minor == 0 || r->http.verb != HTTP_GET || r->http.chunked ||
	    r->http.content_length > 0 ||
	    !proxy_client_says(r, TEXT("Connection"), TEXT("Upgrade")))
		return (TEXT_NONE);
	for (i = 0; i < allowed->n; i++)
		if (proxy_client_says(r, TEXT("Upgrade"), allowed->v[i]))
			return (allowed->v[i]);
	return (TEXT_NONE);
}

static struct text
host_only(struct text t)
{
	struct text host, port;

	return (address_cut(t, &host, &port) ? host : t);
}

/* If a rewrite fails, the original is not sent: the rewrite may exist to hide it. */
static struct text
rewritten(struct relay *rl, struct text name, struct text value)
{
	struct request *r = rl->r;
	struct text t = rewrite_value(r->site->rewrite_request, name, value, &r->arena);

	if (t.p == NULL && value.p != NULL) {
		route_undecided(r, "proxy-core.rewrite-request", name);
		rl->unusable = true;
	}
	return (t);
}

/* Appends a field of the request.  A value that a rule has made passes, whatever the field's
 * name. */
static void
add_field(struct relay *rl, struct proxy_field *f, size_t *n, struct text name, struct text value)
{
	struct text now = rewritten(rl, name, value);

	f[(*n)++] = (struct proxy_field){ name, now, now.p != value.p };
}

static bool
has_field(const struct proxy_field *f, size_t n, struct text name)
{
	size_t i = 0;

	while (i < n && !text_ieq(f[i].name, name))
		i++;
	return (i < n);
}

/* A rule sees an absent field as an empty value.  Rack's example for lighttpd 1.5 sets
 * X-Sendfile-Type so. */
static void
add_missing(struct relay *rl, struct proxy_field *f, size_t *n)
{
	const struct rewrite *rules = rl->r->site->rewrite_request;
	struct text name;
	size_t i;

	for (i = 0; (name = rewrite_name(rules, i)).p != NULL; i++) {
		if (rewrite_is_special(name) || has_field(f, *n, name))
			continue;
		add_field(rl, f, n, name, TEXT(""));
		if (f[*n - 1].value.n == 0)
			(*n)--;
	}
}

/* No rule sees the control headers of a client. */
static bool
fill_headers(struct relay *rl, struct proxy_request *q)
{
	struct request *r = rl->r;
	const struct rewrite *rules = r->site->rewrite_request;
	size_t i, n = 0, room = r->http.nheaders + 1u;
	struct proxy_field *f;

	for (i = 0; rewrite_name(rules, i).p != NULL; i++)
		room++;
	f = arena_get(&r->arena, room * sizeof(*f));
	if (f == NULL)
		return (false);
	for (i = 0; i < r->http.nheaders; i++) {
		const struct http_header *h = &r->http.headers[i];
		bool is_host = r->host_changed && text_ieq(h->name, TEXT("Host")),
		     is_ours = i >= (size_t)(r->http.nheaders - r->http.nours);

		if (header_is_control(h->name) && !is_ours)
			continue;
		add_field(rl, f, &n, h->name, is_host ? r->http.host : h->value);
		if (is_ours)
			f[n - 1].set = f[n - 1].ours = true;
	}
	/* The parser has put the authority of an absolute-form into Host; an HTTP/1.0 request may
	 * have no such field. */
	if (r->http.known[HH_HOST].p == NULL && r->http.host.p != NULL)
		add_field(rl, f, &n, TEXT("Host"), r->http.host);
	add_missing(rl, f, &n);
	q->headers = f;
	q->nheaders = n;
	return (true);
}

/* "127.0.0.1" and 8080, or "unix:/path" and 0 */
static void
fill_server(struct request *r, struct proxy_request *q)
{
	struct text name = conn_listener(r);
	struct address_parts a;
	const char *fault;
	bool has_host = address_read(name, &a, &fault) == 0 && a.path.p == NULL;

	q->server_addr = has_host ? a.host : name;
	q->server_port = a.port_number;
}

/* .p NULL: no memory */
static struct text
target_of(struct request *r, struct text path, struct text query)
{
	struct buf b;

	buf_init(&b, 0);
	buf_urlenc(&b, path);
	if (query.n != 0) {
		buf_char(&b, '?');
		buf_text(&b, query);
	}
	return (arena_take(&r->arena, &b));
}

/* The client's, without ".", ".." and encoded slashes: an application that keeps these in its path,
 * or takes one back over an empty segment, would serve a path other than the one that conditions
 * saw. */
static struct text
asked(struct request *r)
{
	struct text query = r->http.target;
	unsigned how = r->conf->url_checks & URLPATH_SLASHES;
	char *path;
	int n;

	if (!urlpath_has_steps(r->http.path) && (how == 0 || !urlpath_has_slashes(r->http.path)))
		return (r->http.target);
	path = arena_get(&r->arena, r->http.path.n + 1);
	if (path == NULL || (n = urlpath_clean_as(r->http.path, TEXT_NONE, how, path)) < 0)
		return (TEXT_NONE);
	text_take(&query, r->http.path.n + 1);
	return (target_of(r, (struct text){ path, (size_t)n }, query));
}

struct text
proxy_target(struct request *r)
{
	if (r->target.p != NULL)
		return (r->target);
	return (!request_is_changed(r) ? asked(r) : target_of(r, request_path(r), r->http.query));
}

/* The URI after all rewrites; empty if it equals the client's. */
static struct text
redirect_uri(struct relay *rl)
{
	struct text t = rewritten(rl, TEXT("_uri"), proxy_target(rl->r));

	return (t.p != NULL && text_eq(t, rl->req.target) ? TEXT("") : t);
}

/* The value that proxy-core.rewrite-request makes of from; empty if no rule changes it. */
static struct text
only_rewritten(struct relay *rl, struct text name, struct text from)
{
	struct text t = rewritten(rl, name, from);

	return (t.p != from.p ? t : TEXT(""));
}

/* What follows the script in the path, as it was looked up; or what a rule makes of the path. */
static struct text
path_info(struct relay *rl, struct text path)
{
	struct request *r = rl->r;
	struct text info = only_rewritten(rl, TEXT("_pathinfo"), path);
	size_t n = r->script_len != 0 ? r->place.path.n - r->script_len : 0;

	return (info.n != 0 || n > path.n ? info : (struct text){ path.p + path.n - n, n });
}

/* The script was looked up, or there is a rule for it, even one that does not match this path. */
static bool
is_split(const struct request *r)
{
	struct text name;
	size_t i;

	for (i = 0; (name = rewrite_name(r->site->rewrite_request, i)).p != NULL; i++)
		if (text_eq(name, TEXT("_pathinfo")))
			return (true);
	return (r->script_len != 0);
}

static bool
only_reads(const struct request *r)
{
	return (
	    r->http.verb == HTTP_GET || r->http.verb == HTTP_HEAD || r->http.verb == HTTP_OPTIONS);
}

/* RFC 9110, 9.2.2; those that applications know. */
static bool
may_run_twice(const struct request *r)
{
	return (only_reads(r) || text_eq(r->http.method, TEXT("PUT")) ||
		text_eq(r->http.method, TEXT("DELETE")) || text_eq(r->http.method, TEXT("TRACE")));
}

/* A POST without Content-Length has a body of no bytes (RFC 9112, 6.3); a GET without it has no
 * body. */
static int64_t
body_length(const struct request *r)
{
	if (r->upload != NULL)
		return ((int64_t)spool_added(r->upload));
	if (r->in.streams)
		return (r->in.left);
	return (r->http.content_length == 0 || !only_reads(r) ? 0 : -1);
}

/* proxy-core.strip-request-uri */
static struct text
stripped(const struct relay *rl, struct text target)
{
	const char *s = rl->r->conf->proxy_strip;
	struct text part = text_of(s != NULL ? s : "");

	while (part.n != 0 && part.p[part.n - 1] == '/')
		part.n--;
	if (target.p != NULL && part.n != 0 && text_starts(target, part) && target.n > part.n &&
	    target.p[part.n] == '/')
		text_take(&target, part.n);
	return (target);
}

/* Where no certificate is asked for, the one of the connection is none: authorities of another host
 * have signed it. */
static bool
fill_tls(struct request *r, struct proxy_request *q)
{
	const struct tls_facts *known = conn_facts(r);
	struct proxy_field *v;
	size_t n, i;

	if (known == NULL)
		return (true);
	n = r->conf->ssl_verify ? known->told : known->own;
	v = arena_get(&r->arena, n * sizeof(*v));
	if (v == NULL)
		return (false);
	for (i = 0; i < n; i++)
		v[i] = (struct proxy_field){ known->v[i].name, known->v[i].value };
	q->tls = v;
	q->ntls = n;
	return (true);
}

bool
proxy_fill(struct relay *rl, const struct upstream *to)
{
	struct request *r = rl->r;
	struct proxy_request *q = &rl->req;
	struct client_addr client;
	struct text root = rewritten(rl, TEXT("_docroot"), r->place.dir), path = request_path(r),
		    below = r->place.path;
	char *remote = arena_get(&r->arena, 64), *peer = arena_get(&r->arena, 64);

	if (root.p == NULL)
		return (false);
	if (root.p != r->place.dir.p)
		below = path; /* an application elsewhere does not know where an alias lies */
	/* A trailing slash stays: it tells the application that this is a directory. */
	q->script_filename = arena_join(&r->arena, root, below);
	q->id = arena_text(&r->arena, text_of(conn_id(r))).p;
	if (remote == NULL || peer == NULL || q->script_filename.p == NULL || q->id == NULL ||
	    !fill_headers(rl, q) || !fill_tls(r, q))
		return (false);
	q->client = r->sender.client;
	q->nobody = !conn_named_client(r, &client);
	q->method = r->http.method;
	q->target = stripped(rl, asked(r));
	q->path = rewritten(rl, TEXT("_scriptname"), path);
	q->query = r->http.query.p != NULL ? r->http.query : TEXT("");
	q->protocol = http_version(&r->http);
	q->host = r->http.host.p != NULL ? r->http.host : TEXT("");
	q->scheme = conn_scheme(r);
	q->docroot = root;
	q->redirect_uri = redirect_uri(rl);
	q->redirect_status = (unsigned)r->refused.status;
	q->path_info = path_info(rl, path);
	q->path_is_split = is_split(r);
	q->info_in_filename = r->conf->proxy_broken;
	q->remote_addr = conn_remote(r, remote);
	q->remote_port = conn_remote_port(r);
	q->variables = request_variables(r)->v;
	q->nvariables = request_variables(r)->n;
	q->peer_addr = conn_peer(r, peer);
	q->peer_trusted = conn_claims(r, &q->claims, &q->nclaims);
	q->forward = r->site->forward;
	if ((r->site->ids & IDS_APPLICATION) != 0)
		q->request_id = request_id(r);
	if ((r->site->ids & IDS_TRACE) != 0)
		q->traceparent = request_trace(r);
	q->server_name = q->host.n != 0                 ? host_only(q->host)
			 : r->conf->server_name != NULL ? text_of(r->conf->server_name)
							: TEXT("");
	fill_server(r, q);
	q->secret = upstream_secret(to);
	q->content_length = body_length(r);
	q->unsized = r->in.streams && r->in.left < 0;
	q->upgrade = proxy_upgrade(r);
	q->safe = q->content_length <= 0 && !q->unsized && only_reads(r);
	q->idempotent = may_run_twice(r);
	return (!rl->unusable && q->target.p != NULL && q->redirect_uri.p != NULL &&
		proxy_join_ours(rl));
}
