/* accel-warm/dir.h -- a directory of the walk: its name, and a descriptor as long as it is in use.
 *
 * What lies in it is opened relative to the descriptor, so no path is walked twice and none is too long.  Who needs
 * the descriptor: its reader, the names found in it, and the directories found in it until they are open themselves.
 * The name lives longer, for the paths of what lies below.
 *
 * Thread   any; users and refs are counted atomically, the rest does not change once it is open.
 */
#ifndef ACCEL_WARM_DIR_H
#define ACCEL_WARM_DIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/list.h"

struct walk_dir {
	struct walk_dir *parent;	/* NULL: a root; its name is a path from the current directory */
	char	*name;
	int	 fd;			/* AT_FDCWD or open while there are users; -1 before */
	dev_t	 dev;			/* 0: not known yet */
	unsigned users, refs;
	struct list link;		/* queue.c's */
};

/* One reference, which is the caller's, and one of its users.  Keeps the parent's descriptor until walk_dir_opened(). */
struct walk_dir *walk_dir_new(struct walk_dir *parent, const char *name);
struct walk_dir *walk_dir_ref(struct walk_dir *);
void walk_dir_unref(struct walk_dir **);
/* Takes fd, or -1 when it could not be opened. */
void walk_dir_opened(struct walk_dir *, int fd, dev_t);
void walk_dir_use(struct walk_dir *);
bool walk_dir_unuse(struct walk_dir *);	/* true: that was the last one, its descriptor is closed */

/* Appends the path of what is called name in it, and a NUL; name NULL: of the directory itself. */
void walk_dir_path(const struct walk_dir *, const char *name, struct buf *);
/* The same without the root: what patterns are matched with. */
void walk_dir_path_below(const struct walk_dir *, const char *name, struct buf *);

#endif
