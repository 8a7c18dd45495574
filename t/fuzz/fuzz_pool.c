/* t/fuzz/fuzz_pool.c -- what accel-pool reads: lines of an access log, --spec, the marker of a
 * pool.
 *
 * A path is printed in one line and without spaces; a shape is written and read again; no path of a
 * marker leaves its pool. */
#include <errno.h>
#include <stdlib.h>
#include "accel-pool/log_line.h"
#include "accel-pool/marker.h"
#include "base/must.h"
#include "walk/lines.h"
#include "wire/urlpath.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("192.0.2.1 - - [23/Nov/2026:06:00:00 +0000] \"GET /a%20b?c HTTP/1.1\" 200 5120\n"
	     "h - u\"x [t] \"GET /\\x22\\\"\\n HTTP/1.1\" 206 1 \"-\" \"-\"\r\n"),
	SEED("h [t] \"GET http://h/a HTTP/1.0\" 304\n\"HEAD /a b\" 200 -\nh [t] \"-\" 400 0\n\n"),
	SEED("1000x100x100k\n1x1x4k-1m\n1x1x0\n1000000x1000000x1g\n1x1x1-\n"),
	SEED("accel-pool 1\nseed 7\nnew\nspec 2x3x4k\nspec 1x1x1-9\n"),
	SEED("accel-pool 1\nspec 1x1x1k\nspec 2x2x1k\nspec 1x3x1k\n"),
	SEED("100k/0007/0042.bin\n1-9/0000/0000.bin\n"),
	{ NULL, 0 },
};

static void
check_url(struct text path)
{
	char *out = malloc(3 * path.n + 1);
	size_t n;

	must(out != NULL && path.p[0] == '/');
	n = urlpath_escape(path, URL_OF_TARGET, out);
	must(n >= 1 && n <= 3 * path.n && out[0] == '/');
	for (size_t i = 0; i < n; i++)
		must(out[i] > ' ' && out[i] < 127);
	free(out);
}

static void
check_log(struct text line)
{
	char *buf = malloc(line.n + 1);
	struct log_request r;
	struct text path;

	must(buf != NULL);
	if (log_line_parse(line, buf, &r)) {
		must(r.method.n + r.target.n <= line.n && r.status >= 100 && r.status <= 999);
		must(memchr(r.method.p, ' ', r.method.n) == NULL);
		if (log_target_path(r.target, &path))
			check_url(path);
	}
	free(buf);
}

static void
check_spec(const struct spec *s)
{
	const struct spec_place last = { s->dirs - 1, s->files - 1 };
	char text[SPEC_TEXT_MAX];
	struct spec_place place;
	struct spec again;
	uint64_t size;
	size_t n;

	n = spec_put(s, text);
	must(n < SPEC_TEXT_MAX && strlen(text) == n);
	must(spec_parse((struct text){ text, n }, &again) == NULL);
	must(again.dirs == s->dirs && again.files == s->files);
	must(again.min == s->min && again.max == s->max);
	n = spec_put_path(s, last, text);
	must(n < SPEC_TEXT_MAX && strlen(text) == n && strstr(text, "..") == NULL);
	must(spec_place_of(s, (struct text){ text, n }, &place));
	must(place.dir == last.dir && place.file == last.file);
	size = spec_size(s, last, 1);
	must(size >= s->min && size <= s->max && s->max <= SPEC_SIZE_MAX);
	must(s->max == 0 || spec_count(s) <= SPEC_TOTAL_MAX / s->max);
}

static void
check_marker(struct text in)
{
	struct marker m, again;
	struct buf b;

	if (marker_parse(in, &m) != 0)
		return;
	must(m.n <= SPECS_MAX);
	for (unsigned i = 0; i < m.n; i++)
		check_spec(&m.specs[i]);
	buf_init(&b, 0);
	marker_put(&m, &b);
	must(!b.failed && b.n < MARKER_MAX && marker_parse(buf_as_text(&b), &again) == 0);
	must(again.n == m.n && again.seed == m.seed && again.made_dir == m.made_dir);
	buf_free(&b);
}

static void
check_line(struct text line)
{
	struct spec_place place;
	struct spec s;

	check_log(line);
	if (spec_parse(line, &s) == NULL)
		check_spec(&s);
	s = (struct spec){ 10, 100, 100 * 1024, 100 * 1024 };
	if (spec_place_of(&s, line, &place))
		must(place.dir < 10 && place.file < 100);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n }, line;
	struct lines lines;
	enum line_kind kind;

	check_marker(in);
	lines_init(&lines, '\n', 4096);
	lines_add(&lines, in.p, in.n);
	while ((kind = lines_next(&lines, &line)) != LINE_NONE)
		if (kind == LINE_WHOLE)
			check_line(line);
	if (lines_last(&lines, &line))
		check_line(line);
	lines_free(&lines);
	return (0);
}
