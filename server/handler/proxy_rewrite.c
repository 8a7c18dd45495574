/* server/handler/proxy_rewrite.c -- X-Rewrite-URI, -Host, -Backend and X-Accel-Redirect: an
 * application hands its request to another part of the configuration.
 *
 *   reply --> the new URI and host pass the parser of client requests --> routed again, as a
 *             request for them, with the method and the fields of the client; X-Accel-Redirect:
 *             as a GET
 *
 * An application is an adversary: what a client could not ask for is refused with 502.  The backend
 * must be one that proxy-core.backends lists, so an application cannot make the server connect
 * anywhere.  The bytes of a request body are gone, so a request with a body is refused, too.
 */
#include "base/arena.h"
#include "base/log.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "server/handler/counters.h"
#include "wire/http1/headers.h"
#include "wire/http1/http1.h"
#include "wire/http1/scan.h"
#include "wire/urlpath.h"

static REQUEST_SLOT(struct text, pinned); /* the backend that X-Rewrite-Backend named */

static bool
asks(const struct proxy_reply *p)
{
	enum control c;

	for (c = 0; c < CONTROLS; c++)
		if (controls[c].asks == CONTROL_ROUTE && p->control[c].p != NULL)
			return (true);
	return (false);
}

static void
drop_others(const struct relay *rl, const struct proxy_reply *p)
{
	enum control c;

	for (c = 0; c < CONTROLS; c++)
		if (controls[c].asks != CONTROL_ROUTE && p->control[c].p != NULL)
			proxy_dropped(rl, controls[c].name, "the request is routed again");
}

/* ---- the new request */

/* Parses uri and host as the head of a client is parsed.  NULL, or why no client could send it. */
static const char *
parse(struct request *r, struct text uri, struct text host, struct http_request *h)
{
	struct text head = TEXT_NONE;
	const char *why = "no memory";
	struct buf b;
	size_t used = 0;
	int status;

	buf_init(&b, r->worker->global->max_head);
	buf_str(&b, "GET ");
	buf_text(&b, uri);
	buf_str(&b, " HTTP/1.1\r\nHost: ");
	buf_text(&b, host);
	buf_str(&b, "\r\n\r\n");
	if (b.failed)
		why = "it is longer than server.max-request-field-size";
	else
		head = arena_text(&r->arena, buf_as_text(&b));
	buf_free(&b);
	if (head.p == NULL)
		return (why);
	if (http1_head(head, r->worker->global->max_head, h, &used, &status, &why) != PARSE_DONE)
		return (why);
	return (used == head.n && h->nheaders == 1 ? NULL : "it holds more than a URI and a host");
}

/* Changes the request.  The parser may have put the host into *h. */
static const char *
change(struct request *r, const struct http_request *h, struct route_change *to)
{
	char *path = arena_get(&r->arena, h->path.n + 1);
	int n;

	if (path == NULL)
		return ("no memory");
	if ((n = urlpath_clean(h->path, path)) < 0)
		return ("its path leaves the root, or cannot be decoded");
	to->path = (struct text){ path, (size_t)n };
	to->query = h->query.p != NULL ? h->query : TEXT("");
	to->host = arena_text(&r->arena, h->host);
	return (to->host.p != NULL ? NULL : "no memory");
}

/* The URI without X-Rewrite-URI: the URI of the request as it is now. */
static struct text
uri_of(struct relay *rl, const struct proxy_reply *p)
{
	struct text uri = p->control[CONTROL_REWRITE_URI];

	return (uri.p != NULL ? uri : proxy_target(rl->r));
}

static const char *
new_request(struct relay *rl, const struct proxy_reply *p, struct route_change *to)
{
	struct text host = p->control[CONTROL_REWRITE_HOST];
	struct http_request *h = arena_get(&rl->r->arena, sizeof(*h));
	struct text uri = uri_of(rl, p);
	const char *why;

	if (host.p == NULL)
		host = rl->req.host;
	if (h == NULL || uri.p == NULL)
		return ("no memory");
	why = parse(rl->r, uri, host, h);
	return (why != NULL ? why : change(rl->r, h, to));
}

/* ---- routing again */

static bool
has_body(const struct request *r)
{
	return (r->in.left != 0 || r->in.streamed != 0 ||
		(r->upload != NULL && spool_added(r->upload) != 0));
}

static const char *
prepare(struct relay *rl, const struct proxy_reply *p, struct route_change *to)
{
	struct text backend = p->control[CONTROL_REWRITE_BACKEND];
	struct request *r = rl->r;

	if (has_body(r))
		return ("the request has a body, which this application has got already");
	*request_slot(r, pinned) = TEXT_NONE;
	if (backend.p != NULL) {
		*request_slot(r, pinned) = arena_text(&r->arena, backend);
		if (request_slot(r, pinned)->p == NULL)
			return ("no memory");
	}
	return (new_request(rl, p, to));
}

bool
proxy_rewrite(struct relay *rl, const struct proxy_reply *p)
{
	struct request *r = rl->r;
	struct route_change to = { .path = TEXT_NONE };
	const char *why;

	if (!r->conf->proxy_x_rewrite || !asks(p))
		return (false);
	drop_others(rl, p);
	why = prepare(rl, p, &to);
	if (why != NULL)
		log_limited(10, LOG_WARN, conn_id(r), "rewrite.refused",
		    LF_STR("backend", exchange_backend(rl->ex)), LF_TEXT("url", r->http.target),
		    LF_TEXT("uri", p->control[CONTROL_REWRITE_URI]),
		    LF_TEXT("host", p->control[CONTROL_REWRITE_HOST]), LF_STR("why", why),
		    conn_client(r));
	exchange_forget(&rl->ex, true);
	spool_drop(&r->upload);
	if (why != NULL) {
		proxy_answer_error(rl, 502);
	} else if (!route_again(r, &to)) {
		proxy_answer_error(rl, 500);
	} else {
		rl->over = rl->replied = true;
		relay_set(r, NULL);
		conn_route_again(r);
	}
	return (true);
}

/* ---- X-Accel-Redirect */

/* The part after '?'; .p NULL: it has bytes that a URL cannot have. */
static struct text
query_of(struct request *r, struct text uri)
{
	const char *q = memchr(uri.p, '?', uri.n);
	struct text t = TEXT("");

	if (q != NULL)
		t = (struct text){ q + 1, uri.n - (size_t)(q + 1 - uri.p) };
	return (skip_target(t.p, t.p + t.n) == t.p + t.n ? arena_text(&r->arena, t) : TEXT_NONE);
}

/* 0, or the status for the client. */
static int
redirect_to(struct relay *rl, const struct proxy_reply *p, enum control c, struct route_change *to)
{
	struct request *r = rl->r;
	const char *why = NULL;
	struct proxy_named named;
	int status;

	rl->extra.status = p->status;
	rl->extra.lines = proxy_lines(rl, p, &rl->extra);
	if (rl->extra.lines.p == NULL)
		return (502);
	status = proxy_name(rl, c, p->control[c], &named);
	if (status != 0)
		return (status);
	to->path = (struct text){ named.rest.p - 1, named.rest.n + 1 };
	to->query = query_of(r, p->control[c]);
	if (to->query.p == NULL)
		why = "its query has bytes that a URL cannot have";
	else if (r->in.left != 0)
		why = "the request body is still on its way";
	if (why != NULL)
		proxy_name_refused(rl, c, p->control[c], why);
	return (why != NULL ? 502 : 0);
}

/* The request goes on as a GET of its new URL: its body is gone. */
static void
goes_on_as_get(struct relay *rl)
{
	struct request *r = rl->r;

	spool_drop(&r->upload);
	if (r->http.verb != HTTP_HEAD) {
		r->http.verb = HTTP_GET;
		r->http.method = TEXT("GET");
	}
	rl->over = rl->replied = true;
	relay_set(r, NULL);
	conn_route_again(r);
}

/* A script is run, not sent, and an authorizer of the URI is asked.  A file gets the fields of this
 * reply.  The method becomes GET, because the application has read the request body. */
void
proxy_redirect(struct relay *rl, const struct proxy_reply *p, enum control c)
{
	struct request *r = rl->r;
	struct route_change to = { .path = TEXT_NONE };
	int status;

	count(r->worker->counts.handler, sendfile_headers);
	status = redirect_to(rl, p, c, &to);
	exchange_forget(&rl->ex, true);
	if (status == 0 && !route_again(r, &to))
		status = 500;
	if (status != 0) {
		proxy_answer_error(rl, status);
		return;
	}
	r->carried = &rl->extra;
	goes_on_as_get(rl);
}

/* ---- Location of a program */

static bool
is_local_redirect(const struct relay *rl, const struct proxy_reply *p)
{
	const struct proxy_field *f = p->headers;

	return (rl->r->conf->cgi_local_redir && !p->status_given && p->nheaders == 1 &&
		p->content_length <= 0 && text_ieq(f->name, TEXT("Location")) && f->value.n != 0 &&
		f->value.p[0] == '/' && !text_starts(f->value, TEXT("//")));
}

/* NULL, or why the client gets 502. */
static const char *
local_redirect_to(struct relay *rl, struct text uri, struct route_change *to)
{
	struct http_request *h = arena_get(&rl->r->arena, sizeof(*h));
	const char *why = "the request body is still on its way";

	if (h == NULL)
		return ("no memory");
	if (rl->r->in.left != 0)
		return (why);
	why = parse(rl->r, uri, rl->req.host, h);
	return (why != NULL ? why : change(rl->r, h, to));
}

bool
proxy_local_redirect(struct relay *rl, const struct proxy_reply *p)
{
	struct request *r = rl->r;
	struct route_change to = { .path = TEXT_NONE };
	const char *why;

	if (!is_local_redirect(rl, p))
		return (false);
	why = local_redirect_to(rl, p->headers[0].value, &to);
	if (why != NULL)
		log_limited(10, LOG_WARN, conn_id(r), "cgi.redirect-refused",
		    LF_TEXT("url", r->http.target), LF_TEXT("location", p->headers[0].value),
		    LF_STR("why", why), conn_client(r));
	exchange_forget(&rl->ex, true);
	if (why != NULL || !route_again(r, &to)) {
		proxy_answer_error(rl, why != NULL ? 502 : 500);
		return (true);
	}
	goes_on_as_get(rl);
	return (true);
}

/* ---- X-Rewrite-Backend */

bool
proxy_pin(struct request *r, unsigned *place)
{
	const struct conf_list *v = &r->conf->proxy_backends;
	size_t i;

	*place = 0;
	if (request_slot(r, pinned)->p == NULL)
		return (true);
	for (i = 0; i < v->n; i++)
		if (text_eq(v->v[i], *request_slot(r, pinned)))
			*place = (unsigned)i + 1;
	if (*place == 0)
		log_limited(10, LOG_WARN, conn_id(r), "rewrite.refused",
		    LF_TEXT("url", r->http.target), LF_TEXT("backend", *request_slot(r, pinned)),
		    LF_STR("why", "X-Rewrite-Backend is not a member of proxy-core.backends of "
				  "the block that answers"),
		    conn_client(r));
	return (*place != 0);
}
