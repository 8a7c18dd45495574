/* server/config_source.c -- where configuration text comes from: files, patterns, commands.
 *
 * At start-up and reload only; may block.  stdio, because no event loop runs here.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "server/config_impl.h"

/* Reads to the end into src->bytes.  0 or -errno; -EFBIG beyond the bounds. */
static int
read_all(struct config *cfg, FILE *f, struct cfg_source *src)
{
	struct buf b;
	char piece[16384];
	size_t n;
	int err = 0;

	buf_init(&b, CFG_FILE_MAX);
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0 && !b.failed)
		buf_add(&b, piece, n);
	if (ferror(f))
		err = errno != 0 ? -errno : -EIO;
	cfg->bytes += b.n;
	if (b.failed || cfg->bytes > CFG_TOTAL_MAX)
		err = -EFBIG;
	src->bytes = buf_as_text(&b);   /* given away; cfg_source_free() frees it */
	return (err);
}

static const char *
read_error(int err)
{
	return (err == -EFBIG ? "too large for a configuration" : g_strerror(-err));
}

/* "" as the place of the main file: it has none. */
static bool
source_error(struct config *cfg, struct cfg_pos pos, const char *what, const char *why)
{
	if (pos.file == NULL)
		pos = (struct cfg_pos){what, 1, 1};
	return (cfg_error(cfg, pos, "cannot read %s: %s", what, why));
}

static bool
nesting_ok(struct config *cfg, struct cfg_pos pos, struct cfg_source *src)
{
	struct cfg_source *s;

	if (src->outer == NULL)
		return (true);
	src->depth = src->outer->depth + 1;
	if (src->depth > CFG_INCLUDE_MAX)
		return (cfg_error(cfg, pos, "more than %u files include each other", CFG_INCLUDE_MAX));
	for (s = src->outer; s != NULL && src->real != NULL; s = s->outer)
		if (s->real != NULL && strcmp(s->real, src->real) == 0)
			return (cfg_error(cfg, pos, "%s includes itself", src->name));
	return (true);
}

static const char *
lasting(struct config *cfg, const char *s)
{
	return (cfg_value_str(cfg, text_of(s))->str.p); /* positions point to it as long as cfg lives */
}

bool
cfg_source_file(struct config *cfg, struct cfg_pos pos, const char *path, struct cfg_source *outer,
    struct cfg_source *src)
{
	FILE *f;
	int err;

	*src = (struct cfg_source){.name = lasting(cfg, path), .outer = outer};
	errno = 0;
	f = strcmp(path, "-") == 0 && outer == NULL ? stdin : fopen(path, "re");
	if (f == NULL)
		return (source_error(cfg, pos, path, g_strerror(errno)));
	if (f != stdin)
		src->real = realpath(path, NULL);
	if (!nesting_ok(cfg, pos, src))
		err = 0;
	else if ((err = read_all(cfg, f, src)) != 0)
		source_error(cfg, pos, path, read_error(err));
	if (f != stdin)
		fclose(f);
	return (err == 0 && cfg->errors == 0);
}

/* ---------------------------------------------------------------- include_shell */

static bool
shell_start(struct config *cfg, const char *command, GPid *pid, FILE **out, GError **err)
{
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)command, NULL};
	int fd;

	if (!g_spawn_async_with_pipes(cfg->dir, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, pid, NULL, &fd,
	    NULL, err))
		return (false);
	*out = fdopen(fd, "r");
	return (*out != NULL);
}

bool
cfg_source_shell(struct config *cfg, struct cfg_pos pos, const char *command, struct cfg_source *outer,
    struct cfg_source *src)
{
	char *name = g_strdup_printf("output of `%s`", command);
	GError *err = NULL;
	FILE *f = NULL;
	GPid pid = 0;
	int status = 0, res;

	*src = (struct cfg_source){.name = lasting(cfg, name), .outer = outer};
	g_free(name);
	if (cfg->sandboxed)
		return (cfg_error(cfg, pos, "include_shell is off here"));
	if (!nesting_ok(cfg, pos, src))
		return (false);
	if (!shell_start(cfg, command, &pid, &f, &err)) {
		source_error(cfg, pos, src->name, err != NULL ? err->message : "no descriptor");
		g_clear_error(&err);
		return (false);
	}
	res = read_all(cfg, f, src);
	fclose(f);                      /* one that still writes gets SIGPIPE */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	g_spawn_close_pid(pid);
	if (res != 0)
		return (source_error(cfg, pos, src->name, read_error(res)));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return (cfg_error(cfg, pos, "the command `%s` failed with status %d", command,
		    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
	return (true);
}

void
cfg_source_free(struct cfg_source *src)
{
	free(src->real);
	free((char *)src->bytes.p);
}

/* ---------------------------------------------------------------- include */

static bool
is_pattern(const char *s)
{
	return (strpbrk(s, "*?[") != NULL);
}

/* Nothing may match a pattern: an empty conf.d is no mistake. */
char **
cfg_source_paths(struct config *cfg, struct cfg_pos pos, const char *pattern)
{
	char *full, **paths = NULL;
	glob_t g;
	int res;

	if (cfg->sandboxed) {
		cfg_error(cfg, pos, "include is off here");
		return (NULL);
	}
	full = pattern[0] == '/' || cfg->dir == NULL ? g_strdup(pattern) : g_build_filename(cfg->dir, pattern, NULL);
	if (!is_pattern(pattern)) {
		paths = g_new0(char *, 2);
		paths[0] = full;
		return (paths);
	}
	res = glob(full, 0, NULL, &g);
	if (res == 0)
		paths = g_strdupv(g.gl_pathv);
	else if (res == GLOB_NOMATCH)
		paths = g_new0(char *, 1);
	else
		cfg_error(cfg, pos, "cannot read the directory of %s", full);
	if (res == 0)
		globfree(&g);
	g_free(full);
	return (paths);
}
