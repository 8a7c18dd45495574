/* t/unit/server/config.c -- the configuration language: types, operators, variables, errors and
 * their places. */
#include "t/unit/server/config_test.h"

TEST("/config/defaults")
{
	struct config *c = good(ROOT);
	const struct conf *g = config_global(c);

	g_assert_cmpstr(g->document_root, ==, "/srv");
	g_assert_cmpuint(g->port, ==, 80);
	g_assert_cmpuint(g->index_names.n, ==, 1);
	g_assert_cmpstr(g->index_names.v[0].p, ==, "index.html");
	g_assert_cmpstr(g->server_tag, ==, "stat-accel");
	g_assert_null(g->accesslog);
	g_assert_cmpstr(g->follow_symlink, ==, "inside");
	g_assert_false(g->etag_inode);
	g_assert_cmpuint(g->mime_assign.n, ==, 0);
	g_assert_cmpint(g->proxy_block, ==, -1);
	g_assert_false(config_has_conditions(c));
	g_assert_false(config_uses_physical(c));
	g_assert_cmpuint(warn.n, ==, 0);
}

TEST("/config/expressions")
{
	value_is("\"a\" + \"b\"", "\"ab\"");
	value_is("1 + 2", "3");
	value_is("1 + \"x\" + 2", "\"1x2\"");
	value_is("( \"a\" ) + ( 1, )", "( \"a\", 1 )");
	value_is("var.n + n + s", "\"14s\"");
	value_is("( \"k\" => ( \"x\" => s ), l )", "( \"k\" => ( \"x\" => \"s\" ), ( \"a\" ) )");
	value_is("(\n\"a\", # one\n\n \"b\"\n)", "( \"a\", \"b\" )");
	value_is("( )", "()");
	value_is("\"a\\\"b\\.c\\n\"", "\"a\\\"b\\.c\\n\"");
	value_is("\"# no comment\"", "\"# no comment\"");
	value_is("server.document-root + \"/x\"", "\"/srv/x\"");
}

TEST("/config/strings-span-lines")
{
	struct config *c = good(ROOT "server.errorfile-prefix = \"a\nb\"\r\nserver.name = \"n\"");

	g_assert_cmpstr(config_global(c)->error_prefix, ==, "a\nb");
	g_assert_cmpstr(config_global(c)->server_name, ==, "n");
}

TEST("/config/variables-and-environment")
{
	char *pid = g_strdup_printf("%d", (int)getpid()), *cwd = g_get_current_dir(), *quoted;

	g_setenv("STAT_ACCEL_T", "from outside", TRUE);
	value_is("env.STAT_ACCEL_T", "\"from outside\"");
	value_is("var.PID", pid);
	quoted = g_strdup_printf("\"%s\"", cwd);
	value_is("CWD", quoted);
	bad(ROOT "a = env.NOT_THERE_AT_ALL", "t.conf:2:5: ", "not set in the environment");
	bad(ROOT "a = var.b", "t.conf:2:5: ", "var.b has no value");
	bad(ROOT "var.PID = 1", "t.conf:2:1: ", "preset");
	bad(ROOT "env.HOME = \"x\"", "t.conf:2:1: ", "environment");
	g_free(quoted);
	g_free(cwd);
	g_free(pid);
}

TEST("/config/assignments")
{
	struct config *c;

	c = good(ROOT "server.tag = \"a\"\nserver.tag += \"b\"\nserver.port = 1\nserver.port := 2\n"
		      "index-file.names += ( \"x\" )\nindex-file.names += ( \"y\", 3 )\n");
	g_assert_cmpstr(config_global(c)->server_tag, ==, "ab");
	g_assert_cmpuint(config_global(c)->port, ==, 2);
	g_assert_cmpuint(config_global(c)->index_names.n, ==, 3);
	g_assert_cmpstr(config_global(c)->index_names.v[2].p, ==, "3");
	bad(ROOT "server.tag = \"a\"\n  server.tag = \"b\"",
	    "t.conf:3:3: ", "was set at t.conf:2 already");
	bad(ROOT "a = 1\na += ( 2 )", "t.conf:3:6: ", "cannot be added");
	bad(ROOT "a = ( \"k\" => 1 )\na += ( \"k\" => 2 )", "t.conf:3:6: ", "key \"k\" twice");
	bad(ROOT "a = ( \"k\" => 1, \"k\" => 1 )", "t.conf:2:5: ", "key \"k\" twice");
	bad(ROOT "a = 9223372036854775807 + 1", "t.conf:2:25: ", "too large");
}

TEST("/config/types")
{
	struct config *c;

	c = good(
	    ROOT "server.port = \"8080\"\nserver.range-requests = \"disable\"\nserver.name = "
		 "42\nserver.errorlog = \"\"\n"
		 "server.tag = \"\"\nmimetype.assign = ( \".x\" => \"a/b\", \"\" => \"c/d\" )\n"
		 "proxy-core.rewrite-request = ( \"_uri\" => ( \"^/a\" => \"/b\" ) )\n");
	g_assert_cmpuint(config_global(c)->port, ==, 8080);
	g_assert_false(config_global(c)->range_requests);
	g_assert_cmpstr(config_global(c)->server_name, ==, "42");
	g_assert_null(config_global(c)->errorlog);
	g_assert_cmpstr(config_global(c)->server_tag, ==, "");
	g_assert_cmpuint(config_global(c)->mime_assign.n, ==, 2);
	g_assert_cmpstr(config_global(c)->mime_assign.v[0].key.p, ==, ".x");
	g_assert_cmpstr(config_global(c)->mime_assign.v[1].value.p, ==, "c/d");
	g_assert_cmpstr(config_global(c)->proxy_rewrite_request.v[0].map->v[0].value.p, ==, "/b");
	bad(ROOT "server.range-requests = \"on\"",
	    "t.conf:2:25: ", "expected \"enable\" or \"disable\", got \"on\"");
	bad(ROOT "server.range-requests = 1", "t.conf:2:25: ", "got the number 1");
	bad(ROOT "server.port = 65536", "t.conf:2:15: ", "expected a number from 0 to 65535");
	bad(ROOT "server.port = \"8o\"", "t.conf:2:15: ", "got \"8o\"");
	bad(ROOT "server.max-read-idle = 0", "t.conf:2:24: ", "from 1 to 86400 s");
	bad(ROOT "server.tag = ( \"a\" )", "t.conf:2:14: ", "expected a string, got a list");
	bad(ROOT "server.tag = \"a\nX-Evil: 1\"",
	    "t.conf:2:14: ", "expected printable text on one line, got \"a\\x0aX-Evil: 1\"");
	bad(ROOT "index-file.names = \"a\"", "t.conf:2:20: ", "( \"a\", \"b\" )");
	bad(ROOT "index-file.names = ( ( \"a\" ) )", "t.conf:2:20: ", "list of strings");
	bad(ROOT "mimetype.assign = ( \"a\" )", "t.conf:2:19: ", "( \"a\" => \"b\" )");
	bad(ROOT "proxy-core.rewrite-request = ( \"a\" => \"b\" )", "t.conf:2:30: ", "\"NAME\" =>");
	bad(ROOT "proxy-core.balancer = \"fairest\"",
	    "t.conf:2:23: ", "one of: round-robin sqf static carp");
	bad(ROOT "server.port = \"a\"\nserver.tag = ()", "t.conf:2:15: ", "\nt.conf:3:14: ");
}

TEST("/config/syntax-errors-name-their-place")
{
	bad(ROOT "server.port 80", "t.conf:2:13: ", "after the name, got a number \"80\"");
	bad(ROOT "server.port = ", "t.conf:2:15: ", "variable), got the end of the file");
	bad(ROOT "server.port =\n80", "t.conf:2:14: ", "variable), got the end of the line");
	bad(ROOT "server.port = 80 81", "t.conf:2:18: ", "expected the end of the line");
	bad(ROOT "server.port = 80s", "t.conf:2:17: ", "\"s\" in a number");
	bad(ROOT "server.name = 'x'", "t.conf:2:15: ", "needs double quotes");
	bad(ROOT "server.name = \"x\ny\n", "t.conf:2:15: ", "no end");
	bad(ROOT "server.name = \xe9", "t.conf:2:15: ", "0xe9");
	bad(ROOT "a = ( 1 2 )", "t.conf:2:9: ", "\",\" or \")\"");
	bad(ROOT "a = ( ( 1 ) => 2 )", "t.conf:2:7: ", "cannot be a key");
	bad(ROOT "$HTTP[\"host\"] == \"x\" {\n", "t.conf:3:1: ", "close it with \"}\"");
	bad(ROOT "}", "t.conf:2:1: ", "without a \"{\"");
	bad(ROOT "= 1", "t.conf:2:1: ", "expected a setting");
	bad(ROOT "else { }", "t.conf:2:1: ", "\"else\" without");
	bad(ROOT "$HTTP[\"hots\"] == \"x\" { }",
	    "t.conf:2:1: ", "unknown condition $HTTP[\"hots\"]; known are $SERVER[\"socket\"]");
	bad(ROOT "$HTTP[\"host\"] = \"x\" { }", "t.conf:2:15: ", "expected \"==\"");
	bad(ROOT "$HTTP[\"host\"] == ( \"x\" ) { }",
	    "t.conf:2:18: ", "expected a string in this condition");
	bad(ROOT "$HTTP[\"url\"] =~ \"(\" { }", "t.conf:2:17: ", "not a regular expression");
	bad(ROOT "$HTTP[\"remoteip\"] == \"10.0.0.0/33\" { }",
	    "t.conf:2:22: ", "expected an address");
	bad(ROOT "$HTTP[\"host\"] == \"x\" { } else { } else { }", "t.conf:2:40: ", "never apply");
	bad(ROOT "$HTTP[\"host\"] == \"x\" {\n server.tag = \"a\" \"b\"\n}",
	    "t.conf:3:19: ", "expected the end of the line");
	g_assert_cmpstr(strchr(str(&err), '\n'), ==, "\n"); /* the only message */
	bad(ROOT "$HTTP[\"host\"] == \"x\" { }\nelse if { }",
	    "t.conf:3:9: ", "expected a condition");
}

TEST("/config/what-is-missing-or-misplaced")
{
	bad("", "t.conf:1:1: ",
	    "server.document-root is not set; add server.document-root = \"/path\"");
	bad("server.document-root = \"\"", "t.conf:1:1: ", "not set");
	bad(ROOT "$HTTP[\"host\"] == \"x\" {\n server.port = 1 }",
	    "t.conf:3:2: ", "for the whole server");
	bad(ROOT "$SERVER[\"socket\"] == \"a:99999\" { }", "t.conf:2:1: ",
	    "cannot listen on \"a:99999\": expected a port of 0 to 65535 after the host");
	bad(ROOT "$SERVER[\"socket\"] == \"::1\" { }",
	    "t.conf:2:1: ", "cannot listen on \"::1\": expected an IPv6 address in brackets");
	bad(ROOT "server.bind = \"a b\"",
	    "t.conf:2:15: ", "cannot listen on \"a b:80\": expected a host without spaces");
	bad(ROOT "server.bind = \"/run/a b\"",
	    "t.conf:2:15: ", "cannot listen on \"/run/a b\": expected a path without spaces");
}

TEST("/config/unknown-keys-are-refused")
{
	bad(ROOT "\n server.max-read-thread = 4", "t.conf:3:2: ",
	    "unknown setting server.max-read-thread; did you mean server.max-read-threads?");
	bad(ROOT "server.nothing-like-it-at-all = 1", "t.conf:2:1: ",
	    "unknown setting server.nothing-like-it-at-all; remove it (--manual lists all "
	    "settings)");
	good(ROOT "nothing.like-it = 1");
	g_assert_cmpstr(str(&warn), ==,
	    "t.conf:2:1: unknown setting nothing.like-it has no effect\n");
	bad(ROOT "$HTTP[\"url\"] =^ \"/\" { static-file.exclude-extension = ( \".php\" ) }",
	    "t.conf:2:23: ", "static-file.exclude-extensions?");
	good(ROOT "var.any = 4 var.other = 5 $HTTP[\"url\"] == \"/\" { }");
	good(ROOT "var.any = 4\nserver.modules = ( \"mod_access\" )");
	g_assert_cmpstr(str(&warn), ==, "");
}

TEST("/config/refused-keys")
{
	good(ROOT "compress.filetype = ( \"text/html\" )\n"
		  "ssl.ech-opts = \"disable\"\nserver.http-parseopts = ( )");
	g_assert_cmpstr(str(&warn), ==,
	    "t.conf:2:1: compress.filetype is an old name; write deflate.mimetypes\n"
	    "t.conf:3:1: ssl.ech-opts is not built in; only \"disable\" and ( ) are accepted\n");
	bad(ROOT "ssl.ech-opts = \"/x\"", "t.conf:2:1: ",
	    "ssl.ech-opts cannot be used here. Anybody between could read the names of hosts: "
	    "OpenSSL 3 has no ECH. Remove it");
	bad(ROOT "server.defer-accepts = 1", "t.conf:2:1: ", "unknown setting");
}

/* Each row is used, and no row hides a directive. */
TEST("/config/every-refused-row")
{
	const struct refused *f;
	const struct directive *d;
	char text[256];

	for (f = refused_settings; f->name != NULL; f++) {
		size_t n = strlen(f->name);

		g_snprintf(text, sizeof(text), ROOT "%s%s = 1\n", f->name,
		    strchr(".-", f->name[n - 1]) != NULL ? "x" : "");
		if (f->kind == SETTING_REFUSED) {
			bad(text, "t.conf:2:1: ", f->why);
			bad(text, "t.conf:2:1: ", f->instead);
		} else {
			good(text);
			g_assert_nonnull(strstr(str(&warn), f->why));
			g_assert_cmpstr(f->instead, ==, "");
			for (d = directives; d->name != NULL; d++)
				g_assert_true(strcmp(d->type, "OLD") == 0 ||
					      strchr(".-", f->name[n - 1]) == NULL ||
					      strncmp(d->name, f->name, n) != 0 ||
					      g_str_has_prefix(f->name, "debug."));
		}
	}
}

TEST("/config/old-keys-warn-once")
{
	good(ROOT "status.enable-sort = \"enable\"\n$HTTP[\"url\"] == \"/\" { "
		  "status.enable-sort = \"disable\" }");
	g_assert_true(
	    g_str_has_prefix(str(&warn), "t.conf:2:1: status.enable-sort has no effect: "));
	g_assert_cmpuint(strcspn(str(&warn), "\n") + 1, ==, warn.n);
}

/* The name now says bytes.  The old name, which does not, still works, and gets no message. */
TEST("/config/bytes-of-heads")
{
	static const char *const name[] = { "server.max-unfinished-head-bytes",
		"server.max-unfinished-heads" };
	struct config *c;
	char *text;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(name); i++) {
		text = g_strconcat(ROOT, name[i], " = 70000", NULL);
		c = good(text);
		g_assert_cmpuint(config_global(c)->max_head_bytes, ==, 70000);
		g_assert_cmpstr(str(&warn), ==, "");
		g_free(text);
		text = g_strconcat(ROOT, name[i], " = 1", NULL);
		bad(text, "t.conf:2:", "65536");
		g_free(text);
	}
}

TEST("/config/an-alias-fills-in")
{
	struct config *c = good(ROOT "server.max-write-threads = 8");

	g_assert_cmpuint(config_global(c)->read_threads, ==, 8);
	g_assert_cmpstr(str(&warn), ==,
	    "t.conf:2:1: server.max-write-threads is an old name; write server.max-read-threads\n");
	c = good(ROOT "server.max-write-threads = 8\nserver.max-read-threads = 3");
	g_assert_cmpuint(config_global(c)->read_threads, ==, 3);
	g_assert_nonnull(strstr(str(&warn), "another name"));
	bad(ROOT "server.max-write-threads = 1025",
	    "t.conf:2:28: ", "server.max-write-threads: expected a number");
}

TEST("/config/everything-is-bounded")
{
	g_autoptr(GString) s = g_string_new(ROOT "a = \"0123456789abcdef\"\n");
	int i;

	for (i = 0; i < 40; i++)
		g_string_append(s, "a += a\n");
	bad(s->str, "t.conf:", "longer than");
	g_string_assign(s, ROOT "a = ( 1 )\n");
	for (i = 0; i < 40; i++)
		g_string_append(s, "a += ( a, a )\n");
	bad(s->str, "t.conf:", "more than 100000 members");
	g_string_assign(s, ROOT "a = ");
	for (i = 0; i < 100000; i++)
		g_string_append_c(s, '(');
	bad(s->str, "t.conf:2:37: ", "nested");
	g_string_assign(s, ROOT);
	for (i = 0; i < 50000; i++)
		g_string_append(s, "$HTTP[\"url\"] == \"/\" {\n");
	bad(s->str, "t.conf:34:21: ", "nested");
	g_string_assign(s, ROOT);
	for (i = 0; i < 20100; i++)
		g_string_append_printf(s, "$HTTP[\"url\"] == \"/%d\" { }\n", i);
	bad(s->str, "t.conf:20002:1: ", "more than 20000 conditional blocks");
	g_string_assign(s, ROOT "a = \"0123456789abcdef\"\n");
	for (i = 0; i < 15; i++)
		g_string_append(s, "a += a\n");
	for (i = 0; i < 400; i++)
		g_string_append_printf(s, "b%d = a + \"x\"\n", i);
	bad(s->str, "t.conf:", "need more than 64 MiB");
}

TEST("/config/minimal-server")
{
	struct config *c;

	c = good(
	    "server.document-root = \"/home/jan/wwwroot/servers/grisu.home.kneschke.de/pages/\"\n"
	    "server.port = 1025\n"
	    "server.errorlog = \"/home/jan/wwwroot/logs/lighttpd.error.log\"\n"
	    "server.network-backend = \"linux-aio-sendfile\"\n"
	    "server.event-handler = \"linux-sysepoll\"\n"
	    "server.use-noatime = \"enable\"\n"
	    "server.max-stat-threads = 2\n"
	    "server.max-read-threads = 64\n"
	    "server.document-root := \"/srv\"\n");
	g_assert_cmpstr(config_global(c)->document_root, ==, "/srv");
	g_assert_cmpstr(config_global(c)->network_backend, ==, "linux-aio-sendfile");
	g_assert_true(config_global(c)->noatime);
	g_assert_cmpuint(config_global(c)->stat_threads, ==, 2);
	g_assert_cmpuint(config_global(c)->read_threads, ==, 64);
	g_assert_cmpstr(config_listen(c, 0), ==, ":1025");
	g_assert_cmpuint(warn.n, ==, 0);
}

TEST("/config/threaded-stat")
{
	struct config *c;

	c = good(ROOT "server.max-stat-threads = 4\nserver.max-write-threads = "
		      "8\nserver.network-backend = \"gthread-aio\"\n");
	g_assert_cmpuint(config_global(c)->stat_threads, ==, 4);
	g_assert_cmpuint(config_global(c)->read_threads, ==, 8);
	g_assert_cmpstr(config_global(c)->network_backend, ==, "gthread-aio");
}

TEST("/config/prints-what-it-read")
{
	static const char text[] = ROOT
	    "a = ( \"x\" => 1 )\n"
	    "$HTTP[\"host\"] == \"h\" {\n server.name = \"1\"\n}\n"
	    "else $HTTP[\"user-agent\"] =~ \"u\\.\\\"\" {\n server.name = \"2\"\n}\nelse {\n "
	    "server.name = \"3\"\n}\n"
	    "$HTTP[\"url\"] == \"/\" {\n server.name = \"4\"\n}\n"
	    "$HTTP[\"host\"] == \"h\" {\n $HTTP[\"url\"] != \"/\" { server.name = \"5\"\n }\n}\n";
	struct config *c = good(text);
	struct buf one, two;

	buf_init(&one, 0);
	buf_init(&two, 0);
	config_print(c, &one);
	g_assert_cmpstr(str(&one), ==,
	    "# listens on :80\n" ROOT "var.a = ( \"x\" => 1 )\n"
	    "$HTTP[\"host\"] == \"h\" { # 1\n\tserver.name = \"1\"\n"
	    "} else $HTTP[\"useragent\"] =~ \"u\\.\\\"\" { # 2\n\tserver.name = \"2\"\n"
	    "} else { # 3\n\tserver.name = \"3\"\n}\n"
	    "$HTTP[\"url\"] == \"/\" { # 4\n\tserver.name = \"4\"\n}\n"
	    "$HTTP[\"host\"] == \"h\" { # 1\n\t$HTTP[\"url\"] != \"/\" { # 5\n\t\tserver.name = "
	    "\"5\"\n\t}\n}\n");
	config_print(good(one.p), &two);
	g_assert_cmpstr(str(&two), ==, one.p);
	buf_free(&one);
	buf_free(&two);
}
