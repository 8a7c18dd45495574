/* wire/codec/client_fields.c -- see client_fields.h */
#include <errno.h>

#include "base/buf.h"
#include "base/must.h"
#include "wire/codec/client_fields.h"
#include "wire/http1/headers.h"

#define LONGEST 64 /* more than any name below */

struct out {
	const struct proxy_request *req;
	const struct fields *fields;
	struct buf value; /* the value that is being written */
	client_field_put *put;
	void *arg;
};

/* The configuration has its own value for the application. */
static bool
is_ours(const struct fields *f, struct text name)
{
	size_t i = 0;

	while (i < f->n && !(f->v[i].ours && header_is_alike(f->v[i].name, name)))
		i++;
	return (i < f->n);
}

static void
put(struct out *o, struct text name, struct text value)
{
	if (!o->value.failed && !is_ours(o->fields, name))
		o->put(o->arg, name, value);
	o->value.n = 0;
}

/* Appends it to the value so far. */
static void
put_last(struct out *o, struct text name, struct text value)
{
	if (o->value.n != 0) {
		buf_text(&o->value, value);
		value = buf_as_text(&o->value);
	}
	put(o, name, value);
}

static struct text
peer_of(const struct proxy_request *r)
{
	return (r->peer_addr.n != 0 ? r->peer_addr : r->remote_addr);
}

static bool
is_named(const struct proxy_request *r, struct text name)
{
	return (text_is_one_of(name, r->claims, r->nclaims));
}

static bool
is_believed(const struct proxy_request *r, struct text name)
{
	return (r->peer_trusted && is_named(r, name));
}

/* All lines of a list that the peer sent, if it is believed; the next member follows. */
static void
begin_list(struct out *o, struct text name)
{
	size_t i;

	if (!is_believed(o->req, name))
		return;
	i = fields_find(o->fields, name);
	for (; i < o->fields->n; i = fields_next(o->fields, i)) {
		if (o->fields->v[i].value.n == 0 || !header_value_ok(o->fields->v[i].value))
			continue; /* a rewrite may have made a line break */
		buf_text(&o->value, o->fields->v[i].value);
		buf_str(&o->value, ", ");
	}
}

/* The host that the client asked for: a peer may have changed Host.  A client's own field comes
 * before that of the peer. */
static struct text
host_of(const struct out *o)
{
	static const struct text name = TEXT("X-Forwarded-Host");
	struct text host = o->req->host;
	size_t i;

	if (!is_believed(o->req, name))
		return (host);
	for (i = fields_find(o->fields, name); i < o->fields->n; i = fields_next(o->fields, i))
		if (header_value_ok(o->fields->v[i].value))
			host = o->fields->v[i].value;
	return (host);
}

static void
put_x(struct out *o)
{
	const struct proxy_request *r = o->req;

	begin_list(o, TEXT("X-Forwarded-For"));
	put_last(o, TEXT("X-Forwarded-For"), peer_of(r));
	put_last(o, TEXT("X-Forwarded-Proto"), r->scheme);
	put_last(o, TEXT("X-Forwarded-Host"), host_of(o));
	put_last(o, TEXT("X-Host"), r->host);
}

/* A node of RFC 7239, 6: only IPv4 addresses and words need no quotes. */
static void
add_node(struct out *o, struct text addr)
{
	if (addr.n != 0 && memchr(addr.p, ':', addr.n) != NULL) {
		buf_str(&o->value, "\"[");
		buf_text(&o->value, addr);
		buf_str(&o->value, "]\"");
	} else if (addr.n != 0 && byte_is_digit(addr.p[0]))
		buf_text(&o->value, addr);
	else
		buf_str(&o->value, "unknown");
}

/* No value of this server has a quote or a backslash: a Host with one is refused. */
static void
add_value(struct out *o, const char *name, struct text value)
{
	bool bare = header_is_token(value);

	if (value.n == 0 || memchr(value.p, '"', value.n) != NULL ||
	    memchr(value.p, '\\', value.n) != NULL)
		return;
	buf_char(&o->value, ';');
	buf_str(&o->value, name);
	buf_str(&o->value, bare ? "=" : "=\"");
	buf_text(&o->value, value);
	if (!bare)
		buf_char(&o->value, '"');
}

static void
put_standard(struct out *o)
{
	begin_list(o, TEXT("Forwarded"));
	buf_str(&o->value, "for=");
	add_node(o, peer_of(o->req));
	add_value(o, "host", o->req->host);
	add_value(o, "proto", o->req->scheme);
	put(o, TEXT("Forwarded"), buf_as_text(&o->value));
}

int
client_fields_write(const struct proxy_request *r, const struct fields *fields,
    client_field_put *to, void *arg)
{
	struct out o = { .req = r, .fields = fields, .put = to, .arg = arg };
	bool failed;

	buf_init(&o.value, 0);
	if ((r->forward & FORWARD_X) != 0)
		put_x(&o);
	if ((r->forward & FORWARD_STANDARD) != 0)
		put_standard(&o);
	if (r->request_id.n != 0)
		put(&o, TEXT("X-Request-ID"), r->request_id);
	if (r->traceparent.n != 0)
		put(&o, TEXT("traceparent"), r->traceparent);
	failed = o.value.failed;
	buf_free(&o.value);
	return (failed ? -ENOMEM : 0);
}

static bool
is_written(const struct proxy_request *r, struct text name)
{
	static const struct text x[] = { TEXT("X-Forwarded-For"), TEXT("X-Forwarded-Proto"),
		TEXT("X-Forwarded-Host"), TEXT("X-Host") };
	static const struct text trace[] = { TEXT("traceparent"), TEXT("tracestate") };

	return (((r->forward & FORWARD_X) != 0 && text_is_one_of(name, x, NELEM(x))) ||
		((r->forward & FORWARD_STANDARD) != 0 && text_ieq(name, TEXT("Forwarded"))) ||
		(r->request_id.n != 0 && text_ieq(name, TEXT("X-Request-ID"))) ||
		(r->traceparent.n != 0 && text_is_one_of(name, trace, NELEM(trace))));
}

/* Names that frameworks and proxies use for the client's address, scheme, host, port, certificate
 * or user, and for the URL that it asked for: an application that believes X-Original-URL serves
 * a path other than the one that conditions saw. */
static bool
is_claim(struct text name)
{
	static const struct text names[] = { TEXT("Forwarded"), TEXT("Forwarded-For"),
		TEXT("X-Host"), TEXT("X-Real-IP"), TEXT("X-Real-Port"), TEXT("X-Client-IP"),
		TEXT("Client-IP"), TEXT("True-Client-IP"), TEXT("X-Cluster-Client-IP"),
		TEXT("Cluster-Client-IP"), TEXT("WL-Proxy-Client-IP"), TEXT("Fly-Client-IP"),
		TEXT("X-Azure-ClientIP"), TEXT("X-Envoy-External-Address"),
		TEXT("X-Originating-IP"), TEXT("X-Original-Forwarded-For"), TEXT("X-Original-Host"),
		TEXT("X-Original-Proto"), TEXT("X-Original-URL"), TEXT("X-Original-URI"),
		TEXT("X-ProxyUser-Ip"), TEXT("X-Remote-Addr"), TEXT("X-Remote-IP"),
		TEXT("Remote-Addr"), TEXT("CF-Connecting-IP"), TEXT("CF-Connecting-IPv6"),
		TEXT("Fastly-Client-IP"), TEXT("Front-End-Https"), TEXT("X-Url-Scheme"),
		TEXT("X-Scheme"), TEXT("X-HTTPS"), TEXT("X-ARR-SSL"), TEXT("X-ARR-ClientCert"),
		TEXT("X-Client-Cert"), TEXT("X-Client-Verify"), TEXT("X-Remote-User"),
		TEXT("Remote-User") };
	static const struct text begins[] = { TEXT("X-Forward"), TEXT("X-SSL"), TEXT("SSL-") };
	size_t i;

	for (i = 0; i < NELEM(begins); i++)
		if (text_istarts(name, begins[i]))
			return (true);
	return (text_is_one_of(name, names, NELEM(names)));
}

/* Applications take '_' for '-', because both become '_' in a CGI variable. */
static struct text
with_dashes(struct text name, char dst[LONGEST])
{
	size_t i;

	if (name.n > LONGEST)
		name.n = LONGEST; /* no name is this long, but a prefix counts */
	if (memchr(name.p, '_', name.n) == NULL)
		return (name);
	for (i = 0; i < name.n; i++)
		dst[i] = name.p[i] == '_' ? '-' : name.p[i];
	return ((struct text){ dst, name.n });
}

bool
client_field_passes(const struct proxy_request *r, const struct fields *f, size_t i)
{
	char dst[LONGEST];
	struct text name = with_dashes(f->v[i].name, dst);

	if (!header_passes(f, i))
		return (false);
	if (f->v[i].ours)
		return (true);
	return (!is_written(r, name) &&
		(f->v[i].set || is_believed(r, name) || !(is_named(r, name) || is_claim(name))));
}
