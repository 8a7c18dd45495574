/* t/fuzz/fuzz_config.c -- any bytes as a configuration: loaded, printed, loaded again, matched, its
 * rewrites done.
 *
 * A comment "#host=..." is what a client sends, see requests[]. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/must.h"
#include "server/config/impl.h"
#include "server/config/check/rewrite.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("server.port = 1025\nserver.errorlog = \"/e\"\nserver.max-stat-threads = 2\n"),
	SEED("$SERVER[\"socket\"] == \":1025\" {\n  $HTTP[\"url\"] =~ \"^/x/\" {\n"
	     "    proxy-core.backends = ( \"127.0.0.1:1029\" )\n  }\n}\n"),
	SEED("var.a = \"x\" + 1\nb = ( \"a\", \"b\" => 3, ) # c\nb += ( a, ( var.PID ) )\n"),
	SEED("$HTTP[\"host\"] == \"a:1\" {\n server.name = \"a\"\n}\nelse $HTTP[\"remoteip\"] != "
	     "\"10.0.0.0/8\" {\n"
	     " index-file.names += ( \"i\" ) }\nelse { global { server.tag = \"\\\"\"\n } }\n"),
	SEED("mimetype.assign = ( \".a\" => \"b/c\", \"\" => \"d/e\" )\nproxy-core.rewrite-request "
	     "= ( \"_uri\" => ( \"^/a\" => \"/b\" ) )\n$PHYSICAL[\"path\"] =^ \"/s\" { "
	     "etag.use-size = \"disable\" }"),
	SEED("#url=/x/y\n$HTTP[\"url\"] =~ \"^/x/\" { server.tag = \"a\" }\n$HTTP[\"url\"] !~ "
	     "\"y\" { server.tag = \"b\" }\n"),
	SEED("#host=www.example.org:80\n$HTTP[\"host\"] =^ \"WWW.\" { server.tag = \"a\" }\n"
	     "else $HTTP[\"host\"] == \"Example.org:80\" { server.tag = \"b\" }\n"),
	SEED("#remoteip=10.2.3.4\n$HTTP[\"remoteip\"] == \"10.0.0.0/12\" { server.tag = \"a\" }\n"
	     "$HTTP[\"remoteip\"] == \"[2001:db8::]/33\" { server.tag = \"b\" }\n"),
	SEED("#socket=0.0.0.0:80\n$SERVER[\"socket\"] == \":80\" { server.tag = \"a\" }\n"
	     "$SERVER[\"socket\"] == \"unix:/run/x\" { server.tag = \"b\" }\n$SERVER[\"socket\"] "
	     "== \"[::1]:81\" { server.tag = \"c\" }\n"),
	SEED("#url=/old/a\nproxy-core.rewrite-request = ( \"_uri\" => ( \"^/old/(.*)\" => "
	     "\"/new/$1$$$x\" ) )\n"),
	SEED("proxy-core.rewrite-response = ( \"Location\" => ( \"(\" => \"\" ) )\n"),
	SEED(
	    "proxy-core.rewrite-response = ( \"Location\" => ( \"a\" => \"\", \"b\" => \"\" ) )\n"),
	SEED("#url=/a\n#method=GET\n$HTTP[\"url\"] == \"/b\" { server.tag = \"a\" }\nelse "
	     "$HTTP[\"request-method\"] =^ \"G\" { server.tag = \"b\" }\n"
	     "else { server.tag = \"c\" }\n"),
	SEED("#url=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n$HTTP[\"url\"] =~ \"^(a+)+$\" { "
	     "server.tag = \"a\" }\n"),
	SEED("server.event-handler = \"x\"\nserver.modules = ( \"mod_a\" )\nserver.max-fds = "
	     "3\nssl.engine = \"disable\"\n"),
	SEED("url.redirect = ( \"^/a/(.*)$\" => \"http://%1/$1${qsa}\", \"b\" => \"\" )\n"
	     "url.rewrite-once = ( \"^/(.*)$\" => \"/i.php?q=$1&${esc:url.path}\" )\n"),
	SEED("url.rewrite-if-not-file = ( \"\" => \"/x\" )\nalias.url = ( \"/a/\" => \"/srv/a/\" "
	     ")\nevhost.path-pattern = \"/srv/%{3.1}/%_/%%/\"\n"),
	SEED("expire.url = ( \"/a\" => \"access plus 1 months 2 days\", \"/b\" => "
	     "\"modification 3 weeks\" )\nsetenv.add-response-header = ( \"X-A\" => \"b\" )\n"),
	SEED("auth.backend = \"plain\"\nauth.require = ( \"/a\" => ( \"method\" => \"digest\", "
	     "\"realm\" => \"r\", \"require\" => \"user=a|group=b|host=c\", \"algorithm\" => "
	     "\"SHA-256|MD5\" ) )\n"),
	SEED("accesslog.format = \"%h %{X}i %{%Y}t %>s %{sec}t %%\"\ncgi.assign = ( \".pl\" => "
	     "\"/p\", \"\" => \"\" )\ncgi.limits = ( \"read-timeout\" => 3 )\n"),
	SEED("fastcgi.server = ( \".php\" => (( \"host\" => \"127.0.0.1\", \"port\" => 9, "
	     "\"check-local\" => \"disable\" ), ( \"socket\" => \"/s\", \"bin-path\" => \"/b c\", "
	     "\"max-procs\" => 2, \"bin-environment\" => ( \"A\" => \"b\" ) )), \"/p\" => (( "
	     "\"host\" => \"::1\", \"mode\" => \"authorizer\", \"docroot\" => \"/d\" )) )\n"),
	SEED("proxy.server = ( \"\" => ( ( \"host\" => \"10.0.0.1\", \"port\" => 80 ) ) )\n"
	     "proxy.balance = \"hash\"\nproxy.header = ( \"map-urlpath\" => ( \"/a\" => \"/b\" "
	     ") )\nscgi.server = ( \".py\" => (( \"port\" => 4 )) )\n"),
	SEED("deflate.mimetypes = ( \"text/\" )\ndeflate.params = ( \"BROTLI_PARAM_QUALITY\" => 5 "
	     ")\ndir-listing.exclude = ( \"~$\" )\nsecdownload.secret = \"12345678\"\n"
	     "secdownload.document-root = \"/s\"\nsecdownload.uri-prefix = \"/d/\"\n"),
	SEED("$REQUEST_HEADER[\"X-A\"] =~ \"b\" { server.error-handler-404 = \"/e\" }\n"
	     "$HTTP[\"language\"] =~ \"de\" { connection.kbytes-per-second = 3 }\n"),
	{ NULL, 0 },
};

#define ASKED(field)                                               \
	{                                                          \
		"#" #field "=", offsetof(struct conf_input, field) \
	}

static const struct {
	const char *key;
	size_t at;
} requests[] = {
	ASKED(socket),
	ASKED(scheme),
	ASKED(host),
	ASKED(url),
	ASKED(query),
	ASKED(referer),
	ASKED(useragent),
	ASKED(cookie),
	ASKED(remoteip),
	ASKED(method),
	ASKED(path),
};

static struct conf_input
input_of(struct text text)
{
	struct conf_input in = { .url = TEXT("/"), .host = TEXT("") };
	struct text line;
	size_t i;

	while (text_next(&text, '\n', &line))
		for (i = 0; i < NELEM(requests); i++)
			if (text_starts(line, text_of(requests[i].key)))
				*(struct text *)(void *)((char *)&in + requests[i].at) =
				    (struct text){ line.p + strlen(requests[i].key),
					    line.n - strlen(requests[i].key) };
	return (in);
}

/* A value that is not rewritten stays the same text. */
static void
rewrite_some(const struct conf_map *map, const struct conf_input *in)
{
	char err[256] = "";
	struct rewrite *rw = rewrite_new(map, err, sizeof(err));
	struct arena arena;
	struct text to;
	size_t i;

	must((rw == NULL) == (err[0] != '\0'));
	arena_init(&arena, NULL, 0, 65536);
	for (i = 0; rw != NULL && i < map->n; i++) {
		to = rewrite_value(rw, map->v[i].key, in->url, &arena);
		must(to.p == NULL || to.p == in->url.p || to.p[to.n] == '\0');
	}
	must(text_eq(rewrite_value(rw, TEXT("no such name, no"), in->url, &arena), in->url));
	arena_reset(&arena);
	rewrite_free(rw);
}

static bool
rewrite_both(const struct conf *c, void *in)
{
	rewrite_some(&c->proxy_rewrite_request, in);
	rewrite_some(&c->proxy_rewrite_response, in);
	return (true);
}

/* True for settings that name files, which are opened: a fuzzer must not. */
static bool
names_files(const char *directive)
{
	return (strstr(directive, "file") != NULL || strstr(directive, "cache-dir") != NULL);
}

/* As server/config/resources.c does for the requests that a block applies to. */
static bool
compile_rules(const struct conf *c, void *arg)
{
	const struct rules_kind *kind;
	char why[256];
	void *made;
	size_t i;

	(void)arg;
	for (i = 0; i < RULES; i++) {
		kind = rules_kinds[i];
		if (names_files(kind->directive) || kind->key(c) == NULL)
			continue;
		why[0] = '\0';
		made = kind->make(c, why, sizeof(why));
		must((made == NULL) == (why[0] != '\0'));
		if (made != NULL)
			kind->free(made);
	}
	return (true);
}

/* NULL: a condition could not be decided, and conf_view_failed() names it.  That depends on
 * processor time, so two runs may differ in it. */
static const struct conf *
match(struct conf_view *v, const struct conf_input *in)
{
	const struct conf *c = conf_view_match(v, in);
	uint32_t line = 0;

	must(c != NULL || (conf_view_failed(v, &line) != NULL && line > 0));
	return (c);
}

static void
match_asked(const struct config *cfg, struct text text)
{
	struct conf_view *v = conf_view_new(cfg, NULL, NULL, NULL);
	struct conf_input in = input_of(text);
	const struct conf *first = match(v, &in), *second = match(v, &in);

	must(first == NULL || second == NULL || first == second);
	conf_view_free(v);
	config_each(cfg, rewrite_both, &in);
	config_each(cfg, compile_rules, NULL);
}

static void
match_some(const struct config *cfg)
{
	struct conf_view *v = conf_view_new(cfg, NULL, NULL, NULL);
	struct conf_input in = { 0 };

	must(conf_view_match(v, &in) != NULL);
	in.socket = TEXT("127.0.0.1:80");
	in.host = TEXT("www.example.org:8080");
	in.url = TEXT("/a/b.html");
	in.query = in.referer = in.cookie = TEXT("");
	in.useragent = TEXT("x/1.0");
	in.remoteip = TEXT("192.0.2.1");
	must(conf_view_match(v, &in) != NULL);
	in.path = in.existing_path = TEXT("/srv/a/b.html");
	in.remoteip = TEXT("2001:db8::1");
	must(conf_view_match(v, &in) != NULL);
	conf_view_free(v);
}

/* The printed text has the same meaning, so printing it again gives the same text. */
static void
print_twice(const struct config *cfg)
{
	struct buf one, two, err, warn;
	struct config *again;

	buf_init(&one, 0);
	buf_init(&two, 0);
	buf_init(&err, 65536);
	buf_init(&warn, 65536);
	config_print(cfg, &one);
	again = config_load_text("printed", buf_as_text(&one), true, &err, &warn);
	if (again == NULL)
		fprintf(stderr, "%.*s\n%.*s\n", (int)err.n, err.p, (int)one.n, one.p);
	must(again != NULL || one.n > SOURCES_FILE_MAX);
	if (again != NULL) {
		config_print(again, &two);
		must(text_eq(buf_as_text(&one), buf_as_text(&two)));
		config_free(again);
	}
	buf_free(&one);
	buf_free(&two);
	buf_free(&err);
	buf_free(&warn);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char head[] = "server.document-root := \"/srv\"\n";
	struct buf text, err, warn;
	struct config *cfg;

	buf_init(&text, 0);
	buf_init(&err, 65536);
	buf_init(&warn, 65536);
	buf_add(&text, data, n);
	buf_str(&text, "\n");
	buf_str(&text, head);
	cfg = config_load_text("fuzz", buf_as_text(&text), true, &err, &warn);
	must((cfg == NULL) == (err.n > 0));
	if (cfg != NULL) {
		match_some(cfg);
		match_asked(cfg, buf_as_text(&text));
		print_twice(cfg);
	}
	config_free(cfg);
	buf_free(&text);
	buf_free(&err);
	buf_free(&warn);
	return (0);
}
