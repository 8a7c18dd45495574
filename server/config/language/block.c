/* server/config/language/block.c -- blocks and their values; memory and messages of a load. */
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/must.h"
#include "server/config/impl.h"

#define MESSAGES_ERRORS   20u
#define MESSAGES_WARNINGS 100u

/* ---------------------------------------------------------------- memory, messages */

void *
cfg_get(struct config *cfg, size_t n)
{
	void *p = arena_get(&cfg->mem, n > 0 ? n : 1);

	must(p != NULL); /* cfg_grows() has checked that there is memory */
	return (memset(p, 0, n));
}

/* True if n bytes could be allocated now. */
static bool
is_spare(size_t n)
{
	void *volatile p = malloc(n); /* volatile: otherwise the compiler removes both calls */

	free(p);
	return (p != NULL);
}

/* glib aborts the process when memory is short, and a reload must not.  So each MiB of arena checks
 * that there is memory for what the containers may allocate until the next check. */
static bool
has_spare(struct config *cfg, size_t n)
{
	if (cfg->sandboxed || cfg->mem.used + n < cfg->proved)
		return (true);
	if (!is_spare(CFG_SPARE + 2 * n))
		return (false);
	cfg->proved = cfg->mem.used + n + CFG_SPARE_EACH;
	return (true);
}

bool
cfg_grows(struct config *cfg, struct cfg_pos pos, size_t n)
{
	if (n >= CFG_MEMORY_MAX || cfg->mem.used >= CFG_MEMORY_MAX - n)
		return (cfg_error(cfg, pos,
		    "the values need more than %u MiB; look for a variable that is added to itself",
		    CFG_MEMORY_MAX >> 20));
	return (has_spare(cfg, n) ||
		cfg_error(cfg, pos, "not enough memory: %u MiB must stay free", CFG_SPARE >> 20));
}

static void
add_message(struct buf *out, struct cfg_pos pos, const char *fmt, va_list ap)
{
	char *msg = g_strdup_vprintf(fmt, ap), *c;

	for (c = msg; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?'; /* one line each, even if the file has other bytes */
	buf_printf(out, "%s:%u:%u: %s\n", pos.file, pos.line, pos.column, msg);
	g_free(msg);
}

bool
cfg_error(struct config *cfg, struct cfg_pos pos, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (cfg->errors++ < MESSAGES_ERRORS)
		add_message(cfg->err, pos, fmt, ap);
	else if (cfg->errors == MESSAGES_ERRORS + 1)
		buf_printf(cfg->err, "%s:%u:%u: further mistakes are left out, from here on\n",
		    pos.file, pos.line, pos.column);
	va_end(ap);
	return (false);
}

void
cfg_warn(struct config *cfg, struct cfg_pos pos, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (cfg->warnings++ < MESSAGES_WARNINGS)
		add_message(cfg->warn, pos, fmt, ap);
	else if (cfg->warnings == MESSAGES_WARNINGS + 1)
		buf_printf(cfg->warn, "%s:%u:%u: further warnings are left out, from here on\n",
		    pos.file, pos.line, pos.column);
	va_end(ap);
}

/* ---------------------------------------------------------------- blocks */

struct cfg_block *
cfg_block_root(struct config *cfg)
{
	return (g_ptr_array_index(cfg->blocks, 0));
}

/* The same condition in the same place is the same block; after another else chain it is
 * another block. */
static char *
block_name(const struct cfg_block *parent, const struct cfg_block *prev,
    const struct cfg_cond *cond)
{
	struct buf b;
	char *name;

	buf_init(&b, 0);
	buf_printf(&b, "%d %d ", parent != NULL ? (int)parent->ndx : -1,
	    prev != NULL ? (int)prev->ndx : -1);
	cfg_cond_print(cond, &b);
	buf_char(&b, '\0');
	name = g_strdup(b.p);
	buf_free(&b);
	return (name);
}

struct cfg_block *
cfg_block_open(struct config *cfg, struct cfg_pos pos, struct cfg_block *parent,
    struct cfg_block *prev, struct cfg_cond *cond)
{
	char *name = block_name(parent, prev, cond);
	struct cfg_block *b;

	b = g_hash_table_lookup(cfg->block_names, name);
	if (b != NULL || cfg->blocks->len > CFG_BLOCKS_MAX) {
		g_free(name);
		match_free(cond->re);
		if (b == NULL)
			cfg_error(cfg, pos,
			    "more than %u conditional blocks; let hosts share one, with a regular "
			    "expression or evhost.path-pattern",
			    CFG_BLOCKS_MAX);
		return (b);
	}
	b = cfg_get(cfg, sizeof(*b));
	b->ndx = cfg->blocks->len;
	b->parent = parent;
	b->prev = prev;
	b->cond = *cond;
	b->pos = pos;
	b->entries = g_ptr_array_new();
	b->by_key = g_hash_table_new(cfg_text_hash, cfg_text_same);
	b->settings = g_array_new(FALSE, FALSE, sizeof(struct cfg_setting));
	g_ptr_array_add(cfg->blocks, b);
	cfg->uses_physical |= cfg_field_is_physical(cond->field);
	g_hash_table_insert(cfg->block_names, name, b);
	return (b);
}

/* ---------------------------------------------------------------- keys */

struct text
cfg_full_key(struct config *cfg, struct text key)
{
	bool is_bare = memchr(key.p, '.', key.n) == NULL;

	return (cfg_value_join(cfg, is_bare ? TEXT("var.") : TEXT_NONE, key)->str);
}

struct cfg_entry *
cfg_entry_find(const struct cfg_block *b, struct text key)
{
	return (g_hash_table_lookup(b->by_key, &key));
}

const struct cfg_entry *
cfg_entry_around(const struct cfg_block *b, struct text key)
{
	const struct cfg_entry *e = NULL;

	for (; b != NULL && e == NULL; b = b->parent)
		e = cfg_entry_find(b, key);
	return (e);
}

static void
entry_add(struct config *cfg, struct cfg_block *b, struct cfg_entry entry)
{
	struct cfg_entry *e = cfg_get(cfg, sizeof(*e));

	*e = entry;
	g_ptr_array_add(b->entries, e);
	g_hash_table_insert(b->by_key, &e->key, e);
}

static bool
is_preset(struct text key)
{
	return (text_eq(key, TEXT("var.PID")) || text_eq(key, TEXT("var.CWD")));
}

static bool
may_assign(struct config *cfg, const struct cfg_entry *e)
{
	if (is_preset(e->key))
		return (cfg_error(cfg, e->pos, "%s is preset and cannot be changed", e->key.p));
	if (text_starts(e->key, TEXT("env.")))
		return (cfg_error(cfg, e->pos,
		    "%s belongs to the environment and cannot be changed here", e->key.p));
	return (true);
}

bool
cfg_assign(struct config *cfg, struct cfg_block *b, enum cfg_token_kind op, struct cfg_entry e)
{
	struct cfg_entry *old = cfg_entry_find(b, e.key);
	const struct cfg_entry *base = old;

	if (!may_assign(cfg, &e) || !cfg_grows(cfg, e.pos, sizeof(e)))
		return (false);
	if (op == TOK_SET && old != NULL)
		return (cfg_error(cfg, e.pos,
		    "%s was set at %s:%u already; write += to add to it or := to replace it",
		    e.key.p, old->pos.file, old->pos.line));
	if (b->ndx == 0 && text_eq(e.key, TEXT("server.modules")))
		cfg_modules_add(cfg, op, &e);
	if (op == TOK_APPEND && base == NULL)
		base = cfg_entry_around(b->parent, e.key);
	if (op == TOK_APPEND && base != NULL)
		e.value = cfg_value_add(cfg, e.value_pos, base->value, e.value);
	if (e.value == NULL)
		return (false);
	if (old == NULL)
		entry_add(cfg, b, e);
	else {
		e.key = old->key; /* the key of the table: its bytes must stay valid */
		*old = e;
	}
	return (true);
}

/* ---------------------------------------------------------------- variables */

static const struct cfg_value *
lookup_env(struct config *cfg, struct text key, struct cfg_pos pos)
{
	const char *s = cfg->sandboxed ? NULL : getenv(key.p + 4);

	if (s == NULL) {
		cfg_error(cfg, pos, "%s is not set in the environment", key.p);
		return (NULL);
	}
	if (!cfg_grows(cfg, pos, strlen(s)))
		return (NULL);
	return (cfg_value_str(cfg, text_of(s)));
}

static const struct cfg_value *
lookup_preset(struct config *cfg, struct text key)
{
	char *cwd;
	const struct cfg_value *v;

	if (text_eq(key, TEXT("var.PID")))
		return (cfg_value_int(cfg, (uint64_t)getpid()));
	cwd = g_get_current_dir();
	v = cfg_value_str(cfg, text_of(cwd));
	g_free(cwd);
	return (v);
}

const struct cfg_value *
cfg_lookup(struct config *cfg, const struct cfg_block *b, struct text name, struct cfg_pos pos)
{
	const struct cfg_entry *e;
	struct text key;

	if (!cfg_grows(cfg, pos, name.n + 64))
		return (NULL);
	key = cfg_full_key(cfg, name);
	if (is_preset(key))
		return (lookup_preset(cfg, key));
	if (text_starts(key, TEXT("env.")))
		return (lookup_env(cfg, key, pos));
	e = cfg_entry_around(b, key);
	if (e != NULL)
		return (e->value);
	cfg_error(cfg, pos, "%s has no value yet; set it above, or put quotes around a string",
	    key.p);
	return (NULL);
}
