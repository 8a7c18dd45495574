/* t/unit/server/cgi.c -- what a runner of the helper lets a worker run, if an intruder has that. */
#include <glib/gstdio.h>
#include <signal.h>
#include "server/helper/cgi.h"
#include "server/helper/wire.h"
#include "t/unit/test.h"
#include "wire/codec/codec.h"
#include "wire/codec/fcgi.h"

static char *dir;
static GPtrArray *names;

static void
name(enum helper_kind kind, const char *text, bool links)
{
	struct helper_name *n = g_new0(struct helper_name, 1);

	n->kind = kind;
	n->set_mode = links;
	g_strlcpy(n->name, text, sizeof(n->name));
	g_ptr_array_add(names, n);
}

static char *
put(const char *file, int mode)
{
	char *path = g_build_filename(dir, file, NULL);

	g_assert_true(g_file_set_contents(path, "#!/bin/sh\n", -1, NULL));
	g_assert_cmpint(g_chmod(path, mode), ==, 0);
	return (path);
}

static void
set_up(void)
{
	g_autofree char *www = NULL, *link = NULL, *out = NULL;

	dir = g_dir_make_tmp("accel-cgi-XXXXXX", NULL);
	g_assert_nonnull(dir);
	www = g_build_filename(dir, "www", NULL);
	g_assert_cmpint(g_mkdir(www, 0755), ==, 0);
	g_free(put("www/a.cgi", 0755));
	g_free(put("www/a.pl", 0644));
	g_free(put("www/a.jpg", 0755));
	out = put("out.cgi", 0755);
	link = g_build_filename(www, "link.cgi", NULL);
	g_assert_cmpint(symlink(out, link), ==, 0);
	names = g_ptr_array_new_with_free_func(g_free);
	name(HELPER_CGI_PROGRAM, "/usr/bin/perl\t.pl", false);
	name(HELPER_CGI_PROGRAM, "\t.cgi", false);
	name(HELPER_CGI_VARIABLE, "STAGE", false);
	name(HELPER_CGI_ROOT, www, false);
}

/* ---------------------------------------------------------------- what may run */

static int
check(const char *program, const char *script, bool x_only)
{
	g_autofree char *path = g_build_filename(dir, script, NULL);
	struct cgi_job job = { .program = program, .script = path, .x_only = x_only };
	const char *why;

	return (cgi_job_check(&job, names, &why));
}

TEST("/cgi/scripts")
{
	g_assert_cmpint(check("", "www/a.cgi", false), ==, 0);
	g_assert_cmpint(check("/usr/bin/perl", "www/a.pl", false), ==, 0);
	g_assert_cmpint(check("/usr/bin/perl", "www/a.pl", true), ==, 403); /* no x bit */
	g_assert_cmpint(check("", "www/absent.cgi", false), ==, 404);
	g_assert_cmpint(check("", "www/a.cgi/x.cgi", false), ==, 404);
	g_assert_cmpint(check("/bin/sh", "www/a.pl", false), ==, 403); /* another interpreter */
	g_assert_cmpint(check("/usr/bin/perl", "www/a.cgi", false), ==, 403); /* another ending */
	g_assert_cmpint(check("", "www/a.pl", false), ==, 403);
	g_assert_cmpint(check("", "www/a.jpg", false), ==, 403);
	g_assert_cmpint(check("", "out.cgi", false), ==, 403); /* outside */
	g_assert_cmpint(check("", "www/../out.cgi", false), ==, 403);
	g_assert_cmpint(check("", "www.cgi", false), ==, 404);
}

TEST("/cgi/links")
{
	struct helper_name *root = g_ptr_array_index(names, names->len - 1);

	g_assert_cmpint(check("", "www/link.cgi", false), ==, 403);
	root->set_mode = true;
	g_assert_cmpint(check("", "www/link.cgi", false), ==, 0);
	g_assert_cmpint(check("", "www/../out.cgi", false), ==, 403);
	root->set_mode = false;
}

/* ---------------------------------------------------------------- variables */

static void
pair(struct buf *b, const char *n, const char *v)
{
	char len[4];

	buf_add(b, len, fcgi_length(len, strlen(n)));
	buf_add(b, len, fcgi_length(len, strlen(v)));
	buf_str(b, n);
	buf_str(b, v);
}

TEST("/cgi/variables")
{
	static const char *const want[] = { "SCRIPT_FILENAME=/a.cgi", "HTTP_X=1", "STAGE=test",
		"QUERY_STRING=", NULL };
	struct cgi_job job;
	struct buf b;
	int i;

	buf_init(&b, 0);
	pair(&b, "SCRIPT_FILENAME", "/a.cgi");
	pair(&b, "LD_PRELOAD", "/tmp/x.so");
	pair(&b, "PERL5OPT", "-e1");
	pair(&b, "HTTP_X", "1");
	pair(&b, "HTTP_PROXY", "http://x");
	pair(&b, "STAGE", "test");
	pair(&b, "QUERY_STRING", "");
	pair(&b, CGI_PROGRAM, "");
	pair(&b, CGI_RUN_MS, "1500");
	pair(&b, CGI_SIGNAL, "1");
	g_assert_cmpint(cgi_job_read(buf_as_text(&b), names, &job), ==, 0);
	for (i = 0; want[i] != NULL; i++)
		g_assert_cmpstr(job.env[i], ==, want[i]);
	g_assert_null(job.env[i]);
	g_assert_cmpuint(job.run_ms, ==, 1500);
	g_assert_cmpint(job.signal, ==, SIGHUP);
	g_assert_cmpstr(job.program, ==, "");
	g_strfreev(job.env);
	g_free((char *)(uintptr_t)job.program);
	g_free((char *)(uintptr_t)job.script);
	buf_free(&b);
}

TEST("/cgi/malformed")
{
	static const char *const script[] = { "a.cgi", "", "/a\0b" };
	struct cgi_job job;
	struct buf b;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(script); i++) {
		buf_init(&b, 0);
		pair(&b, CGI_PROGRAM, "");
		if (i < 2)
			pair(&b, "SCRIPT_FILENAME", script[i]);
		else
			buf_add(&b, "\1\2A\0B", 5);
		g_assert_cmpint(cgi_job_read(buf_as_text(&b), names, &job), ==, -EINVAL);
		g_strfreev(job.env);
		g_free((char *)(uintptr_t)job.program);
		g_free((char *)(uintptr_t)job.script);
		buf_free(&b);
	}
}

static void
tear_down(void)
{
	static const char *const files[] = { "www/a.cgi", "www/a.pl", "www/a.jpg", "www/link.cgi",
		"out.cgi", "www", "" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(files); i++) {
		g_autofree char *path = g_build_filename(dir, files[i], NULL);

		g_assert_cmpint(g_remove(path), ==, 0);
	}
	g_ptr_array_free(names, TRUE);
	g_free(dir);
}

int
main(int argc, char **argv)
{
	int rc;

	g_test_init(&argc, &argv, NULL);
	set_up();
	rc = tests_run();
	tear_down();
	return (rc);
}
