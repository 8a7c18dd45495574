/* server/config/table.c -- checks the blocks against directives.def: names, types, limits,
 * scope. */
#include <stddef.h>
#include <stdio.h>
#include "base/utf8.h"
#include "server/config/impl.h"
#include "wire/headers.h"

enum dir_type { DT_BOOL, DT_UINT, DT_STR, DT_LIST, DT_MAP, DT_MAPS, DT_ALIAS, DT_NOP, DT_OLD };

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
#define SECRET_MAX         256
#define GRACEFUL_DEFAULT_S 300 /* default of server.graceful-shutdown-timeout */

struct check {
	struct config *cfg;
	GHashTable *by_name;                /* name -> index + 1 */
	const char *names[NDIRECTIVES + 1]; /* to find the nearest name */
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

/* ---------------------------------------------------------------- values to fields */

static bool
mismatch_of(struct check *k, const struct cfg_value *v, const char *wanted)
{
	struct buf found;

	buf_init(&found, 512);
	if (cfg_is_secret(k->e->key))
		buf_str(&found, "a value that is not shown");
	else
		cfg_value_describe(v, &found);
	cfg_error(k->cfg, k->e->value_pos, "%s: expected %s, got %.*s", k->e->key.p, wanted,
	    (int)found.n, found.p);
	buf_free(&found);
	return (false);
}

static bool
mismatch(struct check *k, const char *wanted)
{
	return (mismatch_of(k, k->e->value, wanted));
}

static bool
to_bool(struct check *k, const struct cfg_value *v, bool *out)
{
	if (v->kind != CFG_STR ||
	    (!text_eq(v->str, TEXT("enable")) && !text_eq(v->str, TEXT("disable"))))
		return (mismatch(k, "\"enable\" or \"disable\""));
	*out = text_eq(v->str, TEXT("enable"));
	return (true);
}

static uint64_t
limit(const char *s, uint64_t otherwise)
{
	uint64_t v;

	return (text_u64(text_of(s), &v) == 0 ? v : otherwise);
}

static bool
to_uint(struct check *k, const struct cfg_value *v, uint64_t *out)
{
	const struct directive *d = &directives[k->d];
	char wanted[160];

	if (v->kind == CFG_INT)
		*out = v->num;
	if ((v->kind == CFG_INT || (v->kind == CFG_STR && text_u64(v->str, out) == 0)) &&
	    *out >= limit(d->min, 0) && *out <= limit(d->max, INT64_MAX))
		return (true);
	snprintf(wanted, sizeof(wanted), "a number from %s to %s%s%s", d->min, d->max,
	    d->unit[0] != '\0' ? " " : "", d->unit);
	return (mismatch(k, wanted));
}

static bool
is_one_of(struct text words, struct text t)
{
	struct text w;

	while (text_next(&words, ' ', &w))
		if (text_eq(w, t))
			return (true);
	return (false);
}

/* The value goes to headers and logs, where a line break would begin another header. */
static bool
is_printable(struct text t)
{
	struct text odd;

	if (t.n == 0)
		return (true);
	(void)utf8_visible(&t, &odd);
	return (odd.n == 0);
}

static bool
is_short(struct text t)
{
	return (t.n <= SECRET_MAX && is_printable(t));
}

static bool
is_network(struct text t)
{
	struct ip_net net;

	return (text_eq(t, TEXT("all")) || text_eq(t, TEXT("unix")) || ip_net_read(t, &net));
}

static bool
is_fit(struct check *k, struct text t)
{
	static const struct {
		const char *max, *wanted;
		bool (*holds)(struct text);
	} kinds[] = {
		{ "text", "printable text on one line", is_printable },
		{ "secret", "at most 256 bytes of printable text", is_short },
		{ "network",
		    "an address or network such as \"192.0.2.7\", \"10.0.0.0/8\" or "
		    "\"2001:db8::/32\", \"unix\" or \"all\"",
		    is_network },
		{ "name", "the name of a header field", header_is_token },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(kinds); i++)
		if (strcmp(directives[k->d].max, kinds[i].max) == 0)
			return (kinds[i].holds(t) ||
				mismatch_of(k, cfg_value_str(k->cfg, t), kinds[i].wanted));
	return (true);
}

static bool
is_allowed(struct check *k, struct text t)
{
	const struct directive *d = &directives[k->d];
	char wanted[160];

	if (d->min[0] == '\0' || is_one_of(text_of(d->min), t))
		return (true);
	snprintf(wanted, sizeof(wanted), "one of: %s", d->min);
	return (mismatch_of(k, cfg_value_str(k->cfg, t), wanted));
}

static bool
to_str(struct check *k, const struct cfg_value *v, const char **out)
{
	struct text t;

	if (v->kind == CFG_LIST)
		return (mismatch(k, "a string"));
	t = cfg_value_text(k->cfg, v);
	if (!is_allowed(k, t))
		return (false);
	*out = t.n == 0 && directives[k->d].def[0] == '\0' ? NULL : t.p;
	return (is_fit(k, t));
}

static bool
to_list(struct check *k, const struct cfg_value *v, struct conf_list *out)
{
	static const char wanted[] = "a list of strings like ( \"a\", \"b\" )";
	uint32_t i;

	if (v->kind != CFG_LIST)
		return (mismatch(k, wanted));
	out->n = v->n;
	out->v = cfg_get(k->cfg, v->n * sizeof(*out->v));
	for (i = 0; i < v->n; i++) {
		if (v->items[i].value->kind == CFG_LIST || v->items[i].key.p != NULL)
			return (mismatch(k, wanted));
		out->v[i] = cfg_value_text(k->cfg, v->items[i].value);
		if (!is_allowed(k, out->v[i]) || !is_fit(k, out->v[i]))
			return (false);
	}
	return (true);
}

/* Of a MAP: "min" has the allowed words, or "max" holds for the value as for its key. */
static bool
is_fit_value(struct check *k, struct text t)
{
	return (directives[k->d].min[0] != '\0' ? is_allowed(k, t) : is_fit(k, t));
}

static bool
to_map(struct check *k, const struct cfg_value *v, struct conf_map *out, bool of_maps)
{
	const char *wanted = of_maps ? "a list like ( \"NAME\" => ( \"a\" => \"b\" ) )"
				     : "a list like ( \"a\" => \"b\" )";
	const struct cfg_value *w;
	struct conf_map *inner;
	uint32_t i;

	if (v->kind != CFG_LIST)
		return (mismatch(k, wanted));
	out->n = v->n;
	out->v = cfg_get(k->cfg, v->n * sizeof(*out->v));
	for (i = 0; i < v->n; i++) {
		w = v->items[i].value;
		if (v->items[i].key.p == NULL || (w->kind == CFG_LIST) != of_maps)
			return (mismatch(k, wanted));
		out->v[i].key = v->items[i].key;
		if (!is_fit(k, out->v[i].key))
			return (false);
		if (!of_maps) {
			out->v[i].value = cfg_value_text(k->cfg, w);
			if (!is_fit_value(k, out->v[i].value))
				return (false);
			continue;
		}
		inner = cfg_get(k->cfg, sizeof(*inner));
		if (!to_map(k, w, inner, false))
			return (false);
		out->v[i].map = inner;
	}
	return (true);
}

static bool
convert(struct check *k, const struct cfg_value *v, void *out)
{
	switch (shapes[k->d].type) {
	case DT_BOOL: return (to_bool(k, v, out));
	case DT_UINT: return (to_uint(k, v, out));
	case DT_STR: return (to_str(k, v, out));
	case DT_LIST: return (to_list(k, v, out));
	case DT_MAP: return (to_map(k, v, out, false));
	case DT_MAPS: return (to_map(k, v, out, true));
	case DT_ALIAS:
	case DT_NOP:
	case DT_OLD: break;
	}
	return (true);
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
	cfg_warn(k->cfg, k->e->pos, "%s is an old name; write %s", k->e->key.p, now.p);
	k->d = find(k, now) - 1;
	return (true);
}

/* True if only the listening socket decides whether the block holds. */
static bool
is_of_sockets(const struct cfg_block *b)
{
	const struct cfg_block *p;

	for (; b->ndx != 0; b = b->parent)
		for (p = b; p != NULL; p = p->prev)
			if (p->cond.field != NULL && !cfg_field_is_socket(p->cond.field))
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
	if (directives[k->d].scope[0] == 'S' && !is_of_sockets(k->block)) {
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
	if (!convert(k, k->e->value, data))
		return;
	if (strcmp(directives[k->d].name, "server.feature-flags") == 0 &&
	    !cfg_features_check(k->cfg, k->e->value_pos, data))
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
		cfg_refused(k->cfg, k->e, k->names);
		return;
	}
	k->d = i - 1;
	switch (shapes[k->d].type) {
	case DT_NOP: break;
	case DT_OLD: warn_old(k); break;
	case DT_ALIAS:
		if (resolve_alias(k))
			set_field(k);
		break;
	default: set_field(k);
	}
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
		k.names[i] = directives[i].name;
		g_hash_table_insert(k.by_name, (gpointer)directives[i].name,
		    GUINT_TO_POINTER(i + 1));
	}
	for (i = 0; i < cfg->blocks->len; i++) {
		k.block = g_ptr_array_index(cfg->blocks, i);
		for (j = 0; j < k.block->entries->len; j++) {
			k.e = g_ptr_array_index(k.block->entries, j);
			check_entry(&k);
		}
	}
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
	struct check k = { .cfg = cfg, .e = &e };

	memset(out, 0, sizeof(*out));
	out->proxy_block = out->proxy_number = -1;
	out->authorizer_block = out->authorizer_number = -1;
	out->graceful_s = GRACEFUL_DEFAULT_S;
	for (k.d = 0; k.d < NDIRECTIVES; k.d++) {
		e.key = text_of(directives[k.d].name);
		if (shapes[k.d].type >= DT_LIST)
			e.value = default_list(cfg, text_of(directives[k.d].def));
		else
			e.value = cfg_value_str(cfg, text_of(directives[k.d].def));
		if (shapes[k.d].size > 0)
			convert(&k, e.value, (char *)out + shapes[k.d].at);
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
