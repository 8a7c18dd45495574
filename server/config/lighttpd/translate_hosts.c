/* server/config/lighttpd/translate_hosts.c -- reads ( KEY => ( LABEL => ( OPTION => VALUE ) ) );
 * see translate.h. */
#include <stdio.h>
#include "server/config/lighttpd/translate.h"

enum option_type { OPTION_STR, OPTION_UINT, OPTION_BOOL, OPTION_LIST, OPTION_MAP };
enum option_of { OF_HOST, OF_POOL, OF_NONE };

static const struct {
	const char *name;
	enum option_type type;
	enum option_of of;
} options[GATEWAY_OPTIONS] = {
#define O(id, name, type, of) { name, OPTION_##type, OF_##of },
#include "server/config/lighttpd/translate.def"
#undef O
};

static const char *const shapes[] = { "a string", "a number", "\"enable\" or \"disable\"",
	"a list of strings like ( \"a\", \"b\" )", "a list like ( \"a\" => \"b\" )" };

#define PORT_MAX  65535u
#define PROCS_MAX 64u /* of one host; each is a backend */

struct reader {
	struct config *cfg;
	const struct gateway *g;
	struct text key;
};

static bool
wrong(const struct reader *k, const char *what, struct text name)
{
	return (cfg_error(k->cfg, k->g->e.value_pos, "%s: \"%.*s\": %s%s%.*s%s", k->g->e.key.p,
	    (int)MIN(k->key.n, 80), k->key.p, what, name.n != 0 ? " \"" : "", (int)MIN(name.n, 80),
	    name.n != 0 ? name.p : "", name.n != 0 ? "\"" : ""));
}

bool
gateway_is_on(const struct cfg_value *v)
{
	return (v != NULL && text_eq(v->str, TEXT("enable")));
}

uint64_t
gateway_number(const struct cfg_value *v)
{
	uint64_t n = 0;

	if (v == NULL)
		return (0);
	if (v->kind == CFG_INT)
		return (v->num);
	return (text_u64(v->str, &n) == 0 ? n : 0);
}

static bool
is_list_of(const struct cfg_value *v, bool keys)
{
	uint32_t i;

	for (i = 0; i < v->n; i++)
		if (v->items[i].value->kind == CFG_LIST || (v->items[i].key.p != NULL) != keys)
			return (false);
	return (true);
}

static bool
has_type(const struct cfg_value *v, enum option_type type)
{
	uint64_t n;

	switch (type) {
	case OPTION_STR: return (v->kind == CFG_STR);
	case OPTION_UINT:
		return (v->kind == CFG_INT || (v->kind == CFG_STR && text_u64(v->str, &n) == 0));
	case OPTION_BOOL:
		return (v->kind == CFG_STR &&
			(text_eq(v->str, TEXT("enable")) || text_eq(v->str, TEXT("disable"))));
	case OPTION_LIST:
		return (v->kind == CFG_STR || (v->kind == CFG_LIST && is_list_of(v, false)));
	case OPTION_MAP: return (v->kind == CFG_LIST && is_list_of(v, true));
	}
	return (false);
}

static bool
read_option(const struct reader *k, const struct cfg_item *item, struct gateway_host *h)
{
	const char *names[GATEWAY_OPTIONS + 1], *near;
	char why[160];
	size_t i;

	for (i = 0; i < GATEWAY_OPTIONS; i++) {
		names[i] = options[i].name;
		if (text_eq(item->key, text_of(options[i].name)))
			break;
	}
	if (i < GATEWAY_OPTIONS && has_type(item->value, options[i].type)) {
		h->option[i] = item->value;
		return (true);
	}
	if (i < GATEWAY_OPTIONS) {
		snprintf(why, sizeof(why), "expected %s for", shapes[options[i].type]);
		return (wrong(k, why, item->key));
	}
	names[i] = NULL;
	near = text_nearest(item->key.p, names);
	snprintf(why, sizeof(why), "%s%s%sunknown key", near != NULL ? "did you mean \"" : "",
	    near != NULL ? near : "", near != NULL ? "\"? " : "");
	return (wrong(k, why, item->key));
}

/* ---------------------------------------------------------------- one host */

static bool
check_address(const struct reader *k, const struct gateway_host *h)
{
	const struct cfg_value *host = h->option[GATEWAY_host], *port = h->option[GATEWAY_port],
			       *path = h->option[GATEWAY_socket],
			       *bin = h->option[GATEWAY_bin_path];

	if (path != NULL && (host != NULL || port != NULL))
		return (wrong(k, "expected either \"socket\", or \"host\" and \"port\"", TEXT("")));
	if (path != NULL && path->str.n == 0)
		return (wrong(k, "expected a path, got nothing for", TEXT("socket")));
	if (path != NULL)
		return (true);
	if (host == NULL && (bin == NULL || port == NULL))
		return (wrong(k,
		    bin != NULL ? "expected the \"socket\" that the application listens on"
				: "expected \"socket\", or \"host\" and \"port\"",
		    TEXT("")));
	if (port != NULL && (gateway_number(port) == 0 || gateway_number(port) > PORT_MAX))
		return (wrong(k, "expected a number from 1 to 65535 for", TEXT("port")));
	if (host != NULL && host->str.n == 0)
		return (wrong(k, "expected a name or an address, got nothing for", TEXT("host")));
	if (port == NULL && k->g->kind->port == 0 && host->str.p[0] != '/')
		return (wrong(k, "expected a number for", TEXT("port")));
	return (true);
}

static bool
check_host(const struct reader *k, const struct gateway_host *h)
{
	const struct cfg_value *mode = h->option[GATEWAY_mode];

	if (mode != NULL && !text_eq(mode->str, TEXT("responder")) &&
	    !text_eq(mode->str, TEXT("authorizer")))
		return (wrong(k, "expected \"responder\" or \"authorizer\" for", TEXT("mode")));
	if (mode != NULL && text_eq(mode->str, TEXT("authorizer")) &&
	    strcmp(k->g->kind->name, "fastcgi") != 0)
		return (wrong(k, "only fastcgi.server has authorizers; remove", TEXT("mode")));
	if (h->option[GATEWAY_bin_path] == NULL && h->option[GATEWAY_bin_environment] != NULL)
		return (wrong(k, "without \"bin-path\" nothing is started; remove",
		    TEXT("bin-environment")));
	if (k->g->kind->only_urls && h->option[GATEWAY_strip] != NULL)
		return (wrong(k, "write map-urlpath in proxy.header in place of",
		    TEXT("strip-request-uri")));
	if (gateway_number(h->option[GATEWAY_max_procs]) > PROCS_MAX)
		return (wrong(k, "expected a number from 1 to 64 for", TEXT("max-procs")));
	return (check_address(k, h));
}

static bool
read_host(const struct reader *k, const struct cfg_item *item, struct gateway_host *h)
{
	const struct cfg_value *v = item->value;
	bool ok = true;
	uint32_t i;

	h->label = item->key;
	if (v->kind != CFG_LIST)
		return (wrong(k,
		    "expected a list of hosts like (( \"host\" => \"127.0.0.1\", \"port\" => 9000 "
		    ")), "
		    "with two brackets",
		    TEXT("")));
	for (i = 0; i < v->n; i++)
		if (v->items[i].key.p == NULL)
			ok = wrong(k, "expected \"key\" => value for each host", TEXT(""));
		else
			ok &= read_option(k, &v->items[i], h);
	return (ok && check_host(k, h));
}

/* ---------------------------------------------------------------- one key */

static bool
is_authorizer(const struct gateway_host *h)
{
	const struct cfg_value *mode = h->option[GATEWAY_mode];

	return (mode != NULL && text_eq(mode->str, TEXT("authorizer")));
}

const struct cfg_value *
gateway_option(const struct gateway_key *key, enum gateway_option o)
{
	return (key->host[0].option[o]);
}

static bool
same_value(const struct cfg_value *a, const struct cfg_value *b)
{
	struct buf s, t;
	bool same;

	if (a == NULL || b == NULL)
		return (a == b);
	buf_init(&s, 0);
	buf_init(&t, 0);
	cfg_value_print(a, &s);
	cfg_value_print(b, &t);
	same = text_eq(buf_as_text(&s), buf_as_text(&t));
	buf_free(&s);
	buf_free(&t);
	return (same);
}

/* The hosts of a key are one pool, and a request does not choose its settings by its backend. */
static bool
check_same(const struct reader *k, const struct gateway_key *key)
{
	bool ok = true;
	size_t i, o;

	for (i = 1; i < key->nhosts; i++)
		for (o = 0; o < GATEWAY_OPTIONS; o++)
			if (options[o].of == OF_POOL &&
			    !same_value(key->host[0].option[o], key->host[i].option[o]))
				ok = wrong(k, "all hosts need the same value for",
				    text_of(options[o].name));
	return (ok);
}

/* The hosts of one role; there may be none. */
static bool
add_role(const struct reader *k, struct gateway *g, const struct gateway_host *all, size_t n,
    bool authorizer)
{
	struct gateway_key *key = &g->key[g->nkeys];
	const struct cfg_value *local;
	size_t i;

	*key = (struct gateway_key){ .key = k->key, .authorizer = authorizer };
	key->host = cfg_get(k->cfg, n * sizeof(*key->host));
	for (i = 0; i < n; i++)
		if (is_authorizer(&all[i]) == authorizer)
			key->host[key->nhosts++] = all[i];
	if (key->nhosts == 0)
		return (true);
	local = gateway_option(key, GATEWAY_check_local);
	key->local = !g->kind->only_urls && (local == NULL || gateway_is_on(local));
	g->nkeys++;
	return (check_same(k, key));
}

static bool
read_key(struct config *cfg, struct gateway *g, const struct cfg_item *item)
{
	struct reader k = { cfg, g, item->key };
	const struct cfg_value *v = item->value;
	struct gateway_host *all;
	bool ok = true;
	uint32_t i;

	if (v->kind != CFG_LIST || v->n == 0)
		return (wrong(&k, "expected a list of hosts, got none", TEXT("")));
	if (!cfg_grows(cfg, g->e.pos, 3 * v->n * sizeof(*all)))
		return (false);
	all = cfg_get(cfg, v->n * sizeof(*all));
	for (i = 0; i < v->n; i++)
		ok &= read_host(&k, &v->items[i], &all[i]);
	return (ok && add_role(&k, g, all, v->n, true) && add_role(&k, g, all, v->n, false));
}

bool
gateway_read(struct config *cfg, struct gateway *g)
{
	const struct cfg_value *v = g->e.value;
	bool ok = true;
	uint32_t i;

	for (i = 0; v->kind == CFG_LIST && i < v->n; i++)
		ok &= v->items[i].key.p != NULL;
	if (v->kind != CFG_LIST || !ok)
		return (cfg_error(cfg, g->e.value_pos,
		    "%s: expected a list like ( \".php\" => (( \"socket\" => \"/run/x.sock\" )) )",
		    g->e.key.p));
	if (!cfg_grows(cfg, g->e.pos, 2 * (v->n + 1) * sizeof(*g->key)))
		return (false);
	g->key = cfg_get(cfg, 2 * (v->n + 1) * sizeof(*g->key));
	for (i = 0; i < v->n; i++)
		ok &= read_key(cfg, g, &v->items[i]);
	return (ok);
}

/* ---------------------------------------------------------------- addresses */

unsigned
gateway_processes(const struct gateway_host *h)
{
	uint64_t n = gateway_number(h->option[GATEWAY_max_procs]);

	if (h->option[GATEWAY_bin_path] == NULL)
		return (1);
	return (n > 0 ? (unsigned)n : 1);
}

/* As lighttpd: the sockets of an application that it starts end in -0, -1 ...; ports count up. */
struct text
gateway_address(struct config *cfg, const struct gateway *g, const struct gateway_host *h,
    unsigned n)
{
	const struct cfg_value *host = h->option[GATEWAY_host], *path = h->option[GATEWAY_socket];
	uint64_t port = gateway_number(h->option[GATEWAY_port]);
	struct text name = host != NULL ? host->str : TEXT("127.0.0.1");
	bool bare_v6 = name.p[0] != '[' && memchr(name.p, ':', name.n) != NULL;
	struct buf b;

	buf_init(&b, 0);
	if (path == NULL && name.p[0] == '/')
		path = host;
	if (path != NULL)
		buf_printf(&b, "unix:%s", path->str.p);
	if (path != NULL && h->option[GATEWAY_bin_path] != NULL)
		buf_printf(&b, "-%u", n);
	if (path == NULL)
		buf_printf(&b, "%s%s%s:%" G_GUINT64_FORMAT, bare_v6 ? "[" : "", name.p,
		    bare_v6 ? "]" : "", (port != 0 ? port : g->kind->port) + n);
	return (translate_text(cfg, &b));
}
