/* server/config/language/source.c -- reads configuration text: files, patterns, commands, all
 * through server/config/record.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "server/config/impl.h"

_Static_assert(CFG_TOTAL_MAX == 16u << 20 && SOURCES_FILE_MAX == CFG_TOTAL_MAX, "as below");

static const char *
read_error(int err)
{
	return (err == -EFBIG ? "too large for a configuration, whose files have at most 16 MiB"
			      : g_strerror(-err));
}

/* The position of the main file is "": no other file names it. */
static bool
source_error(struct config *cfg, struct cfg_pos pos, const char *what, const char *why)
{
	if (pos.file == NULL)
		pos = (struct cfg_pos){ what, 1, 1 };
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
		return (
		    cfg_error(cfg, pos, "more than %u files include each other", CFG_INCLUDE_MAX));
	for (s = src->outer; s != NULL && src->real != NULL; s = s->outer)
		if (s->real != NULL && strcmp(s->real, src->real) == 0)
			return (cfg_error(cfg, pos, "%s includes itself", src->name));
	return (true);
}

static const char *
lasting(struct config *cfg, const char *s)
{
	/* positions point to it as long as cfg lives */
	return (cfg_value_str(cfg, text_of(s))->str.p);
}

/* Takes an answer; false: reported. */
static bool
take(struct config *cfg, struct cfg_pos pos, struct source *is, struct cfg_source *src,
    const char *what)
{
	src->real = is->extra;
	src->bytes = is->bytes;
	cfg->bytes += is->bytes.n;
	if (cfg->bytes > CFG_TOTAL_MAX)
		is->err = -EFBIG;
	if (is->err == -ECHILD && is->extra != NULL)
		return (source_error(cfg, pos, what, is->extra));
	return (is->err == 0 || source_error(cfg, pos, what, read_error(is->err)));
}

bool
cfg_source_file(struct config *cfg, struct cfg_pos pos, const char *path, struct cfg_source *outer,
    struct cfg_source *src)
{
	bool is_stdin = strcmp(path, "-") == 0 && outer == NULL;
	struct source is;

	*src = (struct cfg_source){ .name = lasting(cfg, path), .outer = outer };
	is = sources_get(cfg->sources, is_stdin ? SOURCE_STDIN : SOURCE_FILE, path, NULL);
	return (take(cfg, pos, &is, src, path) && nesting_ok(cfg, pos, src));
}

/* ---------------------------------------------------------------- include_shell */

bool
cfg_source_shell(struct config *cfg, struct cfg_pos pos, const char *command,
    struct cfg_source *outer, struct cfg_source *src)
{
	char *name = g_strdup_printf("output of `%s`", command);
	struct source is;

	*src = (struct cfg_source){ .name = lasting(cfg, name), .outer = outer };
	g_free(name);
	if (cfg->sandboxed)
		return (cfg_error(cfg, pos, "include_shell is disabled here"));
	if (!nesting_ok(cfg, pos, src))
		return (false);
	is = sources_get(cfg->sources, SOURCE_SHELL, command, cfg->dir);
	if (!take(cfg, pos, &is, src, src->name))
		return (false);
	if (!WIFEXITED(is.status) || WEXITSTATUS(is.status) != 0)
		return (cfg_error(cfg, pos, "the command `%s` failed with status %d", command,
		    WIFEXITED(is.status) ? WEXITSTATUS(is.status) : 128 + WTERMSIG(is.status)));
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

/* A pattern may match nothing: an empty conf.d is not a mistake. */
static char **
matches(struct config *cfg, struct cfg_pos pos, const char *pattern)
{
	struct source is = sources_get(cfg->sources, SOURCE_GLOB, pattern, NULL);
	GPtrArray *paths = g_ptr_array_new();
	const char *p;
	size_t at;

	for (at = 0; is.err == 0 && at < is.bytes.n; at += strlen(p) + 1) {
		p = is.bytes.p + at;
		g_ptr_array_add(paths, g_strdup(p));
	}
	g_ptr_array_add(paths, NULL);
	if (is.err != 0) {
		source_free(&is);
		g_ptr_array_free(paths, TRUE);
		cfg_error(cfg, pos, "cannot read the directory of %s", pattern);
		return (NULL);
	}
	source_free(&is);
	return ((char **)g_ptr_array_free(paths, FALSE));
}

char **
cfg_source_paths(struct config *cfg, struct cfg_pos pos, const char *pattern)
{
	char *full, **paths;

	if (cfg->sandboxed) {
		cfg_error(cfg, pos, "include is disabled here");
		return (NULL);
	}
	full = pattern[0] == '/' || cfg->dir == NULL ? g_strdup(pattern)
						     : g_build_filename(cfg->dir, pattern, NULL);
	if (is_pattern(pattern)) {
		paths = matches(cfg, pos, full);
		g_free(full);
	} else {
		paths = g_new0(char *, 2);
		paths[0] = full;
	}
	return (paths);
}
