/* t/unit/accel-load/verify.c -- bodies against lengths, hashes, patterns and files. */
#include "accel-load/verify.h"

#include <glib/gstdio.h>
#include <stdarg.h>
#include <sysexits.h>

#include "accel-load/hash_list.h"
#include "base/pattern.h"
#include "t/unit/test.h"

#define SIZE 1000u

static GString *messages;

void
load_message(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_string_append_vprintf(messages, format, args);
	g_string_append_c(messages, '\n');
	va_end(args);
}

/* Three URLs, and files of these names below dir. */
static const char *const paths[] = { "/pool/a/one.bin", "/pool/b%20c/two.bin?x=1", "/pool/three" };
static const char *const names[] = { "a/one.bin", "b c/two.bin", "three" };
static struct url url[G_N_ELEMENTS(paths)];
static struct urls urls = { .url = url, .n = G_N_ELEMENTS(paths) };
static struct load_conf conf;
static char *dir, *list;
static char body[SIZE + 100];

static void
up(void)
{
	g_autoptr(GString) lines = g_string_new(NULL);
	unsigned i;

	dir = g_dir_make_tmp("verify-XXXXXX", NULL);
	for (i = 0; i < urls.n; i++) {
		char *file = g_strdup_printf("%s/pool/%s", dir, names[i]),
		     *parent = g_path_get_dirname(file), *hash;

		url[i].path = g_strdup(paths[i]);
		pattern_fill(pattern_key(names[i], strlen(names[i])), 0, body, SIZE);
		g_mkdir_with_parents(parent, 0700);
		g_assert_true(g_file_set_contents(file, body, SIZE, NULL));
		hash = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)body, SIZE);
		g_string_append_printf(lines, "%s %c%s%s\n", hash, i == 1 ? '*' : ' ',
		    i == 0 ? "./" : "pool/", names[i]);
		g_free(hash);
		g_free(parent);
		g_free(file);
	}
	list = g_strdup_printf("%s/SHA256SUMS", dir);
	g_assert_true(g_file_set_contents(list, lines->str, (gssize)lines->len, NULL));
}

static void
cleanup(void)
{
	static const char *const made[] = { "/pool/a/one.bin", "/pool/b c/two.bin", "/pool/three",
		"/pool/a", "/pool/b c", "/pool", "/SHA256SUMS", "" };
	unsigned i;

	for (i = 0; i < G_N_ELEMENTS(made); i++) {
		g_autofree char *name = g_strconcat(dir, made[i], NULL);

		g_assert_cmpint(g_remove(name), ==, 0);
	}
	for (i = 0; i < urls.n; i++)
		g_free(url[i].path);
	g_free(list);
	g_free(dir);
	g_string_free(messages, TRUE);
}

/* The bytes of the body in pieces of `piece`. */
static enum load_error
answer(struct verify *v, const struct verify_conf *c, unsigned i, uint64_t first, size_t n,
    int64_t total, size_t piece)
{
	size_t at, len;

	verify_begin(v, c, &url[i], first, total);
	for (at = 0; at < n; at += len) {
		len = n - at < piece ? n - at : piece;
		verify_bytes(v, verify_wants_bytes(c) ? body + first + at : NULL, len);
	}
	return (verify_end(v));
}

static void
fill(unsigned i)
{
	pattern_fill(pattern_key(names[i], strlen(names[i])), 0, body, sizeof(body));
}

static struct verify_conf *
opened(const char *kind, const char *arg)
{
	g_autofree char *spec = g_strconcat(kind, arg, NULL);
	struct verify_conf *c = NULL;
	int code;

	g_string_truncate(messages, 0);
	code = verify_open(spec, &conf, &urls, &c);
	if (code != 0)
		g_error("%s: %d: %s", spec, code, messages->str);
	return (c);
}

/* Good answers of every URL, split in every way; then each fault. */
static void
whole_bodies(gconstpointer kind)
{
	struct verify_conf *c = opened(kind, strcmp(kind, "hash:") == 0  ? list
					     : strcmp(kind, "dir:") == 0 ? dir
									 : "");
	bool bytes = verify_wants_bytes(c);
	struct verify v = { 0 };
	unsigned i, piece;

	for (i = 0; i < urls.n; i++) {
		fill(i);
		for (piece = 1; piece <= SIZE; piece += piece < 20 ? 1 : 7)
			g_assert_cmpint(answer(&v, c, i, 0, SIZE, SIZE, piece), ==, LOAD_OK);
		g_assert_cmpint(answer(&v, c, i, 0, SIZE, -1, SIZE), ==, LOAD_OK);
		g_assert_cmpint(answer(&v, c, i, 0, SIZE - 1, SIZE - 1, SIZE), ==, LOAD_SHORT);
		g_assert_cmpint(answer(&v, c, i, 0, 0, 0, SIZE), ==, LOAD_SHORT);
		g_assert_cmpint(answer(&v, c, i, 0, SIZE + 1, -1, 3), ==, LOAD_LONG);
		for (piece = 1; bytes && piece < SIZE; piece += 5) {
			body[piece] ^= 1;
			g_assert_cmpint(answer(&v, c, i, 0, SIZE, SIZE, 64), ==, LOAD_WRONG);
			body[piece] ^= 1;
		}
		fill((i + 1) % urls.n);
		g_assert_cmpint(answer(&v, c, i, 0, SIZE, SIZE, 64), ==,
		    bytes ? LOAD_WRONG : LOAD_OK);
	}
	verify_begin(&v, NULL, &url[0], 0, 5);
	verify_bytes(&v, "x", 1);
	g_assert_cmpint(verify_end(&v), ==, LOAD_OK);
	verify_free(&v);
	verify_close(&c);
	g_assert_null(c);
}

/* The first answer of a pattern is wrong: in its first bytes, or too short to tell. */
TEST("/accel-load/verify/short-pattern")
{
	struct verify_conf *c = opened("pattern", "");
	struct verify v = { 0 };

	fill(1);
	g_assert_cmpint(answer(&v, c, 0, 0, SIZE, SIZE, 5), ==, LOAD_WRONG);
	g_assert_cmpint(answer(&v, c, 2, 0, 5, 5, 2), ==, LOAD_WRONG);
	fill(2);
	g_assert_cmpint(answer(&v, c, 2, 0, 5, 5, 2), ==, LOAD_OK);
	g_assert_nonnull(strstr(messages->str, "/pool/three: wrong byte at 0\n"));
	verify_close(&c);
}

/* A part of one byte fits the key of a wrong name: other parts are not judged by that. */
TEST("/accel-load/verify/byte-by-chance")
{
	struct verify_conf *c = opened("pattern", "");
	const uint64_t wrong = pattern_key("one.bin", 7);
	struct verify v = { 0 };
	unsigned at = 0;

	fill(0);
	while (pattern_check(wrong, at, body + at, 1) == 0)
		at++;
	g_assert_cmpuint(at, <, SIZE - 1);
	g_assert_cmpint(answer(&v, c, 0, at, 1, SIZE, 1), ==, LOAD_OK);
	g_assert_cmpint(answer(&v, c, 0, 0, SIZE, SIZE, 50), ==, LOAD_OK);
	verify_close(&c);
}

/* Of two bodies at a time, the second one shows the key: the first bytes of the other are then
 * checked, too. */
TEST("/accel-load/verify/two-patterns")
{
	struct verify_conf *c = opened("pattern", "");
	struct verify v = { 0 }, other = { 0 };

	for (unsigned n = 1; n < 12; n++) {
		verify_close(&c);
		c = opened("pattern", "");
		fill(0);
		body[0] ^= 1;
		verify_begin(&v, c, &url[0], 0, SIZE);
		verify_bytes(&v, body, n);
		body[0] ^= 1;
		g_assert_cmpint(answer(&other, c, 0, 0, SIZE, SIZE, 50), ==, LOAD_OK);
		verify_bytes(&v, body + n, SIZE - n);
		g_assert_cmpint(verify_end(&v), ==, LOAD_WRONG);
	}
	verify_close(&c);
}

static void
ranges(gconstpointer kind)
{
	struct verify_conf *c = opened(kind, strcmp(kind, "dir:") == 0 ? dir : "");
	struct verify v = { 0 };
	unsigned first, n;

	fill(0);
	for (first = 0; first < SIZE; first += 13)
		for (n = 8; first + n <= SIZE; n += 97) {
			g_assert_cmpint(answer(&v, c, 0, first, n, SIZE, 50), ==, LOAD_OK);
			body[first + n / 2] ^= 1;
			g_assert_cmpint(answer(&v, c, 0, first, n, SIZE, 50), ==, LOAD_WRONG);
			body[first + n / 2] ^= 1;
		}
	/* "bytes 5-9/\*", of which the end is unknown */
	g_assert_cmpint(answer(&v, c, 0, 5, 20, -1, 50), ==, LOAD_OK);
	g_assert_cmpint(answer(&v, c, 0, 5, 20, SIZE + 1, 50), ==, LOAD_LONG);
	g_assert_cmpint(answer(&v, c, 0, 5, 20, SIZE - 1, 50), ==, LOAD_SHORT);
	verify_close(&c);
}

static void
refused(const char *spec, int code, const char *why)
{
	struct verify_conf *c = (void *)1;

	g_string_truncate(messages, 0);
	g_assert_cmpint(verify_open(spec, &conf, &urls, &c), ==, code);
	g_assert_null(c);
	if (strstr(messages->str, why) == NULL)
		g_error("%s: no \"%s\" in %s", spec, why, messages->str);
}

TEST("/accel-load/verify/faults")
{
	char *spec;

	refused("size", EX_USAGE, "expected length, hash:FILE, pattern or dir:DIR, got \"size\"");
	refused("dir:/nonexistent", EX_NOINPUT, "/nonexistent: No such file");
	refused("hash:/nonexistent", EX_NOINPUT, "/nonexistent: No such file");
	spec = g_strdup_printf("dir:%s/pool", dir);
	refused(spec, EX_NOINPUT, "/pool/a/one.bin: No such file");
	g_free(spec);
	spec = g_strconcat("hash:", list, NULL);
	conf.range.kind = RANGE_RANDOM;
	refused(spec, EX_USAGE, "a hash is of a whole file");
	conf.range.kind = RANGE_NONE;
	conf.head = true;
	refused("length", EX_USAGE, "no body");
	conf.head = false;
	g_assert_true(
	    g_file_set_contents(list, "900150983cd24fb0d6963f7d28e17f72  abc\n", -1, NULL));
	refused(spec, EX_DATAERR, "no line for /pool/a/one.bin");
	g_assert_true(
	    g_file_set_contents(list, "\n900150983cd24fb0d6963f7d28e17f72 abc\n", -1, NULL));
	refused(spec, EX_DATAERR, "SHA256SUMS:2: expected HASH, two spaces and PATH");
	g_free(spec);
	spec = url[2].path;
	url[2].path = "/pool/%zz";
	refused("pattern", EX_DATAERR, "/pool/%zz: cannot be verified");
	url[2].path = "/../x";
	refused("pattern", EX_DATAERR, "/../x: cannot be verified");
	url[2].path = spec;
}

TEST("/accel-load/verify/hash-lines")
{
	static const struct {
		const char *line, *why;
	} rows[] = {
		{ "", "expected lines" },
		{ "\n\n", "expected lines" },
		{ "abc  x\n", "expected the hash" },
		{ "900150983cd24fb0d6963f7d28e17f7  x\n", "expected the hash" },
		{ "900150983cd24fb0d6963f7d28e17f72\n", "two spaces" },
		{ "900150983cd24fb0d6963f7d28e17f72  \n", "expected a PATH" },
		{ "900150983cd24fb0d6963f7d28e17f72  ./\n", "expected a PATH" },
		{ "\\900150983cd24fb0d6963f7d28e17f72  a\\b\n", "escapes" },
		{ "\\900150983cd24fb0d6963f7d28e17f72  a\\", "escapes" },
		{ "900150983cd24fb0d6963f7d28e17f72  a\n"
		  "a9993e364706816aba3e25717850c26c9cd0d89d  b\n",
		    "same kind" },
	};
	struct hash_list l;
	const char *why;
	unsigned line, i;

	for (i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_assert_false(hash_list_read(text_of(rows[i].line), &l, &line, &why));
		g_assert_nonnull(strstr(why, rows[i].why));
	}
	g_assert_true(hash_list_read(text_of("900150983CD24FB0D6963F7D28E17F72  ./a/b\r\n"
					     "\\800150983cd24fb0d6963f7d28e17f72 *c\\\\d\\ne"),
	    &l, &line, &why));
	g_assert_cmpint(l.type, ==, G_CHECKSUM_MD5);
	g_assert_cmpstr(hash_list_find(&l, "/x/a/b"), ==, "900150983cd24fb0d6963f7d28e17f72");
	g_assert_cmpstr(hash_list_find(&l, "/a/b"), ==, "900150983cd24fb0d6963f7d28e17f72");
	g_assert_cmpstr(hash_list_find(&l, "/c\\d\ne"), ==, "800150983cd24fb0d6963f7d28e17f72");
	g_assert_null(hash_list_find(&l, "/b"));
	g_assert_null(hash_list_find(&l, "/xa/b"));
	hash_list_free(&l);
}

int
main(int argc, char **argv)
{
	int code;

	messages = g_string_new(NULL);
	up();
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/accel-load/verify/length", "length", whole_bodies);
	g_test_add_data_func("/accel-load/verify/hash", "hash:", whole_bodies);
	g_test_add_data_func("/accel-load/verify/pattern", "pattern", whole_bodies);
	g_test_add_data_func("/accel-load/verify/dir", "dir:", whole_bodies);
	g_test_add_data_func("/accel-load/verify/range-pattern", "pattern", ranges);
	g_test_add_data_func("/accel-load/verify/range-dir", "dir:", ranges);
	code = tests_run();
	cleanup();
	return (code);
}
