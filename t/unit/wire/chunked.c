/* t/unit/wire/chunked.c -- chunked bodies: tables of bytes to results, fed whole and at every
 * split. */
#include "t/unit/wire/rows.h"

/* Feeds the pieces [0, a), [a, b), [b, n) and returns the outcome: body|state|bytes left over. */
static char *
unchunk(const struct row *row, size_t a, size_t b)
{
	size_t cut[] = { 0, a, b, row->n };
	struct http1_chunked c = { 0 };
	GString *body = g_string_new("");
	enum parse s = PARSE_MORE;
	struct text in, data;
	size_t left = 0;
	int i;

	for (i = 0; i < 3 && s == PARSE_MORE; i++) {
		struct text piece = copy(row->bytes + cut[i], cut[i + 1] - cut[i]);

		in = piece;
		do {
			s = http1_chunked(&c, &in, &data);
			g_string_append_len(body, data.p, (gssize)data.n);
			if (s == PARSE_MORE && data.n == 0)
				g_assert_cmpuint(in.n, ==, 0);
		} while (s == PARSE_MORE && in.n > 0);
		left = in.n + row->n - cut[i + 1];
		free((char *)piece.p);
	}
	if (s == PARSE_DONE)
		g_string_append_printf(body, "|done|%zu", left);
	else
		g_string_append(body, s == PARSE_BAD ? "|bad" : "|more");
	return (g_string_free(body, FALSE));
}

static const struct row chunks[] = {
	ROW("0\r\n\r\n", "|done|0"),
	ROW("5\r\nhello\r\n0\r\n\r\nGET", "hello|done|3"),
	ROW("5\r\nhello\r\n00006\r\n world\r\n000\r\n\r\n", "hello world|done|0"),
	ROW("A;a=b;c=\"x y\"\r\n0123456789\r\n0;last\r\n\r\n", "0123456789|done|0"),
	ROW("1 \t;a\r\nx\r\n0\r\n\r\n", "x|done|0"),
	ROW("1\r\nx\r\n0\r\nA: b\r\nContent-Length: 7\r\n\r\nrest", "x|done|4"),
	ROW("3\r\na\r\n\r\n0\r\n\r\n", "a\r\n|done|0"),
	ROW("5\r\nhel", "hel|more"),
	ROW("", "|more"),
	ROW("\r\n", "|bad"),
	ROW(";a\r\n", "|bad"),
	ROW(" 1\r\n", "|bad"),
	ROW("1 \r\n", "|bad"),
	ROW("-1\r\n", "|bad"),
	ROW("+1\r\n", "|bad"),
	ROW("0x1\r\n", "|bad"),
	ROW("g\r\n", "|bad"),
	ROW("1\nx\n0\n\n", "|bad"),
	ROW("1\rx", "|bad"),
	ROW("1;a\nx", "|bad"),
	ROW("1;a\rx", "|bad"),
	ROW("1;\0\r\n", "|bad"),
	ROW("1;\x7f\r\n", "|bad"),
	ROW("1\r\nxy\r\n", "x|bad"),
	ROW("1\r\nx\n0\r\n\r\n", "x|bad"),
	ROW("1\r\nx\rX", "x|bad"),
	ROW("1\r\nx\r\n\r\n", "x|bad"),
	ROW("0\r\n\rX", "|bad"),
	ROW("0\r\n\n", "|bad"),
	ROW("0\r\nA b\r\n", "|bad"),
	ROW("0\r\nA\r\n\r\n", "|bad"),
	ROW("0\r\n: x\r\n\r\n", "|bad"),
	ROW("0\r\nA : x\r\n\r\n", "|bad"),
	ROW("0\r\nA: x\r\n y\r\n\r\n", "|bad"),
	ROW("0\r\nA: x\ny\r\n\r\n", "|bad"),
	ROW("0\r\nA: x\0\r\n\r\n", "|bad"),
	ROW("8000000000000000\r\n", "|bad"),
	ROW("10000000000000001\r\nx", "|bad"),
	ROW("7fffffffffffffff\r\nx", "x|more"),
	{ NULL },
};

static void
check_chunks(const struct row *row, size_t a, size_t b)
{
	g_autofree char *got = unchunk(row, a, b);

	if (strcmp(got, row->want) != 0)
		g_error("\"%s\" cut at %zu and %zu: got %s, want %s", row->bytes, a, b, got,
		    row->want);
}

TEST("/http1/chunked")
{
	const struct row *row;
	size_t a, b;

	for (row = chunks; row->bytes != NULL; row++)
		for (a = 0; a <= row->n; a++)
			for (b = a; b <= row->n; b++)
				check_chunks(row, a, b);
}

static void
check_long(const char *head, int fill, const char *tail, const char *want)
{
	g_autoptr(GString) s = g_string_new(head);
	struct row row;
	int i;

	for (i = 0; i < fill; i++)
		g_string_append_c(s, 'x');
	g_string_append(s, tail);
	row = (struct row){ s->str, s->len, want };
	g_autofree char *got = unchunk(&row, s->len / 3, s->len / 2);
	g_assert_cmpstr(got, ==, want);
}

TEST("/http1/chunked-limits")
{
	/* the line with its CR LF: 256 bytes */
	check_long("0;", 252, "\r\n\r\n", "|done|0");
	check_long("0;", 253, "\r\n\r\n", "|bad");
	check_long("0\r\nA:", 8192 - 6, "\r\n\r\n", "|done|0");
	check_long("0\r\nA:", 8192 - 5, "\r\n\r\n", "|bad");
}
