/* server/config/lighttpd/translate.c -- which blocks fastcgi.server, scgi.server, proxy.server and
 * ajp13.server become, and in which order; see translate.h.
 *
 * In lighttpd a request meets these modules twice: by its URL (keys with check-local = "disable",
 * and proxies), then by the file that exists.  Each time the first key that matches decides.  Here
 * the last block that matches wins.  So the blocks for files come before those for URLs, and those
 * of the last module before those of the first.  The keys of one list are a chain of else.
 *
 * A list in an inner or later block replaces the outer one.  The keys that it does not have get an
 * empty list of backends there.
 */
#include "server/config/lighttpd/translate.h"

enum stage { STAGE_FILES, STAGE_URLS };

static const struct gateway_kind kinds[] = {
	{ "fastcgi", "mod_fastcgi", "fastcgi", 0, false },
	{ "scgi", "mod_scgi", "scgi", 0, false },
	{ "proxy", "mod_proxy", "http", 80, true },
	{ "ajp13", "mod_ajp13", "ajp13", 8009, true },
};
#define KINDS G_N_ELEMENTS(kinds)

struct translation {
	struct config *cfg;
	GArray *all; /* struct gateway, in the order of blocks */
	const struct gateway_kind *order[KINDS];
};

/* A chain of else below one block. */
struct chain {
	struct translation *t;
	const struct gateway *g;
	struct cfg_block *prev;
	const char *tag; /* tells equal conditions of different chains apart */
};

/* ---------------------------------------------------------------- conditions */

static struct cfg_block *
open_block(struct translation *t, const struct gateway *g, struct cfg_block *parent,
    struct cfg_block *prev, const char *group, const char *name, struct text regex)
{
	struct cfg_cond cond = { .op = TOK_RE, .value = regex };

	cond.field = cfg_field_find(text_of(group), text_of(name));
	if (!cfg_grows(t->cfg, g->e.pos, 16384) || !cfg_cond_compile(t->cfg, g->e.pos, &cond))
		return (NULL);
	return (cfg_block_open(t->cfg, g->e.pos, parent, prev, &cond));
}

/* KIND.map-extensions: further endings that stand for this key. */
static void
add_mapped(const struct chain *c, const struct gateway_key *key, struct buf *b)
{
	const struct cfg_value *map = gateway_setting(c->t->cfg, c->g, "map-extensions");
	uint32_t i;

	for (i = 0; map != NULL && map->kind == CFG_LIST && i < map->n; i++)
		if (map->items[i].value->kind == CFG_STR &&
		    text_eq(map->items[i].value->str, key->key)) {
			buf_char(b, '|');
			translate_quote(b, map->items[i].key);
		}
}

static struct text
regex_of(const struct chain *c, const struct gateway_key *key)
{
	bool prefix = key->key.n != 0 && key->key.p[0] == '/';
	struct buf b;

	buf_init(&b, 0);
	buf_printf(&b, "(?#%s%s)%s", c->g->e.key.p, c->tag, prefix ? "^(?:" : "(?:");
	translate_quote(&b, key->key);
	if (!prefix)
		add_mapped(c, key, &b);
	buf_str(&b, prefix ? ")" : ")\\z");
	return (translate_text(c->t->cfg, &b));
}

/* The block of the next key of the chain.  NULL: an error is reported. */
static struct cfg_block *
next_block(struct chain *c, const struct gateway_key *key, enum stage stage)
{
	bool prefix = key->key.n != 0 && key->key.p[0] == '/';
	bool file = stage == STAGE_FILES && !prefix;
	struct cfg_block *b = open_block(c->t, c->g, c->g->block, c->prev,
	    file ? "PHYSICAL" : "HTTP", file ? "existing-path" : "url", regex_of(c, key));

	if (b != NULL)
		c->prev = b;
	if (b == NULL || !prefix || stage != STAGE_FILES)
		return (b);
	return (open_block(c->t, c->g, b, NULL, "PHYSICAL", "existing-path", TEXT("(?#exists)")));
}

/* ---------------------------------------------------------------- chains */

/* A key with check-local = "disable" also holds for a file that its URL does not end with:
 * /a.php/info. */
static bool
meets(const struct gateway *g, const struct gateway_key *key, enum stage stage)
{
	bool prefix = key->key.n != 0 && key->key.p[0] == '/';

	if (stage == STAGE_URLS)
		return (!key->local);
	return (!g->kind->only_urls && (key->local || (!prefix && key->key.n != 0)));
}

static bool
meets_any(const struct gateway *g, enum stage stage, bool authorizer)
{
	size_t i;

	for (i = 0; i < g->nkeys; i++)
		if (g->key[i].authorizer == authorizer && meets(g, &g->key[i], stage))
			return (true);
	return (false);
}

static const struct gateway_key *
find_key(const struct gateway *g, const struct gateway_key *like, enum stage stage)
{
	size_t i;

	for (i = 0; i < g->nkeys; i++)
		if (text_eq(g->key[i].key, like->key) && g->key[i].authorizer == like->authorizer &&
		    meets(g, &g->key[i], stage))
			return (&g->key[i]);
	return (NULL);
}

/* False: no request can be in both blocks. */
static bool
excludes(const struct cfg_block *a, const struct cfg_block *b)
{
	const struct cfg_block *p;

	for (p = b->prev; p != NULL; p = p->prev)
		if (p == a)
			return (true);
	return (a->cond.field != NULL && a->cond.field == b->cond.field && a->cond.op == TOK_EQ &&
		b->cond.op == TOK_EQ && !cfg_field_is_socket(a->cond.field) && !a->cond.is_net &&
		memchr(a->cond.value.p, ':', a->cond.value.n) == NULL &&
		!text_ieq(a->cond.value, b->cond.value));
}

static bool
may_meet(const struct cfg_block *a, const struct cfg_block *b)
{
	const struct cfg_block *p, *q;

	for (p = a; p != NULL; p = p->parent)
		for (q = b; q != NULL; q = q->parent)
			if (p != q && (excludes(p, q) || excludes(q, p)))
				return (false);
	return (true);
}

/* After the keys of g: the keys of the list that g replaces, if g does not have them. */
static void
chain_resets(struct chain *c, enum stage stage, bool authorizer)
{
	struct translation *t = c->t;
	const struct gateway *old;
	const struct gateway_key *key;
	struct cfg_block *b;
	guint i;
	size_t j;

	c->tag = authorizer ? " of another block, authorizer" : " of another block";
	for (i = 0; i < t->all->len; i++) {
		old = &g_array_index(t->all, struct gateway, i);
		if (old->kind != c->g->kind || old->block->ndx >= c->g->block->ndx ||
		    !may_meet(old->block, c->g->block))
			continue;
		for (j = 0; j < old->nkeys; j++) {
			key = &old->key[j];
			if (key->authorizer != authorizer || !meets(old, key, stage) ||
			    find_key(c->g, key, stage) != NULL)
				continue;
			b = next_block(c, key, stage);
			if (b == NULL)
				return;
			translate_set(t->cfg, b, c->g->e.pos,
			    authorizer ? "proxy-core.authorizer" : "proxy-core.backends",
			    cfg_value_list(t->cfg, c->g->e.pos, NULL, 0));
		}
	}
}

static void
chain_keys(struct chain *c, enum stage stage, bool authorizer)
{
	static const char *const tags[2][2] = { { " files", " files, authorizer" },
		{ "", " authorizer" } };
	bool behind_files = false; /* a key for files comes first and may hide this one */
	struct cfg_block *b;
	size_t i;

	if (!meets_any(c->g, stage, authorizer))
		return;
	c->tag = tags[stage][authorizer];
	for (i = 0; i < c->g->nkeys; i++) {
		const struct gateway_key *key = &c->g->key[i];

		if (key->authorizer != authorizer)
			continue;
		b = next_block(c, key, stage);
		if (b == NULL)
			return;
		behind_files |= key->local;
		if (meets(c->g, key, stage) || (stage == STAGE_FILES && behind_files))
			gateway_fill(c->t->cfg, c->g, key, b);
	}
}

/* True if g replaces keys that hold for URLs. */
static bool
replaces_urls(struct translation *t, const struct gateway *g, bool authorizer)
{
	const struct gateway *old;
	guint i;

	for (i = 0; i < t->all->len; i++) {
		old = &g_array_index(t->all, struct gateway, i);
		if (old->kind == g->kind && old->block->ndx < g->block->ndx &&
		    may_meet(old->block, g->block) && meets_any(old, STAGE_URLS, authorizer))
			return (true);
	}
	return (false);
}

static void
chain(struct translation *t, const struct gateway *g, enum stage stage, bool authorizer)
{
	struct chain files = { t, g, NULL, "" }, urls = files, resets = files;
	bool late = replaces_urls(t, g, authorizer);

	if (stage == STAGE_URLS && late)
		chain_resets(&resets, STAGE_URLS, authorizer);
	if (stage == STAGE_FILES ? !late : late) {
		chain_keys(&files, STAGE_FILES, authorizer);
		chain_resets(&files, STAGE_FILES, authorizer);
	}
	if (stage == STAGE_URLS)
		chain_keys(&urls, STAGE_URLS, authorizer);
}

/* ---------------------------------------------------------------- endings of scripts */

static void
add_ending(struct config *cfg, GArray *items, GHashTable *seen, struct text t)
{
	struct cfg_item item = { TEXT_NONE, cfg_value_str(cfg, t) };

	if (t.n == 0 || t.p[0] == '/' || !g_hash_table_add(seen, (gpointer)&item.value->str))
		return;
	g_array_append_val(items, item);
}

static void
add_endings(struct config *cfg, GArray *items, GHashTable *seen, const struct gateway *g)
{
	const struct cfg_value *map = gateway_setting(cfg, g, "map-extensions");
	uint32_t i;
	size_t j;

	for (j = 0; j < g->nkeys; j++)
		if (!g->key[j].authorizer)
			add_ending(cfg, items, seen, g->key[j].key);
	for (i = 0; map != NULL && map->kind == CFG_LIST && i < map->n; i++)
		add_ending(cfg, items, seen, map->items[i].key);
}

/* Each block with such a list knows the endings of all of them: of two blocks that hold for one
 * request the later one would hide the endings of the other. */
static void
protect_sources(struct translation *t)
{
	GArray *items = g_array_new(FALSE, FALSE, sizeof(struct cfg_item));
	GHashTable *seen = g_hash_table_new(cfg_text_hash, cfg_text_same);
	const struct cfg_value *list = NULL;
	const struct gateway *g;
	guint i;

	for (i = 0; i < t->all->len; i++)
		add_endings(t->cfg, items, seen, &g_array_index(t->all, struct gateway, i));
	for (i = 0; items->len != 0 && i < t->all->len; i++) {
		g = &g_array_index(t->all, struct gateway, i);
		if (list == NULL)
			list = cfg_value_list(t->cfg, g->e.pos,
			    (struct cfg_item *)(void *)items->data, items->len);
		if (cfg_entry_find(g->block, TEXT("static-file.script-extensions")) == NULL)
			translate_set(t->cfg, g->block, g->e.pos, "static-file.script-extensions",
			    list);
	}
	g_hash_table_destroy(seen);
	g_array_free(items, TRUE);
}

/* ---------------------------------------------------------------- entries */

static struct text
name_of(struct config *cfg, const struct gateway_kind *kind, const char *setting)
{
	struct buf b;

	buf_init(&b, 0);
	buf_printf(&b, "%s.%s", kind->name, setting);
	return (translate_text(cfg, &b));
}

const struct cfg_value *
gateway_setting(struct config *cfg, const struct gateway *g, const char *setting)
{
	const struct cfg_entry *e = cfg_entry_around(g->block, name_of(cfg, g->kind, setting));

	return (e != NULL ? e->value : NULL);
}

static void
collect(struct translation *t)
{
	const struct cfg_entry *e;
	struct gateway g;
	guint i, j;

	for (i = 0; i < t->cfg->blocks->len; i++)
		for (j = 0; j < KINDS; j++) {
			g = (struct gateway){ .kind = &kinds[j],
				.block = g_ptr_array_index(t->cfg->blocks, i) };
			e = cfg_entry_find(g.block, name_of(t->cfg, g.kind, "server"));
			if (e == NULL)
				continue;
			g.e = *e;
			if (gateway_read(t->cfg, &g))
				g_array_append_val(t->all, g);
		}
}

/* The order of server.modules; modules without a line there come last, in the order of kinds. */
static void
sort_kinds(struct translation *t)
{
	const struct cfg_entry *e = cfg_entry_find(cfg_block_root(t->cfg), TEXT("server.modules"));
	bool used[KINDS] = { false };
	uint32_t i, n = 0;
	size_t j;

	for (i = 0; e != NULL && e->value->kind == CFG_LIST && i < e->value->n; i++)
		for (j = 0; j < KINDS; j++)
			if (!used[j] && e->value->items[i].value->kind == CFG_STR &&
			    text_eq(e->value->items[i].value->str, text_of(kinds[j].module))) {
				used[j] = true;
				t->order[n++] = &kinds[j];
			}
	for (j = 0; j < KINDS; j++)
		if (!used[j])
			t->order[n++] = &kinds[j];
}

static void
emit(struct translation *t, enum stage stage)
{
	const struct gateway *g;
	size_t k;
	guint i;

	for (k = KINDS; k-- > 0;)
		for (i = 0; i < t->all->len && t->cfg->errors == 0; i++) {
			g = &g_array_index(t->all, struct gateway, i);
			if (g->kind != t->order[k])
				continue;
			chain(t, g, stage, true);
			chain(t, g, stage, false);
		}
}

/* A setting for the pools of a list is written in the block of the list or around it. */
static bool
is_used(const struct translation *t, const struct gateway_kind *kind, const struct cfg_block *b)
{
	const struct cfg_block *p;
	bool any = false;
	guint i;

	for (i = 0; i < t->all->len; i++) {
		if (g_array_index(t->all, struct gateway, i).kind != kind)
			continue;
		any = true;
		for (p = g_array_index(t->all, struct gateway, i).block; p != NULL; p = p->parent)
			if (p == b)
				return (true);
	}
	return (!any);
}

static void
remove_entry(struct translation *t, struct cfg_block *b, const struct gateway_kind *kind,
    const char *setting)
{
	struct text name = name_of(t->cfg, kind, setting);
	struct cfg_entry *e = cfg_entry_find(b, name);

	if (e == NULL)
		return;
	if (!is_used(t, kind, b))
		cfg_error(t->cfg, e->pos,
		    "%s holds for the pools of %s.server and cannot stand in this block; write it "
		    "in the block of %s.server",
		    name.p, kind->name, kind->name);
	g_hash_table_remove(b->by_key, &name);
	g_ptr_array_remove(b->entries, e);
}

static void
remove_entries(struct translation *t)
{
	static const char *const common[] = { "server", "balance", "debug", "map-extensions" };
	struct cfg_block *b;
	size_t j, k;
	guint i;

	for (i = 0; i < t->cfg->blocks->len; i++) {
		b = g_ptr_array_index(t->cfg->blocks, i);
		for (j = 0; j < KINDS; j++)
			for (k = 0; k < G_N_ELEMENTS(common); k++)
				remove_entry(t, b, &kinds[j], common[k]);
		remove_entry(t, b, &kinds[1], "protocol");
		for (k = 0; gateway_proxy_settings[k] != NULL; k++)
			remove_entry(t, b, &kinds[2], gateway_proxy_settings[k]);
	}
}

bool
cfg_translate(struct config *cfg)
{
	struct translation t = { .cfg = cfg };

	t.all = g_array_new(FALSE, FALSE, sizeof(struct gateway));
	sort_kinds(&t);
	collect(&t);
	if (cfg->errors == 0 && t.all->len != 0) {
		protect_sources(&t);
		emit(&t, STAGE_FILES);
		emit(&t, STAGE_URLS);
	}
	if (cfg->errors == 0)
		remove_entries(&t);
	g_array_free(t.all, TRUE);
	return (cfg->errors == 0);
}
