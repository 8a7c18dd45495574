/* t/unit/server/config_sets.c -- the sets of settings that a view keeps, and when it derives
 * one. */
#include "t/unit/server/config_view_test.h"

SITE_TEST("/config-view/each-set-is-built-once")
{
	struct site *s = site(
	    ROOT "$HTTP[\"host\"] != \"\" {\n $HTTP[\"url\"] =^ \"/a\" { server.name = \"a\" }\n}\n"
		 "$HTTP[\"url\"] =$ \".html\" { server.tag = \"h\" }\n");
	const struct conf *html = conf_view_match(s->view, &in), *a;

	in.url = TEXT("/a");
	a = conf_view_match(s->view, &in);
	g_assert_true(a != html);
	g_assert_true(conf_view_match(s->view, &in) == a);
	in.url = TEXT("/z.html");
	g_assert_true(conf_view_match(s->view, &in) == html);
	/* the block around holds nothing itself, so it makes no set */
	in.host = TEXT("");
	g_assert_true(conf_view_match(s->view, &in) == html);
	g_assert_cmpint(s->derived, ==, 2);
}

SITE_TEST("/config-view/without-conditions-there-is-one")
{
	struct site *s = site(ROOT);
	struct conf_input none = { 0 };

	g_assert_true(conf_view_match(s->view, &none) == conf_view_match(s->view, &in));
	g_assert_cmpint(s->derived, ==, 1);
}

SITE_TEST("/config-view/a-failed-derive-is-null-and-tried-again")
{
	struct site *s = site(ROOT "$HTTP[\"url\"] == \"/f\" { server.name = \"fails\" }");

	in.url = TEXT("/f");
	g_assert_null(conf_view_match(s->view, &in));
	g_assert_null(conf_view_match(s->view, &in));
	in.url = TEXT("/");
	g_assert_nonnull(conf_view_match(s->view, &in));
}

static struct site *
site_of_letters(unsigned n)
{
	g_autoptr(GString) text = g_string_new(ROOT);
	struct site *s;
	unsigned b;

	for (b = 0; b < n; b++)
		g_string_append_printf(text, "$HTTP[\"url\"] =~ \"%c\" { server.tag = \"%u\" }\n",
		    'a' + b, b);
	s = site(text->str);
	return (s);
}

static const struct conf *
match_letters(struct site *s, unsigned bits)
{
	static char url[17];
	unsigned b;

	for (b = 0; b < 16; b++)
		url[b] = (char)(bits >> b & 1 ? 'a' + b : '-');
	in.url = text_of(url);
	return (conf_view_match(s->view, &in));
}

/* Sixteen independent conditions, all of whose sets a client tries. */
SITE_TEST("/config-view/sets-make-room-for-others")
{
	struct site *s = site_of_letters(16);
	const struct conf *first = match_letters(s, 0), *used = match_letters(s, 1);
	unsigned i, built;

	conf_hold(first);
	for (i = 2; i < 3 * CFG_SETS_MAX; i++) {
		g_assert_nonnull(match_letters(s, i));
		g_assert_true(i % 1000 != 0 || match_letters(s, 1) == used);
	}
	g_assert_cmpint(s->undone, ==, 2 * (int)CFG_SETS_MAX - 1);
	g_assert_cmpuint(conf_view_sets(s->view), ==, CFG_SETS_MAX + 1);
	g_assert_true(first->derived == s);         /* held: evicted, but not freed */
	g_assert_true(match_letters(s, 1) == used); /* the one in use stays */
	built = (unsigned)s->derived;
	g_assert_true(match_letters(s, 0) != first);
	g_assert_cmpint(s->derived, ==, built + 1);
	conf_release(s->view, first);
	g_assert_cmpuint(conf_view_sets(s->view), ==, CFG_SETS_MAX);
}
