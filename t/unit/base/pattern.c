/* t/unit/base/pattern.c -- every byte of a pool file follows from its name and offset, however the
 * file is split and wherever its bytes lie in memory. */
#include <string.h>
#include "base/clock.h"
#include "base/pattern.h"
#include "t/unit/test.h"

#define WHOLE 64
#define TIMED (1u << 20)

static uint64_t
key_of(const char *name)
{
	return (pattern_key(name, strlen(name)));
}

/* Each offset and length, at each alignment of the memory, agrees with the whole. */
TEST("/pattern/splits")
{
	const uint64_t key = key_of("0001/0001"), far = UINT64_C(1) << 40;
	unsigned char whole[WHOLE], part[WHOLE + 16];

	pattern_fill(key, far, whole, WHOLE);
	for (size_t from = 0; from <= WHOLE; from++)
		for (size_t n = 0; n <= WHOLE - from; n++)
			for (size_t at = 0; at < 8; at++) {
				memset(part, 0xa5, sizeof(part));
				pattern_fill(key, far + from, part + at, n);
				g_assert_cmpmem(part + at, n, whole + from, n);
				g_assert_cmpint(part[at + n], ==, 0xa5);
				g_assert_true(at == 0 || part[at - 1] == 0xa5);
				g_assert_cmpuint(pattern_check(key, far + from, part + at, n), ==,
				    n);
			}
}

/* One wrong bit anywhere: its index, at each alignment of the offset. */
TEST("/pattern/first-wrong-byte")
{
	const uint64_t key = key_of("a");
	unsigned char buf[WHOLE];

	for (uint64_t offset = 0; offset < 16; offset++)
		for (size_t bad = 0; bad < WHOLE; bad++)
			for (unsigned bit = 0; bit < 8; bit++) {
				pattern_fill(key, offset, buf, WHOLE);
				buf[bad] ^= (unsigned char)(1u << bit);
				memset(buf + bad + 1, 0, WHOLE - bad - 1);
				g_assert_cmpuint(pattern_check(key, offset, buf, WHOLE), ==, bad);
				g_assert_cmpuint(pattern_check(key, offset, buf, bad), ==, bad);
			}
}

/* Neither another name nor another offset looks right for long. */
TEST("/pattern/others")
{
	unsigned char buf[WHOLE];
	uint64_t key = key_of("0001/0001");

	pattern_fill(key, 4096, buf, WHOLE);
	for (uint64_t offset = 0; offset < 8192; offset++)
		if (offset != 4096)
			g_assert_cmpuint(pattern_check(key, offset, buf, WHOLE), <, 8);
	for (unsigned i = 0; i < 10000; i++) {
		g_autofree char *name = g_strdup_printf("%04u/0001", i);

		if (i != 1)
			g_assert_cmpuint(pattern_check(key_of(name), 4096, buf, WHOLE), <, 8);
	}
	g_assert_cmpuint(key_of(""), !=, pattern_key("\0", 1));
}

/* The bytes are part of the format: pools of an older program stay right, on every machine. */
TEST("/pattern/format")
{
	static const unsigned char words[16] = { 0x74, 0x47, 0x15, 0xfd, 0x3e, 0xce, 0xd8, 0xf9,
		0x93, 0x66, 0x0c, 0x7e, 0x9a, 0x82, 0x57, 0xd5 };
	unsigned char buf[16];

	pattern_fill(key_of("0001/0001"), 0, buf, sizeof(buf));
	g_assert_cmpmem(buf, sizeof(buf), words, sizeof(words));
}

static bool
find(const char *path, const unsigned char *bytes, size_t n, uint64_t *key)
{
	return (pattern_find(path, strlen(path), 100, bytes, n, key));
}

TEST("/pattern/find")
{
	unsigned char buf[WHOLE];
	uint64_t key = 7;
	g_autoptr(GString) deep = g_string_new("0001/a b");

	pattern_fill(key_of("0001/a b"), 100, buf, WHOLE);
	g_assert_true(find("/img/x/0001/a b", buf, WHOLE, &key));
	g_assert_cmpuint(key, ==, key_of("0001/a b"));
	g_assert_true(find("0001/a b", buf, WHOLE, &key));
	g_assert_true(find("/0001/a b", buf, 8, &key));
	key = 7;
	g_assert_false(find("/img/0002/a b", buf, WHOLE, &key));
	g_assert_false(find("", buf, WHOLE, &key));
	g_assert_false(find("/", buf, WHOLE, &key));
	g_assert_false(find("/0001/a b/", buf, WHOLE, &key));
	g_assert_false(find("/0001/a b", buf, 0, &key));
	g_assert_cmpuint(key, ==, 7);

	buf[40] ^= 1; /* the name is known, and the wrong byte is left to pattern_check() */
	g_assert_true(find("/img/0001/a b", buf, WHOLE, &key));
	g_assert_cmpuint(pattern_check(key, 100, buf, WHOLE), ==, 40);
	buf[7] ^= 1;
	g_assert_false(find("/img/0001/a b", buf, WHOLE, &key));
	buf[7] ^= 1;

	while (deep->len < 8000) /* only the end is tried */
		g_string_prepend(deep, "d/");
	g_assert_true(find(deep->str, buf, WHOLE, &key));
	for (unsigned i = 0; i < PATTERN_PARTS - 1; i++)
		g_string_append(deep, "/d");
	g_assert_false(find(deep->str, buf, WHOLE, &key));
}

/* Not a test of speed, but a place to read it: the figure is in the output. */
TEST("/pattern/speed")
{
	unsigned char *buf = g_malloc(TIMED);
	uint64_t start = clock_mono_ns(), filled;

	for (unsigned i = 0; i < 64; i++)
		pattern_fill(i, 0, buf, TIMED);
	filled = clock_mono_ns();
	for (unsigned i = 0; i < 64; i++)
		g_assert_cmpuint(pattern_check(63, 0, buf, TIMED), ==, TIMED);
	g_test_message("fill %.1f GB/s, check %.1f GB/s", 64.0 * TIMED / (double)(filled - start),
	    64.0 * TIMED / (double)(clock_mono_ns() - filled));
	g_free(buf);
}
