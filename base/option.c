/* base/option.c -- GOption splits the command line; the rows define each value. */
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/option.h"

#define HELP_COLUMN 26

struct parsing {
	const struct command *command;
	char *values;
	bool help;
};

/* ---------------------------------------------------------------- values */

static bool
read_number(const struct option *o, const char *text, unsigned *v)
{
	uint64_t n;

	if (text_u64(text_of(text), &n) != 0 || n < o->min || n > o->max)
		return (false);
	*v = (unsigned)n;
	return (true);
}

static bool
read_word(const struct option *o, const char *text, unsigned *v)
{
	struct text rest = text_of(o->arg), word;
	unsigned n;

	for (n = (unsigned)o->min; text_next(&rest, '|', &word); n++)
		if (text_eq(word, text_of(text))) {
			*v = n;
			return (true);
		}
	return (false);
}

static void
append(const char ***list, const char *text)
{
	size_t n = *list != NULL ? g_strv_length((char **)*list) : 0;

	*list = g_renew(const char *, *list, n + 2);
	(*list)[n] = g_intern_string(text);
	(*list)[n + 1] = NULL;
}

bool
options_append(const char *text, void *list)
{
	append(list, text);
	return (true);
}

/* Blanks around a name are ignored. */
static void
read_names(const char *text, const char ***list)
{
	char **names = g_strsplit(text, ",", -1), **name;

	g_free(*list);
	*list = NULL;
	for (name = names; *name != NULL; name++)
		append(list, g_strstrip(*name));
	g_strfreev(names);
}

static bool
read_value(const struct option *o, const char *text, void *at)
{
	unsigned *n = at;

	if (o->read != NULL && !o->read(text, at))
		return (false);
	switch (o->kind) {
	case OPTION_FLAG: *(bool *)at = true; break;
	case OPTION_COUNT: *n = (unsigned)MIN(*n + o->min, o->max); break;
	case OPTION_NUMBER: return (read_number(o, text, at));
	case OPTION_SIZE: return (text_size(text_of(text), o->min, o->max, at));
	case OPTION_WORD: return (read_word(o, text, at));
	case OPTION_TEXT: *(const char **)at = g_intern_string(text); break;
	case OPTION_NAMES: read_names(text, at); break;
	case OPTION_REPEAT: append(at, text); break;
	default: break;
	}
	return (true);
}

/* ---------------------------------------------------------------- messages */

/* "1 to 1024 ms" */
static void
put_range(struct buf *out, const struct option *o)
{
	buf_printf(out, "%" PRIu64 " to %" PRIu64 "%s%s", o->min, o->max,
	    o->unit != NULL ? " " : "", o->unit != NULL ? o->unit : "");
}

/* "a, b or c" for "a|b|c" */
static void
put_words(struct buf *out, const char *words)
{
	const char *last = strrchr(words, '|');

	for (; *words != '\0'; words++)
		if (*words == '|')
			buf_str(out, words == last ? " or " : ", ");
		else
			buf_char(out, *words);
}

static GError *
wrong_value(const struct option *o, const char *text)
{
	struct buf b;
	GError *err;

	buf_init(&b, 0);
	if (o->expected != NULL)
		buf_str(&b, o->expected);
	else if (o->arg == NULL)
		buf_str(&b, "no value");
	else if (o->kind == OPTION_NUMBER)
		put_range(&b, o);
	else if (o->kind == OPTION_SIZE)
		buf_printf(&b, "a number of at least %" PRIu64 ", with or without k, m or g",
		    o->min);
	else
		put_words(&b, o->arg);
	buf_str(&b, ", got \"");
	buf_log_quoted(&b, text_of(text));
	err = g_error_new(G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "--%s: expected %.*s\"", o->name,
	    (int)b.n, b.p);
	buf_free(&b);
	return (err);
}

static void (*tell_lines)(struct text);

void
options_tell(void (*tell)(struct text))
{
	tell_lines = tell;
}

int
options_wrong(const struct command *c, const char *format, ...)
{
	GString *line = g_string_new(c->name);
	va_list args;

	g_string_append(line, ": ");
	va_start(args, format);
	g_string_append_vprintf(line, format, args);
	va_end(args);
	g_string_append_c(line, '\n');
	if (tell_lines != NULL)
		tell_lines((struct text){ line->str, line->len });
	else
		fputs(line->str, stderr);
	g_string_free(line, TRUE);
	return (EX_USAGE);
}

/* ---------------------------------------------------------------- pages */

/* "-t, --threads=N" */
static const char *
term_of(struct buf *b, const struct option *o)
{
	b->n = 0;
	if (o->letter != '\0')
		buf_printf(b, "-%c, ", o->letter);
	buf_printf(b, "--%s", o->name);
	if (o->arg != NULL)
		buf_printf(b, o->alone != NULL ? "[=%s]" : "=%s", o->arg);
	buf_char(b, '\0');
	return (b->p);
}

/* The prose, then "1 to 1024 ms, default 20." */
static const char *
prose_of(struct buf *b, const struct option *o)
{
	b->n = 0;
	buf_str(b, o->prose);
	if (o->kind == OPTION_NUMBER) {
		buf_char(b, ' ');
		put_range(b, o);
	}
	if (o->def != NULL)
		buf_printf(b, "%s %s",
		    o->kind == OPTION_NUMBER ? ", default" : " Default:", o->def);
	if (o->def != NULL || o->kind == OPTION_NUMBER)
		buf_char(b, '.');
	buf_char(b, '\0');
	return (b->p);
}

void
options_manual(struct manpage *p, const struct option *o)
{
	manpage_marked(p, "# OPTIONS\n");
	options_items(p, o);
}

void
options_items(struct manpage *p, const struct option *o)
{
	struct buf b;

	buf_init(&b, 0);
	for (; o->name != NULL; o++) {
		manpage_item(p, term_of(&b, o));
		manpage_text(p, prose_of(&b, o));
	}
	buf_free(&b);
}

/* The prose next to a short term, or below a long one. */
static void
help_row(struct buf *out, const char *term, const char *prose)
{
	size_t start;

	if (strlen(term) + 4 > HELP_COLUMN) {
		buf_printf(out, "  %s\n", term);
		term = "";
	}
	start = out->n;
	manpage_fill(out, HELP_COLUMN, prose);
	if (!out->failed)
		memcpy(out->p + start + 2, term, strlen(term));
}

static void
print_help(const struct command *c)
{
	const struct option *o;
	struct buf term, prose, out;

	buf_init(&term, 0);
	buf_init(&prose, 0);
	buf_init(&out, 0);
	buf_printf(&out, "Usage: %s %s\n\n", c->name, c->usage);
	for (o = c->options; o->name != NULL; o++)
		help_row(&out, term_of(&term, o), prose_of(&prose, o));
	printf("%.*s\n%s", (int)out.n, out.p, c->about);
	buf_free(&out);
	buf_free(&prose);
	buf_free(&term);
}

/* A cell ends at a tab, a row at the end of its line. */
static void
put_row(const char *name, char letter, const char *arg, const char *alone, const char *prose)
{
	char short_name[2] = { letter, '\0' };

	printf("%s\t%s\t%s\t%s\t%s\n", name, short_name, arg != NULL ? arg : "",
	    alone != NULL ? "?" : "", prose);
}

/* The lines "  word  prose" below "Commands:" of --help. */
static void
put_commands(const char *about)
{
	struct text rest = text_of(about), line;
	bool within = false;
	char word[32], prose[256];

	while (text_next(&rest, '\n', &line)) {
		char *copy = g_strndup(line.p, line.n);

		if (sscanf(copy, "  %31s %255[^\n]", word, prose) == 2 && within)
			put_row(word, '\0', NULL, NULL, prose);
		within = within ? line.n != 0 : text_eq(line, TEXT("Commands:"));
		g_free(copy);
	}
}

static void
print_table(const struct command *c)
{
	const struct option *o;

	put_commands(c->about);
	for (o = c->options; o->name != NULL; o++) {
		char *name = g_strconcat("--", o->name, NULL);

		put_row(name, o->letter, o->arg, o->alone, o->prose);
		g_free(name);
	}
}

int
options_out(struct buf *out)
{
	bool good =
	    !out->failed && fwrite(out->p, 1, out->n, stdout) == out->n && fflush(stdout) == 0;

	buf_free(out);
	return (good ? 0 : EX_IOERR);
}

int
options_print(void (*page)(struct manpage *), bool roff)
{
	struct buf out;
	struct manpage p = { &out, roff };

	buf_init(&out, 0);
	page(&p);
	return (options_out(&out));
}

/* ---------------------------------------------------------------- the command line */

/* word: "-t" or "--threads" */
static const struct option *
option_of(const struct option *o, const char *word)
{
	for (; o->name != NULL; o++)
		if (word[1] == '-' ? strcmp(word + 2, o->name) == 0 : word[1] == o->letter)
			return (o);
	return (NULL);
}

static gboolean
on_option(const char *word, const char *text, void *data, GError **err)
{
	struct parsing *p = data;
	const struct option *o = option_of(p->command->options, word);

	if (text == NULL)
		text = o->alone;
	p->help |= o->kind == OPTION_HELP;
	if (read_value(o, text, p->values + o->at))
		return (TRUE);
	*err = wrong_value(o, text);
	return (FALSE);
}

static GOptionEntry
entry_of(const struct option *o)
{
	int flags = o->arg == NULL     ? G_OPTION_FLAG_NO_ARG
		    : o->alone != NULL ? G_OPTION_FLAG_OPTIONAL_ARG
				       : 0;

	return ((GOptionEntry){ o->name, o->letter, flags | G_OPTION_FLAG_FILENAME,
	    G_OPTION_ARG_CALLBACK, (void *)on_option, NULL, NULL });
}

static GOptionContext *
context_of(struct parsing *p, char ***rest)
{
	const GOptionEntry last = { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, rest };
	GOptionContext *context = g_option_context_new(NULL);
	GOptionGroup *group = g_option_group_new("main", "", "", p, NULL);
	GArray *entries = g_array_new(TRUE, TRUE, sizeof(GOptionEntry));
	const struct option *o;

	for (o = p->command->options; o->name != NULL; o++) {
		GOptionEntry e = entry_of(o);

		g_array_append_val(entries, e);
	}
	g_array_append_val(entries, last);
	g_option_group_add_entries(group, (GOptionEntry *)entries->data);
	g_array_free(entries, TRUE); /* the group has a copy */
	g_option_context_set_main_group(context, group);
	g_option_context_set_help_enabled(context, FALSE);
	return (context);
}

/* "-j16" becomes "-j", "16", up to "--": getopt(3) reads a value in the same word, GOption does
 * not. */
static char **
split_short_options(const struct option *rows, char **argv)
{
	GPtrArray *words = g_ptr_array_new();
	const struct option *o;
	bool more = true;

	for (; *argv != NULL; argv++) {
		const char *w = *argv;

		more &= strcmp(w, "--") != 0;
		o = more && w[0] == '-' && w[1] != '\0' && w[1] != '-' && w[2] != '\0'
			? option_of(rows, w)
			: NULL;
		if (o != NULL && o->arg != NULL && o->alone == NULL) {
			g_ptr_array_add(words, g_strndup(w, 2));
			w += 2;
		}
		g_ptr_array_add(words, g_strdup(w));
	}
	g_ptr_array_add(words, NULL);
	return ((char **)g_ptr_array_free(words, FALSE));
}

/* GOption takes "--allow-any=no" for "--allow-any". */
static GError *
flag_with_value(const struct option *rows, char **words)
{
	const struct option *o = NULL;
	const char *text = NULL;
	char *name;

	for (; o == NULL && *words != NULL && strcmp(*words, "--") != 0; words++) {
		text = strchr(*words, '=');
		if (text == NULL || !g_str_has_prefix(*words, "--"))
			continue;
		name = g_strndup(*words, (size_t)(text - *words));
		o = option_of(rows, name);
		g_free(name);
		if (o != NULL && o->arg != NULL)
			o = NULL;
	}
	return (o != NULL ? wrong_value(o, text + 1) : NULL);
}

static int
parse(struct parsing *p, char **argv, char ***rest)
{
	char **words = split_short_options(p->command->options, argv);
	GOptionContext *context = context_of(p, rest);
	GError *err = flag_with_value(p->command->options, words);
	int code = OPTIONS_RUN;

	if (err != NULL || !g_option_context_parse_strv(context, &words, &err))
		code = options_wrong(p->command, "%s%s", err->message,
		    err->code == G_OPTION_ERROR_FAILED ? "" : " (--help lists the options)");
	g_clear_error(&err);
	g_option_context_free(context);
	g_strfreev(words);
	return (code);
}

int
options_parse(const struct command *c, char **argv, void *values, const char *const **rest)
{
	static const char **words;
	struct parsing p = { c, values };
	const struct option *o;
	char **texts = NULL;
	int code;

	if (argv[0] != NULL && argv[1] != NULL && strcmp(argv[1], OPTION_TABLE) == 0) {
		print_table(c);
		return (0);
	}
	g_free(words);
	words = NULL;
	for (o = c->options; o->name != NULL; o++)
		if (o->def != NULL)
			read_value(o, o->def, p.values + o->at);
	code = parse(&p, argv, &texts);
	for (char **text = texts; text != NULL && *text != NULL; text++)
		append(&words, *text);
	g_strfreev(texts);
	*rest = words;
	if (code != OPTIONS_RUN || !p.help)
		return (code);
	print_help(c);
	return (0);
}

char *
options_program(const char *name)
{
	char *self = g_file_read_link("/proc/self/exe", NULL);
	char *dir, *beside;

	if (self == NULL)
		return (g_strdup(name));
	dir = g_path_get_dirname(self);
	beside = g_build_filename(dir, name, NULL);
	g_free(self);
	g_free(dir);
	if (g_file_test(beside, G_FILE_TEST_IS_EXECUTABLE))
		return (beside);
	g_free(beside);
	return (g_strdup(name));
}
