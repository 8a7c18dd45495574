/* t/fuzz/fuzz_urlpath.c -- any bytes as a path: what comes out cannot climb, and cleaning it again
 * changes nothing. */
#include <errno.h>
#include <stdlib.h>
#include "base/buf.h"
#include "base/must.h"
#include "wire/urlpath.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("/"),
	SEED("/a/b/../c/./d//e"),
	SEED("/%2e%2e/%61/..%2f/x%20y"),
	SEED("/a/../b/%252e/.../..x/y..\\"),
	SEED("/../a"),
	SEED("/a;b/%2e;/;x"),
	SEED("/a%2fb%5c/..%2f..;/c"),
	{ NULL, 0 },
};

/* The segment as a servlet container reads it. */
static struct text
without_parameters(struct text seg)
{
	struct text rest = seg, t;

	return (text_next(&rest, ';', &t) ? t : seg);
}

static void
check_segments(const char *path)
{
	const char *seg = path + 1, *end;
	struct text t;

	must(path[0] == '/');
	for (; (end = strchr(seg, '/')) != NULL; seg = end + 1) {
		t = (struct text){ seg, (size_t)(end - seg) };
		t = without_parameters(t);
		must(t.n > 0 && !text_eq(t, TEXT(".")) && !text_eq(t, TEXT("..")));
	}
	t = without_parameters(text_of(seg));
	must(!text_eq(t, TEXT(".")) && !text_eq(t, TEXT("..")));
	must(strchr(path, '\\') == NULL);
}

static void
check_again(const char *path, int n)
{
	struct buf b;
	char *dst;

	buf_init(&b, 0);
	buf_urlenc(&b, (struct text){ path, (size_t)n });
	dst = malloc(b.n + 1);
	must(dst != NULL);
	must(urlpath_clean(buf_as_text(&b), dst) == n && memcmp(dst, path, (size_t)n + 1) == 0);
	free(dst);
	buf_free(&b);
}

/* The name does not climb either, and a path that is clean is its own name. */
static void
check_name(struct text in, const char *cleaned, int cleaned_n)
{
	char *dst = malloc(in.n + 1);
	int len;

	must(dst != NULL);
	len = urlpath_name(in, dst);
	must(len > 0 || len == -EINVAL || len == -EPERM);
	must(cleaned_n < 0 || (len == cleaned_n && memcmp(dst, cleaned, (size_t)len) == 0));
	if (len > 0) {
		must((size_t)len <= in.n && strlen(dst) == (size_t)len && dst[0] == '/');
		must(strstr(dst, "//") == NULL && strstr(dst, "/../") == NULL &&
		     strstr(dst, "/./") == NULL);
		must(!text_ends(text_of(dst), TEXT("/..")) && !text_ends(text_of(dst), TEXT("/.")));
	}
	free(dst);
}

/* The input is path and query; its last byte chooses the options. */
static void
check_options(struct text in)
{
	struct text query = in, path = { in.p, 0 };
	char *dst = malloc(in.n + 1);
	unsigned how = in.n != 0 ? (unsigned char)in.p[in.n - 1] & 15u : 0;
	int len;

	must(dst != NULL);
	if (text_next(&query, '?', &path) && query.p == NULL)
		query = TEXT_NONE;
	len = urlpath_clean_as(path, query, how, dst);
	must(len > 0 || len == -EINVAL || len == -EPERM);
	if (len > 0) {
		must((size_t)len <= path.n && strlen(dst) == (size_t)len);
		check_segments(dst);
	}
	free(dst);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n };
	char *dst = malloc(n + 1);
	int len;

	must(dst != NULL);
	len = urlpath_clean(in, dst);
	must(len > 0 || len == -EINVAL || len == -EPERM);
	if (len > 0) {
		must((size_t)len <= n && strlen(dst) == (size_t)len);
		check_segments(dst);
		check_again(dst, len);
	}
	check_name(in, dst, len);
	check_options(in);
	len = urlpath_decode(in, dst);
	must(len == -EINVAL || (len >= 0 && (size_t)len <= n && strlen(dst) == (size_t)len));
	must(urlpath_plain(in, dst) <= n);
	free(dst);
	return (0);
}
