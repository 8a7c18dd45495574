/* server/config/record_read.c -- asks the system; may block.  It uses stdio, because no event loop
 * runs here.
 */
#include <errno.h>
#include <glib.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "proxy-core/address.h"
#include "server/config/record.h"

static void
add(struct source *is, struct buf *b, const void *p, size_t n)
{
	size_t before = b->n;

	buf_add(b, p, n);
	if (b->failed && is->err == 0)
		is->err = n > SOURCES_FILE_MAX - before ? -EFBIG : -ENOMEM;
}

static void
read_all(FILE *f, struct source *is)
{
	struct buf b;
	char piece[16384];
	size_t n;

	buf_init(&b, SOURCES_FILE_MAX);
	errno = 0;
	while (is->err == 0 && (n = fread(piece, 1, sizeof(piece), f)) > 0)
		add(is, &b, piece, n);
	if (is->err == 0 && ferror(f))
		is->err = errno != 0 ? -errno : -EIO;
	is->bytes = buf_as_text(&b); /* source_free() frees it */
}

static void
read_file(const char *path, struct source *is)
{
	FILE *f;

	errno = 0;
	f = fopen(path, "re");
	if (f == NULL) {
		is->err = -errno;
		return;
	}
	is->extra = realpath(path, NULL);
	read_all(f, is);
	fclose(f);
}

static void
run_shell(const char *command, const char *dir, struct source *is)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)command, NULL };
	GError *err = NULL;
	GPid pid;
	FILE *f;
	int fd;

	if (!g_spawn_async_with_pipes(dir, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid,
		NULL, &fd, NULL, &err)) {
		is->err = -ECHILD;
		is->extra = strdup(err->message);
		g_clear_error(&err);
		return;
	}
	f = fdopen(fd, "r");
	if (f != NULL) {
		read_all(f, is);
		fclose(f); /* a command that still writes gets SIGPIPE */
	} else {
		is->err = -errno;
		close(fd);
	}
	while (waitpid(pid, &is->status, 0) < 0 && errno == EINTR)
		;
	g_spawn_close_pid(pid);
}

static void
match_pattern(const char *pattern, struct source *is)
{
	struct buf b;
	glob_t g;
	size_t i;
	int res = glob(pattern, 0, NULL, &g);

	if (res != 0) {
		is->err = res == GLOB_NOMATCH ? 0 : res == GLOB_NOSPACE ? -ENOMEM : -EIO;
		return;
	}
	buf_init(&b, SOURCES_FILE_MAX);
	for (i = 0; i < g.gl_pathc; i++)
		add(is, &b, g.gl_pathv[i], strlen(g.gl_pathv[i]) + 1);
	globfree(&g);
	is->bytes = buf_as_text(&b);
}

static void
look_up(const char *spec, struct source *is)
{
	struct address v[ADDRESS_MAX];
	char why[512] = "";
	struct buf b;
	int n;

	n = address_lookup(spec, v, why, sizeof(why));
	if (n < 0) {
		is->err = n;
		is->extra = strdup(why);
		return;
	}
	buf_init(&b, SOURCES_FILE_MAX);
	add(is, &b, v, (size_t)n * sizeof(v[0]));
	is->bytes = buf_as_text(&b);
}

struct source
source_read(enum source_kind kind, const char *key, const char *dir)
{
	struct source is = { 0 };

	switch (kind) {
	case SOURCE_STDIN: read_all(stdin, &is); break;
	case SOURCE_FILE: read_file(key, &is); break;
	case SOURCE_SHELL: run_shell(key, dir, &is); break;
	case SOURCE_GLOB: match_pattern(key, &is); break;
	case SOURCE_HOST: look_up(key, &is); break;
	case SOURCE_KINDS: break;
	}
	return (is);
}
