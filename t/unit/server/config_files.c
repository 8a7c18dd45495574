/* t/unit/server/config_files.c -- configuration files: includes, commands, listeners, addresses. */
#include "t/unit/server/config_test.h"

struct files {
	char *dir;
};

static void
files_make(struct files *f, gconstpointer data)
{
	f->dir = g_dir_make_tmp("config-XXXXXX", NULL);
	g_assert_nonnull(f->dir);
}

static void
files_remove(struct files *f, gconstpointer data)
{
	char *argv[] = { (char *)"rm", (char *)"-r", f->dir, NULL };

	g_assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL,
	    NULL, NULL));
	g_free(f->dir);
}

static void
put(struct files *f, const char *name, const char *text)
{
	g_autofree char *path = g_build_filename(f->dir, name, NULL),
			*dir = g_path_get_dirname(path);

	g_mkdir_with_parents(dir, 0755);
	g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static struct config *
load_file(struct files *f, const char *name)
{
	g_autofree char *path = g_build_filename(f->dir, name, NULL);

	forget();
	loaded = config_load(path, NULL, &err, &warn);
	return (loaded);
}

static void
refused(struct files *f, const char *part)
{
	g_assert_null(load_file(f, "main.conf"));
	if (strstr(str(&err), part) == NULL)
		g_test_message("%s", str(&err));
	g_assert_nonnull(strstr(str(&err), part));
}

static void
includes(struct files *f, gconstpointer data)
{
	struct config *c;

	put(f, "main.conf",
	    "where = \"sub\"\ninclude where + \"/a.conf\"\ninclude \"conf.d/*.conf\"\ninclude "
	    "\"none/*.conf\"\n"
	    "$HTTP[\"url\"] == \"/\" {\n include \"inner.conf\"\n}\n");
	/* still relative to the main file */
	put(f, "sub/a.conf", ROOT "include \"sub/b.conf\"");
	put(f, "sub/b.conf", "server.tag = where");
	put(f, "conf.d/1.conf", "index-file.names = ( \"1\" )");
	put(f, "conf.d/2.conf", "index-file.names += ( \"2\" )");
	put(f, "inner.conf", "server.name = \"inner\"\nglobal {\n server.port = 99\n}");
	c = load_file(f, "main.conf");
	g_assert_nonnull(c);
	g_assert_cmpstr(config_global(c)->server_tag, ==, "sub");
	g_assert_cmpuint(config_global(c)->index_names.n, ==, 2);
	g_assert_cmpstr(config_global(c)->index_names.v[1].p, ==, "2");
	g_assert_null(config_global(c)->server_name);
	g_assert_cmpuint(config_global(c)->port, ==, 99);
}

static void
includes_that_fail(struct files *f, gconstpointer data)
{
	g_autofree char *big = g_strnfill((17 << 20), '#');

	put(f, "main.conf", ROOT "\n  include \"none.conf\"");
	refused(f, "main.conf:3:11: cannot read ");
	put(f, "main.conf", "include \"main.conf\"");
	refused(f, "includes itself");
	put(f, "main.conf", "include \"a.conf\"");
	put(f, "a.conf", "include \"main.conf\"");
	refused(f, "includes itself");
	put(f, "a.conf", ROOT "$HTTP[\"url\"] == \"/\" {");
	refused(f, "a.conf:2:22: the file ends inside of a block");
	put(f, "main.conf", "include \".\"");
	refused(f, "main.conf:1:9: cannot read ");
	put(f, "main.conf", "include 7");
	refused(f, "expected the name of a file, got a number");
	put(f, "a.conf", big);
	put(f, "main.conf", "include \"a.conf\"");
	refused(f, "too large");
	put(f, "main.conf", "i = \"x\"\ninclude \"/dev/zero\"");
	refused(f, "too large");
	g_assert_null(load_file(f, "not-there.conf"));
	g_assert_nonnull(strstr(str(&err), "not-there.conf: No such file"));
}

/* main.conf includes 1.conf, and so on; N.conf includes nothing. */
static void
put_chain(struct files *f, unsigned n)
{
	char *name = NULL, *text;
	unsigned i;

	for (i = 0; i < n; i++) {
		text = g_strdup_printf("include \"%u.conf\"", i + 1);
		put(f, i == 0 ? "main.conf" : name, text);
		g_free(name);
		g_free(text);
		name = g_strdup_printf("%u.conf", i + 1);
	}
	put(f, name, ROOT);
	g_free(name);
}

static void
includes_limit(struct files *f, gconstpointer data)
{
	struct config *c;

	put_chain(f, 16);
	c = load_file(f, "main.conf");
	g_assert_nonnull(c);
	put_chain(f, 17);
	refused(f, "16.conf:1:9: more than 16 files include each other");
}

static void
commands(struct files *f, gconstpointer data)
{
	struct config *c;

	put(f, "port", "server.port = 4321");
	put(f, "main.conf", ROOT "include_shell \"cat po\" + \"rt; pwd >here\"");
	c = load_file(f, "main.conf");
	g_assert_nonnull(c);
	g_assert_cmpuint(config_global(c)->port, ==, 4321);
	put(f, "main.conf", ROOT "include_shell \"exit 3\"");
	refused(f, "main.conf:2:15: the command `exit 3` failed with status 3");
	put(f, "main.conf", ROOT "include_shell \"yes\"");
	refused(f, "too large");
	put(f, "main.conf", ROOT "include_shell \"echo a b\"");
	refused(f, "output of `echo a b`:1:3: ");
}

static void
listens(const char *text, const char *want)
{
	struct config *c = good(text);
	g_autoptr(GString) got = g_string_new(NULL);
	const char *a;
	size_t i;

	for (i = 0; (a = config_listen(c, i)) != NULL; i++)
		g_string_append_printf(got, "%s%s", i > 0 ? " " : "", a);
	g_assert_cmpstr(got->str, ==, want);
}

TEST("/config/addresses")
{
	listens(ROOT, ":80");
	listens(ROOT "server.port = 8080", ":8080");
	listens(ROOT "server.port = 8080\nserver.bind = \"127.0.0.1\"", "127.0.0.1:8080");
	listens(ROOT "server.bind = \"::1\"", "[::1]:80");
	listens(ROOT "server.bind = \"[::]\"", "[::]:80");
	listens(ROOT "server.bind = \"/run/a.sock\"", "/run/a.sock");
	listens(ROOT "$SERVER[\"socket\"] == \":1025\" { }", ":1025");
	listens(ROOT "server.port = 1\n$SERVER[\"socket\"] == \":1025\" { }", ":1 :1025");
	listens(ROOT "server.port = 80\n$SERVER[\"socket\"] == \"0.0.0.0:80\" { "
		     "}\n$SERVER[\"socket\"] == \"[::]:80\" { }",
	    ":80 [::]:80");
	listens(ROOT "server.port = 80\n$SERVER[\"socket\"] == \"*:80\" { }", ":80");
	listens(ROOT "server.port = 81\n$SERVER[\"socket\"] == \"127.0.0.1\" { }",
	    ":81 127.0.0.1:81");
	listens(ROOT "$SERVER[\"socket\"] =~ \":1$\" { }\n$SERVER[\"socket\"] != \":2\" { }",
	    ":80");
	listens(ROOT "$HTTP[\"url\"] == \"/\" { $SERVER[\"socket\"] == \"unix:/a\" { } }",
	    "unix:/a");
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add("/config/includes", struct files, NULL, files_make, includes, files_remove);
	g_test_add("/config/includes-that-fail", struct files, NULL, files_make, includes_that_fail,
	    files_remove);
	g_test_add("/config/includes-limit", struct files, NULL, files_make, includes_limit,
	    files_remove);
	g_test_add("/config/commands", struct files, NULL, files_make, commands, files_remove);
	return (tests_run());
}
