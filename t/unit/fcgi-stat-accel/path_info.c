/* The file in a name that goes on after it. */
#include "fcgi-stat-accel/path_info.h"
#include "t/unit/test.h"

#include <errno.h>
#include <string.h>

/* The answer of a disk for the first n bytes of name; its first `file` bytes are a file. */
static struct warm_found
judge(size_t n, size_t file, bool index)
{
	if (n > file)
		return ((struct warm_found){ .err = -ENOTDIR });
	if (n == file)
		return ((struct warm_found){ 0 });
	if (n < 4)
		return ((struct warm_found){ .err = -EXDEV }); /* above the root */
	return (index ? (struct warm_found){ .index = "index.html" }
		      : (struct warm_found){ .err = -EISDIR });
}

/* Returns the number of look-ups until the file is found. */
static guint
search(const char *text, size_t file, bool index)
{
	g_autoptr(GString) name = g_string_new(text);
	struct path_info s = { 0 };
	struct warm_found found;
	guint n = 0;

	do {
		n++;
		g_assert_cmpuint(n, <, 100);
		found = judge(s.at != 0 ? s.at : name->len, file, index);
	} while (path_info_next(&s, name, &found));
	g_assert_cmpint(found.err, ==, 0);
	g_assert_null(found.index);
	g_assert_cmpuint(s.at != 0 ? s.at : name->len, ==, file);
	return (n);
}

TEST("/path_info/file")
{
	static const char name[] = "/a/bc/d//e/f/";

	for (size_t i = 1; i <= strlen(name); i++)
		if (name[i] == '/' || name[i] == '\0') {
			search(name, i, false);
			search(name, i, true);
		}
}

/* A long path info costs few look-ups. */
TEST("/path_info/long")
{
	char name[4096];

	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 2 == 0 ? '/' : 'x';
	name[sizeof(name) - 1] = '\0';
	for (size_t file = 2; file < sizeof(name) - 1; file += 2)
		g_assert_cmpuint(search(name, file, false), <=, 1 + 2 * 12);
	memset(name + 100, 'x', sizeof(name) - 101);
	search(name, 50, false);
}

TEST("/path_info/ends")
{
	static const int errs[] = { 0, -ENOENT, -EACCES, -EISDIR, -ETIMEDOUT, -EPERM };
	g_autoptr(GString) name = g_string_new("/a/b");
	struct path_info s;

	for (guint i = 0; i < G_N_ELEMENTS(errs); i++) {
		s = (struct path_info){ 0 };
		g_assert_false(path_info_next(&s, name, &(struct warm_found){ .err = errs[i] }));
		g_assert_cmpuint(s.at, ==, 0);
	}
	/* all of it is after a file that is gone now */
	g_assert_true(path_info_next(&s, name, &(struct warm_found){ .err = -ENOTDIR }));
	g_assert_cmpuint(s.at, ==, 2);
	g_assert_false(path_info_next(&s, name, &(struct warm_found){ .err = -ENOTDIR }));
	g_assert_cmpuint(s.at, ==, 0);
}
