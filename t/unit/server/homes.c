/* t/unit/server/homes.c -- homes of users from the text of /etc/passwd. */
#include <stdlib.h>
#include <string.h>
#include "server/config/check/homes.h"
#include "t/unit/test.h"

static const char *
home(const char *passwd, const char *user)
{
	static char found[256];
	g_autofree char *copy = g_strdup(passwd); /* sanitizers see a read past its end */
	struct homes *h = homes_new((struct text){ copy, strlen(passwd) });
	const char *dir = homes_find(h, text_of(user));

	g_strlcpy(found, dir != NULL ? dir : "", sizeof(found));
	homes_free(h);
	return (dir != NULL ? found : NULL);
}

TEST("/homes/lines-are-read")
{
	static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
				     "joe:x:1000:1000:Joe,,,:/home/joe:/bin/sh\n"
				     "last:x:1:1::/home/last:";

	g_assert_cmpstr(home(passwd, "root"), ==, "/root");
	g_assert_cmpstr(home(passwd, "joe"), ==, "/home/joe");
	g_assert_cmpstr(home(passwd, "last"), ==, "/home/last");
	g_assert_null(home(passwd, "jo"));
	g_assert_null(home(passwd, "joe:"));
	g_assert_null(home(passwd, ""));
}

TEST("/homes/odd-lines-have-no-home")
{
	static const char *const odd[] = { "", "\n\n", "joe", "joe:", "joe:x:1:1::/home/joe",
		"joe:x:1:1:::/bin/sh", "joe:x:1:1::home/joe:/bin/sh", "joe:x:1:1::/:/bin/sh",
		":x:1:1::/home/joe:/bin/sh", "joe:x:1:1::/home/joe:/bin/sh:more",
		"+joe::::::", "#joe:x:1:1::/home/joe:/bin/sh" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(odd) - 4; i++)
		g_assert_null(home(odd[i], "joe"));
	/* what is after the last field belongs to it */
	g_assert_cmpstr(home(odd[9], "joe"), ==, "/home/joe");
	g_assert_null(home(odd[10], "joe"));
	g_assert_null(home(odd[11], "joe"));
}

TEST("/homes/the-first-line-counts")
{
	g_assert_cmpstr(home("a:x:1:1::/one:\na:x:2:2::/two:\n", "a"), ==, "/one");
}

TEST("/homes/long-and-missing-names")
{
	struct homes *h = homes_new(TEXT("a:x:1:1::/a:/bin/sh\n"));
	char name[300];

	memset(name, 'a', sizeof(name));
	g_assert_null(homes_find(h, (struct text){ name, sizeof(name) }));
	g_assert_null(homes_find(h, (struct text){ name, 255 }));
	g_assert_cmpstr(homes_find(h, (struct text){ name, 1 }), ==, "/a");
	g_assert_null(homes_find(NULL, TEXT("a")));
	homes_free(h);
	homes_free(NULL);
}

TEST("/homes/lists-of-users")
{
	struct text joe = TEXT("joe"), root = TEXT("root");
	struct conf c = { .userdir_exclude = { 1, &root } };

	g_assert_true(homes_allowed(&c, joe));
	g_assert_false(homes_allowed(&c, root));
	g_assert_true(homes_allowed(&c, TEXT("roo")));
	c.userdir_include = (struct conf_list){ 1, &joe };
	g_assert_true(homes_allowed(&c, joe));
	g_assert_false(homes_allowed(&c, TEXT("jan")));
	c.userdir_include = (struct conf_list){ 1, &root };
	g_assert_false(homes_allowed(&c, root));
}
