/* io/memory/cgroup.h -- which directory has the memory files of this process's cgroup.
 *
 *   /proc/self/cgroup     4:memory:/system.slice/a.service        v1: a hierarchy for memory
 *                         0::/system.slice/a.service              v2: one hierarchy for all
 *   /proc/self/mountinfo  where that hierarchy is mounted, and from which directory of it on
 *
 * A machine may have both.  In a container the mount often begins at the container's own cgroup.
 *
 * Thread   any; reads files of /proc.  To be called before a sandbox closes /proc.
 */
#ifndef IO_CGROUP_H
#define IO_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include "base/text.h"

enum cgroup_kind { CGROUP_V1, CGROUP_V2, CGROUP_KINDS };

struct cgroup {
	size_t top;          /* length of the mount point, which is the last one on the way up */
	char path[PATH_MAX]; /* directory */
};

/* The process's own cgroup of this kind.  False: none, or it is not below a mount point. */
bool cgroup_find(enum cgroup_kind, struct cgroup *);
bool cgroup_up(struct cgroup *); /* false: this was the mount point */
/* Opens a file of the directory; -errno. */
int cgroup_open(const struct cgroup *, const char *name);

/* The pure part.  own, mounts: texts of the two files; any bytes. */
bool cgroup_parse(enum cgroup_kind, struct text own, struct text mounts, struct cgroup *);

#endif
