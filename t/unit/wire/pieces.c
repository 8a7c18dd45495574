/* t/unit/wire/pieces.c -- values of X-Sendfile2. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "t/unit/test.h"
#include "wire/codec/pieces.h"

/* want NULL: refused */
static const struct {
	const char *value, *want;
} values[] = {
	{ "/a 0-9", "/a 0 10" },
	{ "/a 0-", "/a 0 end" },
	{ "/a 5-5", "/a 5 6" },
	{ "/a%20b 1-2,/c 3-", "/a%20b 1 3|/c 3 end" },
	{ "/a 1-2, /c 3-4 ,/d 0-", "/a 1 3|/c 3 5|/d 0 end" },
	{ "  /a   7-8  ", "/a 7 9" },
	{ "a 0-1", "a 0 2" }, /* judged with the directory */
	{ "/a 0-9223372036854775806", "/a 0 9223372036854775807" },
	{ "/a 0-9223372036854775807", NULL },
	{ "/a 0-18446744073709551616", NULL },
	{ "/a 18446744073709551615-", NULL },
	{ "/a 9223372036854775807-", NULL },
	{ "/a 9-8", NULL },
	{ "/a", NULL },
	{ "/a ", NULL },
	{ "/a -", NULL },
	{ "/a -5", NULL },
	{ "/a 0", NULL },
	{ "/a 0-1-2", NULL },
	{ "/a 0-x", NULL },
	{ "/a 0x1-2", NULL },
	{ "/a 0 -1", NULL },
	{ "/a b 0-1", NULL },
	{ "0-1", NULL },
	{ " 0-1", NULL },
	{ "", NULL },
	{ ",", NULL },
	{ "/a 0-1,", NULL },
	{ ",/a 0-1", NULL },
	{ "/a 0-1;/b 0-1", NULL },
};

TEST("/pieces/values")
{
	struct piece v[PIECES_MAX];
	GString *got;
	size_t i;
	int n, k;

	for (i = 0; i < G_N_ELEMENTS(values); i++) {
		size_t len = strlen(values[i].value);
		char *heap = malloc(len + 1); /* reads past it are noticed by sanitizers */

		memcpy(heap, values[i].value, len);
		n = pieces_read((struct text){ heap, len }, v);
		got = g_string_new(NULL);
		for (k = 0; k < n; k++) {
			g_string_append_printf(got, "%s%.*s %" G_GUINT64_FORMAT, k > 0 ? "|" : "",
			    (int)v[k].path.n, v[k].path.p, v[k].from);
			if (v[k].to == UINT64_MAX)
				g_string_append(got, " end");
			else
				g_string_append_printf(got, " %" G_GUINT64_FORMAT, v[k].to);
		}
		g_assert_cmpstr(n < 0 ? NULL : got->str, ==, values[i].want);
		g_assert_true(n > 0 || n == -EINVAL);
		g_string_free(got, TRUE);
		free(heap);
	}
}

TEST("/pieces/bound")
{
	struct piece v[PIECES_MAX];
	g_autoptr(GString) s = g_string_new("/a 0-1");
	unsigned i;

	for (i = 1; i < PIECES_MAX; i++)
		g_string_append(s, ",/b 0-1");
	g_assert_cmpint(pieces_read((struct text){ s->str, s->len }, v), ==, PIECES_MAX);
	g_string_append(s, ",/c 0-1");
	g_assert_cmpint(pieces_read((struct text){ s->str, s->len }, v), ==, -EINVAL);
}
