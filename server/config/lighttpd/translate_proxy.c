/* server/config/lighttpd/translate_proxy.c -- proxy.header, proxy.forwarded and
 * proxy.replace-http-host; see translate.h. */
#include "server/config/lighttpd/translate.h"

const char *const gateway_proxy_settings[] = { "header", "forwarded", "replace-http-host",
	"force-http10", NULL };

struct proxying {
	struct config *cfg;
	const struct gateway *g;
	struct cfg_block *b;
	struct cfg_item rules[GATEWAY_RULES_MAX], replies[GATEWAY_RULES_MAX];
	size_t nrules, nreplies;
};

static bool
wrong(const struct proxying *k, const char *setting, const char *what, struct text name)
{
	return (cfg_error(k->cfg, k->g->e.pos, "proxy.%s: %s%s%.*s%s", setting, what,
	    name.n != 0 ? " \"" : "", (int)MIN(name.n, 80), name.n != 0 ? name.p : "",
	    name.n != 0 ? "\"" : ""));
}

/* The regex BEFORE t BEHIND, with t taken literally. */
static struct text
regex(const struct proxying *k, const char *before, struct text t, const char *behind)
{
	struct buf b;

	buf_init(&b, 0);
	buf_str(&b, before);
	translate_quote(&b, t);
	buf_str(&b, behind);
	return (translate_text(k->cfg, &b));
}

/* The replacement BEFORE t BEHIND, with t taken literally. */
static struct text
replacement(const struct proxying *k, const char *before, struct text t, const char *behind)
{
	struct buf b;

	buf_init(&b, 0);
	buf_str(&b, before);
	buf_text(&b, translate_literal(k->cfg, t));
	buf_str(&b, behind);
	return (translate_text(k->cfg, &b));
}

static struct cfg_item
rule(const struct proxying *k, const char *name, struct text from, struct text to)
{
	return (translate_rule(k->cfg, k->g->e.pos, name, from, to));
}

static void
write_rules(const struct proxying *k, struct cfg_block *b)
{
	translate_rules(k->cfg, b, k->g->e.pos, "proxy-core.rewrite-request", k->rules, k->nrules);
	translate_rules(k->cfg, b, k->g->e.pos, "proxy-core.rewrite-response", k->replies,
	    k->nreplies);
}

/* ---------------------------------------------------------------- hosts */

static bool
is_dash(struct text t)
{
	return (text_eq(t, TEXT("-")));
}

/* A reply names the host of the backend. */
static void
map_reply_host(struct proxying *k, struct text from, struct text to)
{
	k->replies[k->nreplies++] = rule(k, "Location",
	    regex(k, "^((?i:https?:)?//)(?i:", from, ")(?=[:/]|$)(?::[0-9]+)?(.*)$"),
	    replacement(k, "$1", to, "$2"));
	k->replies[k->nreplies++] = rule(k, "Set-Cookie",
	    regex(k, "^(.*;\\s*(?i:domain)=\\.?)(?i:", from, ")(\\s*(?:;.*)?)$"),
	    replacement(k, "$1", to, "$2"));
}

/* name: map-host-request or map-host-response.  *from .p NULL: none. */
static bool
one_pair(const struct proxying *k, const struct cfg_item *map, struct text *from, struct text *to)
{
	const struct cfg_value *v = map->value;

	if (v->kind != CFG_LIST || v->n != 1 || v->items[0].key.p == NULL ||
	    v->items[0].value->kind != CFG_STR)
		return (wrong(k, "header", "expected one ( \"a.example\" => \"b.example\" ) for",
		    map->key));
	*from = v->items[0].key;
	*to = v->items[0].value->str;
	return (true);
}

static void
map_hosts(struct proxying *k, const struct cfg_item *request, const struct cfg_item *reply)
{
	struct text from = TEXT_NONE, to = TEXT_NONE;

	if (request != NULL && one_pair(k, request, &from, &to) && !is_dash(to))
		k->rules[k->nrules++] = rule(k, "Host",
		    is_dash(from) ? TEXT("^.*$") : regex(k, "^(?i:", from, ")(?::[0-9]+)?$"),
		    translate_literal(k->cfg, to));
	if (reply != NULL) {
		if (one_pair(k, reply, &from, &to) && !is_dash(from))
			map_reply_host(k, from, to);
		else if (from.p != NULL && !is_dash(to))
			wrong(k, "header", "write the host of the backend in place of \"-\" in",
			    reply->key);
	} else if (from.p != NULL && !is_dash(from) && !is_dash(to))
		map_reply_host(k, to, from);
}

/* ---------------------------------------------------------------- paths */

static void
map_path(const struct proxying *outer, struct text from, struct text to, struct cfg_block *b)
{
	struct proxying k = *outer;

	k.rules[k.nrules++] =
	    rule(&k, "_uri", regex(&k, "^", from, "(.*)$"), replacement(&k, "", to, "$1"));
	k.replies[k.nreplies++] =
	    rule(&k, "Location", regex(&k, "^((?:(?i:https?:)?//[^/]+)?)", to, "(.*)$"),
		replacement(&k, "$1", from, "$2"));
	k.replies[k.nreplies++] =
	    rule(&k, "Content-Location", regex(&k, "^((?:(?i:https?:)?//[^/]+)?)", to, "(.*)$"),
		replacement(&k, "$1", from, "$2"));
	k.replies[k.nreplies++] = rule(&k, "Set-Cookie",
	    regex(&k, "^(.*;\\s*(?i:path)=)", to, "(.*)$"), replacement(&k, "$1", from, "$2"));
	write_rules(&k, b);
}

/* Each path has a block of its own inside, because a rule has one regular expression. */
static void
map_paths(const struct proxying *k, const struct cfg_item *map)
{
	const struct cfg_value *v = map->value;
	struct cfg_block *prev = NULL;
	struct cfg_cond cond;
	uint32_t i;

	if (k->nreplies != 0) {
		wrong(k, "header", "a map of hosts cannot be combined with", map->key);
		return;
	}
	for (i = 0; v->kind == CFG_LIST && i < v->n; i++) {
		if (v->items[i].key.p == NULL || v->items[i].value->kind != CFG_STR)
			break;
		cond = (struct cfg_cond){ .op = TOK_PREFIX,
			.field = cfg_field_find(TEXT("HTTP"), TEXT("url")),
			.value = v->items[i].key };
		if (!cfg_grows(k->cfg, k->g->e.pos, 16384) ||
		    !cfg_cond_compile(k->cfg, k->g->e.pos, &cond))
			return;
		prev = cfg_block_open(k->cfg, k->g->e.pos, k->b, prev, &cond);
		if (prev == NULL)
			return;
		map_path(k, v->items[i].key, v->items[i].value->str, prev);
	}
	if (v->kind != CFG_LIST || i < v->n)
		wrong(k, "header", "expected a list like ( \"/a\" => \"/b\" ) for", map->key);
}

/* ---------------------------------------------------------------- proxy.header */

static const struct cfg_item *
member(const struct cfg_value *v, const char *name)
{
	uint32_t i;

	for (i = 0; i < v->n; i++)
		if (text_eq(v->items[i].key, text_of(name)))
			return (&v->items[i]);
	return (NULL);
}

static void
check_members(const struct proxying *k, const struct cfg_value *v)
{
	static const char *const names[] = { "map-urlpath", "map-host-request", "map-host-response",
		"upgrade", "connect", "https-remap", "force-http10", NULL };
	uint32_t i;
	size_t j;

	for (i = 0; i < v->n; i++) {
		for (j = 0; names[j] != NULL; j++)
			if (text_eq(v->items[i].key, text_of(names[j])))
				break;
		if (names[j] == NULL)
			wrong(k, "header", "unknown key", v->items[i].key);
		else if (j > 3 && (v->items[i].value->kind != CFG_STR ||
				      !text_eq(v->items[i].value->str, TEXT("disable"))))
			wrong(k, "header", "cannot be done here; write \"disable\" for",
			    v->items[i].key);
	}
}

static const struct cfg_item *
map_headers(struct proxying *k, const struct cfg_value *v)
{
	struct cfg_item one = { TEXT_NONE, cfg_value_str(k->cfg, TEXT("websocket")) };
	const struct cfg_item *up;

	if (v->kind != CFG_LIST) {
		wrong(k, "header", "expected a list like ( \"upgrade\" => \"enable\" )", TEXT(""));
		return (NULL);
	}
	check_members(k, v);
	up = member(v, "upgrade");
	if (up != NULL && gateway_is_on(up->value))
		translate_set(k->cfg, k->b, k->g->e.pos, "proxy-core.upgrade",
		    cfg_value_list(k->cfg, k->g->e.pos, &one, 1));
	map_hosts(k, member(v, "map-host-request"), member(v, "map-host-response"));
	return (member(v, "map-urlpath"));
}

/* ---------------------------------------------------------------- the others */

static void
forwarded(const struct proxying *k, const struct cfg_value *v)
{
	struct cfg_item both[] = { { TEXT_NONE, cfg_value_str(k->cfg, TEXT("x-forwarded")) },
		{ TEXT_NONE, cfg_value_str(k->cfg, TEXT("forwarded")) } };
	bool on = false;
	uint32_t i;

	for (i = 0; v->kind == CFG_LIST && i < v->n; i++) {
		const struct cfg_value *is = v->items[i].value;
		struct text name = v->items[i].key;
		bool set = gateway_is_on(is) || gateway_number(is) != 0;

		if (!set)
			continue;
		if (!text_eq(name, TEXT("for")) && !text_eq(name, TEXT("proto")) &&
		    !text_eq(name, TEXT("host")))
			wrong(k, "forwarded", "only for, proto and host can be sent; remove", name);
		on = true;
	}
	if (v->kind != CFG_LIST)
		wrong(k, "forwarded", "expected a list like ( \"for\" => 1, \"proto\" => 1 )",
		    TEXT(""));
	if (on)
		translate_set(k->cfg, k->b, k->g->e.pos, "proxy-core.forwarded",
		    cfg_value_list(k->cfg, k->g->e.pos, both, 2));
}

static void
replace_host(struct proxying *k, const struct gateway_key *key)
{
	struct text label = key->host[0].label;
	size_t i;

	if (label.p == NULL)
		return; /* as lighttpd: the Host stays */
	for (i = 1; i < key->nhosts; i++)
		if (!text_eq(key->host[i].label, label)) {
			wrong(k, "replace-http-host", "all hosts need the same label, as", label);
			return;
		}
	k->rules[k->nrules++] = rule(k, "Host", TEXT("^.*$"), translate_literal(k->cfg, label));
}

void
gateway_proxy(struct config *cfg, const struct gateway *g, const struct gateway_key *key,
    struct cfg_block *b, struct cfg_item *rules, size_t n)
{
	const struct cfg_value *header = gateway_setting(cfg, g, "header"),
			       *lists = gateway_setting(cfg, g, "forwarded"),
			       *host = gateway_setting(cfg, g, "replace-http-host");
	struct proxying k = { .cfg = cfg, .g = g, .b = b, .nrules = n };
	const struct cfg_item *paths = NULL;

	if (n != 0)
		memcpy(k.rules, rules, n * sizeof(*rules));
	if (gateway_is_on(gateway_setting(cfg, g, "force-http10")))
		wrong(&k, "force-http10", "cannot be done here; write \"disable\"", TEXT(""));
	if (lists != NULL)
		forwarded(&k, lists);
	if (gateway_is_on(host))
		replace_host(&k, key);
	if (header != NULL && gateway_is_on(host) && member(header, "map-host-request") != NULL)
		wrong(&k, "replace-http-host", "cannot be combined with map-host-request",
		    TEXT(""));
	else if (header != NULL)
		paths = map_headers(&k, header);
	write_rules(&k, b);
	if (paths != NULL)
		map_paths(&k, paths);
}
