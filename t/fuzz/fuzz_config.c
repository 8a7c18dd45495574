/* t/fuzz/fuzz_config.c -- any bytes as a configuration: loaded, printed, loaded again, matched. */
#include <stdio.h>
#include <stdlib.h>
#include "base/must.h"
#include "server/config_impl.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("server.port = 1025\nserver.errorlog = \"/e\"\nserver.max-stat-threads = 2\n"),
	SEED("$SERVER[\"socket\"] == \":1025\" {\n  $HTTP[\"url\"] =~ \"^/x/\" {\n"
	     "    proxy-core.backends = ( \"127.0.0.1:1029\" )\n  }\n}\n"),
	SEED("var.a = \"x\" + 1\nb = ( \"a\", \"b\" => 3, ) # c\nb += ( a, ( var.PID ) )\n"),
	SEED("$HTTP[\"host\"] == \"a:1\" {\n server.name = \"a\"\n}\nelse $HTTP[\"remoteip\"] != \"10.0.0.0/8\" {\n"
	     " index-file.names += ( \"i\" ) }\nelse { global { server.tag = \"\\\"\"\n } }\n"),
	SEED("mimetype.assign = ( \".a\" => \"b/c\", \"\" => \"d/e\" )\nproxy-core.rewrite-request = "
	     "( \"_uri\" => ( \"^/a\" => \"/b\" ) )\n$PHYSICAL[\"path\"] =^ \"/s\" { etag.use-size = \"disable\" }"),
	{NULL, 0},
};

static void
match_some(const struct config *cfg)
{
	struct conf_view *v = conf_view_new(cfg, NULL, NULL, NULL);
	struct conf_input in = {0};

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

/* What was printed means the same, so that it is printed the same. */
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
		print_twice(cfg);
	}
	config_free(cfg);
	buf_free(&text);
	buf_free(&err);
	buf_free(&warn);
	return (0);
}
