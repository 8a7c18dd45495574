/* wire/codec/ajp13_request.c -- the forward request of AJP 1.3: one packet.
 *
 * The path goes as the client sent it.  A container decodes it again: a decoded path of "%252e"
 * would become a dot there.
 */
#include <errno.h>
#include "base/must.h"
#include "wire/codec/ajp13.h"
#include "wire/codec/client_fields.h"
#include "wire/http1/headers.h"

#define METHOD_STORED 0xff /* its name is an attribute */

enum attribute {
	ATTR_REMOTE_USER = 3,
	ATTR_AUTH_TYPE = 4,
	ATTR_QUERY_STRING = 5,
	ATTR_SSL_CERT = 7,
	ATTR_SSL_CIPHER = 8,
	ATTR_NAMED = 10,        /* a name and a value */
	ATTR_SSL_KEY_SIZE = 11, /* a number */
	ATTR_SECRET = 12,
	ATTR_METHOD = 13,
	ATTR_END = 0xff
};

/* The first one is number 1. */
static const struct text methods[] = { TEXT("OPTIONS"), TEXT("GET"), TEXT("HEAD"), TEXT("POST"),
	TEXT("PUT"), TEXT("DELETE"), TEXT("TRACE"), TEXT("PROPFIND"), TEXT("PROPPATCH"),
	TEXT("MKCOL"), TEXT("COPY"), TEXT("MOVE"), TEXT("LOCK"), TEXT("UNLOCK"), TEXT("ACL"),
	TEXT("REPORT"), TEXT("VERSION-CONTROL"), TEXT("CHECKIN"), TEXT("CHECKOUT"),
	TEXT("UNCHECKOUT"), TEXT("SEARCH"), TEXT("MKWORKSPACE"), TEXT("UPDATE"), TEXT("LABEL"),
	TEXT("MERGE"), TEXT("BASELINE-CONTROL"), TEXT("MKACTIVITY") };

static const struct text headers[] = { TEXT("Accept"), TEXT("Accept-Charset"),
	TEXT("Accept-Encoding"), TEXT("Accept-Language"), TEXT("Authorization"), TEXT("Connection"),
	TEXT("Content-Type"), TEXT("Content-Length"), TEXT("Cookie"), TEXT("Cookie2"), TEXT("Host"),
	TEXT("Pragma"), TEXT("Referer"), TEXT("User-Agent") };

struct packet {
	struct buf *out;
	size_t start;
	uint16_t nheaders;
	bool broken; /* a value has a control character */
};

static void
put_string(struct packet *p, struct text t)
{
	if (t.n > AJP13_PACKET_MAX) { /* the format has no such length */
		p->out->failed = true;
		return;
	}
	if (!header_value_ok(t))
		p->broken = true;
	ajp13_u16(p->out, t.n);
	buf_text(p->out, t);
	buf_char(p->out, '\0');
}

/* Number of a method, or METHOD_STORED.  Methods distinguish upper and lower case. */
static unsigned
method_code(struct text method)
{
	unsigned i;

	for (i = 0; i < NELEM(methods); i++)
		if (text_eq(methods[i], method))
			return (i + 1);
	return (METHOD_STORED);
}

static void
put_name(struct packet *p, struct text name)
{
	unsigned i;

	for (i = 0; i < NELEM(headers); i++)
		if (text_ieq(headers[i], name)) {
			ajp13_u16(p->out, AJP13_CODED + i + 1);
			return;
		}
	put_string(p, name);
}

static void
put_header(struct packet *p, struct text name, struct text value)
{
	put_name(p, name);
	put_string(p, value);
	p->nheaders++;
}

static void
put_length(struct packet *p, int64_t length)
{
	char digits[20];

	if (length >= 0)
		put_header(p, TEXT("Content-Length"),
		    (struct text){ digits, text_put_u64(digits, (uint64_t)length) });
}

static void
put_forwarded(void *p, struct text name, struct text value)
{
	put_header(p, name, value);
}

static void
put_headers(struct packet *p, const struct proxy_request *r)
{
	size_t count = p->out->n, i;
	struct fields f;

	fields_index(&f, r->headers, r->nheaders);
	ajp13_u16(p->out, 0);
	for (i = 0; i < r->nheaders; i++)
		if (client_field_passes(r, &f, i))
			put_header(p, r->headers[i].name, r->headers[i].value);
	put_length(p, r->content_length);
	if (client_fields_write(r, &f, put_forwarded, p) != 0)
		p->out->failed = true;
	if (p->out->failed)
		return;
	p->out->p[count] = (char)(p->nheaders >> 8);
	p->out->p[count + 1] = (char)p->nheaders;
}

static void
put_attribute(struct packet *p, enum attribute which, struct text value)
{
	buf_char(p->out, (char)which);
	put_string(p, value);
}

static struct text
value_of(const struct proxy_field *v, size_t n, struct text name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (text_eq(v[i].name, name))
			return (v[i].value);
	return (TEXT_NONE);
}

static void
put_user(struct packet *p, const struct proxy_request *r)
{
	struct text user = value_of(r->variables, r->nvariables, TEXT("REMOTE_USER")),
		    type = value_of(r->variables, r->nvariables, TEXT("AUTH_TYPE"));

	if (user.n != 0 && header_value_ok(user))
		put_attribute(p, ATTR_REMOTE_USER, user);
	if (type.n != 0 && header_value_ok(type))
		put_attribute(p, ATTR_AUTH_TYPE, type);
}

/* PEM has lines. */
static void
put_certificate(struct packet *p, struct text pem)
{
	bool broken = p->broken;

	put_attribute(p, ATTR_SSL_CERT, pem);
	p->broken = broken;
}

static void
put_tls(struct packet *p, const struct proxy_request *r)
{
	struct text cert = value_of(r->tls, r->ntls, TEXT("SSL_CLIENT_CERT")),
		    cipher = value_of(r->tls, r->ntls, TEXT("SSL_CIPHER")),
		    size = value_of(r->tls, r->ntls, TEXT("SSL_CIPHER_USEKEYSIZE"));
	uint64_t bits;

	if (cert.p != NULL)
		put_certificate(p, cert);
	if (cipher.p != NULL)
		put_attribute(p, ATTR_SSL_CIPHER, cipher);
	if (text_u64(size, &bits) == 0 && bits <= UINT16_MAX) {
		buf_char(p->out, (char)ATTR_SSL_KEY_SIZE);
		ajp13_u16(p->out, bits);
	}
}

static void
put_attributes(struct packet *p, const struct proxy_request *r, struct text query, bool stored)
{
	char digits[20];

	if (query.p != NULL)
		put_attribute(p, ATTR_QUERY_STRING, query);
	if (r->secret.n != 0)
		put_attribute(p, ATTR_SECRET, r->secret);
	if (stored)
		put_attribute(p, ATTR_METHOD, r->method);
	put_user(p, r);
	put_tls(p, r);
	put_attribute(p, ATTR_NAMED, TEXT("AJP_REMOTE_PORT"));
	put_string(p, (struct text){ digits, text_put_u64(digits, r->remote_port) });
	buf_char(p->out, (char)ATTR_END);
}

static void
put_line(struct packet *p, const struct proxy_request *r, unsigned method, struct text uri)
{
	buf_char(p->out, AJP13_REQUEST);
	buf_char(p->out, (char)method);
	put_string(p, r->protocol);
	put_string(p, uri);
	put_string(p, r->remote_addr);
	put_string(p, r->remote_addr); /* its host name: the container need not look it up */
	put_string(p, r->server_name);
	ajp13_u16(p->out, r->server_port);
	buf_char(p->out, text_eq(r->scheme, TEXT("https")));
}

int
ajp13_put_request(const struct proxy_request *r, struct buf *out)
{
	struct packet p = { .out = out, .start = out->n };
	struct text query = r->redirect_uri.n != 0 ? r->redirect_uri : r->target, uri;
	unsigned method = method_code(r->method);
	size_t n;

	if (r->nheaders > FIELDS_MAX)
		return (-E2BIG);
	text_next(&query, '?', &uri);
	ajp13_head(out, 0);
	put_line(&p, r, method, uri);
	put_headers(&p, r);
	put_attributes(&p, r, query, method == METHOD_STORED);
	n = out->n - p.start;
	if (out->failed || n > AJP13_PACKET_MAX)
		return (-E2BIG);
	n -= AJP13_HEAD;
	out->p[p.start + 2] = (char)(n >> 8);
	out->p[p.start + 3] = (char)n;
	return (p.broken ? -EINVAL : 0);
}
