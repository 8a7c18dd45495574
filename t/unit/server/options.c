/* t/unit/server/options.c -- the command line of accel-server: letters, long names, mistakes. */
#include <sysexits.h>
#include "base/must.h"
#include "server/options.h"
#include "t/unit/test.h"

static int
parse(struct options *o, const char *line)
{
	char **argv = g_strsplit(line, " ", 0);
	int res = options_read(argv, o);

	g_strfreev(argv);
	return (res);
}

TEST("/options/letters")
{
	struct options o;

	g_assert_cmpint(parse(&o, "accel-server -D -p -1 -f a.conf"), ==, OPTIONS_RUN);
	g_assert_cmpstr(o.file, ==, "a.conf");
	g_assert_true(o.print && o.one);
	g_assert_false(o.version || o.features || o.until_eof || o.test);

	g_assert_cmpint(parse(&o, "accel-server -v -V -m /lib/old"), ==, OPTIONS_RUN);
	g_assert_true(o.version && o.features);
}

TEST("/options/long-names")
{
	struct options o;

	g_assert_cmpint(parse(&o,
			    "accel-server --config=b --foreground --print --until-eof --one-shot"),
	    ==, OPTIONS_RUN);
	g_assert_cmpstr(o.file, ==, "b");
	g_assert_true(o.print && o.until_eof && o.one);
	g_assert_cmpint(parse(&o, "accel-server --version --features"), ==, OPTIONS_RUN);
	g_assert_true(o.version && o.features);
}

TEST("/options/how-much-is-tested")
{
	static const struct {
		const char *line;
		int test;
	} cases[] = {
		{ "accel-server -t", 1 },
		{ "accel-server --test", 1 },
		{ "accel-server -tt", 2 },
		{ "accel-server -t -t -t", 2 },
		{ "accel-server --test-preflight", 2 },
		{ "accel-server -pD", 0 },
	};
	struct options o;
	size_t i;

	for (i = 0; i < NELEM(cases); i++) {
		g_assert_cmpint(parse(&o, cases[i].line), ==, OPTIONS_RUN);
		g_assert_cmpint(o.test, ==, cases[i].test);
	}
}

TEST("/options/manual-pages")
{
	struct options o;

	g_assert_cmpint(parse(&o, "accel-server --manual"), ==, OPTIONS_RUN);
	g_assert_cmpint(o.manual, ==, MANUAL_CONF);
	g_assert_cmpint(parse(&o, "accel-server --manual=roff"), ==, OPTIONS_RUN);
	g_assert_cmpint(o.manual, ==, MANUAL_CONF_ROFF);
	g_assert_cmpint(parse(&o, "accel-server --manual=program"), ==, OPTIONS_RUN);
	g_assert_cmpint(o.manual, ==, MANUAL_PROGRAM);
}

TEST("/options/mistakes")
{
	static const char *const lines[] = { "accel-server -Q", "accel-server --nothing",
		"accel-server -f", "accel-server file", "accel-server --manual=page",
		"accel-server -D=x" };
	struct options o;
	size_t i;

	for (i = 0; i < NELEM(lines); i++) {
		g_assert_cmpint(parse(&o, lines[i]), ==, EX_USAGE);
		g_assert_null(o.file);
	}
}
