/* wire/codec/cgi_env.c -- see cgi_env.h */
#include <errno.h>
#include "base/buf.h"
#include "base/must.h"
#include "wire/codec/cgi_env.h"
#include "wire/codec/client_fields.h"
#include "wire/http1/headers.h"

#ifndef STAT_ACCEL_VERSION
#define STAT_ACCEL_VERSION "0"
#endif

#define NAME_MAX_BYTES 256

struct env {
	const struct proxy_request *req;
	cgi_put *put;
	void *arg;
	struct buf joined; /* the value being joined */
	struct fields fields;
	bool ours[VARIABLES_MAX]; /* variables of an authorizer that this server sets itself */
};

static bool
is_http(struct text name)
{
	return (text_starts(name, TEXT("HTTP_")));
}

/* An authorizer replaces what the client sent, not what this server knows.  The configuration
 * replaces both. */
static bool
replaced(struct env *e, struct text name)
{
	const struct proxy_request *r = e->req;
	size_t i;

	for (i = 0; i < r->nvariables; i++) {
		if (!text_eq(r->variables[i].name, name))
			continue;
		if (is_http(name) || r->variables[i].set)
			return (true);
		e->ours[i] = true;
	}
	return (false);
}

static void
put(struct env *e, struct text name, struct text value)
{
	if (!replaced(e, name))
		e->put(e->arg, name, value);
}

static void
put_variables(struct env *e)
{
	const struct proxy_request *r = e->req;
	size_t i;

	for (i = 0; i < r->nvariables; i++)
		if (!e->ours[i])
			e->put(e->arg, r->variables[i].name, r->variables[i].value);
}

static void
put_number(struct env *e, struct text name, uint64_t v)
{
	char digits[20];

	put(e, name, (struct text){ digits, text_put_u64(digits, v) });
}

static void
put_joined(struct env *e, struct text name)
{
	if (!e->joined.failed)
		put(e, name, buf_as_text(&e->joined));
}

static void
put_server(struct env *e)
{
	const struct proxy_request *r = e->req;
	size_t i;

	put(e, TEXT("GATEWAY_INTERFACE"), TEXT("CGI/1.1"));
	put(e, TEXT("SERVER_SOFTWARE"), TEXT("stat-accel/" STAT_ACCEL_VERSION));
	put(e, TEXT("SERVER_NAME"), r->server_name);
	put(e, TEXT("SERVER_ADDR"), r->server_addr);
	put_number(e, TEXT("SERVER_PORT"), r->server_port);
	put(e, TEXT("SERVER_PROTOCOL"), r->protocol);
	put(e, TEXT("REMOTE_ADDR"), r->remote_addr);
	put_number(e, TEXT("REMOTE_PORT"), r->remote_port);
	put(e, TEXT("REQUEST_SCHEME"), r->scheme);
	/* php-cgi requires it */
	put_number(e, TEXT("REDIRECT_STATUS"), r->redirect_status != 0 ? r->redirect_status : 200);
	if (text_eq(r->scheme, TEXT("https")))
		put(e, TEXT("HTTPS"), TEXT("on"));
	for (i = 0; i < r->ntls; i++)
		put(e, r->tls[i].name, r->tls[i].value);
}

static struct text
without_info(const struct proxy_request *r, struct text t)
{
	if (r->path_info.n > 0 && text_ends(t, r->path_info))
		t.n -= r->path_info.n;
	return (t);
}

static void
put_request(struct env *e)
{
	const struct proxy_request *r = e->req;
	struct text script = without_info(r, r->path);

	put(e, TEXT("REQUEST_METHOD"), r->method);
	put(e, TEXT("REQUEST_URI"), r->target);
	if (r->redirect_uri.n != 0)
		put(e, TEXT("REDIRECT_URI"), r->redirect_uri);
	put(e, TEXT("QUERY_STRING"), r->query);
	put(e, TEXT("DOCUMENT_ROOT"), r->docroot);
	put(e, TEXT("SCRIPT_FILENAME"),
	    r->info_in_filename ? r->script_filename : without_info(r, r->script_filename));
	if (r->authorizer)
		return; /* FastCGI 1.0, 6.3 */
	put(e, TEXT("SCRIPT_NAME"), script);
	/* Absent if it is empty, as from lighttpd: applications that test whether it exists then
	 * take the path from REQUEST_URI. */
	if (r->path_info.n > 0) {
		put(e, TEXT("PATH_INFO"), r->path_info);
		e->joined.n = 0;
		buf_text(&e->joined, r->docroot);
		buf_text(&e->joined, r->path_info);
		put_joined(e, TEXT("PATH_TRANSLATED"));
	}
	if (r->content_length >= 0)
		put_number(e, TEXT("CONTENT_LENGTH"), (uint64_t)r->content_length);
}

/* Joins all values of one name (RFC 9110, 5.3); cookies have another separator. */
static void
join(struct env *e, size_t first)
{
	const struct proxy_request *r = e->req;
	const char *sep =
	    first < r->nheaders && text_ieq(r->headers[first].name, TEXT("Cookie")) ? "; " : ", ";
	size_t i;

	e->joined.n = 0;
	for (i = first; i < r->nheaders; i = fields_next(&e->fields, i)) {
		if (e->joined.n > 0)
			buf_str(&e->joined, sep);
		buf_text(&e->joined, r->headers[i].value);
	}
}

static bool
passes(const struct env *e, size_t i)
{
	struct text name = e->req->headers[i].name;

	return (!e->fields.repeats[i] && name.n <= NAME_MAX_BYTES &&
		!text_ieq(name, TEXT("Content-Type")) &&
		client_field_passes(e->req, &e->fields, i));
}

/* name: a plain one */
static void
put_http(void *arg, struct text from, struct text value)
{
	char name[5 + NAME_MAX_BYTES] = "HTTP_";
	struct env *e = arg;
	size_t k;
	char c;

	for (k = 0; k < from.n; k++) {
		c = from.p[k];
		name[5 + k] = c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 0x20) : c;
	}
	put(e, (struct text){ name, 5 + k }, value);
}

static void
put_header(struct env *e, size_t i)
{
	const struct proxy_field *f = &e->req->headers[i];

	if (fields_next(&e->fields, i) == e->fields.n) {
		put_http(e, f->name, f->value);
		return;
	}
	join(e, i);
	if (!e->joined.failed)
		put_http(e, f->name, buf_as_text(&e->joined));
}

static void
put_headers(struct env *e)
{
	const struct proxy_request *r = e->req;
	bool typed = false;
	size_t i;

	for (i = 0; i < r->nheaders; i++) {
		if (passes(e, i))
			put_header(e, i);
		if (!typed && text_ieq(r->headers[i].name, TEXT("Content-Type"))) {
			put(e, TEXT("CONTENT_TYPE"), r->headers[i].value);
			typed = true;
		}
	}
}

struct proxy_request
cgi_for_routes(const struct proxy_request *r)
{
	struct proxy_request q = *r;

	if (r->path_is_split || r->path_info.n != 0)
		return (q);
	q.path_info = r->path;
	q.info_in_filename = true;
	return (q);
}

int
cgi_env(const struct proxy_request *r, cgi_put *to, void *arg)
{
	struct env e = { .req = r, .put = to, .arg = arg };
	bool failed;

	if (r->nheaders > FIELDS_MAX || r->nvariables > VARIABLES_MAX)
		return (-E2BIG);
	buf_init(&e.joined, 0);
	fields_index(&e.fields, r->headers, r->nheaders);
	put_server(&e);
	put_request(&e);
	put_headers(&e);
	failed = client_fields_write(r, &e.fields, put_http, &e) != 0 || e.joined.failed;
	put_variables(&e);
	buf_free(&e.joined);
	return (failed ? -ENOMEM : 0);
}
