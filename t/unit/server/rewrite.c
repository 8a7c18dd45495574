/* t/unit/server/rewrite.c -- values rewritten by proxy-core.rewrite-*. */

#include "base/must.h"
#include "server/config/check/rewrite.h"
#include "t/unit/test.h"

struct row {
	const char *regex, *replacement, *name, *value, *want;
};

static const struct row rows[] = {
	{ ".*", "X-Sendfile", "X-Type", "anything", "X-Sendfile" },
	{ "^/old/(.*)$", "/new/$1", "X-Type", "/old/a/b", "/new/a/b" },
	{ "^/old/(.*)$", "/new/$1", "X-Type", "/other", "/other" },
	{ "(b+)(c)?", "<$0|$1|$2|$9>", "X-Type", "abbbd", "<bbb|bbb||>" },
	{ "a", "$$1 costs $", "X-Type", "a", "$1 costs $" },
	{ "a", "", "X-Type", "a", "" },
	{ "a", "b", "x-TYPE", "a", "b" },
	{ "a", "b", "X-Other", "a", "a" },
};

static struct conf_map
map_of(struct conf_pair *outer, struct conf_map *rule, struct conf_pair *inner, const struct row *r)
{
	*inner = (struct conf_pair){ .key = text_of(r->regex), .value = text_of(r->replacement) };
	*rule = (struct conf_map){ 1, inner };
	*outer = (struct conf_pair){ .key = text_of("X-Type"), .map = rule };
	return ((struct conf_map){ 1, outer });
}

TEST("/rewrite/values")
{
	size_t i;

	for (i = 0; i < NELEM(rows); i++) {
		struct conf_pair outer, inner;
		struct conf_map rule, map = map_of(&outer, &rule, &inner, &rows[i]);
		struct arena arena;
		struct rewrite *rw;
		struct text got;
		char err[128];

		arena_init(&arena, NULL, 0, 4096);
		rw = rewrite_new(&map, err, sizeof(err));
		g_assert_nonnull(rw);
		got = rewrite_value(rw, text_of(rows[i].name), text_of(rows[i].value), &arena);
		g_assert_cmpmem(got.p, got.n, rows[i].want, strlen(rows[i].want));
		rewrite_free(rw);
		arena_reset(&arena);
	}
}

TEST("/rewrite/refused")
{
	const struct row bad = { "(", "x", NULL, NULL, NULL };
	struct conf_pair outer, inner;
	struct conf_map rule, map = map_of(&outer, &rule, &inner, &bad);
	char err[128] = "";

	g_assert_null(rewrite_new(&map, err, sizeof(err)));
	g_assert_cmpstr(err, !=, "");
	rule.n = 0;
	g_assert_null(rewrite_new(&map, err, sizeof(err)));
	g_assert_nonnull(strstr(err, "exactly one"));
}

TEST("/rewrite/absent")
{
	struct arena arena;
	struct text got;

	arena_init(&arena, NULL, 0, 64);
	got = rewrite_value(NULL, text_of("X-Type"), text_of("as it is"), &arena);
	g_assert_cmpmem(got.p, got.n, "as it is", 8);
	arena_reset(&arena);
}
