/* t/unit/server/config_view_test.h -- a configuration, its view, and a request with nothing
 * special. */
#ifndef CONFIG_VIEW_TEST_H
#define CONFIG_VIEW_TEST_H

#include "base/must.h"
#include "server/config/impl.h"
#include "t/unit/test.h"

#define ROOT "server.document-root = \"/srv\"\nserver.name = \"none\"\n"

struct site {
	struct config *cfg;
	struct conf_view *view;
	int derived, undone;
};

static struct site *made;
static struct conf_input in; /* the request of a test */

static int G_GNUC_UNUSED
derive(struct conf *c, void *arg)
{
	struct site *s = arg;

	if (c->server_name != NULL && strcmp(c->server_name, "fails") == 0)
		return (-1);
	s->derived++;
	c->derived = s;
	return (0);
}

static void G_GNUC_UNUSED
undo(struct conf *c, void *arg)
{
	struct site *s = arg;

	g_assert_true(c->derived == s);
	s->undone++;
}

static G_GNUC_UNUSED struct site *
site(const char *text)
{
	struct site *s = g_new0(struct site, 1);
	struct buf err, warn;

	buf_init(&err, 0);
	buf_init(&warn, 0);
	s->cfg = config_load_text("t.conf", text_of(text), false, &err, &warn);
	if (s->cfg == NULL)
		g_test_message("%.*s", (int)err.n, err.p);
	g_assert_nonnull(s->cfg);
	s->view = conf_view_new(s->cfg, derive, undo, s);
	buf_free(&err);
	buf_free(&warn);
	made = s;
	return (s);
}

/* The site made last, if it is still there. */
static void G_GNUC_UNUSED
site_free(void)
{
	if (made == NULL)
		return;
	conf_view_free(made->view);
	g_assert_cmpint(made->derived, ==, made->undone);
	config_free(made->cfg);
	g_free(made);
	made = NULL;
}

/* A request of which everything is known and nothing is special. */
static struct conf_input G_GNUC_UNUSED
request(void)
{
	return ((struct conf_input){
	    .socket = TEXT("127.0.0.1:8080"),
	    .scheme = TEXT("http"),
	    .host = TEXT("www.example.org"),
	    .url = TEXT("/dir/file.html"),
	    .query = TEXT(""),
	    .referer = TEXT(""),
	    .useragent = TEXT("agent/1.0"),
	    .cookie = TEXT(""),
	    .remoteip = TEXT("192.0.2.7"),
	    .method = TEXT("GET"),
	    .path = TEXT("/srv/dir/file.html"),
	    .existing_path = TEXT("/srv/dir/file.html"),
	});
}

static const char *
name_for(struct site *s)
{
	const struct conf *c = conf_view_match(s->view, &in);

	g_assert_nonnull(c);
	return (c->server_name);
}

static bool G_GNUC_UNUSED
cond_holds(const char *cond)
{
	g_autofree char *text = g_strdup_printf(ROOT "%s { server.name = \"yes\" }\n", cond);
	struct site *s = site(text);
	bool yes = strcmp(name_for(s), "yes") == 0;

	site_free();
	return (yes);
}

/* A test may make one site, and ask it about in, which is request() at first. */
#define SITE_TEST(path) TEST_IN(path, in = request(), site_free())

#endif
