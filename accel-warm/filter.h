/* accel-warm/filter.h -- which names are meant: --include and --exclude.
 *
 * A pattern without a slash is for the name alone; one with a slash is for the whole path below the root, and one that
 * begins with a slash too.  In the latter a star does not match a slash.  Patterns are those of fnmatch(3), on bytes.
 */
#ifndef ACCEL_WARM_FILTER_H
#define ACCEL_WARM_FILTER_H

#include <stdbool.h>

struct walk_filter {
	const char *const *include, *const *exclude;	/* NULL at the end; NULL: none */
};

bool walk_filter_needs_path(const struct walk_filter *);	/* a pattern has a slash */

/* path: below the root, without a slash at its start; NULL when walk_filter_needs_path() is false. */
bool walk_filter_file(const struct walk_filter *, const char *name, const char *path);
bool walk_filter_dir(const struct walk_filter *, const char *name, const char *path);	/* includes are for files */

#endif
