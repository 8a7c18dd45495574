#include "walk/filter.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "walk/shard.h"

static bool
any_with_slash(const char *const *patterns)
{
	for (; patterns != NULL && *patterns != NULL; patterns++)
		if (strchr(*patterns, '/') != NULL)
			return (true);
	return (false);
}

static bool
matches(const char *pattern, const char *name, const char *path)
{
	if (strchr(pattern, '/') == NULL)
		return (fnmatch(pattern, name, 0) == 0);
	return (fnmatch(pattern + (*pattern == '/'), path, FNM_PATHNAME) == 0);
}

static bool
any_matches(const char *const *patterns, const char *name, const char *path)
{
	for (; *patterns != NULL; patterns++)
		if (matches(*patterns, name, path))
			return (true);
	return (false);
}

bool
walk_filter_needs_path(const struct walk_filter *f)
{
	return (f->shard != NULL || any_with_slash(f->include) || any_with_slash(f->exclude));
}

bool
walk_filter_of_files(const struct walk_filter *f)
{
	return (f->shard != NULL || f->include != NULL);
}

bool
walk_filter_dir(const struct walk_filter *f, const char *name, const char *path)
{
	return (f->exclude == NULL || !any_matches(f->exclude, name, path));
}

bool
walk_filter_file(const struct walk_filter *f, const char *name, const char *path)
{
	return (walk_filter_dir(f, name, path) &&
		(f->include == NULL || any_matches(f->include, name, path)) &&
		(f->shard == NULL || walk_shard_has(f->shard, text_of(path))));
}
