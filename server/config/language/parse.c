/* server/config/language/parse.c -- tokens to blocks of keys and values.
 *
 *   lines     { key = expr | key += expr | key := expr | chain | global { lines } | include expr }
 *   chain     block { [EOL] else block } [ [EOL] else { lines } ]
 *   block     $ WORD [ expr ] op expr { lines }
 *   expr      value { + value }
 */
#include "server/config/impl.h"

struct parser {
	struct config *cfg;
	struct cfg_lexer lex;
	struct cfg_token tok; /* the current token */
	struct cfg_source *source;
	struct cfg_block *block; /* keys go to this block */
	unsigned nest;
};

static bool parse_lines(struct parser *, enum cfg_token_kind until);
static const struct cfg_value *parse_expr(struct parser *);

static void
next(struct parser *p)
{
	p->tok = cfg_lex(&p->lex);
}

static void
skip_eols(struct parser *p)
{
	while (p->tok.kind == TOK_EOL)
		next(p);
}

static bool
is_word(const struct parser *p, const char *word)
{
	return (p->tok.kind == TOK_KEY && text_eq(p->tok.text, text_of(word)));
}

/* "expected WHAT, got THIS".  The lexer has already reported its own errors. */
static bool
unexpected(struct parser *p, const char *wanted)
{
	struct buf found;

	if (p->tok.kind == TOK_BAD)
		return (false);
	buf_init(&found, 256);
	buf_printf(&found, p->tok.kind >= TOK_FIRST_MARK ? "\"%s\"" : "%s",
	    cfg_token_name(p->tok.kind));
	if (p->tok.kind == TOK_KEY || p->tok.kind == TOK_INT || p->tok.kind == TOK_STRING) {
		buf_str(&found, " \"");
		buf_log_quoted(&found, (struct text){ p->tok.text.p, MIN(p->tok.text.n, 40) });
		buf_char(&found, '"');
	}
	cfg_error(p->cfg, p->tok.pos, "expected %s, got %.*s", wanted, (int)found.n, found.p);
	buf_free(&found);
	return (false);
}

static bool
expect(struct parser *p, enum cfg_token_kind kind, const char *wanted)
{
	if (p->tok.kind != kind)
		return (unexpected(p, wanted));
	next(p);
	return (true);
}

static bool
deeper(struct parser *p)
{
	if (p->nest >= CFG_NEST_MAX)
		return (cfg_error(p->cfg, p->tok.pos, "more than %u levels are nested here",
		    CFG_NEST_MAX));
	p->nest++;
	return (true);
}

/* ---------------------------------------------------------------- expressions */

static bool
parse_item(struct parser *p, struct cfg_item *item)
{
	struct cfg_pos pos = p->tok.pos;
	const struct cfg_value *v;

	item->key = TEXT_NONE;
	if ((v = parse_expr(p)) == NULL)
		return (false);
	skip_eols(p);
	if (p->tok.kind == TOK_ARROW) {
		if (v->kind == CFG_LIST)
			return (cfg_error(p->cfg, pos,
			    "a list cannot be a key; expected a string before \"=>\""));
		item->key = cfg_value_text(p->cfg, v);
		next(p);
		skip_eols(p);
		if ((v = parse_expr(p)) == NULL)
			return (false);
		skip_eols(p);
	}
	item->value = v;
	return (true);
}

static bool
parse_items(struct parser *p, GArray *items)
{
	struct cfg_item item;

	skip_eols(p);
	while (p->tok.kind != TOK_PAREN_R) {
		if (!parse_item(p, &item))
			return (false);
		g_array_append_val(items, item);
		if (items->len > CFG_ITEMS_MAX)
			return (cfg_error(p->cfg, p->tok.pos, "this list has more than %u members",
			    CFG_ITEMS_MAX));
		if (p->tok.kind != TOK_PAREN_R &&
		    !expect(p, TOK_COMMA, "\",\" or \")\" in this list"))
			return (false);
		skip_eols(p);
	}
	next(p);
	return (true);
}

static const struct cfg_value *
parse_list(struct parser *p)
{
	const struct cfg_value *v = NULL;
	struct cfg_pos pos = p->tok.pos;
	GArray *items;

	if (!deeper(p))
		return (NULL);
	next(p);
	items = g_array_new(FALSE, FALSE, sizeof(struct cfg_item));
	if (parse_items(p, items))
		v = cfg_value_list(p->cfg, pos, (struct cfg_item *)(void *)items->data, items->len);
	g_array_free(items, TRUE);
	p->nest--;
	return (v);
}

static const struct cfg_value *
parse_value(struct parser *p)
{
	const struct cfg_value *v = NULL;

	switch (p->tok.kind) {
	case TOK_STRING: v = cfg_value_str(p->cfg, p->tok.text); break;
	case TOK_INT: v = cfg_value_int(p->cfg, p->tok.number); break;
	case TOK_KEY: v = cfg_lookup(p->cfg, p->block, p->tok.text, p->tok.pos); break;
	case TOK_PAREN_L: return (parse_list(p));
	default: unexpected(p, "a value (a string in quotes, a number, a list or a variable)");
	}
	if (v != NULL)
		next(p);
	return (v);
}

static const struct cfg_value *
parse_expr(struct parser *p)
{
	const struct cfg_value *v, *w;
	struct cfg_pos pos;

	v = parse_value(p);
	while (v != NULL && p->tok.kind == TOK_PLUS) {
		pos = p->tok.pos;
		next(p);
		if ((w = parse_value(p)) == NULL)
			return (NULL);
		v = cfg_value_add(p->cfg, pos, v, w);
	}
	return (v);
}

/* ---------------------------------------------------------------- conditions */

static bool
parse_op(struct parser *p, enum cfg_token_kind *op)
{
	*op = p->tok.kind;
	if (*op < TOK_EQ || *op > TOK_SUFFIX)
		return (unexpected(p, "\"==\", \"!=\", \"=~\" or \"!~\""));
	next(p);
	return (true);
}

static bool
parse_field(struct parser *p, const struct cfg_field **field)
{
	struct cfg_pos pos = p->tok.pos;
	const struct cfg_value *name;
	const char *fault = NULL;
	struct text group;
	struct buf known;

	next(p); /* the "$" */
	group = p->tok.text;
	if (!expect(p, TOK_KEY, "SERVER, HTTP, REQUEST_HEADER or PHYSICAL after \"$\"") ||
	    !expect(p, TOK_BRACKET_L, "\"[\", as in $HTTP[\"host\"]") ||
	    (name = parse_expr(p)) == NULL || !expect(p, TOK_BRACKET_R, "\"]\""))
		return (false);
	*field = name->kind == CFG_STR ? cfg_field_find(group, name->str) : NULL;
	if (*field == NULL && name->kind == CFG_STR)
		*field = cfg_field_header(p->cfg, group, name->str, &fault);
	if (*field != NULL)
		return (true);
	if (fault != NULL)
		return (cfg_error(p->cfg, pos, "%s", fault));
	buf_init(&known, 2048);
	cfg_field_names(&known);
	if (name->kind != CFG_STR)
		name = cfg_value_str(p->cfg, TEXT("..."));
	cfg_error(p->cfg, pos, "unknown condition $%.*s[\"%.*s\"]; known are %.*s",
	    (int)MIN(group.n, 40), group.p, (int)MIN(name->str.n, 40), name->str.p, (int)known.n,
	    known.p);
	buf_free(&known);
	return (false);
}

/* `$FIELD["name"] op expr`, or nothing for a bare else. */
static bool
parse_cond(struct parser *p, struct cfg_cond *cond)
{
	const struct cfg_value *v;
	struct cfg_pos pos;

	*cond = (struct cfg_cond){ .field = NULL };
	if (p->tok.kind != TOK_DOLLAR)
		return (true);
	if (!parse_field(p, &cond->field) || !parse_op(p, &cond->op))
		return (false);
	pos = p->tok.pos;
	if ((v = parse_expr(p)) == NULL)
		return (false);
	if (v->kind == CFG_LIST)
		return (cfg_error(p->cfg, pos, "expected a string in this condition, got a list"));
	cond->value = cfg_value_text(p->cfg, v);
	return (cfg_cond_compile(p->cfg, pos, cond));
}

static bool
parse_braces(struct parser *p, struct cfg_block *block)
{
	struct cfg_block *outer = p->block;
	bool ok;

	skip_eols(p);
	if (p->tok.kind != TOK_BRACE_L)
		return (unexpected(p, "\"{\""));
	if (!deeper(p))
		return (false);
	next(p);
	p->block = block;
	ok = parse_lines(p, TOK_BRACE_R);
	p->block = outer;
	p->nest--;
	return (ok);
}

static bool
parse_block(struct parser *p, struct cfg_block **blockp)
{
	struct cfg_pos pos = p->tok.pos;
	struct cfg_cond cond;

	if (!parse_cond(p, &cond))
		return (false);
	*blockp = cfg_block_open(p->cfg, pos, p->block, *blockp, &cond);
	return (*blockp != NULL && parse_braces(p, *blockp));
}

/* Skips line breaks and `else` if an else follows.  *conditional: it must have a condition. */
static bool
parse_else(struct parser *p, bool *conditional)
{
	skip_eols(p);
	*conditional = is_word(p, "elsif") || is_word(p, "elseif");
	if (!*conditional && !is_word(p, "else"))
		return (false);
	next(p);
	if (is_word(p, "if")) {
		*conditional = true;
		next(p);
	}
	skip_eols(p);
	return (true);
}

static bool
parse_chain(struct parser *p)
{
	struct cfg_block *block = NULL;
	bool conditional;

	if (!parse_block(p, &block))
		return (false);
	while (parse_else(p, &conditional)) {
		if (conditional ? p->tok.kind != TOK_DOLLAR
				: p->tok.kind != TOK_DOLLAR && p->tok.kind != TOK_BRACE_L)
			return (unexpected(p,
			    "a condition like $HTTP[\"host\"] == \"name\" after \"else\""));
		if (block->cond.field == NULL)
			return (cfg_error(p->cfg, p->tok.pos,
			    "this block can never apply: the \"else\" before it has no condition"));
		if (!parse_block(p, &block))
			return (false);
	}
	return (true);
}

/* ---------------------------------------------------------------- statements */

static bool
parse_global(struct parser *p)
{
	next(p);
	return (parse_braces(p, cfg_block_root(p->cfg)));
}

/* Each source has its own lexer; its braces must balance. */
static bool
parse_source(struct parser *p, struct cfg_source *src)
{
	struct parser outer = *p;
	bool ok;

	p->source = src;
	cfg_lex_start(&p->lex, p->cfg, src->name, src->bytes);
	next(p);
	ok = parse_lines(p, TOK_END);
	*p = outer;
	return (ok);
}

static bool
include_files(struct parser *p, struct cfg_pos pos, const char *pattern)
{
	char **paths = cfg_source_paths(p->cfg, pos, pattern);
	struct cfg_source src;
	bool ok = paths != NULL;
	size_t i;

	for (i = 0; ok && paths[i] != NULL; i++) {
		ok = cfg_source_file(p->cfg, pos, paths[i], p->source, &src) &&
		     parse_source(p, &src);
		cfg_source_free(&src);
	}
	g_strfreev(paths);
	return (ok);
}

static bool
include_output(struct parser *p, struct cfg_pos pos, const char *command)
{
	struct cfg_source src;
	bool ok;

	ok = cfg_source_shell(p->cfg, pos, command, p->source, &src) && parse_source(p, &src);
	cfg_source_free(&src);
	return (ok);
}

static bool
parse_include(struct parser *p)
{
	bool shell = is_word(p, "include_shell");
	const struct cfg_value *v;
	struct cfg_pos pos;

	next(p);
	pos = p->tok.pos;
	if ((v = parse_expr(p)) == NULL)
		return (false);
	if (v->kind != CFG_STR || v->str.n == 0)
		return (cfg_error(p->cfg, pos, "expected %s, got %s",
		    shell ? "a command" : "the name of a file",
		    v->kind == CFG_STR ? "an empty string" : cfg_kind_name(v->kind)));
	return (shell ? include_output(p, pos, v->str.p) : include_files(p, pos, v->str.p));
}

static bool
parse_assignment(struct parser *p)
{
	struct cfg_entry e = { .key = cfg_full_key(p->cfg, p->tok.text), .pos = p->tok.pos };
	enum cfg_token_kind op;

	next(p);
	op = p->tok.kind;
	if (op != TOK_SET && op != TOK_APPEND && op != TOK_FORCE)
		return (unexpected(p, "\"=\" or \"+=\" after the name"));
	next(p);
	e.value_pos = p->tok.pos;
	e.value = parse_expr(p);
	return (e.value != NULL && cfg_assign(p->cfg, p->block, op, e));
}

/* *more: a line break must follow before the next statement. */
static bool
parse_statement(struct parser *p, bool *more)
{
	*more = true;
	if (p->tok.kind == TOK_DOLLAR) {
		*more = false; /* the search for an else has skipped it */
		return (parse_chain(p));
	}
	if (is_word(p, "global"))
		return (parse_global(p));
	if (is_word(p, "include") || is_word(p, "include_shell"))
		return (parse_include(p));
	if (is_word(p, "else") || is_word(p, "elsif") || is_word(p, "elseif"))
		return (cfg_error(p->cfg, p->tok.pos,
		    "\"else\" without a conditional block before it"));
	if (p->tok.kind == TOK_KEY)
		return (parse_assignment(p));
	return (unexpected(p, "a setting, a condition or an include"));
}

/* Up to and including the token UNTIL: "}" or the end of the file. */
static bool
parse_lines(struct parser *p, enum cfg_token_kind until)
{
	bool more;

	for (;;) {
		skip_eols(p);
		if (p->tok.kind == until) {
			next(p);
			return (true);
		}
		if (p->tok.kind == TOK_END)
			return (cfg_error(p->cfg, p->tok.pos,
			    "the file ends inside of a block; close it with \"}\""));
		if (p->tok.kind == TOK_BRACE_R)
			return (cfg_error(p->cfg, p->tok.pos, "\"}\" without a \"{\" before it"));
		if (!parse_statement(p, &more))
			return (false);
		/* As in lighttpd, a line may have several settings. */
		if (more && p->tok.kind != TOK_EOL && p->tok.kind != TOK_END &&
		    p->tok.kind != TOK_BRACE_R && p->tok.kind != TOK_KEY &&
		    p->tok.kind != TOK_DOLLAR)
			return (unexpected(p, "the end of the line"));
	}
}

bool
cfg_parse(struct config *cfg, struct cfg_source *src)
{
	struct parser p = { .cfg = cfg, .block = cfg_block_root(cfg) };

	return (parse_source(&p, src));
}
