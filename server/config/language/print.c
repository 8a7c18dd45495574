/* server/config/language/print.c -- prints the blocks as text that loads again with the same
 * meaning, except for secrets.
 *
 * Blocks are printed in the order of their first appearance, because later ones win.  A block that
 * got a child after its neighbour was opened is therefore opened again: the same condition in the
 * same place is the same block.
 */
#include "server/config/impl.h"

struct printer {
	struct buf *out;
	struct cfg_block *at; /* the innermost open block */
	unsigned depth;
	GHashTable *secrets; /* their values, by struct text */
};

static void
indent(struct printer *p)
{
	unsigned i;

	for (i = 0; i < p->depth; i++)
		buf_char(p->out, '\t');
}

static void
close_to(struct printer *p, const struct cfg_block *around)
{
	while (p->at != around) {
		p->at = p->at->parent;
		p->depth--;
		indent(p);
		buf_str(p->out, "}\n");
	}
}

static bool
is_around(const struct cfg_block *b, const struct cfg_block *inner)
{
	while (inner != NULL && inner != b)
		inner = inner->parent;
	return (inner != NULL);
}

/* `$A {` or `$A { } else $B {`: the else chain identifies the block. */
static void
open_head(struct printer *p, const struct cfg_block *b)
{
	if (b->prev != NULL) {
		open_head(p, b->prev);
		buf_str(p->out, "} else ");
	} else
		indent(p);
	cfg_cond_print(&b->cond, p->out);
	buf_str(p->out, b->cond.field != NULL ? " { " : "{ ");
}

static void
opened(struct printer *p, struct cfg_block *b)
{
	buf_printf(p->out, "# %u\n", b->ndx);
	p->at = b;
	p->depth++;
}

/* The block before this else is still open: the chain is not printed again. */
static void
open_else(struct printer *p, struct cfg_block *b)
{
	close_to(p, b->prev);
	p->depth--;
	indent(p);
	buf_str(p->out, "} else ");
	cfg_cond_print(&b->cond, p->out);
	buf_str(p->out, b->cond.field != NULL ? " { " : "{ ");
	opened(p, b);
}

static void
open_block(struct printer *p, struct cfg_block *b)
{
	struct cfg_block *around = p->at;

	if (b->prev != NULL && is_around(b->prev, p->at)) {
		open_else(p, b);
		return;
	}
	while (!is_around(around, b))
		around = around->parent;
	close_to(p, around);
	if (b == around)
		return;
	open_block(p, b->parent);
	open_head(p, b);
	opened(p, b);
}

/* A variable may have the value, too. */
static void
print_value(struct printer *p, const struct cfg_value *v)
{
	if (v->kind == CFG_STR && g_hash_table_contains(p->secrets, &v->str))
		buf_str(p->out, "\"(set)\"");
	else
		cfg_value_print(v, p->out);
}

static void
collect_secrets(struct printer *p, const struct cfg_block *b)
{
	const struct cfg_entry *e;
	guint i;

	for (i = 0; i < b->entries->len; i++) {
		e = g_ptr_array_index(b->entries, i);
		if (cfg_is_secret(e->key) && e->value->kind == CFG_STR && e->value->str.n != 0)
			g_hash_table_add(p->secrets, (gpointer)&e->value->str);
	}
}

static void
print_entries(struct printer *p, const struct cfg_block *b)
{
	const struct cfg_entry *e;
	guint i;

	for (i = 0; i < b->entries->len; i++) {
		e = g_ptr_array_index(b->entries, i);
		indent(p);
		buf_text(p->out, e->key);
		buf_str(p->out, " = ");
		print_value(p, e->value);
		buf_char(p->out, '\n');
	}
}

static void
print_blocks(struct printer *p, const struct config *cfg)
{
	struct cfg_block *b, *root = p->at;
	guint i;

	for (i = 0; i < cfg->blocks->len; i++) {
		b = g_ptr_array_index(cfg->blocks, i);
		open_block(p, b);
		print_entries(p, b);
	}
	close_to(p, root);
	g_hash_table_destroy(p->secrets);
}

void
config_print(const struct config *cfg, struct buf *out)
{
	struct printer p = { .out = out, .at = g_ptr_array_index(cfg->blocks, 0) };
	const char *addr;
	guint i;

	p.secrets = g_hash_table_new(cfg_text_hash, cfg_text_same);
	for (i = 0; i < cfg->blocks->len; i++)
		collect_secrets(&p, g_ptr_array_index(cfg->blocks, i));
	for (i = 0; (addr = config_listen(cfg, i)) != NULL; i++)
		buf_printf(out, "# listens on %s\n", addr);
	print_blocks(&p, cfg);
}

void
config_print_whole(const struct config *cfg, struct buf *out)
{
	struct printer p = { .out = out, .at = g_ptr_array_index(cfg->blocks, 0) };

	p.secrets = g_hash_table_new(cfg_text_hash, cfg_text_same);
	print_blocks(&p, cfg);
}
