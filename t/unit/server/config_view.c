/* t/unit/server/config_view.c -- from a request to its struct conf: which conditions hold, which
 * block wins. */
#include "t/unit/server/config_view_test.h"

#define holds(cond) g_assert_true(cond_holds(cond))
#define fails(cond) g_assert_false(cond_holds(cond))

SITE_TEST("/config-view/every-field")
{
	in.query = TEXT("a=b");
	in.referer = TEXT("http://r/");
	in.cookie = TEXT("c=d");
	holds("$SERVER[\"socket\"] == \"127.0.0.1:8080\"");
	holds("$HTTP[\"scheme\"] == \"http\"");
	holds("$HTTP[\"host\"] == \"www.example.org\"");
	holds("$HTTP[\"url\"] == \"/dir/file.html\"");
	holds("$HTTP[\"querystring\"] == \"a=b\"");
	holds("$HTTP[\"query-string\"] == \"a=b\"");
	holds("$HTTP[\"referer\"] == \"http://r/\"");
	holds("$HTTP[\"useragent\"] == \"agent/1.0\"");
	holds("$HTTP[\"user-agent\"] == \"agent/1.0\"");
	holds("$HTTP[\"cookie\"] == \"c=d\"");
	holds("$HTTP[\"remoteip\"] == \"192.0.2.7\"");
	holds("$HTTP[\"remote-ip\"] == \"192.0.2.7\"");
	holds("$HTTP[\"request-method\"] == \"GET\"");
	holds("$PHYSICAL[\"path\"] == \"/srv/dir/file.html\"");
	holds("$PHYSICAL[\"existing-path\"] == \"/srv/dir/file.html\"");
}

SITE_TEST("/config-view/every-operator")
{
	fails("$HTTP[\"url\"] == \"/dir\"");
	holds("$HTTP[\"url\"] != \"/dir\"");
	fails("$HTTP[\"url\"] != \"/dir/file.html\"");
	holds("$HTTP[\"url\"] =~ \"^/dir/.*\\.html$\"");
	fails("$HTTP[\"url\"] =~ \"^/DIR/\"");
	holds("$HTTP[\"url\"] =~ \"(?i)^/DIR/\"");
	holds("$HTTP[\"url\"] !~ \"^/files/\"");
	fails("$HTTP[\"url\"] !~ \"html\"");
	holds("$HTTP[\"url\"] =^ \"/dir/\"");
	fails("$HTTP[\"url\"] =^ \"dir/\"");
	holds("$HTTP[\"url\"] =$ \".html\"");
	fails("$HTTP[\"url\"] =$ \".htm\"");
	holds("$HTTP[\"url\"] == \"/dir\" + \"/file.html\"");
}

SITE_TEST("/config-view/absent-headers-are-empty")
{
	holds("$HTTP[\"referer\"] == \"\"");
	holds("$HTTP[\"referer\"] != \"x\"");
	holds("$HTTP[\"referer\"] =~ \"^$\"");
	holds("$HTTP[\"referer\"] !~ \"x\"");
}

SITE_TEST("/config-view/unknown-inputs-hold-nothing")
{
	struct site *s;

	in.existing_path = TEXT_NONE;
	fails("$PHYSICAL[\"existing-path\"] == \"x\"");
	fails("$PHYSICAL[\"existing-path\"] != \"x\"");
	fails("$PHYSICAL[\"existing-path\"] !~ \"x\"");
	fails("$PHYSICAL[\"existing-path\"] == \"x\" { } else $HTTP[\"url\"] =^ \"/\"");
	fails("$PHYSICAL[\"existing-path\"] == \"x\" { } else");
	s = site(ROOT "$PHYSICAL[\"existing-path\"] != \"x\" { $HTTP[\"url\"] =^ \"/\" { "
		      "server.name = \"yes\" } }");
	g_assert_cmpstr(name_for(s), ==, "none");
	in.existing_path = TEXT("/srv/x");
	g_assert_cmpstr(name_for(s), ==, "yes");
}

SITE_TEST("/config-view/a-port-on-one-side-is-ignored")
{
	holds("$HTTP[\"host\"] == \"www.example.org:80\"");
	holds("$HTTP[\"host\"] == \"WWW.example.org\"");
	fails("$HTTP[\"host\"] != \"www.example.org:80\"");
	in.host = TEXT("www.example.org:8080");
	holds("$HTTP[\"host\"] == \"www.example.org\"");
	fails("$HTTP[\"host\"] == \"www.example.org:80\"");
	in.host = TEXT("[2001:db8::1]:80");
	holds("$HTTP[\"host\"] == \"[2001:db8::1]\"");
	fails("$HTTP[\"host\"] == \"[2001:db8::2]\"");
	in.host = TEXT("");
	fails("$HTTP[\"host\"] == \"www.example.org\"");
}

SITE_TEST("/config-view/sockets-have-several-names")
{
	in.socket = TEXT("0.0.0.0:1025");
	holds("$SERVER[\"socket\"] == \":1025\"");
	holds("$SERVER[\"socket\"] == \"*:1025\"");
	holds("$SERVER[\"socket\"] == \"0.0.0.0:1025\"");
	fails("$SERVER[\"socket\"] == \"[::]:1025\"");
	fails("$SERVER[\"socket\"] == \":1026\"");
	fails("$SERVER[\"socket\"] != \":1025\"");
	in.socket = TEXT("[::]:1025");
	holds("$SERVER[\"socket\"] == \":1025\"");
	in.socket = TEXT("127.0.0.1:80");
	fails("$SERVER[\"socket\"] == \":80\"");
	holds("$SERVER[\"socket\"] == \"127.0.0.1\"");
	in.socket = TEXT("unix:/run/a");
	holds("$SERVER[\"socket\"] == \"/run/a\"");
}

SITE_TEST("/config-view/networks")
{
	holds("$HTTP[\"remoteip\"] == \"192.0.2.0/24\"");
	holds("$HTTP[\"remoteip\"] == \"192.0.2.4/30\"");
	fails("$HTTP[\"remoteip\"] == \"192.0.2.8/30\"");
	holds("$HTTP[\"remoteip\"] == \"0.0.0.0/0\"");
	fails("$HTTP[\"remoteip\"] != \"192.0.0.0/16\"");
	holds("$HTTP[\"remoteip\"] != \"10.0.0.0/8\"");
	holds("$HTTP[\"remoteip\"] =~ \"^192\\.\"");
	fails("$HTTP[\"remoteip\"] == \"2001:db8::/32\"");
	in.remoteip = TEXT("2001:db8:1::7");
	holds("$HTTP[\"remoteip\"] == \"2001:db8::/32\"");
	holds("$HTTP[\"remoteip\"] == \"[2001:db8:1:0::]/64\"");
	fails("$HTTP[\"remoteip\"] == \"2001:db8:2::/48\"");
	fails("$HTTP[\"remoteip\"] == \"0.0.0.0/0\"");
	in.remoteip = TEXT("::ffff:10.1.2.3");
	holds("$HTTP[\"remoteip\"] == \"10.0.0.0/8\"");
	in.remoteip = TEXT(""); /* a client on a unix socket */
	fails("$HTTP[\"remoteip\"] == \"0.0.0.0/0\"");
	holds("$HTTP[\"remoteip\"] != \"::/0\"");
	holds("$HTTP[\"remoteip\"] == \"\"");
}

SITE_TEST("/config-view/else-chains")
{
	struct site *s = site(ROOT "$HTTP[\"url\"] =^ \"/a\" {\n server.name = \"a\"\n}\n"
				   "else $HTTP[\"url\"] =^ \"/b\" {\n server.name = \"b\"\n} else "
				   "if $HTTP[\"url\"] =^ \"/c\" { server.name = \"c\" }\n\n"
				   "elsif $HTTP[\"url\"] =~ \"[a-z]\" { server.name = \"d\" } "
				   "elseif $HTTP[\"url\"] == \"\" { server.name = \"e\" }\n"
				   "else\n{\n server.name = \"f\"\n}\n");
	static const char *const cases[][2] = {
		{ "/a", "a" },
		{ "/b", "b" },
		{ "/c", "c" },
		{ "/x", "d" },
		{ "", "e" },
		{ "/1", "f" },
	};
	size_t i;

	for (i = 0; i < NELEM(cases); i++) {
		in.url = text_of(cases[i][0]);
		g_assert_cmpstr(name_for(s), ==, cases[i][1]);
	}
}

SITE_TEST("/config-view/later-blocks-win-setting-by-setting")
{
	struct site *s = site(
	    ROOT "$HTTP[\"host\"] =~ \"example\" {\n server.name = \"1\"\n server.tag = \"1\"\n"
		 " $HTTP[\"url\"] =^ \"/dir\" { server.tag = \"2\" }\n}\n$HTTP[\"url\"] =$ "
		 "\".html\" { server.name = \"3\" }\n");
	const struct conf *c = conf_view_match(s->view, &in);

	g_assert_cmpstr(c->server_name, ==, "3");
	g_assert_cmpstr(c->server_tag, ==, "2");
	in.url = TEXT("/other");
	c = conf_view_match(s->view, &in);
	g_assert_cmpstr(c->server_name, ==, "1");
	g_assert_cmpstr(c->server_tag, ==, "1");
	in.host = TEXT("x");
	in.url = TEXT("/dir/");
	c = conf_view_match(s->view, &in);
	g_assert_cmpstr(c->server_name, ==, "none");
	g_assert_cmpstr(c->server_tag, ==, "stat-accel");
}

SITE_TEST("/config-view/one-condition-twice-is-one-block")
{
	struct site *s =
	    site(ROOT "$HTTP[\"url\"] =^ \"/\" { server.name = \"1\" }\n$HTTP[\"host\"] != \"\" { "
		      "server.name = \"2\" }\n"
		      "$HTTP[\"url\"] =^ \"/\" { server.tag = \"3\"\n server.name := \"late\" }\n");
	const struct conf *c = conf_view_match(s->view, &in);

	g_assert_cmpstr(c->server_name, ==, "2"); /* its place is that of its first half */
	g_assert_cmpstr(c->server_tag, ==, "3");
}

SITE_TEST("/config-view/appending-starts-from-the-outer-value")
{
	struct site *s =
	    site(ROOT "index-file.names = ( \"a\" )\n$HTTP[\"host\"] != \"\" {\n index-file.names "
		      "+= ( \"b\" )\n"
		      " $HTTP[\"url\"] =$ \".html\" { index-file.names += ( \"c\" ) }\n}\n");
	const struct conf *c = conf_view_match(s->view, &in);

	g_assert_cmpuint(c->index_names.n, ==, 3);
	g_assert_cmpstr(c->index_names.v[2].p, ==, "c");
	in.url = TEXT("/");
	g_assert_cmpuint(conf_view_match(s->view, &in)->index_names.n, ==, 2);
	in.host = TEXT("");
	g_assert_cmpuint(conf_view_match(s->view, &in)->index_names.n, ==, 1);
}

SITE_TEST("/config-view/pools-belong-to-the-block-that-names-them")
{
	struct site *s =
	    site(ROOT "proxy-core.protocol = \"http\"\n$HTTP[\"url\"] =^ \"/a\" { "
		      "proxy-core.backends = ( \"x:1\" ) }\n"
		      "$HTTP[\"url\"] =^ \"/a/b\" { proxy-core.read-timeout = 3 }\n"
		      "$HTTP[\"url\"] =^ \"/c\" { proxy-core.backends = ( \"x:1\" ) }\n");

	g_assert_cmpint(conf_view_match(s->view, &in)->proxy_block, ==, -1);
	in.url = TEXT("/a/b");
	g_assert_cmpint(conf_view_match(s->view, &in)->proxy_block, ==, 1);
	in.url = TEXT("/c");
	g_assert_cmpint(conf_view_match(s->view, &in)->proxy_block, ==, 3);
}

/* formats/proxy-core-block.conf, completed */
SITE_TEST("/config-view/the-block-of-2007")
{
	struct site *s =
	    site("server.document-root = \"/srv\"\n$SERVER[\"socket\"] == \":1025\" {\n"
		 "  $HTTP[\"url\"] =~ \"^/seek-bound/\" {\n    proxy-core.protocol = \"fastcgi\"\n"
		 "    proxy-core.backends = ( \"127.0.0.1:1029\" )\n    "
		 "proxy-core.allow-x-sendfile = \"enable\"\n"
		 "    proxy-core.max-pool-size = 20\n  }\n}\n");
	const struct conf *c;

	g_assert_cmpstr(config_listen(s->cfg, 0), ==, ":1025");
	g_assert_null(config_listen(s->cfg, 1));
	in.socket = TEXT("0.0.0.0:1025");
	in.url = TEXT("/seek-bound/1");
	c = conf_view_match(s->view, &in);
	g_assert_cmpstr(c->proxy_protocol, ==, "fastcgi");
	g_assert_cmpstr(c->proxy_backends.v[0].p, ==, "127.0.0.1:1029");
	g_assert_true(c->proxy_x_sendfile);
	g_assert_cmpuint(c->proxy_pool_size, ==, 20);
	g_assert_cmpuint(c->proxy_keepalive, ==, 0);
	g_assert_cmpint(c->proxy_block, ==, 2);
	in.url = TEXT("/");
	g_assert_cmpuint(conf_view_match(s->view, &in)->proxy_backends.n, ==, 0);
}

SITE_TEST("/config-view/a-condition-that-fails-is-named")
{
	struct site *s = site(ROOT "$HTTP[\"host\"] == \"x\" {\n}\nelse $HTTP[\"url\"] !~ "
				   "\"^(a+)+$\" { server.tag = \"a\" }");
	g_autofree char *url = g_strnfill(5000, 'a');
	uint32_t line = 0;

	url[4999] = '!';
	in.url = text_of(url);
	g_assert_null(conf_view_match(s->view, &in));
	g_assert_cmpstr(conf_view_failed(s->view, &line), ==, "t.conf");
	g_assert_cmpuint(line, ==, 5);
	in.host = TEXT("x"); /* the one before it holds: it is not asked */
	g_assert_nonnull(conf_view_match(s->view, &in));
	g_assert_null(conf_view_failed(s->view, &line));
}

SITE_TEST("/config-view/more-blocks-than-bits-in-a-word")
{
	g_autoptr(GString) text = g_string_new(ROOT);
	struct site *s;
	char want[8], url[8];
	int i;

	for (i = 0; i < 200; i++)
		g_string_append_printf(text, "$HTTP[\"url\"] == \"/%d\" { server.name = \"%d\" }\n",
		    i, i);
	s = site(text->str);
	for (i = 0; i < 200; i++) {
		g_snprintf(url, sizeof(url), "/%d", i);
		g_snprintf(want, sizeof(want), "%d", i);
		in.url = text_of(url);
		g_assert_cmpstr(name_for(s), ==, want);
	}
}

SITE_TEST("/config-view/physical-conditions-are-announced")
{
	struct site *s = site(ROOT "$HTTP[\"url\"] == \"/\" { $PHYSICAL[\"existing-path\"] =~ "
				   "\"x\" { server.name = \"p\" } }");

	g_assert_true(config_uses_physical(s->cfg));
	g_assert_true(config_has_conditions(s->cfg));
}
