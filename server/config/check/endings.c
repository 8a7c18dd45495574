/* server/config/check/endings.c -- the endings of scripts, as conditions around proxy-core.backends
 * have them.
 *
 *   $HTTP["url"] =~ "\.(php|phtml)$" { proxy-core.backends = ... }    --> .php .phtml
 *
 * A condition sees the name of a link, not the name of the file that it leads to.  So the endings
 * are kept, and a link to such a file is not sent.
 */
#include <ctype.h>
#include "server/config/impl.h"

struct endings {
	struct config *cfg;
	struct conf_list *list; /* v: the elements of all */
	GArray *all;            /* struct text; one that is left out would be sent as a file */
};

static bool
is_word(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if (!isalnum((unsigned char)t.p[i]))
			return (false);
	return (t.n != 0);
}

static void
add(struct endings *k, struct text word)
{
	struct text ending;

	if (!is_word(word))
		return;
	ending = cfg_value_join(k->cfg, TEXT("."), word)->str;
	if (conf_list_ends(k->list, ending))
		return;
	g_array_append_val(k->all, ending);
	k->list->v = (struct text *)(void *)k->all->data;
	k->list->n = k->all->len;
}

/* Cuts the part of a regular expression that matches the end of a path, or of the script in it. */
static bool
cut_end(struct text *re)
{
	static const struct text ends[] = { TEXT("(/|$)"), TEXT("($|/)"), TEXT("(/.*)?$"),
		TEXT("(?:/|$)"), TEXT("$") };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(ends); i++) {
		if (!text_ends(*re, ends[i]))
			continue;
		re->n -= ends[i].n;
		return (true);
	}
	return (false);
}

/* "\.php", "\.(php|phtml)" */
static void
add_of_regex(struct endings *k, struct text re)
{
	struct text word;
	size_t at;

	if (!cut_end(&re) || re.n < 3)
		return;
	for (at = re.n - 2; at > 0 && memcmp(re.p + at, "\\.", 2) != 0; at--)
		;
	if (memcmp(re.p + at, "\\.", 2) != 0)
		return;
	(void)text_take(&re, at + 2);
	if (text_starts(re, TEXT("(")) && text_ends(re, TEXT(")"))) {
		(void)text_take(&re, text_starts(re, TEXT("(?:")) ? 3 : 1);
		re.n--;
	}
	while (text_next(&re, '|', &word))
		add(k, word);
}

static void
add_of_condition(struct endings *k, const struct cfg_cond *cond)
{
	if (!cfg_field_is_decoded(cond->field))
		return;
	if (cond->op == TOK_RE)
		add_of_regex(k, cond->value);
	else if (cond->op == TOK_SUFFIX && text_starts(cond->value, TEXT(".")))
		add(k, (struct text){ cond->value.p + 1, cond->value.n - 1 });
}

const struct conf_list *
cfg_condition_endings(struct config *cfg)
{
	struct endings k = { .cfg = cfg,
		.list = cfg_get(cfg, sizeof(*k.list)),
		.all = g_array_new(FALSE, FALSE, sizeof(struct text)) };
	const struct cfg_block *b;
	guint i;

	for (i = 1; i < cfg->blocks->len; i++) {
		b = g_ptr_array_index(cfg->blocks, i);
		if (b->backends == NULL || b->backends->value->n == 0)
			continue;
		for (; b->ndx != 0; b = b->parent)
			add_of_condition(&k, &b->cond);
	}
	k.list->v = cfg_get(cfg, (k.list->n + 1) * sizeof(struct text));
	if (k.list->n != 0)
		memcpy(k.list->v, k.all->data, k.list->n * sizeof(struct text));
	g_array_free(k.all, TRUE);
	return (k.list);
}
