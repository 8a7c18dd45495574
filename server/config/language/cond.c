/* server/config/language/cond.c -- `$FIELD["name"] op "value"`: the known fields, and whether a
 * condition is true.
 */
#include "base/address.h"
#include "server/config/impl.h"
#include "wire/http1/headers.h"
#include "wire/http1/host.h"

#define HEADER_NAME_MAX 64u

#define INPUT(f) offsetof(struct conf_input, f)

struct cfg_field {
	const char *group, *name;
	size_t at;          /* offset in struct conf_input; SIZE_MAX for a header */
	size_t number;      /* of a header in conf_input.headers, from 1; 0: no header */
	struct text header; /* its name, in lower case */
};

/* Of two names for one field the first is printed. */
static const struct cfg_field fields[] = {
	{ "SERVER", "socket", INPUT(socket) },
	{ "HTTP", "scheme", INPUT(scheme) },
	{ "HTTP", "host", INPUT(host) },
	{ "HTTP", "url", INPUT(url) },
	{ "HTTP", "querystring", INPUT(query) },
	{ "HTTP", "query-string", INPUT(query) },
	{ "HTTP", "referer", INPUT(referer) },
	{ "HTTP", "useragent", INPUT(useragent) },
	{ "HTTP", "user-agent", INPUT(useragent) },
	{ "HTTP", "cookie", INPUT(cookie) },
	{ "HTTP", "remoteip", INPUT(remoteip) },
	{ "HTTP", "remote-ip", INPUT(remoteip) },
	{ "HTTP", "request-method", INPUT(method) },
	{ "HTTP", "method", INPUT(method) },
	{ "PHYSICAL", "path", INPUT(path) },
	{ "PHYSICAL", "existing-path", INPUT(existing_path) },
};

const struct cfg_field *
cfg_field_find(struct text group, struct text name)
{
	size_t i, j;

	for (i = 0; i < G_N_ELEMENTS(fields); i++)
		if (text_eq(group, text_of(fields[i].group)) &&
		    text_eq(name, text_of(fields[i].name)))
			break;
	if (i == G_N_ELEMENTS(fields))
		return (NULL);
	for (j = 0; fields[j].at != fields[i].at; j++)
		;
	return (&fields[j]);
}

/* Headers that are fields of their own: they are compared as these are. */
static const struct cfg_field *
known_header(struct text name)
{
	static const struct text host = TEXT("host"), referer = TEXT("referer"),
				 cookie = TEXT("cookie"), agent = TEXT("user-agent");

	if (text_eq(name, host) || text_eq(name, referer) || text_eq(name, cookie) ||
	    text_eq(name, agent))
		return (cfg_field_find(TEXT("HTTP"), name));
	return (NULL);
}

static struct cfg_field *
header_field(struct config *cfg, struct text name)
{
	struct cfg_field *f;
	size_t i;

	for (i = 0; i < cfg->headers->len; i++) {
		f = g_ptr_array_index(cfg->headers, i);
		if (text_eq(f->header, name))
			return (f);
	}
	if (cfg->headers->len == CFG_HEADERS_MAX)
		return (NULL);
	f = cfg_get(cfg, sizeof(*f));
	*f = (struct cfg_field){ .at = SIZE_MAX,
		.group = "REQUEST_HEADER",
		.name = name.p,
		.header = name,
		.number = cfg->headers->len + 1 };
	g_ptr_array_add(cfg->headers, f);
	return (f);
}

const struct cfg_field *
cfg_field_header(struct config *cfg, struct text group, struct text name, const char **fault)
{
	const struct cfg_field *known, *f;
	char *lower;

	if (text_eq(group, TEXT("HTTP")) && text_eq(name, TEXT("language")))
		name = TEXT("accept-language");
	else if (!text_eq(group, TEXT("REQUEST_HEADER")))
		return (NULL);
	if (!header_is_token(name) || name.n > HEADER_NAME_MAX) {
		*fault = "expected the name of a header field in $REQUEST_HEADER[\"name\"]";
		return (NULL);
	}
	lower = g_ascii_strdown(name.p, (gssize)name.n);
	name = cfg_value_str(cfg, (struct text){ lower, name.n })->str;
	g_free(lower);
	known = known_header(name);
	f = known != NULL ? known : header_field(cfg, name);
	if (f == NULL)
		*fault = "conditions compare more than 64 different headers";
	return (f);
}

struct text
config_header(const struct config *cfg, size_t i)
{
	if (i >= cfg->headers->len)
		return (TEXT_NONE);
	return (((const struct cfg_field *)g_ptr_array_index(cfg->headers, i))->header);
}

void
cfg_field_names(struct buf *out)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(fields); i++)
		buf_printf(out, "$%s[\"%s\"], ", fields[i].group, fields[i].name);
	buf_str(out, "$HTTP[\"language\"], $REQUEST_HEADER[\"name\"]");
}

bool
cfg_field_is_physical(const struct cfg_field *f)
{
	return (f != NULL && (f->at == INPUT(path) || f->at == INPUT(existing_path)));
}

bool
cfg_field_is_host(const struct cfg_field *f)
{
	return (f != NULL && f->at == INPUT(host));
}

bool
cfg_field_is_socket(const struct cfg_field *f)
{
	return (f != NULL && f->at == INPUT(socket));
}

bool
cfg_field_is_decoded(const struct cfg_field *f)
{
	return (f != NULL && (f->at == INPUT(url) || cfg_field_is_physical(f)));
}

/* ---------------------------------------------------------------- networks */

/* Without the zone of "fe80::1%eth0". */
static bool
net_has(const struct ip_net *net, struct text input)
{
	struct ip ip;

	return (ip_read(ip_without_zone(input), &ip) && ip_net_has(net, &ip));
}

/* ---------------------------------------------------------------- hosts and sockets */

/* A value that cannot be split into host and port is a host: a condition may have any text. */
static void
split_port(struct text t, struct text *host, struct text *port)
{
	if (address_cut(t, host, port))
		return;
	*host = t;
	*port = TEXT_NONE;
}

/* A port on one side only is ignored: browsers send some ports and not others. */
static bool
host_same(struct text a, struct text b)
{
	struct text host_a, port_a, host_b, port_b;

	split_port(a, &host_a, &port_a);
	split_port(b, &host_b, &port_b);
	return (text_ieq(host_a, host_b) &&
		(port_a.p == NULL || port_b.p == NULL || text_eq(port_a, port_b)));
}

static bool
names_none(struct text host)
{
	return (host.n == 0 || text_eq(host, TEXT("*")));
}

/* ":80" is every wildcard socket of that port, "[::]:80" too. */
static bool
socket_same(struct text conf, struct text actual)
{
	struct text host_c, port_c, host_a, port_a;

	if (address_same(conf, actual))
		return (true);
	if (!address_cut(conf, &host_c, &port_c) || !address_cut(actual, &host_a, &port_a) ||
	    !text_eq(port_c, port_a))
		return (false);
	return ((names_none(host_c) && text_eq(host_a, TEXT("[::]"))) ||
		(names_none(host_a) && text_eq(host_c, TEXT("[::]"))));
}

/* ---------------------------------------------------------------- compiling */

static bool
compile_re(struct config *cfg, struct cfg_pos pos, struct cfg_cond *cond)
{
	char why[256];

	/* hosts are in lower case here, and a condition with "Admin" must match as well */
	cond->re = match_new(cond->value.p, cond->field->at == INPUT(host), why, sizeof(why));
	return (cond->re != NULL || cfg_error(cfg, pos, "not a regular expression: %s", why));
}

/* Other operators (a prefix, for example) compare the address as text. */
static bool
compile_net(struct config *cfg, struct cfg_pos pos, struct cfg_cond *cond)
{
	if (cond->value.n == 0)
		return (true);
	cond->is_net = ip_net_read(cond->value, &cond->net);
	return (cond->is_net || cfg_error(cfg, pos,
				    "expected an address like \"192.0.2.7\", "
				    "\"10.0.0.0/8\" or \"2001:db8::/32\""));
}

/* A value that is compared with hosts gets the form of hosts, see wire/http1/host.h.  Its port
 * stays as it is written: it decides whether ports are compared at all. */
static bool
compile_host(struct config *cfg, struct cfg_cond *cond)
{
	struct text host, port, normal;
	char store[HTTP_HOST_MAX];
	struct buf b;

	split_port(cond->value, &host, &port);
	normal = http1_host(host, store);
	if (normal.p == NULL)
		return (true); /* no client can send such a host */
	buf_init(&b, 0);
	buf_text(&b, normal);
	if (port.p != NULL) {
		buf_char(&b, ':');
		buf_text(&b, port);
	}
	cond->value = cfg_value_str(cfg, buf_as_text(&b))->str;
	buf_free(&b);
	return (true);
}

/* The beginning or the end of a host. */
static void
compile_part(struct config *cfg, struct cfg_cond *cond)
{
	char *p = g_ascii_strdown(cond->value.p, (gssize)cond->value.n);

	cond->value = cfg_value_str(cfg, (struct text){ p, cond->value.n })->str;
	g_free(p);
}

bool
cfg_cond_compile(struct config *cfg, struct cfg_pos pos, struct cfg_cond *cond)
{
	if (cond->op == TOK_RE || cond->op == TOK_NRE)
		return (compile_re(cfg, pos, cond));
	if ((cond->op == TOK_EQ || cond->op == TOK_NE) && cond->field->at == INPUT(remoteip))
		return (compile_net(cfg, pos, cond));
	if (cond->field->at != INPUT(host))
		return (true);
	if (cond->op == TOK_EQ || cond->op == TOK_NE)
		return (compile_host(cfg, cond));
	compile_part(cfg, cond);
	return (true);
}

void
cfg_cond_print(const struct cfg_cond *cond, struct buf *out)
{
	struct cfg_value v = { .kind = CFG_STR, .str = cond->value };

	if (cond->field == NULL)
		return;
	buf_printf(out, "$%s[\"%s\"] %s ", cond->field->group, cond->field->name,
	    cfg_token_name(cond->op));
	cfg_value_print(&v, out);
}

/* ---------------------------------------------------------------- asking */

static bool
equal(const struct cfg_cond *cond, struct text in)
{
	if (cond->is_net)
		return (net_has(&cond->net, in));
	if (cond->field->at == INPUT(host))
		return (host_same(cond->value, in));
	if (cond->field->at == INPUT(socket))
		return (socket_same(cond->value, in));
	return (text_eq(cond->value, in));
}

static enum cfg_state
matches(const struct cfg_cond *cond, struct text in)
{
	enum match_result found = match_run(cond->re, in);

	if (found == MATCH_FAILED)
		return (CFG_FAILED);
	return ((found == MATCH_YES) == (cond->op == TOK_RE) ? CFG_TRUE : CFG_FALSE);
}

static bool
holds(const struct cfg_cond *cond, struct text in)
{
	switch (cond->op) {
	case TOK_EQ: return (equal(cond, in));
	case TOK_NE: return (!equal(cond, in));
	case TOK_PREFIX: return (text_starts(in, cond->value));
	default: return (text_ends(in, cond->value)); /* TOK_SUFFIX */
	}
}

static const struct text *
value_of(const struct cfg_cond *cond, const struct conf_input *in)
{
	static const struct text unknown = TEXT_NONE;

	if (cond->field->number != 0)
		return (in->headers != NULL ? &in->headers[cond->field->number - 1] : &unknown);
	return ((const struct text *)(const void *)((const char *)in + cond->field->at));
}

enum cfg_state
cfg_cond_eval(const struct cfg_cond *cond, const struct conf_input *in)
{
	const struct text *t;

	if (cond->field == NULL)
		return (CFG_TRUE);
	t = value_of(cond, in);
	if (t->p == NULL)
		return (CFG_UNKNOWN);
	if (cond->re != NULL)
		return (matches(cond, *t));
	return (holds(cond, *t) ? CFG_TRUE : CFG_FALSE);
}

bool
cfg_cond_capture(const struct cfg_cond *cond, const struct conf_input *in,
    struct text cap[MATCH_CAPTURES])
{
	const struct text *t;

	memset(cap, 0, MATCH_CAPTURES * sizeof(*cap));
	if (cond->field == NULL)
		return (false);
	t = value_of(cond, in);
	if (t->p == NULL)
		return (false);
	if (cond->re != NULL)
		return (match_capture(cond->re, *t, cap) == MATCH_YES);
	cap[0] = *t;
	return (holds(cond, *t));
}
