/* t/fuzz/fuzz_control.c -- any bytes as the value of a control header: pieces of files, URLs, the
 * other kinds, and as a media type that gets a charset. */
#include <errno.h>
#include <stdlib.h>
#include "base/must.h"
#include "wire/codec/control.h"
#include "wire/http1/media_type.h"
#include "wire/codec/pieces.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("/srv/a%20b 0-99, /srv/c 100-"),
	SEED("/a 0-9223372036854775806,/b 5-5 ,/c 1-2"),
	SEED("http://10.0.0.1:8080/a?b"),
	SEED("http://[::1]/"),
	SEED("@784111777"),
	SEED("text/html; charset=utf-8; x=y"),
	SEED("no"),
	{ NULL, 0 },
};

static void
inside(struct text whole, struct text part)
{
	must(part.p >= whole.p && part.n <= whole.n &&
	     (size_t)(part.p - whole.p) <= whole.n - part.n);
}

static void
check_pieces(struct text in)
{
	struct piece v[PIECES_MAX];
	int i, n = pieces_read(in, v);

	must(n == -EINVAL || (n > 0 && n <= (int)PIECES_MAX));
	for (i = 0; i < n; i++) {
		inside(in, v[i].path);
		must(v[i].path.n > 0 && memchr(v[i].path.p, ' ', v[i].path.n) == NULL &&
		     memchr(v[i].path.p, ',', v[i].path.n) == NULL);
		must(v[i].from < v[i].to);
		must(v[i].to == UINT64_MAX || v[i].to <= INT64_MAX);
	}
}

static void
check_url(struct text in)
{
	struct text authority, target;
	size_t i;

	if (!control_url(in, &authority, &target))
		return;
	inside(in, authority);
	must(authority.n > 0 && target.n > 0 && target.p[0] == '/');
	must(memchr(authority.p, '/', authority.n) == NULL);
	for (i = 0; i < target.n; i++)
		must(target.p[i] > ' ' && target.p[i] < 0x7f);
}

/* The charset comes last, and once. */
static void
check_type(struct text in)
{
	static const struct text charset = TEXT("koi8-r"), tail = TEXT("; charset=koi8-r");
	char *dst = malloc(in.n + charset.n + MEDIA_TYPE_MORE);
	struct text out;

	must(dst != NULL);
	out = (struct text){ dst, media_type_charset(dst, in, charset) };
	must(out.n <= in.n + charset.n + MEDIA_TYPE_MORE);
	must(text_istarts(in, TEXT("text/")) ? text_ends(out, tail) : text_eq(in, out));
	free(dst);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n };
	enum control_value kind;

	for (kind = CONTROL_PATH; kind <= CONTROL_BACKEND; kind++)
		(void)control_fault(kind, in);
	(void)control_find(in);
	must(control_find(in) == CONTROLS || header_is_control(in));
	check_pieces(in);
	check_url(in);
	check_type(in);
	return (0);
}
