/* walk/filter.h -- the patterns of --include and --exclude, and the share of --shard.
 *
 * A pattern without a slash applies to the name, one with a slash to the whole path below the root.
 * In the latter a star does not match a slash.  Patterns are those of fnmatch(3), on bytes.
 */
#ifndef WALK_FILTER_H
#define WALK_FILTER_H

#include <stdbool.h>

struct walk_shard;

struct walk_filter {
	const char *const *include, *const *exclude; /* NULL at the end; NULL: none */
	const struct walk_shard *shard; /* files of other nodes are left out; NULL: none are */
};

/* true if a pattern has a slash, or there is a shard */
bool walk_filter_needs_path(const struct walk_filter *);

/* path: below the root, without a slash at its start; NULL if walk_filter_needs_path() is false. */
bool walk_filter_file(const struct walk_filter *, const char *name, const char *path);
/* true if it leaves out files; it may leave out no directory */
bool walk_filter_of_files(const struct walk_filter *);
/* --include and the shard apply to files only */
bool walk_filter_dir(const struct walk_filter *, const char *name, const char *path);

#endif
