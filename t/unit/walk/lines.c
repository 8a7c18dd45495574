/* t/unit/walk/lines.c -- the same lines for every split of the bytes. */
#include "t/unit/test.h"
#include "walk/lines.h"

#define LONG 5

static void
put(GString *out, char kind, struct text t)
{
	g_string_append_c(out, kind);
	g_string_append_len(out, t.p, (gssize)MIN(t.n, LONG));
	g_string_append_c(out, '|');
}

static char *
lines_of(const char *p, size_t n, size_t cut, size_t cut2)
{
	GString *out = g_string_new(NULL);
	const size_t ends[] = { cut, cut2, n };
	struct lines l;
	enum line_kind kind;
	struct text t;
	size_t at = 0;

	lines_init(&l, '\n', LONG);
	for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
		lines_add(&l, p + at, ends[i] - at);
		at = ends[i];
		while ((kind = lines_next(&l, &t)) != LINE_NONE)
			put(out, kind == LINE_WHOLE ? 'w' : 'l', t);
	}
	if (lines_last(&l, &t))
		put(out, 'e', t);
	lines_free(&l);
	return (g_string_free(out, FALSE));
}

TEST("/lines/splits")
{
	static const struct {
		struct text in;
		const char *out;
	} cases[] = {
		{ TEXT(""), "" },
		{ TEXT("\n"), "w|" },
		{ TEXT("one\ntwo\n\nend"), "wone|wtwo|w|eend|" },
		{ TEXT("1234\n12345\n5\n"), "w1234|l12345|w5|" },
		{ TEXT("1234567890\n5"), "l12345|e5|" },
		{ TEXT("1234567890"), "l12345|" },
		{ TEXT("a\n1234567890123\n\n67890123\nb"), "wa|l12345|w|l67890|eb|" },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		const struct text in = cases[i].in;

		for (size_t cut = 0; cut <= in.n; cut++)
			for (size_t cut2 = cut; cut2 <= in.n; cut2++) {
				g_autofree char *out = lines_of(in.p, in.n, cut, cut2);

				g_assert_cmpstr(out, ==, cases[i].out);
			}
	}
}
