/* server/config/language/table.c -- checks the blocks against directives.def: names, types, limits,
 * scope. */
#include <stddef.h>
#include "server/config/impl.h"

/* Rows without a field have offset 0 and size 0. */
#define AT_BOOL(f)  offsetof(struct conf, f), sizeof(bool)
#define AT_UINT(f)  offsetof(struct conf, f), sizeof(uint64_t)
#define AT_STR(f)   offsetof(struct conf, f), sizeof(char *)
#define AT_LIST(f)  offsetof(struct conf, f), sizeof(struct conf_list)
#define AT_MAP(f)   offsetof(struct conf, f), sizeof(struct conf_map)
#define AT_MAPS(f)  offsetof(struct conf, f), sizeof(struct conf_map)
#define AT_ALIAS(f) 0, 0
#define AT_NOP(f)   0, 0
#define AT_OLD(f)   0, 0
#define AT_BLOCK(f) 0, 0

static const struct {
	enum dir_type type;
	size_t at, size;
} shapes[] = {
#define D(field, name, type, def, min, max, unit, scope, prose) { DT_##type, AT_##type(field) },
#include "server/config/directives.def"
#undef D
};

const struct directive directives[] = {
#define D(field, name, type, def, min, max, unit, scope, prose) \
	{ name, #type, def, min, max, unit, #scope, prose },
#include "server/config/directives.def"
#undef D
	{ NULL },
};

#define NDIRECTIVES        G_N_ELEMENTS(shapes)
#define GRACEFUL_DEFAULT_S 300 /* default of server.graceful-shutdown-timeout */

struct check {
	struct config *cfg;
	GHashTable *by_name; /* name -> index + 1 */
	bool warned[NDIRECTIVES];
	struct cfg_block *block;
	const struct cfg_entry *e;
	const struct cfg_entry *backends; /* the first proxy-core.backends; NULL: none */
	/* The directive; for an alias the directive it stands for. */
	unsigned d;
};

bool
cfg_is_secret(struct text key)
{
	unsigned i;

	for (i = 0; i < NDIRECTIVES; i++)
		if (strcmp(directives[i].max, "secret") == 0 &&
		    text_eq(key, text_of(directives[i].name)))
			return (true);
	return (false);
}

/* ---------------------------------------------------------------- entries */

static void
warn_old(struct check *k)
{
	if (k->warned[k->d])
		return;
	k->warned[k->d] = true;
	cfg_warn(k->cfg, k->e->pos, "%s has no effect: %s", k->e->key.p, directives[k->d].prose);
}

static unsigned
find(struct check *k, struct text name)
{
	return (GPOINTER_TO_UINT(g_hash_table_lookup(k->by_name, name.p)));
}

/* The current name wins over an alias in the same block. */
static bool
resolve_alias(struct check *k)
{
	struct text now = text_of(directives[k->d].def);

	if (cfg_entry_find(k->block, now) != NULL) {
		cfg_warn(k->cfg, k->e->pos,
		    "%s is another name of %s, which is also set and takes precedence", k->e->key.p,
		    now.p);
		return (false);
	}
	if (strcmp(directives[k->d].max, "quiet") != 0)
		cfg_warn(k->cfg, k->e->pos, "%s is an old name; write %s", k->e->key.p, now.p);
	k->d = find(k, now) - 1;
	return (true);
}

/* True if only the listening socket, or also the host, decides whether the conditions of the block
 * are true. */
static bool
is_of_sockets(const struct cfg_block *b, bool or_hosts)
{
	const struct cfg_block *p;

	for (; b->ndx != 0; b = b->parent)
		for (p = b; p != NULL; p = p->prev)
			if (p->cond.field != NULL && !cfg_field_is_socket(p->cond.field) &&
			    !(or_hosts && cfg_field_is_host(p->cond.field)))
				return (false);
	return (true);
}

static void
set_field(struct check *k)
{
	struct cfg_setting s;
	void *data;

	if (directives[k->d].scope[0] == 'G' && k->block->ndx != 0) {
		cfg_error(k->cfg, k->e->pos,
		    "%s is for the whole server; move it out of the conditional block",
		    k->e->key.p);
		return;
	}
	if (directives[k->d].scope[0] == 'H' && !is_of_sockets(k->block, true)) {
		cfg_error(k->cfg, k->e->pos,
		    "%s is needed before there is a request; move it out of this block, or into "
		    "one of $SERVER[\"socket\"] or $HTTP[\"host\"]",
		    k->e->key.p);
		return;
	}
	if (directives[k->d].scope[0] == 'S' && !is_of_sockets(k->block, false)) {
		cfg_error(k->cfg, k->e->pos,
		    "%s is for a listening socket and cannot depend on a request; move it out of "
		    "this block, or into one of $SERVER[\"socket\"]",
		    k->e->key.p);
		return;
	}
	if (!cfg_grows(k->cfg, k->e->pos,
		shapes[k->d].size + (size_t)k->e->value->weight * sizeof(struct conf_pair)))
		return;
	data = cfg_get(k->cfg, shapes[k->d].size);
	if (!cfg_convert(k->cfg, k->e, &directives[k->d], shapes[k->d].type, data))
		return;
	if (shapes[k->d].type == DT_MAP || shapes[k->d].type == DT_MAPS)
		((struct conf_map *)data)->block = k->block->ndx;
	if (strcmp(directives[k->d].name, "server.feature-flags") == 0 &&
	    !cfg_features_check(k->cfg, k->e->value_pos, data))
		return;
	if (strcmp(directives[k->d].name, "server.http-parseopts") == 0 &&
	    !cfg_parseopts_check(k->cfg, k->e->value_pos, data))
		return;
	s = (struct cfg_setting){ (uint16_t)k->d, data };
	g_array_append_val(k->block->settings, s);
	if (strcmp(directives[k->d].name, "proxy-core.backends") == 0 &&
	    k->block->backends == NULL) {
		k->block->backends = k->e;
		k->backends = k->backends != NULL ? k->backends : k->e;
		k->block->proxy_number = k->cfg->nproxies++;
	}
	if (strcmp(directives[k->d].name, "proxy-core.authorizer") == 0 &&
	    !k->block->has_authorizer) {
		k->block->has_authorizer = true;
		k->block->authorizer_number = k->cfg->nproxies++;
	}
}

static void
check_entry(struct check *k)
{
	unsigned i;

	if (text_starts(k->e->key, TEXT("var.")))
		return;
	if ((i = find(k, k->e->key)) == 0) {
		cfg_refused(k->cfg, k->e);
		return;
	}
	k->d = i - 1;
	switch (shapes[k->d].type) {
	case DT_NOP:
	case DT_BLOCK: break; /* cfg_translate() has removed it */
	case DT_OLD: warn_old(k); break;
	case DT_ALIAS:
		if (resolve_alias(k))
			set_field(k);
		break;
	default: set_field(k);
	}
}

/* A key belongs to its certificate: a block that sets ssl.pemfile alone has its key there, whatever
 * ssl.privkey is around it. */
static void
forget_outer_key(struct check *k)
{
	static const char *const none = NULL;
	struct cfg_setting s = { (uint16_t)(find(k, TEXT("ssl.privkey")) - 1), &none };

	if (cfg_entry_find(k->block, TEXT("ssl.pemfile")) != NULL &&
	    cfg_entry_find(k->block, TEXT("ssl.privkey")) == NULL)
		g_array_append_val(k->block->settings, s);
}

/* ---------------------------------------------------------------- settings of pools */

/* The backends that a pool setting in block b would change; NULL: b is the right place. */
static const struct cfg_entry *
backends_elsewhere(const struct check *k, const struct cfg_block *b)
{
	const struct cfg_block *around;

	if (b->has_authorizer)
		return (NULL); /* the setting holds for the pools of this list */
	for (around = b; around != NULL; around = around->parent)
		if (around->backends != NULL)
			return (around != b ? around->backends : NULL);
	return (b->around_backends ? NULL : k->backends);
}

static bool
is_of_pool(struct check *k, struct text name)
{
	unsigned d = find(k, name);

	if (d != 0 && shapes[d - 1].type == DT_ALIAS)
		d = find(k, text_of(directives[d - 1].def));
	return (d != 0 && directives[d - 1].scope[0] == 'P');
}

/* A pool serves all requests of its block, so some of them cannot have another pool setting. */
static void
check_pool_settings(struct check *k)
{
	const struct cfg_entry *e, *elsewhere;
	struct cfg_block *b;
	unsigned i, j;

	for (i = k->cfg->blocks->len; i-- > 1;) {
		b = g_ptr_array_index(k->cfg->blocks, i);
		b->parent->around_backends |=
		    b->backends != NULL || b->has_authorizer || b->around_backends;
	}
	for (i = 1; i < k->cfg->blocks->len; i++) {
		b = g_ptr_array_index(k->cfg->blocks, i);
		elsewhere = backends_elsewhere(k, b);
		for (j = 0; elsewhere != NULL && j < b->entries->len; j++) {
			e = g_ptr_array_index(b->entries, j);
			if (is_of_pool(k, e->key))
				cfg_error(k->cfg, e->pos,
				    "%s is a setting of the pool and cannot hold in this block: "
				    "the backends are those of %s:%u; write it there, or "
				    "proxy-core.backends here for a pool of its own",
				    e->key.p, elsewhere->pos.file, elsewhere->pos.line);
		}
	}
}

bool
cfg_table_check(struct config *cfg)
{
	struct check k = { .cfg = cfg, .by_name = g_hash_table_new(g_str_hash, g_str_equal) };
	unsigned i, j;

	for (i = 0; i < NDIRECTIVES; i++) {
		g_hash_table_insert(k.by_name, (gpointer)directives[i].name,
		    GUINT_TO_POINTER(i + 1));
	}
	for (i = 0; i < cfg->blocks->len; i++) {
		k.block = g_ptr_array_index(cfg->blocks, i);
		for (j = 0; j < k.block->entries->len; j++) {
			k.e = g_ptr_array_index(k.block->entries, j);
			check_entry(&k);
		}
		forget_outer_key(&k);
	}
	cfg_modules_check(cfg);
	check_pool_settings(&k);
	if (cfg->errors == 0)
		cfg_pools_check(cfg);
	g_hash_table_destroy(k.by_name);
	return (cfg->errors == 0);
}

/* ---------------------------------------------------------------- defaults, applying */

/* Default of a LIST: words separated by spaces.  A MAP has no default. */
static const struct cfg_value *
default_list(struct config *cfg, struct text words)
{
	struct cfg_item items[8] = { { .key = TEXT_NONE } };
	struct text w;
	size_t n = 0;

	while (words.n > 0 && n < G_N_ELEMENTS(items) && text_next(&words, ' ', &w))
		items[n++] = (struct cfg_item){ TEXT_NONE, cfg_value_str(cfg, w) };
	return (cfg_value_list(cfg, (struct cfg_pos){ "directives.def", 1, 1 }, items, n));
}

void
cfg_table_defaults(struct config *cfg, struct conf *out)
{
	struct cfg_entry e = { .pos = { "directives.def", 1, 1 },
		.value_pos = { "directives.def", 1, 1 } };
	unsigned d;

	memset(out, 0, sizeof(*out));
	out->proxy_block = out->proxy_number = -1;
	out->authorizer_block = out->authorizer_number = -1;
	out->graceful_s = GRACEFUL_DEFAULT_S;
	for (d = 0; d < NDIRECTIVES; d++) {
		e.key = text_of(directives[d].name);
		if (shapes[d].type >= DT_LIST)
			e.value = default_list(cfg, text_of(directives[d].def));
		else
			e.value = cfg_value_str(cfg, text_of(directives[d].def));
		if (shapes[d].size > 0)
			cfg_convert(cfg, &e, &directives[d], shapes[d].type,
			    (char *)out + shapes[d].at);
	}
}

void
cfg_table_apply(const struct cfg_block *b, struct conf *out)
{
	const struct cfg_setting *s;
	guint i;

	for (i = 0; i < b->settings->len; i++) {
		s = &g_array_index(b->settings, struct cfg_setting, i);
		memcpy((char *)out + shapes[s->directive].at, s->data, shapes[s->directive].size);
		if (shapes[s->directive].at == offsetof(struct conf, server_rate))
			out->server_rate_at = s->data;
	}
	if (b->backends != NULL) {
		out->proxy_block = (int)b->ndx;
		out->proxy_number = (int)b->proxy_number;
	}
	if (b->has_authorizer) {
		out->authorizer_block = (int)b->ndx;
		out->authorizer_number = (int)b->authorizer_number;
	}
}
