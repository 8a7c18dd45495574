/* t/unit/server/config_test.h -- loads a configuration from text and prints it. */
#ifndef CONFIG_TEST_H
#define CONFIG_TEST_H

#include <glib/gstdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/must.h"
#include "server/config/impl.h"
#include "t/unit/test.h"

#define ROOT "server.document-root = \"/srv\"\n"

static struct buf err, warn;  /* of the load before */
static struct config *loaded; /* by it; the next load frees it */

static void
forget(void)
{
	buf_free(&err);
	buf_free(&warn);
	config_free(loaded);
	loaded = NULL;
}

static G_GNUC_UNUSED struct config *
load(const char *text)
{
	forget();
	return (loaded = config_load_text("t.conf", text_of(text), false, &err, &warn));
}

void
tests_end(void)
{
	forget();
}

static const char *
str(struct buf *b)
{
	buf_char(b, '\0');
	b->n--;
	return (b->p);
}

static G_GNUC_UNUSED struct config *
good(const char *text)
{
	struct config *c = load(text);

	if (c == NULL)
		g_test_message("%s", str(&err));
	g_assert_nonnull(c);
	g_assert_cmpuint(err.n, ==, 0);
	return (c);
}

/* The message starts with START ("t.conf:LINE:COLUMN: ...") and holds PART. */
static void G_GNUC_UNUSED
bad(const char *text, const char *start, const char *part)
{
	g_assert_null(load(text));
	if (!g_str_has_prefix(str(&err), start) || strstr(str(&err), part) == NULL)
		g_test_message("%s", str(&err));
	g_assert_true(g_str_has_prefix(str(&err), start));
	g_assert_nonnull(strstr(str(&err), part));
}

/* What -p prints for one key, without the line end. */
static G_GNUC_UNUSED char *
printed(const struct config *c, const char *key)
{
	char *start = g_strdup_printf("%s = ", key), *value = NULL, *line;
	struct buf out;

	buf_init(&out, 0);
	config_print(c, &out);
	if ((line = strstr(str(&out), start)) != NULL)
		value = g_strndup(line + strlen(start), strcspn(line + strlen(start), "\n"));
	buf_free(&out);
	g_free(start);
	return (value);
}

static void G_GNUC_UNUSED
value_is(const char *expr, const char *want)
{
	char *text =
	    g_strdup_printf(ROOT "var.n = 7\nvar.s = \"s\"\nvar.l = ( \"a\" )\nvar.out = %s\n",
		expr);
	struct config *c = good(text);
	g_autofree char *got = printed(c, "var.out");

	g_assert_cmpstr(got, ==, want);
	g_free(text);
}

#endif
