/* t/fuzz/fuzz_htpasswd.c -- any bytes as files of users and groups; the first line names the user.
 * A secret is a part of one line, and belongs to that user. */
#include "base/must.h"
#include "t/fuzz/fuzz.h"
#include "wire/user_file.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("joe\njoe:$apr1$AZixn0Os$gF4vpC0jaBMPhMjw3L8hI1\nann:{SHA}x:comment\n"),
	SEED("joe\njoe:r:0123456789abcdef0123456789abcdef\r\n# x\n\n"),
	SEED("joe\ng: ann, joe\n"),
	{ NULL, 0 },
};

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text bytes = { (const char *)p, n }, rest = bytes, user, t;
	struct user_query q = { .realm = TEXT("r"), .digits = 32 };
	unsigned format;

	if (!text_next(&rest, '\n', &user) || rest.p == NULL)
		return (0);
	q.user = user;
	for (format = USERS_PLAIN; format <= USERS_HTDIGEST; format++) {
		q.format = (enum user_format)format;
		t = user_file_find(rest, &q);
		must(t.p == NULL || (t.p >= rest.p && t.p + t.n <= rest.p + rest.n));
		must(t.n == 0 || memchr(t.p, '\n', t.n) == NULL);
		must(t.p == NULL || user_file_any(rest, &q).p != NULL);
	}
	(void)group_file_has(rest, TEXT("g"), user);
	return (0);
}
