/* server/config/language/value.c -- strings, numbers and lists of the configuration language. */
#include "server/config/impl.h"

#define DESCRIBED_MAX 40 /* bytes of a string in an error message */

const struct cfg_value *
cfg_value_join(struct config *cfg, struct text s, struct text t)
{
	struct cfg_value *v = cfg_get(cfg, sizeof(*v));
	char *p = cfg_get(cfg, s.n + t.n + 1);

	if (s.n > 0)
		memcpy(p, s.p, s.n);
	if (t.n > 0)
		memcpy(p + s.n, t.p, t.n);
	v->kind = CFG_STR;
	v->str = (struct text){ p, s.n + t.n };
	v->weight = 1;
	return (v);
}

const struct cfg_value *
cfg_value_str(struct config *cfg, struct text t)
{
	return (cfg_value_join(cfg, t, TEXT_NONE));
}

const struct cfg_value *
cfg_value_int(struct config *cfg, uint64_t num)
{
	struct cfg_value *v = cfg_get(cfg, sizeof(*v));

	v->kind = CFG_INT;
	v->num = num;
	v->weight = 1;
	return (v);
}

struct text
cfg_value_text(struct config *cfg, const struct cfg_value *v)
{
	char *p;

	if (v->kind == CFG_STR)
		return (v->str);
	p = cfg_get(cfg, 21); /* digits of UINT64_MAX, and a NUL */
	return ((struct text){ p, text_put_u64(p, v->num) });
}

const char *
cfg_kind_name(enum cfg_kind kind)
{
	return (kind == CFG_STR ? "a string" : kind == CFG_INT ? "a number" : "a list");
}

/* ---------------------------------------------------------------- lists */

guint
cfg_text_hash(gconstpointer p)
{
	return ((guint)text_hash(*(const struct text *)p));
}

gboolean
cfg_text_same(gconstpointer a, gconstpointer b)
{
	return (text_eq(*(const struct text *)a, *(const struct text *)b));
}

static bool
keys_differ(struct config *cfg, struct cfg_pos pos, const struct cfg_item *items, size_t n)
{
	GHashTable *seen = g_hash_table_new(cfg_text_hash, cfg_text_same);
	bool ok = true;
	size_t i;

	for (i = 0; ok && i < n; i++)
		if (items[i].key.p != NULL && !g_hash_table_add(seen, (gpointer)&items[i].key))
			ok = cfg_error(cfg, pos,
			    "this list has the key \"%.*s\" twice; keep one of them",
			    (int)MIN(items[i].key.n, DESCRIBED_MAX), items[i].key.p);
	g_hash_table_destroy(seen);
	return (ok);
}

const struct cfg_value *
cfg_value_list(struct config *cfg, struct cfg_pos pos, const struct cfg_item *items, size_t n)
{
	struct cfg_item *copy;
	struct cfg_value *v;
	uint64_t weight = 1;
	size_t i;

	for (i = 0; i < n; i++)
		weight += items[i].value->weight;
	if (weight > CFG_ITEMS_MAX) {
		cfg_error(cfg, pos, "this list has more than %u members", CFG_ITEMS_MAX);
		return (NULL);
	}
	if (!cfg_grows(cfg, pos, n * sizeof(*copy)) || !keys_differ(cfg, pos, items, n))
		return (NULL);
	v = cfg_get(cfg, sizeof(*v));
	copy = cfg_get(cfg, n * sizeof(*copy));
	if (n > 0)
		memcpy(copy, items, n * sizeof(*copy));
	v->kind = CFG_LIST;
	v->items = copy;
	v->n = (uint32_t)n;
	v->weight = (uint32_t)weight;
	return (v);
}

/* ---------------------------------------------------------------- adding */

static const struct cfg_value *
add_lists(struct config *cfg, struct cfg_pos pos, const struct cfg_value *a,
    const struct cfg_value *b)
{
	struct cfg_item *both = g_new(struct cfg_item, (size_t)a->n + b->n + 1);
	const struct cfg_value *v;

	memcpy(both, a->items, a->n * sizeof(*both));
	memcpy(both + a->n, b->items, b->n * sizeof(*both));
	v = cfg_value_list(cfg, pos, both, (size_t)a->n + b->n);
	g_free(both);
	return (v);
}

static const struct cfg_value *
add_strings(struct config *cfg, struct cfg_pos pos, const struct cfg_value *a,
    const struct cfg_value *b)
{
	struct text s = cfg_value_text(cfg, a), t = cfg_value_text(cfg, b);

	if (s.n + t.n > CFG_STRING_MAX) {
		cfg_error(cfg, pos, "this string is longer than %u bytes", CFG_STRING_MAX);
		return (NULL);
	}
	if (!cfg_grows(cfg, pos, s.n + t.n))
		return (NULL);
	return (cfg_value_join(cfg, s, t));
}

const struct cfg_value *
cfg_value_add(struct config *cfg, struct cfg_pos pos, const struct cfg_value *a,
    const struct cfg_value *b)
{
	if (a->kind == CFG_LIST && b->kind == CFG_LIST)
		return (add_lists(cfg, pos, a, b));
	if (a->kind == CFG_LIST || b->kind == CFG_LIST) {
		cfg_error(cfg, pos,
		    "%s and %s cannot be added; add a list to a list, as in + ( \"x\" )",
		    cfg_kind_name(a->kind), cfg_kind_name(b->kind));
		return (NULL);
	}
	if (a->kind != CFG_INT || b->kind != CFG_INT)
		return (add_strings(cfg, pos, a, b));
	if (a->num > INT64_MAX - b->num) {
		cfg_error(cfg, pos, "this sum is too large");
		return (NULL);
	}
	return (cfg_value_int(cfg, a->num + b->num));
}

/* ---------------------------------------------------------------- printing */

static void
print_string(struct text t, struct buf *out)
{
	size_t i;

	buf_char(out, '"');
	for (i = 0; i < t.n; i++) {
		if (t.p[i] == '"')
			buf_char(out, '\\');
		buf_char(out, t.p[i]);
	}
	buf_char(out, '"');
}

void
cfg_value_print(const struct cfg_value *v, struct buf *out)
{
	uint32_t i;

	if (v->kind == CFG_STR)
		print_string(v->str, out);
	else if (v->kind == CFG_INT)
		buf_u64(out, v->num);
	else {
		buf_str(out, v->n > 0 ? "( " : "()");
		for (i = 0; i < v->n; i++) {
			if (i > 0)
				buf_str(out, ", ");
			if (v->items[i].key.p != NULL) {
				print_string(v->items[i].key, out);
				buf_str(out, " => ");
			}
			cfg_value_print(v->items[i].value, out);
		}
		if (v->n > 0)
			buf_str(out, " )");
	}
}

void
cfg_value_describe(const struct cfg_value *v, struct buf *out)
{
	struct text t = v->str;

	if (v->kind == CFG_INT)
		buf_printf(out, "the number %" G_GUINT64_FORMAT, v->num);
	else if (v->kind == CFG_LIST)
		buf_str(out, "a list");
	else if (t.n > DESCRIBED_MAX)
		buf_str(out, "a long string");
	else {
		buf_char(out, '"');
		buf_log_quoted(out, t);
		buf_char(out, '"');
	}
}
