/* t/fuzz/fuzz_pattern.c -- "regex LF replacement LF subject LF capture": what comes out is
 * printable on one line and not too long. */
#include "base/buf.h"
#include "base/match.h"
#include "base/must.h"
#include "server/config/config.h"
#include "server/module/pattern.h"
#include "wire/urlpath.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("^/a/(.*)$\n/b/$1?x=%1\n/a/b%20c?d\nwww"),
	SEED("(.)(.)\n${esc:1}${escnde:2}${escpsnde:0}\n/%41%2f\n\r"),
	SEED(".\n${url.scheme}://${url.authority}${url.path}${qsa}\n/\n"),
	SEED("(.*)\n${tolower:1}${toupper:1}${encb64u:1}${decb64u:1}\n/aB%2f\n"),
	SEED("x\n$$%%$%{19}${19}\nx\n%00"),
	SEED("a\n${foo}\na\n"),
	{ NULL, 0 },
};

/* With a NUL after it, as a configuration has it. */
static struct text
line_of(struct text *in, char *store, size_t size)
{
	struct text t = TEXT("");

	text_next(in, '\n', &t);
	t.n = t.n < size - 1 ? t.n : size - 1;
	if (t.n != 0)
		memcpy(store, t.p, t.n);
	store[t.n] = '\0';
	return ((struct text){ store, t.n });
}

static void
check(const struct patterns *ps, const struct pattern_input *in)
{
	struct buf out;
	size_t rule, i;

	buf_init(&out, 0);
	if (patterns_apply(ps, in, &out, &rule) == PATTERN_MADE) {
		must(out.n <= PATTERN_MAX && rule == 0);
		for (i = 0; i < out.n; i++)
			must(out.p[i] > ' ' && out.p[i] < 0x7f);
	}
	buf_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n }, cond[MATCH_CAPTURES] = { TEXT_NONE };
	char regex[256], replacement[1024], err[256] = "";
	struct conf_pair pair = { .key = line_of(&in, regex, sizeof(regex)),
		.value = line_of(&in, replacement, sizeof(replacement)) };
	struct conf_map map = { .n = 1, .v = &pair };
	struct pattern_input input = { .scheme = TEXT("http"),
		.authority = TEXT("h.org"),
		.path = TEXT("/p"),
		.cond = cond };
	struct patterns *ps = patterns_new(&map, err, sizeof(err));

	must((ps == NULL) == (err[0] != '\0'));
	if (ps == NULL)
		return (0);
	text_next(&in, '\n', &input.subject);
	input.query = input.subject;
	if (in.p != NULL)
		cond[0] = cond[1] = in;
	check(ps, &input);
	input.cond_decoded = true;
	check(ps, &input);
	patterns_free(ps);
	return (0);
}
