/* The table of options: each kind of value, defaults, limits, values in the same word, mistakes. */
#include <string.h>
#include <sysexits.h>
#include "base/must.h"
#include "base/option.h"
#include "t/unit/test.h"

struct values {
	bool flag;
	unsigned count, number, word;
	uint64_t size;
	const char *text, *checked;
	const char *const *names, *const *repeat;
};

static bool
begins_with_slash(const char *text, void *at)
{
	return (text[0] == '/');
}

#define AT(field) offsetof(struct values, field)

static const struct option rows[] = {
	{ "flag", 'f', NULL, OPTION_FLAG, AT(flag), .prose = "A flag." },
	{ "count", 'c', NULL, OPTION_COUNT, AT(count), 1, 2, .prose = "A count." },
	{ "number", 'n', "N", OPTION_NUMBER, AT(number), 3, 9, "4", "ms", .prose = "A number." },
	{ "size", 's', "BYTES", OPTION_SIZE, AT(size), 1, 4096, .prose = "A size." },
	{ "word", 'w', "one|two", OPTION_WORD, AT(word), 1, .alone = "two", .prose = "A word." },
	{ "text", 't', "TEXT", OPTION_TEXT, AT(text), .prose = "A text." },
	{ "checked", '\0', "PATH", OPTION_TEXT, AT(checked), .read = begins_with_slash,
	    .expected = "a path", .prose = "A path." },
	{ "names", '\0', "NAME,...", OPTION_NAMES, AT(names), .def = "a,b", .prose = "Names." },
	{ "repeat", 'r', "TEXT", OPTION_REPEAT, AT(repeat), .prose = "Texts." },
	{ "old", 'o', "X", OPTION_IGNORED, .prose = "Nothing." },
	OPTION_HELP_ROW,
	{ NULL },
};

static const struct command command = { "test", "[OPTION]...", "", rows };

static int
parse(struct values *v, const char *const **rest, const char *line)
{
	char **argv = g_strsplit(line, " ", 0);
	int code;

	memset(v, 0, sizeof(*v));
	code = options_parse(&command, argv, v, rest);
	g_strfreev(argv);
	return (code);
}

TEST("/option/defaults")
{
	const char *const *rest;
	struct values v;

	g_assert_cmpint(parse(&v, &rest, "test"), ==, OPTIONS_RUN);
	g_assert_true(!v.flag && v.count == 0 && v.number == 4 && v.word == 0 && v.size == 0);
	g_assert_true(v.text == NULL && v.repeat == NULL && rest == NULL);
	g_assert_cmpstr(v.names[0], ==, "a");
	g_assert_cmpstr(v.names[1], ==, "b");
	g_assert_null(v.names[2]);
	g_free((void *)v.names);
}

TEST("/option/values")
{
	const char *const *rest;
	struct values v;

	g_assert_cmpint(parse(&v, &rest,
			    "test -cfc x --number=9 -s4k -w --text=-- --names= -r1 -r 2 -- -f"),
	    ==, OPTIONS_RUN);
	g_assert_true(v.flag && v.count == 2 && v.number == 9 && v.size == 4096 && v.word == 2);
	g_assert_cmpstr(v.text, ==, "--");
	g_assert_null(v.names);
	g_assert_cmpstr(v.repeat[0], ==, "1");
	g_assert_cmpstr(v.repeat[1], ==, "2");
	g_assert_null(v.repeat[2]);
	g_assert_cmpstr(rest[0], ==, "x");
	g_assert_cmpstr(rest[1], ==, "-f");
	g_assert_null(rest[2]);
	g_free((void *)v.repeat);

	g_assert_cmpint(parse(&v, &rest, "test -ccc -n3 --word=one --checked /x -o y --names=,c"),
	    ==, OPTIONS_RUN);
	g_assert_true(v.count == 2 && v.number == 3 && v.word == 1 && rest == NULL);
	g_assert_cmpstr(v.checked, ==, "/x");
	g_assert_cmpstr(v.names[0], ==, "");
	g_assert_cmpstr(v.names[1], ==, "c");
	g_free((void *)v.names);
}

TEST("/option/mistakes")
{
	static const char *const lines[] = { "-n 2", "-n 10", "-n 4x", "-n", "-s 0", "-s 4097",
		"-s 5k", "--word=three", "--word=on", "--checked x", "-x", "--numbe 4", "--flag=no",
		"--count=", "--help=1" };
	const char *const *rest;
	struct values v;
	size_t i;

	for (i = 0; i < NELEM(lines); i++) {
		g_autofree char *line = g_strconcat("test ", lines[i], NULL);

		g_assert_cmpint(parse(&v, &rest, line), ==, EX_USAGE);
		g_free((void *)v.names);
	}
}

/* A value may have any bytes: it may be the name of a file. */
TEST("/option/bytes")
{
	const char *const *rest;
	struct values v;

	g_assert_cmpint(parse(&v, &rest, "test --text=\xff\xfe"), ==, OPTIONS_RUN);
	g_assert_cmpstr(v.text, ==, "\xff\xfe");
	g_free((void *)v.names);
}

TEST("/option/help")
{
	const char *const *rest;
	struct values v;

	if (g_test_subprocess()) {
		g_assert_cmpint(parse(&v, &rest, "test -h"), ==, 0);
		g_free((void *)v.names);
		return;
	}
	g_test_trap_subprocess(NULL, 0, 0);
	g_test_trap_assert_passed();
	g_test_trap_assert_stdout("*Usage: test ?OPTION?...\n\n"
				  "  -f, --flag              A flag.\n*"
				  "  -n, --number=N          A number. 3 to 9 ms, default 4.\n*"
				  "  -w, --word?=one|two?    A word.\n*"
				  "  -h, --help              Print the options.\n*");
}

TEST("/option/manual")
{
	struct buf out;
	struct manpage p = { &out, false };

	buf_init(&out, 0);
	options_manual(&p, rows);
	buf_char(&out, '\0');
	g_assert_nonnull(strstr(out.p, "\nOPTIONS\n\n    -f, --flag\n        A flag.\n"));
	g_assert_nonnull(
	    strstr(out.p, "-n, --number=N\n        A number. 3 to 9 ms, default 4.\n"));
	g_assert_nonnull(strstr(out.p, "-w, --word[=one|two]\n"));
	g_assert_nonnull(strstr(out.p, "\n    --names=NAME,...\n        Names. Default: a,b.\n"));
	buf_free(&out);
}

/* Paragraphs, items, examples: each mark of manpage_marked(). */
TEST("/option/marks")
{
	static const char text[] = "# A\none\n= term\nits\n\\ meaning\n| .x\n| y\n# B\ntwo\n\n"
				   "=two\n@ a table\n# C\n";
	struct buf out;
	struct manpage p = { &out, false };

	buf_init(&out, 0);
	g_assert_cmpstr(manpage_marked(&p, text), ==, "# C\n");
	buf_char(&out, '\0');
	g_assert_cmpstr(out.p, ==,
	    "\nA\n        one\n\n    term\n        its \\ meaning\n\n        .x\n        y\n\n"
	    "\nB\n        two\n        =two\n");
	out.n = 0;
	p.roff = true;
	manpage_marked(&p, text);
	buf_char(&out, '\0');
	g_assert_cmpstr(out.p, ==,
	    ".SH A\n.PP\none\n.TP\n\\fBterm\\fR\nits \\e meaning\n.br\n.PP\n.nf\n\\&.x\ny\n.fi\n"
	    ".SH B\n.PP\ntwo\n.PP\n=two\n");
	g_assert_null(manpage_marked(&p, "# C\n"));
	buf_free(&out);
}
