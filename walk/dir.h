/* walk/dir.h -- a directory of the walk: its name, and a descriptor while it is in use.
 *
 * Names in it are opened relative to the descriptor, so no path is looked up twice and no path is
 * too long.  Users of the descriptor are its reader, the names found in it, and the directories
 * found in it until they are open.  The name lives longer, for the paths below it.
 *
 * Thread   any; users and refs are counted atomically, the rest does not change once it is open.
 */
#ifndef WALK_DIR_H
#define WALK_DIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/list.h"

struct walk_dir {
	/* NULL: a root; its name is a path from the current directory */
	struct walk_dir *parent;
	char *name;
	int fd;    /* AT_FDCWD, or open while there are users; -1 before */
	dev_t dev; /* 0: unknown */
	unsigned users, refs;
	struct list link; /* of queue.c */
};

/* Counts one reference, for the caller, and one user.  Uses the parent's descriptor until
 * walk_dir_opened(). */
struct walk_dir *walk_dir_new(struct walk_dir *parent, const char *name);
struct walk_dir *walk_dir_ref(struct walk_dir *);
void walk_dir_unref(struct walk_dir **);
/* Takes fd, or -1 if it could not be opened. */
void walk_dir_opened(struct walk_dir *, int fd, dev_t);
void walk_dir_use(struct walk_dir *);
/* true: it was the last user, and the descriptor is closed */
bool walk_dir_unuse(struct walk_dir *);

/* Appends the path of a name in the directory, and a NUL; name NULL: of the directory itself. */
void walk_dir_path(const struct walk_dir *, const char *name, struct buf *);
/* As walk_dir_path(), without the root: the path for patterns. */
void walk_dir_path_below(const struct walk_dir *, const char *name, struct buf *);

#endif
