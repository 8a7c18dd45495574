/* t/unit/server/mime.c -- the media type of a file name: assigned suffixes, the table of the
 * system, the built-in one. */
#include <glib/gstdio.h>
#include "base/must.h"
#include "server/config/check/mime.h"
#include "t/unit/test.h"

static struct mime *
make(struct conf_pair *pairs, size_t n, const char *types_file)
{
	struct conf_map assign = { n, pairs };
	struct text types = TEXT_NONE;
	char err[256], *bytes = NULL;
	struct mime *m;
	gsize size;

	if (types_file != NULL && g_file_get_contents(types_file, &bytes, &size, NULL))
		types = (struct text){ bytes, size };
	m = mime_new(&assign, types, err, sizeof(err));
	g_assert_nonnull(m);
	g_free(bytes);
	return (m);
}

#define is(m, path, want)                                         \
	do {                                                      \
		struct text got_ = mime_type((m), text_of(path)); \
		g_assert_cmpstr(got_.p, ==, (want));              \
		g_assert_cmpuint(got_.n, ==, strlen(want));       \
	} while (0)

static char *
types_file(const char *content)
{
	char *path;
	int fd;

	fd = g_file_open_tmp("mime-XXXXXX", &path, NULL);
	g_assert_cmpint(fd, >=, 0);
	g_close(fd, NULL);
	g_assert_true(g_file_set_contents(path, content, -1, NULL));
	return (path);
}

TEST("/mime/assigned-suffixes-first-match-wins")
{
	struct conf_pair p[] = {
		{ .key = TEXT(".tar.gz"), .value = TEXT("application/x-tgz") },
		{ .key = TEXT(".gz"), .value = TEXT("application/x-gz") },
		{ .key = TEXT("README"), .value = TEXT("text/plain; charset=utf-8") },
		{ .key = TEXT(".gz"), .value = TEXT("never/reached") },
	};
	struct mime *m = make(p, NELEM(p), NULL);

	is(m, "a/b.tar.gz", "application/x-tgz");
	is(m, "a/b.gz", "application/x-gz");
	is(m, "B.GZ", "application/x-gz");
	is(m, "dir/README", "text/plain; charset=utf-8");
	is(m, ".gz", "application/x-gz");
	is(m, "x.png", "image/png"); /* not assigned: asked further down */
	mime_free(m);
}

TEST("/mime/empty-suffix-is-the-default")
{
	struct conf_pair p[] = {
		{ .key = TEXT(""), .value = TEXT("text/x-default") },
		{ .key = TEXT(".html"), .value = TEXT("text/html") },
	};
	struct mime *m = make(p, NELEM(p), NULL);

	is(m, "a.html", "text/html"); /* the empty suffix comes last wherever it stands */
	is(m, "a.png", "text/x-default");
	is(m, "a", "text/x-default");
	mime_free(m);
}

TEST("/mime/system-table-by-last-extension")
{
	g_autofree char *path = types_file("# comment\n"
					   "text/html\t\t\thtml htm\r\n"
					   "application/x-none\n"
					   "text/x-second html\n"
					   "#image/png png\n"
					   "  chemical/x-odd   ODD\n"
					   "bad/\001type ctl\n"
					   "text/x-last last");
	struct mime *m = make(NULL, 0, path);

	is(m, "a.html", "text/html");
	is(m, "A.HTM", "text/html");
	is(m, "a.odd", "chemical/x-odd");
	is(m, "a.last", "text/x-last"); /* no newline at the end of the file */
	is(m, "a.png", "application/octet-stream");
	is(m, "a.ctl", "application/octet-stream");
	is(m, "a.b.c/html", "application/octet-stream");
	is(m, "a.html/x", "application/octet-stream");
	is(m, "html", "application/octet-stream");
	is(m, "", "application/octet-stream");
	is(m, "trailing.", "application/octet-stream");
	is(m, "x.an-extension-that-nobody-ever-registered-anywhere", "application/octet-stream");
	mime_free(m);
	g_remove(path);
}

TEST("/mime/built-in-table-without-system-file")
{
	struct mime *m = make(NULL, 0, "/nonexistent/mime.types");

	is(m, "index.html", "text/html");
	is(m, "a.JPEG", "image/jpeg");
	is(m, "a.woff2", "font/woff2");
	is(m, "a.tar.gz", "application/gzip");
	is(m, "a.unheard-of", "application/octet-stream");
	mime_free(m);
}

TEST("/mime/types-that-would-split-a-head-are-refused")
{
	struct conf_pair split = { .key = TEXT(".x"), .value = TEXT("text/plain\r\nX-Evil: 1") };
	struct conf_pair empty = { .key = TEXT(".x"), .value = TEXT("") };
	char err[256];

	g_assert_null(mime_new(&(struct conf_map){ 1, &split }, TEXT_NONE, err, sizeof(err)));
	g_assert_nonnull(strstr(err, "\".x\" holds a control character"));
	g_assert_null(mime_new(&(struct conf_map){ 1, &empty }, TEXT_NONE, err, sizeof(err)));
	g_assert_nonnull(strstr(err, "is empty"));
	mime_free(NULL);
}
