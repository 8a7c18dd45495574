/* server/config/language/view.c -- which conditions are true for a request, and the resulting
 * struct conf.
 *
 * Clients choose which conditions are true, so the number of kept sets is limited.  The least
 * recently used set is dropped, and built again when it is needed.
 *
 * Only blocks with settings are bits of the set.  Blocks that only contain other blocks are not, so
 * the number of sets stays small.
 */
#include <stdlib.h>
#include "base/list.h"
#include "base/must.h"
#include "server/config/impl.h"

struct set {
	struct conf conf;
	uint32_t refs;   /* requests that hold it */
	bool known;      /* in the table; false: evicted while requests held it */
	struct list lru; /* the most recently used one in front */
	uint64_t bits[];
};

struct conf_view {
	const struct config *cfg;
	int (*derive)(struct conf *, void *arg);
	void (*undo)(struct conf *, void *arg);
	void *arg;
	size_t nblocks, words;
	GHashTable *sets; /* bits -> struct set, the known ones */
	struct list lru;
	unsigned alive;   /* known sets, and evicted ones that requests still hold */
	struct set *last; /* most requests have the set of the request before */
	uint64_t *bits;   /* of the current request */
	uint8_t *state;   /* enum cfg_state of each block */
	uint8_t *taken;   /* the state of it and of the blocks before it in its else chain */
	/* a block whose condition could not be decided for this request; NULL: all were decided */
	const struct cfg_block *failed;
};

static __thread size_t words_now; /* glib's callbacks have no argument for it */

static guint
bits_hash(gconstpointer p)
{
	return ((guint)text_hash((struct text){ p, words_now * sizeof(uint64_t) }));
}

static gboolean
bits_same(gconstpointer a, gconstpointer b)
{
	return (memcmp(a, b, words_now * sizeof(uint64_t)) == 0);
}

struct conf_view *
conf_view_new(const struct config *cfg, int (*derive)(struct conf *, void *arg),
    void (*undo)(struct conf *, void *arg), void *arg)
{
	struct conf_view *v = g_new0(struct conf_view, 1);

	v->cfg = cfg;
	v->derive = derive;
	v->undo = undo;
	v->arg = arg;
	v->nblocks = cfg->blocks->len;
	v->words = (v->nblocks + 63) / 64;
	v->sets = g_hash_table_new(bits_hash, bits_same);
	list_init(&v->lru);
	v->bits = g_new0(uint64_t, v->words);
	v->state = g_new0(uint8_t, v->nblocks);
	v->taken = g_new0(uint8_t, v->nblocks);
	return (v);
}

static struct set *
set_of(const struct conf *conf)
{
	return ((struct set *)(void *)((char *)(uintptr_t)conf - offsetof(struct set, conf)));
}

static void
set_free(struct conf_view *v, struct set *s)
{
	if (v->undo != NULL)
		v->undo(&s->conf, v->arg);
	v->alive--;
	free(s);
}

/* Removes a set from the table.  Requests that hold the set keep it; the last of them frees it. */
static void
set_evict(struct conf_view *v, struct set *s)
{
	words_now = v->words;
	g_hash_table_remove(v->sets, s->bits);
	list_del(&s->lru);
	s->known = false;
	if (v->last == s)
		v->last = NULL;
	if (s->refs == 0)
		set_free(v, s);
}

void
conf_hold(const struct conf *conf)
{
	set_of(conf)->refs++;
}

void
conf_release(struct conf_view *v, const struct conf *conf)
{
	struct set *s = set_of(conf);

	must(s->refs > 0);
	if (--s->refs == 0 && !s->known)
		set_free(v, s);
}

unsigned
conf_view_sets(const struct conf_view *v)
{
	return (v->alive);
}

void
conf_view_free(struct conf_view *v)
{
	if (v == NULL)
		return;
	while (!list_empty(&v->lru))
		set_evict(v, list_entry(v->lru.next, struct set, lru));
	must(v->alive == 0);
	g_hash_table_destroy(v->sets);
	g_free(v->bits);
	g_free(v->state);
	g_free(v->taken);
	g_free(v);
}

/* ---------------------------------------------------------------- matching */

/* A block is evaluated only if its outer block is true and no block before it in its chain is. */
static enum cfg_state
block_state(struct conf_view *v, const struct cfg_block *b, const struct conf_input *in)
{
	enum cfg_state around = v->state[b->parent->ndx];
	enum cfg_state before = b->prev != NULL ? v->taken[b->prev->ndx] : CFG_FALSE;

	v->taken[b->ndx] = before;
	if (around != CFG_TRUE)
		return (around);
	if (before != CFG_FALSE)
		return (before == CFG_TRUE ? CFG_FALSE : CFG_UNKNOWN);
	return (v->taken[b->ndx] = cfg_cond_eval(&b->cond, in));
}

static bool
match_all(struct conf_view *v, const struct conf_input *in)
{
	const struct cfg_block *b;
	size_t i;

	memset(v->bits, 0, v->words * sizeof(uint64_t));
	v->state[0] = CFG_TRUE;
	v->failed = NULL;
	for (i = 1; i < v->nblocks; i++) {
		b = g_ptr_array_index(v->cfg->blocks, i);
		v->state[i] = block_state(v, b, in);
		if (v->state[i] == CFG_FAILED) {
			v->failed = b;
			return (false);
		}
		if (v->state[i] == CFG_TRUE && b->settings->len > 0)
			v->bits[i / 64] |= 1ull << i % 64;
	}
	return (true);
}

/* ---------------------------------------------------------------- merging */

static bool
bit(const struct conf_view *v, size_t i)
{
	return ((v->bits[i / 64] >> i % 64 & 1) != 0);
}

/* The later block wins, setting by setting. */
static struct set *
set_new(struct conf_view *v)
{
	struct set *s;
	size_t i;

	s = malloc(sizeof(*s) + v->words * sizeof(uint64_t));
	if (s == NULL)
		return (NULL);
	memcpy(s->bits, v->bits, v->words * sizeof(uint64_t));
	s->conf = v->cfg->global;
	s->refs = 0;
	s->known = true;
	for (i = 1; i < v->nblocks; i++)
		if (bit(v, i))
			cfg_table_apply(g_ptr_array_index(v->cfg->blocks, i), &s->conf);
	if (v->derive != NULL && v->derive(&s->conf, v->arg) != 0) {
		free(s);
		return (NULL);
	}
	v->alive++;
	return (s);
}

static struct set *
set_get(struct conf_view *v)
{
	struct set *s;

	words_now = v->words;
	s = g_hash_table_lookup(v->sets, v->bits);
	if (s == NULL) {
		if ((s = set_new(v)) == NULL)
			return (NULL);
		if (g_hash_table_size(v->sets) >= CFG_SETS_MAX)
			set_evict(v, list_entry(v->lru.prev, struct set, lru));
		words_now = v->words;
		g_hash_table_insert(v->sets, s->bits, s);
	} else
		list_del(&s->lru);
	list_add_head(&v->lru, &s->lru);
	return (s);
}

const struct conf *
conf_view_match(struct conf_view *v, const struct conf_input *in)
{
	if (v->last != NULL && v->nblocks == 1)
		return (&v->last->conf);
	if (!match_all(v, in))
		return (NULL);
	if (v->last == NULL || memcmp(v->last->bits, v->bits, v->words * sizeof(uint64_t)) != 0)
		v->last = set_get(v);
	return (v->last != NULL ? &v->last->conf : NULL);
}

bool
conf_view_capture(const struct conf_view *v, unsigned block, const struct conf_input *in,
    struct text *cap, bool *decoded)
{
	const struct cfg_block *b = g_ptr_array_index(v->cfg->blocks, block);

	*decoded = cfg_field_is_decoded(b->cond.field);
	return (cfg_cond_capture(&b->cond, in, cap));
}

const char *
conf_view_failed(const struct conf_view *v, uint32_t *line)
{
	if (v->failed == NULL)
		return (NULL);
	*line = v->failed->pos.line;
	return (v->failed->pos.file);
}

void
conf_view_tell(const struct conf_view *v,
    void (*fn)(void *arg, const char *file, uint32_t line, struct text cond, const char *state),
    void *arg)
{
	static const char *const words[] = { [CFG_FALSE] = "false",
		[CFG_TRUE] = "true",
		[CFG_UNKNOWN] = "unknown",
		[CFG_FAILED] = "undecided" };
	const struct cfg_block *b;
	struct buf cond;
	size_t i;

	buf_init(&cond, 0);
	for (i = 1; i < v->nblocks; i++) {
		b = g_ptr_array_index(v->cfg->blocks, i);
		cond.n = 0;
		if (b->prev != NULL)
			buf_str(&cond, "else ");
		cfg_cond_print(&b->cond, &cond);
		if (!cond.failed)
			fn(arg, b->pos.file, b->pos.line, text_trim(buf_as_text(&cond)),
			    words[v->state[i]]);
	}
	buf_free(&cond);
}

/* ---------------------------------------------------------------- all values */

static void
apply_with_outer(const struct cfg_block *b, struct conf *out)
{
	if (b->ndx == 0)
		return;
	apply_with_outer(b->parent, out);
	cfg_table_apply(b, out);
}

void
config_block(const struct config *cfg, int block, struct conf *out)
{
	*out = cfg->global;
	out->values_of = (unsigned)block;
	apply_with_outer(g_ptr_array_index(cfg->blocks, (guint)block), out);
}

void
config_socket(const struct config *cfg, const char *socket, struct conf *out)
{
	const struct conf_input in = { .socket = text_of(socket) };
	struct conf_view *v = conf_view_new(cfg, NULL, NULL, NULL);
	const struct conf *conf = conf_view_match(v, &in);

	*out = conf != NULL ? *conf : cfg->global;
	out->ssl_engine = out->ssl_engine && cfg_socket_has_engine(cfg, in.socket);
	out->values_of = cfg_socket_block(cfg, in.socket);
	conf_view_free(v);
}

/* False: a connection of this socket never has the values of this block. */
static bool
is_within_reach(const struct cfg_block *b, const struct conf_input *in)
{
	for (; b->ndx != 0; b = b->parent)
		if (b->cond.field != NULL && cfg_field_is_socket(b->cond.field) &&
		    cfg_cond_eval(&b->cond, in) == CFG_FALSE)
			return (false);
	return (true);
}

static bool
each_at(const struct config *cfg, const char *socket, bool (*fn)(const struct conf *, void *arg),
    void *arg)
{
	const struct conf_input in = { .socket = text_of(socket) };
	const struct cfg_block *b;
	struct conf at, conf;
	size_t i;

	config_socket(cfg, socket, &at);
	if (!fn(&at, arg))
		return (false);
	for (i = 1; i < cfg->blocks->len; i++) {
		b = g_ptr_array_index(cfg->blocks, i);
		if (b->settings->len == 0 || !is_within_reach(b, &in))
			continue;
		conf = at;
		conf.values_of = (unsigned)i;
		apply_with_outer(b, &conf);
		if (!fn(&conf, arg))
			return (false);
	}
	return (true);
}

bool
config_each(const struct config *cfg, bool (*fn)(const struct conf *, void *arg), void *arg)
{
	const struct cfg_block *b;
	struct conf conf;
	size_t i;

	for (i = 0; i < cfg->blocks->len; i++) {
		b = g_ptr_array_index(cfg->blocks, i);
		if (i > 0 && b->settings->len == 0)
			continue;
		config_block(cfg, (int)i, &conf);
		if (!fn(&conf, arg))
			return (false);
	}
	return (true);
}

bool
config_each_at(const struct config *cfg, const char *socket,
    bool (*fn)(const struct conf *, void *arg), void *arg)
{
	return (socket != NULL ? each_at(cfg, socket, fn, arg) : config_each(cfg, fn, arg));
}

bool
config_each_secure(const struct config *cfg,
    bool (*fn)(const char *socket, const struct conf *, void *arg), void *arg)
{
	const char *socket;
	struct conf c;
	size_t i;

	for (i = 0; (socket = config_listen(cfg, i)) != NULL; i++) {
		config_socket(cfg, socket, &c);
		if (c.ssl_engine && !fn(socket, &c, arg))
			return (false);
	}
	return (!cfg->global.ssl_engine || fn(NULL, &cfg->global, arg));
}
