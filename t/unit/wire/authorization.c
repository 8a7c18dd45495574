/* t/unit/wire/authorization.c -- Authorization, and the lines of files of users. */
#include "base/must.h"
#include "t/unit/test.h"
#include "wire/authorization.h"
#include "wire/user_file.h"

static const struct {
	struct text value;
	enum authorization_kind kind;
	const char *user, *password;
} rows[] = {
	{ TEXT("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), AUTHORIZATION_BASIC, "Aladdin",
	    "open sesame" }, /* RFC 7617, 2 */
	{ TEXT("basic  am9lOnB3"), AUTHORIZATION_BASIC, "joe", "pw" },
	{ TEXT("Basic am9lOmE6Yg=="), AUTHORIZATION_BASIC, "joe", "a:b" },
	{ TEXT("Basic am9lOg=="), AUTHORIZATION_BASIC, "joe", "" },
	{ TEXT("Basic am9lOg="), AUTHORIZATION_BAD, NULL, NULL },
	{ TEXT("Basic am9lOh=="), AUTHORIZATION_BAD, NULL, NULL }, /* bits after the end */
	{ TEXT("Basic am9l"), AUTHORIZATION_BAD, NULL, NULL },
	{ TEXT("Basic OnB3"), AUTHORIZATION_BAD, NULL, NULL },
	{ TEXT("Basic ===="), AUTHORIZATION_BAD, NULL, NULL },
	{ TEXT("Basic am9l OnB3"), AUTHORIZATION_BAD, NULL, NULL },
	{ TEXT("Basic"), AUTHORIZATION_OTHER, NULL, NULL }, /* no credentials: they are asked for */
	{ TEXT("Digest "), AUTHORIZATION_OTHER, NULL, NULL },
	{ TEXT(""), AUTHORIZATION_OTHER, NULL, NULL },
	{ TEXT("\"Basic\""), AUTHORIZATION_BAD, NULL, NULL },
	{ TEXT("Basic\tam9lOnB3"), AUTHORIZATION_BAD, NULL, NULL },
	{ TEXT("Bearer x"), AUTHORIZATION_OTHER, NULL, NULL },
	{ TEXT("Digest username=\"a\\\"b\", realm=\"r\", nonce=n, uri=\"/\", response=\"1\""),
	    AUTHORIZATION_DIGEST, "a\"b", NULL },
	{ TEXT("Digest , username=\"j\" ,realm = \"\",nonce=\"\",uri=\"\",response=\"\",,x=y"),
	    AUTHORIZATION_DIGEST, "j", NULL },
	{ TEXT("Digest username=\"j\", realm=\"r\", nonce=n, uri=\"/\""), AUTHORIZATION_BAD, NULL,
	    NULL },
	{ TEXT("Digest username=\"j\", realm=\"r\", nonce=n, uri=\"/\", response=1, nonce=m"),
	    AUTHORIZATION_BAD, NULL, NULL },
	{ TEXT("Digest username*=UTF-8''j, username=\"j\", realm=\"r\", nonce=n, uri=\"/\", "
	       "response=1"),
	    AUTHORIZATION_BAD, NULL, NULL },
	{ TEXT("Digest username=\"j, realm=r"), AUTHORIZATION_BAD, NULL, NULL },
	{ TEXT("Digest username=\"j\\"), AUTHORIZATION_BAD, NULL, NULL },
};

TEST("/authorization/rows")
{
	struct authorization a;
	size_t i;

	for (i = 0; i < NELEM(rows); i++) {
		g_test_message("%s", rows[i].value.p);
		g_assert_cmpint((int)authorization_read(rows[i].value, &a), ==, (int)rows[i].kind);
		if (rows[i].user != NULL)
			g_assert_cmpstr(a.user.p, ==, rows[i].user);
		if (rows[i].password != NULL)
			g_assert_cmpstr(a.password.p, ==, rows[i].password);
	}
}

/* Each beginning of a value is read or refused; the longest value fits the store. */
TEST("/authorization/beginnings")
{
	static char longest[AUTHORIZATION_MAX + 1];
	struct authorization a;
	size_t i, n;

	for (i = 0; i < NELEM(rows); i++)
		for (n = 0; n < rows[i].value.n; n++)
			(void)authorization_read((struct text){ rows[i].value.p, n }, &a);
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "Digest x=\"", 10);
	longest[AUTHORIZATION_MAX - 1] = '"';
	g_assert_cmpint((int)authorization_read((struct text){ longest, AUTHORIZATION_MAX }, &a),
	    ==, AUTHORIZATION_BAD);
	g_assert_cmpint((int)authorization_read((struct text){ longest, AUTHORIZATION_MAX + 1 },
			    &a),
	    ==, AUTHORIZATION_BAD);
}

static void
check_secret(struct text bytes, const struct user_query *q, const char *want)
{
	struct text t = user_file_find(bytes, q);

	if (want == NULL)
		g_assert_null(t.p);
	else
		g_assert_true(text_eq(t, text_of(want)));
}

TEST("/authorization/files")
{
	const struct text plain = TEXT("# joe:no\n\njoe:a:b\r\njoe:second\nann\n:x\nbob:");
	const struct text digest = TEXT("joe:r:zz\njoe:r:0123456789abcdef0123456789ABCDEF\n");
	struct user_query q = { USERS_PLAIN, TEXT("joe"), TEXT("r"), 32 };

	check_secret(plain, &q, "a:b");
	q.format = USERS_HTPASSWD;
	check_secret(plain, &q, "a");
	q.user = TEXT("bob");
	check_secret(plain, &q, "");
	q.user = TEXT("ann");
	check_secret(plain, &q, NULL);
	q = (struct user_query){ USERS_HTDIGEST, TEXT("joe"), TEXT("r"), 32 };
	check_secret(digest, &q, "0123456789abcdef0123456789ABCDEF");
	q.digits = 64;
	check_secret(digest, &q, NULL);
	g_assert_true(group_file_has(TEXT("g: a b,c\n"), TEXT("g"), TEXT("c")));
	g_assert_true(group_file_has(TEXT("#g:x\ng : a\n"), TEXT("g"), TEXT("a")));
	g_assert_false(group_file_has(TEXT("g: ab\nh: a\n"), TEXT("g"), TEXT("a")));
	g_assert_false(group_file_has(TEXT("g: ,\n"), TEXT("g"), TEXT("")));
}
