/* server/config/lighttpd/translate_pool.c -- the settings of a block that fastcgi.server and the
 * like become; see translate.h. */
#include "server/config/lighttpd/translate.h"

/* lighttpd opens a socket for each request; the application's queue is the limit. */
#define POOL_SIZE "1024"

struct filling {
	struct config *cfg;
	const struct gateway *g;
	const struct gateway_key *key;
	struct cfg_block *b;
};

/* ---------------------------------------------------------------- making entries */

struct text
translate_text(struct config *cfg, struct buf *b)
{
	struct text t = cfg_value_str(cfg, buf_as_text(b))->str;

	buf_free(b);
	return (t);
}

void
translate_set(struct config *cfg, struct cfg_block *b, struct cfg_pos pos, const char *key,
    const struct cfg_value *v)
{
	struct cfg_entry e = { .key = text_of(key), .value = v, .pos = pos, .value_pos = pos };

	if (v != NULL)
		(void)cfg_assign(cfg, b, TOK_FORCE, e);
}

struct cfg_item
translate_rule(struct config *cfg, struct cfg_pos pos, const char *name, struct text regex,
    struct text replacement)
{
	struct cfg_item one = { regex, cfg_value_str(cfg, replacement) };

	return ((struct cfg_item){ cfg_value_str(cfg, text_of(name))->str,
	    cfg_value_list(cfg, pos, &one, 1) });
}

void
translate_quote(struct buf *b, struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++) {
		if (strchr("\\^$.[]|()?*+{}", t.p[i]) != NULL)
			buf_char(b, '\\');
		buf_char(b, t.p[i]);
	}
}

void
translate_rules(struct config *cfg, struct cfg_block *b, struct cfg_pos pos, const char *key,
    const struct cfg_item *items, size_t n)
{
	if (n != 0)
		translate_set(cfg, b, pos, key, cfg_value_list(cfg, pos, items, n));
}

/* $0 would be a capture. */
struct text
translate_literal(struct config *cfg, struct text t)
{
	struct buf b;
	size_t i;

	buf_init(&b, 0);
	for (i = 0; i < t.n; i++)
		buf_str(&b, t.p[i] == '$' ? "$$" : (char[]){ t.p[i], '\0' });
	return (translate_text(cfg, &b));
}

static void
set(const struct filling *k, const char *key, const struct cfg_value *v)
{
	translate_set(k->cfg, k->b, k->g->e.pos, key, v);
}

static void
set_str(const struct filling *k, const char *key, const char *value)
{
	translate_set(k->cfg, k->b, k->g->e.pos, key, cfg_value_str(k->cfg, text_of(value)));
}

static const struct cfg_value *
option(const struct filling *k, enum gateway_option o)
{
	return (gateway_option(k->key, o));
}

/* ---------------------------------------------------------------- backends */

static void
set_backends(const struct filling *k, const char *directive)
{
	GArray *items = g_array_new(FALSE, FALSE, sizeof(struct cfg_item));
	struct cfg_item item = { .key = TEXT_NONE };
	unsigned n;
	size_t i;

	for (i = 0; i < k->key->nhosts; i++)
		for (n = 0; n < gateway_processes(&k->key->host[i]); n++) {
			item.value = cfg_value_str(k->cfg,
			    gateway_address(k->cfg, k->g, &k->key->host[i], n));
			g_array_append_val(items, item);
		}
	set(k, directive,
	    cfg_value_list(k->cfg, k->g->e.pos, (struct cfg_item *)(void *)items->data,
		items->len));
	g_array_free(items, TRUE);
}

/* ---------------------------------------------------------------- programs that are started */

static void
add_pair(const struct filling *k, GArray *items, const char *key, struct text name,
    struct text value)
{
	struct cfg_item item;

	item.key = cfg_value_join(k->cfg, text_of(key), name)->str;
	item.value = cfg_value_str(k->cfg, value);
	g_array_append_val(items, item);
}

static void
add_environment(const struct filling *k, GArray *items, const struct gateway_host *h)
{
	const struct cfg_value *env = h->option[GATEWAY_bin_environment],
			       *names = h->option[GATEWAY_bin_copy];
	struct buf b;
	uint32_t i;

	for (i = 0; env != NULL && i < env->n; i++)
		add_pair(k, items, "env.", env->items[i].key,
		    cfg_value_text(k->cfg, env->items[i].value));
	if (names == NULL)
		return;
	buf_init(&b, 0);
	for (i = 0; names->kind == CFG_LIST && i < names->n; i++)
		buf_printf(&b, "%s%s", i > 0 ? " " : "",
		    cfg_value_text(k->cfg, names->items[i].value).p);
	if (names->kind == CFG_STR)
		buf_text(&b, names->str);
	add_pair(k, items, "copy-env", TEXT(""), translate_text(k->cfg, &b));
}

static const struct cfg_value *
program(const struct filling *k, const struct gateway_host *h)
{
	static const struct {
		enum gateway_option option;
		const char *key;
	} numbers[] = { { GATEWAY_listen_backlog, "backlog" }, { GATEWAY_kill_signal, "signal" } };
	GArray *items = g_array_new(FALSE, FALSE, sizeof(struct cfg_item));
	const struct cfg_value *v;
	size_t i;

	add_pair(k, items, "command", TEXT(""), h->option[GATEWAY_bin_path]->str);
	for (i = 0; i < G_N_ELEMENTS(numbers); i++) {
		v = h->option[numbers[i].option];
		if (v != NULL)
			add_pair(k, items, numbers[i].key, TEXT(""), cfg_value_text(k->cfg, v));
	}
	add_environment(k, items, h);
	v = cfg_value_list(k->cfg, k->g->e.pos, (struct cfg_item *)(void *)items->data, items->len);
	g_array_free(items, TRUE);
	return (v);
}

static void
set_spawn(const struct filling *k)
{
	GArray *items = g_array_new(FALSE, FALSE, sizeof(struct cfg_item));
	struct cfg_item item;
	unsigned n;
	size_t i;

	for (i = 0; i < k->key->nhosts; i++) {
		if (k->key->host[i].option[GATEWAY_bin_path] == NULL)
			continue;
		item.value = program(k, &k->key->host[i]);
		for (n = 0; item.value != NULL && n < gateway_processes(&k->key->host[i]); n++) {
			item.key = gateway_address(k->cfg, k->g, &k->key->host[i], n);
			g_array_append_val(items, item);
		}
	}
	translate_rules(k->cfg, k->b, k->g->e.pos, "proxy-core.spawn",
	    (struct cfg_item *)(void *)items->data, items->len);
	g_array_free(items, TRUE);
}

/* KIND.balance; the default of lighttpd is the shortest queue. */
static void
set_balancer(const struct filling *k)
{
	static const char *const names[][2] = { { "fair", "sqf" }, { "least-connection", "sqf" },
		{ "round-robin", "round-robin" }, { "hash", "carp" }, { "sticky", "sticky" },
		{ "", "sqf" } };
	const struct cfg_value *v = gateway_setting(k->cfg, k->g, "balance");
	size_t i;

	for (i = 0; v != NULL && i < G_N_ELEMENTS(names); i++)
		if (v->kind == CFG_STR && text_eq(v->str, text_of(names[i][0])))
			break;
	if (v == NULL)
		i = 0;
	if (i == G_N_ELEMENTS(names))
		cfg_error(k->cfg, k->g->e.pos,
		    "%s.balance: expected one of: least-connection fair round-robin hash sticky",
		    k->g->kind->name);
	else if (v != NULL || cfg_entry_around(k->g->block, TEXT("proxy-core.balancer")) == NULL)
		set_str(k, "proxy-core.balancer", names[i][1]);
}

static void
set_number(const struct filling *k, enum gateway_option o, const char *directive)
{
	const struct cfg_value *v = option(k, o);

	/* 0 is lighttpd's default: no limit of its own */
	if (v != NULL && (gateway_number(v) != 0 || o == GATEWAY_disable_time))
		set(k, directive, v);
}

static void
set_pool(const struct filling *k)
{
	set_spawn(k);
	set_balancer(k);
	if (cfg_entry_around(k->g->block, TEXT("proxy-core.max-pool-size")) == NULL)
		set_str(k, "proxy-core.max-pool-size", POOL_SIZE);
	set_number(k, GATEWAY_disable_time, "proxy-core.disable-time");
	set_number(k, GATEWAY_connect_timeout, "proxy-core.connect-timeout");
	set_number(k, GATEWAY_read_timeout, "proxy-core.read-timeout");
	if (option(k, GATEWAY_write_timeout) != NULL &&
	    gateway_number(option(k, GATEWAY_write_timeout)) != 0)
		cfg_warn(k->cfg, k->g->e.value_pos,
		    "%s: write-timeout has no limit of its own; read-timeout (default 60) holds "
		    "for both directions",
		    k->g->e.key.p);
}

/* ---------------------------------------------------------------- files that replies name */

static void
set_send_file(const struct filling *k)
{
	const struct cfg_value *dirs = option(k, GATEWAY_x_docroot);
	struct cfg_item one = { TEXT_NONE, dirs };
	bool on = gateway_is_on(option(k, GATEWAY_send_file)) ||
		  gateway_is_on(option(k, GATEWAY_x_sendfile));

	if (option(k, GATEWAY_send_file) != NULL || option(k, GATEWAY_x_sendfile) != NULL)
		set_str(k, "proxy-core.allow-x-sendfile", on ? "enable" : "disable");
	if (dirs != NULL && dirs->kind == CFG_STR)
		dirs = cfg_value_list(k->cfg, k->g->e.pos, &one, 1);
	set(k, "proxy-core.x-sendfile-docroot", dirs);
}

/* ---------------------------------------------------------------- names for the application */

/* With check-local = "disable" the script ends at the next slash after the prefix.  With an ending
 * the script is the whole path; without a rule SCGI would have that path in PATH_INFO
 * (wire/codec/cgi_env.h). */
static bool
info_rule(const struct filling *k, struct cfg_item *rule)
{
	bool root = text_eq(k->key->key, TEXT("/")) && gateway_is_on(option(k, GATEWAY_fix_root));
	struct text regex = TEXT("(?s)^(/.*)$");
	bool prefix = k->key->key.n != 0 && k->key->key.p[0] == '/';
	struct buf b;

	if (k->g->kind->only_urls || k->key->local ||
	    (!prefix && strcmp(k->g->kind->name, "scgi") != 0))
		return (false);
	if (!prefix) {
		regex = TEXT("^()$");
	} else if (!root) {
		buf_init(&b, 0);
		buf_str(&b, "(?s)^");
		translate_quote(&b, k->key->key);
		buf_str(&b, "[^/]*(/.*)$");
		regex = translate_text(k->cfg, &b);
	}
	*rule = translate_rule(k->cfg, k->g->e.pos, "_pathinfo", regex, TEXT("$1"));
	return (true);
}

static void
set_names(const struct filling *k)
{
	const struct cfg_value *docroot = option(k, GATEWAY_docroot);
	struct cfg_item rules[GATEWAY_RULES_MAX];
	size_t n = 0;

	if (info_rule(k, &rules[n]))
		n++;
	if (docroot != NULL && docroot->str.n != 0)
		rules[n++] = translate_rule(k->cfg, k->g->e.pos, "_docroot", TEXT("(?s)^.*$"),
		    translate_literal(k->cfg, docroot->str));
	if (strcmp(k->g->kind->name, "proxy") == 0)
		gateway_proxy(k->cfg, k->g, k->key, k->b, rules, n);
	else
		translate_rules(k->cfg, k->b, k->g->e.pos, "proxy-core.rewrite-request", rules, n);
	set(k, "proxy-core.strip-request-uri", option(k, GATEWAY_strip));
	set(k, "proxy-core.broken-scriptfilename", option(k, GATEWAY_broken));
}

/* ---------------------------------------------------------------- the block */

static void
fill_authorizer(const struct filling *k)
{
	const struct cfg_value *docroot = option(k, GATEWAY_docroot);

	set_backends(k, "proxy-core.authorizer");
	set_str(k, "proxy-core.authorizer-protocol", "fastcgi");
	set_pool(k);
	/* files that clients may see are there */
	if (docroot != NULL && docroot->str.n != 0)
		set(k, "server.document-root", docroot);
}

static const char *
protocol(const struct filling *k)
{
	const struct cfg_value *v = gateway_setting(k->cfg, k->g, "protocol");

	if (v == NULL || strcmp(k->g->kind->name, "scgi") != 0)
		return (k->g->kind->protocol);
	if (v->kind == CFG_STR && (text_eq(v->str, TEXT("scgi")) || text_eq(v->str, TEXT("uwsgi"))))
		return (v->str.p);
	cfg_error(k->cfg, k->g->e.pos, "scgi.protocol: expected one of: scgi uwsgi");
	return ("scgi");
}

void
gateway_fill(struct config *cfg, const struct gateway *g, const struct gateway_key *key,
    struct cfg_block *b)
{
	const struct filling k = { cfg, g, key, b };

	if (key->authorizer) {
		fill_authorizer(&k);
		return;
	}
	set_str(&k, "proxy-core.protocol", protocol(&k));
	set_backends(&k, "proxy-core.backends");
	set_pool(&k);
	set_send_file(&k);
	set_names(&k);
	set(&k, "proxy-core.debug", gateway_setting(cfg, g, "debug"));
}
