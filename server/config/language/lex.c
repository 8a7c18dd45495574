/* server/config/language/lex.c -- turns bytes of a configuration file into tokens with their
 * positions. */
#include "server/config/impl.h"

static const char *const token_names[] = {
	[TOK_END] = "the end of the file",
	[TOK_EOL] = "the end of the line",
	[TOK_KEY] = "a name",
	[TOK_STRING] = "a string",
	[TOK_INT] = "a number",
	[TOK_BAD] = "something unreadable",
	[TOK_APPEND] = "+=",
	[TOK_FORCE] = ":=",
	[TOK_ARROW] = "=>",
	[TOK_EQ] = "==",
	[TOK_NE] = "!=",
	[TOK_RE] = "=~",
	[TOK_NRE] = "!~",
	[TOK_PREFIX] = "=^",
	[TOK_SUFFIX] = "=$",
	[TOK_SET] = "=",
	[TOK_PLUS] = "+",
	[TOK_COMMA] = ",",
	[TOK_PAREN_L] = "(",
	[TOK_PAREN_R] = ")",
	[TOK_BRACE_L] = "{",
	[TOK_BRACE_R] = "}",
	[TOK_BRACKET_L] = "[",
	[TOK_BRACKET_R] = "]",
	[TOK_DOLLAR] = "$",
};

const char *
cfg_token_name(enum cfg_token_kind kind)
{
	return (token_names[kind]);
}

void
cfg_lex_start(struct cfg_lexer *lx, struct config *cfg, const char *file, struct text bytes)
{
	lx->cfg = cfg;
	lx->rest = bytes;
	lx->pos = (struct cfg_pos){ file, 1, 1 };
	/* the byte order mark that some editors write */
	if (text_starts(bytes, TEXT("\xef\xbb\xbf")))
		lx->rest = (struct text){ bytes.p + 3, bytes.n - 3 };
}

static bool
is_letter(char c)
{
	return ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_');
}

static bool
is_key(char c)
{
	return (is_letter(c) || byte_is_digit(c) || c == '.' || c == '-');
}

/* Takes n bytes off the front; one byte is one column. */
static struct text
take(struct cfg_lexer *lx, size_t n)
{
	struct text t = text_take(&lx->rest, n);
	size_t i;

	for (i = 0; i < n; i++) {
		if (t.p[i] == '\n') {
			lx->pos.line++;
			lx->pos.column = 1;
		} else
			lx->pos.column++;
	}
	return (t);
}

static size_t
run_of(struct text t, bool (*is)(char))
{
	size_t n;

	for (n = 0; n < t.n && is(t.p[n]); n++)
		;
	return (n);
}

static void
skip_blanks(struct cfg_lexer *lx)
{
	const char *eol;

	while (lx->rest.n > 0) {
		if (lx->rest.p[0] == '#') {
			eol = memchr(lx->rest.p, '\n', lx->rest.n);
			take(lx, eol != NULL ? (size_t)(eol - lx->rest.p) : lx->rest.n);
		} else if (lx->rest.p[0] == ' ' || lx->rest.p[0] == '\t' || lx->rest.p[0] == '\r')
			take(lx, 1);
		else
			break;
	}
}

/* Only \" is an escape.  Any other backslash stays, because regular expressions need it. */
static bool
lex_string(struct cfg_lexer *lx, struct cfg_token *tok)
{
	struct text t = lx->rest;
	size_t i, n = 0;
	char *out;

	for (i = 1; i < t.n && t.p[i] != '"'; i++)
		if (t.p[i] == '\\' && i + 1 < t.n && t.p[i + 1] == '"')
			i++;
	if (i >= t.n)
		return (cfg_error(lx->cfg, tok->pos, "this string has no end; close it with \""));
	if (i > CFG_STRING_MAX)
		return (cfg_error(lx->cfg, tok->pos, "this string is longer than %u bytes",
		    CFG_STRING_MAX));
	if (!cfg_grows(lx->cfg, tok->pos, i))
		return (false);
	t = take(lx, i + 1);
	out = cfg_get(lx->cfg, i);
	for (i = 1; i < t.n - 1; i++) {
		if (t.p[i] == '\\' && t.p[i + 1] == '"')
			i++;
		out[n++] = t.p[i];
	}
	tok->kind = TOK_STRING;
	tok->text = (struct text){ out, n };
	if (memchr(out, '\0', n) != NULL)
		return (cfg_error(lx->cfg, tok->pos, "this string holds a NUL byte; remove it"));
	return (true);
}

static bool
lex_number(struct cfg_lexer *lx, struct cfg_token *tok)
{
	tok->kind = TOK_INT;
	tok->text = take(lx, run_of(lx->rest, byte_is_digit));
	if (text_u64(tok->text, &tok->number) != 0 || tok->number > INT64_MAX)
		return (cfg_error(lx->cfg, tok->pos, "this number is too large"));
	if (lx->rest.n > 0 && is_key(lx->rest.p[0]))
		return (cfg_error(lx->cfg, lx->pos,
		    "unexpected \"%c\" in a number; a name starts with a letter, "
		    "and a string needs quotes",
		    lx->rest.p[0]));
	return (true);
}

static bool
lex_mark(struct cfg_lexer *lx, struct cfg_token *tok)
{
	unsigned char c = (unsigned char)lx->rest.p[0];
	size_t i;

	for (i = TOK_FIRST_MARK; i < G_N_ELEMENTS(token_names); i++) {
		if (text_starts(lx->rest, text_of(token_names[i]))) {
			tok->kind = i;
			tok->text = take(lx, strlen(token_names[i]));
			return (true);
		}
	}
	if (c > ' ' && c < 127)
		return (cfg_error(lx->cfg, tok->pos,
		    "unexpected \"%c\"; a string needs double quotes", c));
	return (cfg_error(lx->cfg, tok->pos, "unexpected byte 0x%02x; a string needs double quotes",
	    c));
}

static bool
lex_one(struct cfg_lexer *lx, struct cfg_token *tok)
{
	char c = lx->rest.p[0];

	if (c == '\n') {
		tok->kind = TOK_EOL;
		take(lx, 1);
		return (true);
	}
	if (c == '"')
		return (lex_string(lx, tok));
	if (byte_is_digit(c))
		return (lex_number(lx, tok));
	if (!is_letter(c))
		return (lex_mark(lx, tok));
	tok->kind = TOK_KEY;
	tok->text = take(lx, run_of(lx->rest, is_key));
	return (true);
}

struct cfg_token
cfg_lex(struct cfg_lexer *lx)
{
	struct cfg_token tok = { .kind = TOK_END };

	skip_blanks(lx);
	tok.pos = lx->pos;
	if (lx->rest.n > 0 && !lex_one(lx, &tok))
		tok.kind = TOK_BAD;
	return (tok);
}
