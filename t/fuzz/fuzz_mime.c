/* t/fuzz/fuzz_mime.c -- any bytes as /etc/mime.types, as rows "suffix=type" of mimetype.assign,
 * then as a path: a type comes out that may stand in a header, and one that may not is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/must.h"
#include "server/config/check/mime.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("text/html html htm\nimage/jpeg\tjpeg jpg jpe\n# comment\n"),
	SEED("application/x-tar\ntext/plain txt asc # more\n\n  image/png png\r\n"),
	SEED("a/b .x\nbad line\na/b/c d\n/x y\na/ z\ntext/x X\0y\n"),
	SEED("=text/x\n.c=text/x-c\n=text/y\n"),
	SEED(".b=\n"),
	SEED(".b=a\1b\n"),
	{ NULL, 0 },
};

#define ROWS_MAX 16

static struct conf_pair pairs[] = {
	{ .key = TEXT("README"), .value = TEXT("text/plain") },
	{ .key = TEXT(".tar.gz"), .value = TEXT("application/x-tgz") },
};
static const struct conf_map assigned = { .v = pairs, .n = NELEM(pairs) }, none = { 0 };

static void
check_type(struct text t)
{
	size_t i;

	must(t.n > 0 && t.p[t.n] == '\0');
	for (i = 0; i < t.n; i++)
		must((unsigned char)t.p[i] >= 0x20 && t.p[i] != 0x7f);
}

/* The rows "suffix=type" of the input. */
static struct conf_map
rows_of(struct text in, struct conf_pair rows[ROWS_MAX])
{
	struct conf_map map = { .v = rows };
	struct text line, key;

	while (map.n < ROWS_MAX && text_next(&in, '\n', &line))
		if (text_next(&line, '=', &key) && line.p != NULL)
			rows[map.n++] = (struct conf_pair){ .key = key, .value = line };
	return (map);
}

static void
check_with(const struct conf_map *map, struct text types, struct text in)
{
	struct mime *m;
	struct text line, rest = in;
	char err[256] = "", name[64];

	m = mime_new(map, types, err, sizeof(err));
	must((m == NULL) == (err[0] != '\0'));
	if (m == NULL)
		return;
	check_type(mime_type(m, in));
	check_type(mime_type(m, TEXT("/a/b.html")));
	while (text_next(&rest, ' ', &line)) {
		snprintf(name, sizeof(name), "/x.%.*s", (int)(line.n < 40 ? line.n : 40), line.p);
		check_type(mime_type(m, text_of(name)));
	}
	mime_free(m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n };
	struct conf_pair rows[ROWS_MAX];
	struct conf_map own = rows_of(in, rows);

	check_with(&none, in, in);
	check_with(&assigned, in, in);
	check_with(&own, in, in);
	check_with(&assigned, (struct text){ NULL, 0 }, in);
	return (0);
}
