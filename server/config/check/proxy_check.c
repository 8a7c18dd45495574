/* server/config/check/proxy_check.c -- settings of proxy-core that depend on each other, or on more
 * than the table of directives says.  -t and a start give the same answer, with file and line. */
#include "proxy-core/backends.h"
#include "server/config/impl.h"
#include "server/config/check/rewrite.h"
#include "server/config/check/spawn.h"
#include "wire/codec/codec.h"

static void
wrong_protocol(struct config *cfg, struct cfg_pos pos, const char *setting, const char *name)
{
	struct buf known;
	size_t i;

	buf_init(&known, 0);
	for (i = 0; protos[i] != NULL; i++)
		buf_printf(&known, "%s%s", i > 0 ? ", " : "", protos[i]->name);
	buf_char(&known, '\0');
	if (name == NULL)
		cfg_error(cfg, pos, "%s is not set; expected one of: %s", setting, known.p);
	else
		cfg_error(cfg, pos, "%s: expected one of: %s; got \"%.40s\"", setting, known.p,
		    name);
	buf_free(&known);
}

/* An unknown protocol is a mistake even if there are no backends. */
static void
check_protocol(struct config *cfg, const struct cfg_block *b, const char *setting,
    const char *protocol, const struct cfg_entry *backends)
{
	const struct cfg_entry *e = cfg_entry_find(b, text_of(setting));

	if (e != NULL && protocol != NULL && proto_find(protocol) == NULL)
		wrong_protocol(cfg, e->value_pos, setting, protocol);
	else if (backends != NULL && backends->value->n != 0 && protocol == NULL)
		wrong_protocol(cfg, backends->pos, setting, NULL);
}

static void
check_count(struct config *cfg, const struct cfg_entry *e)
{
	if (e != NULL && e->value->n > BACKENDS_MAX)
		cfg_error(cfg, e->value_pos, "%s: more than %d addresses; write fewer", e->key.p,
		    BACKENDS_MAX);
}

static bool
sends_secret(const char *protocol)
{
	const struct proto *p = protocol != NULL ? proto_find(protocol) : NULL;

	return (p != NULL && p->secret);
}

static void
check_secret(struct config *cfg, const struct cfg_block *b, const struct conf *c)
{
	const struct cfg_entry *e = cfg_entry_around(b, TEXT("proxy-core.secret"));

	if (b->backends != NULL && c->proxy_secret != NULL && c->proxy_protocol != NULL &&
	    !sends_secret(c->proxy_protocol) &&
	    !(b->has_authorizer && sends_secret(c->authorizer_protocol)))
		cfg_error(cfg, e->pos,
		    "proxy-core.secret: the protocol %s of the backends of %s:%u sends none; "
		    "remove it",
		    c->proxy_protocol, b->backends->pos.file, b->backends->pos.line);
}

/* "*" asks the container, not an application. */
static void
check_ping(struct config *cfg, const struct cfg_block *b, const struct conf *c)
{
	const struct cfg_entry *e = cfg_entry_around(b, TEXT("proxy-core.check-url"));
	const struct proto *p = c->proxy_protocol != NULL ? proto_find(c->proxy_protocol) : NULL;

	if (b->backends != NULL && c->proxy_check_url != NULL && p != NULL && !p->ping &&
	    strcmp(c->proxy_check_url, "*") == 0)
		cfg_error(cfg, e->value_pos,
		    "proxy-core.check-url: the protocol %s of the backends of %s:%u has no ping; "
		    "write a path like \"/ping\"",
		    p->name, b->backends->pos.file, b->backends->pos.line);
}

static void
check_rewrite(struct config *cfg, const struct cfg_block *b, const char *name,
    const struct conf_map *map)
{
	const struct cfg_entry *e = cfg_entry_find(b, text_of(name));
	struct rewrite *rw;
	char why[256];
	size_t i;

	if (e == NULL || map->n == 0)
		return;
	rw = rewrite_new(map, why, sizeof(why));
	if (rw == NULL)
		cfg_error(cfg, e->value_pos, "%s: %s", name, why);
	for (i = 0; strcmp(name, "proxy-core.rewrite-response") == 0 && i < map->n; i++)
		if (rewrite_is_special(map->v[i].key))
			cfg_error(cfg, e->value_pos,
			    "%s: expected the name of a header field, got \"%s\", which is "
			    "for proxy-core.rewrite-request",
			    name, map->v[i].key.p);
	rewrite_free(rw);
}

static void
check_spawn(struct config *cfg, const struct cfg_block *b, const struct conf_map *map)
{
	const struct cfg_entry *e = cfg_entry_find(b, TEXT("proxy-core.spawn"));
	char line[SPAWN_LINE_MAX];
	const char *fault;
	size_t i;

	for (i = 0; e != NULL && i < map->n; i++) {
		fault = spawn_line(&map->v[i], line);
		if (fault != NULL)
			cfg_error(cfg, e->value_pos, "proxy-core.spawn: \"%.80s\": %s",
			    map->v[i].key.p, fault);
	}
}

bool
cfg_proxy_check(struct config *cfg)
{
	const struct cfg_entry *authorizer;
	const struct cfg_block *b;
	struct conf c;
	guint i;

	for (i = 0; i < cfg->blocks->len; i++) {
		b = g_ptr_array_index(cfg->blocks, i);
		if (b->settings->len == 0)
			continue;
		config_block(cfg, (int)i, &c);
		authorizer = cfg_entry_find(b, TEXT("proxy-core.authorizer"));
		check_protocol(cfg, b, "proxy-core.protocol", c.proxy_protocol, b->backends);
		check_protocol(cfg, b, "proxy-core.authorizer-protocol", c.authorizer_protocol,
		    authorizer);
		check_count(cfg, b->backends);
		check_count(cfg, authorizer);
		check_secret(cfg, b, &c);
		check_ping(cfg, b, &c);
		check_spawn(cfg, b, &c.proxy_spawn);
		check_rewrite(cfg, b, "proxy-core.rewrite-request", &c.proxy_rewrite_request);
		check_rewrite(cfg, b, "proxy-core.rewrite-response", &c.proxy_rewrite_response);
	}
	return (cfg->errors == 0);
}
