/* t/unit/server/config_view.c -- from a request to its struct conf: which conditions hold, which
 * block wins. */
#include "t/unit/server/config_view_test.h"

#define holds(cond, in) g_assert_true(cond_holds(cond, in))
#define fails(cond, in) g_assert_false(cond_holds(cond, in))

TEST("/config-view/every-field")
{
	struct conf_input in = request();

	in.query = TEXT("a=b");
	in.referer = TEXT("http://r/");
	in.cookie = TEXT("c=d");
	holds("$SERVER[\"socket\"] == \"127.0.0.1:8080\"", &in);
	holds("$HTTP[\"scheme\"] == \"http\"", &in);
	holds("$HTTP[\"host\"] == \"www.example.org\"", &in);
	holds("$HTTP[\"url\"] == \"/dir/file.html\"", &in);
	holds("$HTTP[\"querystring\"] == \"a=b\"", &in);
	holds("$HTTP[\"query-string\"] == \"a=b\"", &in);
	holds("$HTTP[\"referer\"] == \"http://r/\"", &in);
	holds("$HTTP[\"useragent\"] == \"agent/1.0\"", &in);
	holds("$HTTP[\"user-agent\"] == \"agent/1.0\"", &in);
	holds("$HTTP[\"cookie\"] == \"c=d\"", &in);
	holds("$HTTP[\"remoteip\"] == \"192.0.2.7\"", &in);
	holds("$HTTP[\"remote-ip\"] == \"192.0.2.7\"", &in);
	holds("$HTTP[\"request-method\"] == \"GET\"", &in);
	holds("$PHYSICAL[\"path\"] == \"/srv/dir/file.html\"", &in);
	holds("$PHYSICAL[\"existing-path\"] == \"/srv/dir/file.html\"", &in);
}

TEST("/config-view/every-operator")
{
	struct conf_input in = request();

	fails("$HTTP[\"url\"] == \"/dir\"", &in);
	holds("$HTTP[\"url\"] != \"/dir\"", &in);
	fails("$HTTP[\"url\"] != \"/dir/file.html\"", &in);
	holds("$HTTP[\"url\"] =~ \"^/dir/.*\\.html$\"", &in);
	fails("$HTTP[\"url\"] =~ \"^/DIR/\"", &in);
	holds("$HTTP[\"url\"] =~ \"(?i)^/DIR/\"", &in);
	holds("$HTTP[\"url\"] !~ \"^/files/\"", &in);
	fails("$HTTP[\"url\"] !~ \"html\"", &in);
	holds("$HTTP[\"url\"] =^ \"/dir/\"", &in);
	fails("$HTTP[\"url\"] =^ \"dir/\"", &in);
	holds("$HTTP[\"url\"] =$ \".html\"", &in);
	fails("$HTTP[\"url\"] =$ \".htm\"", &in);
	holds("$HTTP[\"url\"] == \"/dir\" + \"/file.html\"", &in);
}

TEST("/config-view/absent-headers-are-empty")
{
	struct conf_input in = request();

	holds("$HTTP[\"referer\"] == \"\"", &in);
	holds("$HTTP[\"referer\"] != \"x\"", &in);
	holds("$HTTP[\"referer\"] =~ \"^$\"", &in);
	holds("$HTTP[\"referer\"] !~ \"x\"", &in);
}

TEST("/config-view/unknown-inputs-hold-nothing")
{
	struct conf_input in = request();
	struct site *s;

	in.existing_path = TEXT_NONE;
	fails("$PHYSICAL[\"existing-path\"] == \"x\"", &in);
	fails("$PHYSICAL[\"existing-path\"] != \"x\"", &in);
	fails("$PHYSICAL[\"existing-path\"] !~ \"x\"", &in);
	fails("$PHYSICAL[\"existing-path\"] == \"x\" { } else $HTTP[\"url\"] =^ \"/\"", &in);
	fails("$PHYSICAL[\"existing-path\"] == \"x\" { } else", &in);
	s = site(ROOT "$PHYSICAL[\"existing-path\"] != \"x\" { $HTTP[\"url\"] =^ \"/\" { "
		      "server.name = \"yes\" } }");
	g_assert_cmpstr(name_for(s, &in), ==, "none");
	in.existing_path = TEXT("/srv/x");
	g_assert_cmpstr(name_for(s, &in), ==, "yes");
	site_free(s);
}

TEST("/config-view/a-port-on-one-side-is-ignored")
{
	struct conf_input in = request();

	holds("$HTTP[\"host\"] == \"www.example.org:80\"", &in);
	holds("$HTTP[\"host\"] == \"WWW.example.org\"", &in);
	fails("$HTTP[\"host\"] != \"www.example.org:80\"", &in);
	in.host = TEXT("www.example.org:8080");
	holds("$HTTP[\"host\"] == \"www.example.org\"", &in);
	fails("$HTTP[\"host\"] == \"www.example.org:80\"", &in);
	in.host = TEXT("[2001:db8::1]:80");
	holds("$HTTP[\"host\"] == \"[2001:db8::1]\"", &in);
	fails("$HTTP[\"host\"] == \"[2001:db8::2]\"", &in);
	in.host = TEXT("");
	fails("$HTTP[\"host\"] == \"www.example.org\"", &in);
}

TEST("/config-view/sockets-have-several-names")
{
	struct conf_input in = request();

	in.socket = TEXT("0.0.0.0:1025");
	holds("$SERVER[\"socket\"] == \":1025\"", &in);
	holds("$SERVER[\"socket\"] == \"*:1025\"", &in);
	holds("$SERVER[\"socket\"] == \"0.0.0.0:1025\"", &in);
	fails("$SERVER[\"socket\"] == \"[::]:1025\"", &in);
	fails("$SERVER[\"socket\"] == \":1026\"", &in);
	fails("$SERVER[\"socket\"] != \":1025\"", &in);
	in.socket = TEXT("[::]:1025");
	holds("$SERVER[\"socket\"] == \":1025\"", &in);
	in.socket = TEXT("127.0.0.1:80");
	fails("$SERVER[\"socket\"] == \":80\"", &in);
	holds("$SERVER[\"socket\"] == \"127.0.0.1\"", &in);
	in.socket = TEXT("unix:/run/a");
	holds("$SERVER[\"socket\"] == \"/run/a\"", &in);
}

TEST("/config-view/networks")
{
	struct conf_input in = request();

	holds("$HTTP[\"remoteip\"] == \"192.0.2.0/24\"", &in);
	holds("$HTTP[\"remoteip\"] == \"192.0.2.4/30\"", &in);
	fails("$HTTP[\"remoteip\"] == \"192.0.2.8/30\"", &in);
	holds("$HTTP[\"remoteip\"] == \"0.0.0.0/0\"", &in);
	fails("$HTTP[\"remoteip\"] != \"192.0.0.0/16\"", &in);
	holds("$HTTP[\"remoteip\"] != \"10.0.0.0/8\"", &in);
	holds("$HTTP[\"remoteip\"] =~ \"^192\\.\"", &in);
	fails("$HTTP[\"remoteip\"] == \"2001:db8::/32\"", &in);
	in.remoteip = TEXT("2001:db8:1::7");
	holds("$HTTP[\"remoteip\"] == \"2001:db8::/32\"", &in);
	holds("$HTTP[\"remoteip\"] == \"[2001:db8:1:0::]/64\"", &in);
	fails("$HTTP[\"remoteip\"] == \"2001:db8:2::/48\"", &in);
	fails("$HTTP[\"remoteip\"] == \"0.0.0.0/0\"", &in);
	in.remoteip = TEXT("::ffff:10.1.2.3");
	holds("$HTTP[\"remoteip\"] == \"10.0.0.0/8\"", &in);
	in.remoteip = TEXT(""); /* a client on a unix socket */
	fails("$HTTP[\"remoteip\"] == \"0.0.0.0/0\"", &in);
	holds("$HTTP[\"remoteip\"] != \"::/0\"", &in);
	holds("$HTTP[\"remoteip\"] == \"\"", &in);
}

TEST("/config-view/else-chains")
{
	struct site *s = site(ROOT "$HTTP[\"url\"] =^ \"/a\" {\n server.name = \"a\"\n}\n"
				   "else $HTTP[\"url\"] =^ \"/b\" {\n server.name = \"b\"\n} else "
				   "if $HTTP[\"url\"] =^ \"/c\" { server.name = \"c\" }\n\n"
				   "elsif $HTTP[\"url\"] =~ \"[a-z]\" { server.name = \"d\" } "
				   "elseif $HTTP[\"url\"] == \"\" { server.name = \"e\" }\n"
				   "else\n{\n server.name = \"f\"\n}\n");
	struct conf_input in = request();
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
		g_assert_cmpstr(name_for(s, &in), ==, cases[i][1]);
	}
	site_free(s);
}

TEST("/config-view/later-blocks-win-setting-by-setting")
{
	struct site *s = site(
	    ROOT "$HTTP[\"host\"] =~ \"example\" {\n server.name = \"1\"\n server.tag = \"1\"\n"
		 " $HTTP[\"url\"] =^ \"/dir\" { server.tag = \"2\" }\n}\n$HTTP[\"url\"] =$ "
		 "\".html\" { server.name = \"3\" }\n");
	struct conf_input in = request();
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
	site_free(s);
}

TEST("/config-view/one-condition-twice-is-one-block")
{
	struct site *s =
	    site(ROOT "$HTTP[\"url\"] =^ \"/\" { server.name = \"1\" }\n$HTTP[\"host\"] != \"\" { "
		      "server.name = \"2\" }\n"
		      "$HTTP[\"url\"] =^ \"/\" { server.tag = \"3\"\n server.name := \"late\" }\n");
	struct conf_input in = request();
	const struct conf *c = conf_view_match(s->view, &in);

	g_assert_cmpstr(c->server_name, ==, "2"); /* its place is that of its first half */
	g_assert_cmpstr(c->server_tag, ==, "3");
	site_free(s);
}

TEST("/config-view/appending-starts-from-the-outer-value")
{
	struct site *s =
	    site(ROOT "index-file.names = ( \"a\" )\n$HTTP[\"host\"] != \"\" {\n index-file.names "
		      "+= ( \"b\" )\n"
		      " $HTTP[\"url\"] =$ \".html\" { index-file.names += ( \"c\" ) }\n}\n");
	struct conf_input in = request();
	const struct conf *c = conf_view_match(s->view, &in);

	g_assert_cmpuint(c->index_names.n, ==, 3);
	g_assert_cmpstr(c->index_names.v[2].p, ==, "c");
	in.url = TEXT("/");
	g_assert_cmpuint(conf_view_match(s->view, &in)->index_names.n, ==, 2);
	in.host = TEXT("");
	g_assert_cmpuint(conf_view_match(s->view, &in)->index_names.n, ==, 1);
	site_free(s);
}

TEST("/config-view/pools-belong-to-the-block-that-names-them")
{
	struct site *s =
	    site(ROOT "proxy-core.protocol = \"http\"\n$HTTP[\"url\"] =^ \"/a\" { "
		      "proxy-core.backends = ( \"x:1\" ) }\n"
		      "$HTTP[\"url\"] =^ \"/a/b\" { proxy-core.read-timeout = 3 }\n"
		      "$HTTP[\"url\"] =^ \"/c\" { proxy-core.backends = ( \"x:1\" ) }\n");
	struct conf_input in = request();

	g_assert_cmpint(conf_view_match(s->view, &in)->proxy_block, ==, -1);
	in.url = TEXT("/a/b");
	g_assert_cmpint(conf_view_match(s->view, &in)->proxy_block, ==, 1);
	in.url = TEXT("/c");
	g_assert_cmpint(conf_view_match(s->view, &in)->proxy_block, ==, 3);
	site_free(s);
}

/* formats/proxy-core-block.conf, completed */
TEST("/config-view/the-block-of-2007")
{
	struct site *s =
	    site("server.document-root = \"/srv\"\n$SERVER[\"socket\"] == \":1025\" {\n"
		 "  $HTTP[\"url\"] =~ \"^/seek-bound/\" {\n    proxy-core.protocol = \"fastcgi\"\n"
		 "    proxy-core.backends = ( \"127.0.0.1:1029\" )\n    "
		 "proxy-core.allow-x-sendfile = \"enable\"\n"
		 "    proxy-core.max-pool-size = 20\n  }\n}\n");
	struct conf_input in = request();
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
	site_free(s);
}

TEST("/config-view/a-condition-that-fails-is-named")
{
	struct site *s = site(ROOT "$HTTP[\"host\"] == \"x\" {\n}\nelse $HTTP[\"url\"] !~ "
				   "\"^(a+)+$\" { server.tag = \"a\" }");
	struct conf_input in = request();
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
	site_free(s);
}

TEST("/config-view/more-blocks-than-bits-in-a-word")
{
	GString *text = g_string_new(ROOT);
	struct conf_input in = request();
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
		g_assert_cmpstr(name_for(s, &in), ==, want);
	}
	site_free(s);
	g_string_free(text, TRUE);
}

TEST("/config-view/physical-conditions-are-announced")
{
	struct site *s = site(ROOT "$HTTP[\"url\"] == \"/\" { $PHYSICAL[\"existing-path\"] =~ "
				   "\"x\" { server.name = \"p\" } }");

	g_assert_true(config_uses_physical(s->cfg));
	g_assert_true(config_has_conditions(s->cfg));
	site_free(s);
}
