/* t/unit/server/endings.c -- the endings of scripts in conditions around proxy-core.backends. */
#include <string.h>
#include "server/config/impl.h"
#include "t/unit/test.h"

static char *
endings_of(const char *condition)
{
	struct buf err, warn;
	g_autofree char *text = g_strdup_printf("server.document-root = \"/srv\"\n%s {\n"
						"proxy-core.protocol = \"fastcgi\"\n"
						"proxy-core.backends = ( \"unix:/s\" )\n}\n",
	    condition);
	GString *all = g_string_new("");
	const struct conf_list *list;
	struct config *cfg;
	size_t i;

	buf_init(&err, 4096);
	buf_init(&warn, 4096);
	cfg = config_load_text("t.conf", text_of(text), true, &err, &warn);
	g_assert_nonnull(cfg);
	list = config_global(cfg)->condition_endings;
	for (i = 0; i < list->n; i++)
		g_string_append_printf(all, "%s%s", i > 0 ? " " : "", list->v[i].p);
	config_free(cfg);
	buf_free(&err);
	buf_free(&warn);
	return (g_string_free(all, FALSE));
}

TEST("/endings/conditions")
{
	static const struct {
		const char *condition, *endings;
	} rows[] = {
		{ "$HTTP[\"url\"] =~ \"\\.php$\"", ".php" },
		{ "$HTTP[\"url\"] =~ \"^/x/.*\\.(php|phtml)(/|$)\"", ".php .phtml" },
		{ "$HTTP[\"url\"] =~ \"\\.(?:php|PHP|fcgi)($|/)\"", ".php .fcgi" },
		{ "$PHYSICAL[\"existing-path\"] =$ \".php\"", ".php" },
		{ "$PHYSICAL[\"path\"] =~ \"\\.php(/.*)?$\"", ".php" },
		{ "$HTTP[\"host\"] =~ \"\\.php$\"", "" },
		{ "$HTTP[\"url\"] =~ \"\\.php\"", "" },
		{ "$HTTP[\"url\"] =~ \"\\.ph.$\"", "" },
		{ "$HTTP[\"url\"] =~ \"$\"", "" },
		{ "$HTTP[\"url\"] =~ \"\\.$\"", "" },
		{ "$HTTP[\"url\"] !~ \"\\.html$\"", "" },
		{ "$HTTP[\"url\"] =^ \"/app/\"", "" },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_autofree char *got = endings_of(rows[i].condition);

		g_test_message("%s", rows[i].condition);
		g_assert_cmpstr(got, ==, rows[i].endings);
	}
}

/* A condition may stand around others; no ending is left out. */
TEST("/endings/many")
{
	g_autoptr(GString) re = g_string_new("$HTTP[\"url\"] =~ \"\\.(a0");
	char *got;
	size_t i, n = 1;

	for (i = 1; i < 100; i++)
		g_string_append_printf(re, "|a%zu", i);
	g_string_append(re, ")$\"");
	got = endings_of(re->str);
	for (i = 0; got[i] != '\0'; i++)
		n += got[i] == ' ';
	g_assert_cmpuint(n, ==, 100);
	g_free(got);
	got = endings_of(
	    "$HTTP[\"url\"] =~ \"\\.x$\" { $HTTP[\"url\"] =~ \"\\.y$\" { server.tag = \"t\" } }\n"
	    "$HTTP[\"host\"] == \"h\"");
	g_assert_cmpstr(got, ==, "");
	g_free(got);
}
