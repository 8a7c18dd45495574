/* node.h -- the names the kernel knows.
 *
 * Names, not descriptors: a pool of 100,000 files must not need as many descriptors.  Nothing is
 * ever renamed, the view is read-only.  Any thread may call these.
 */
#ifndef SLOWFS_NODE_H
#define SLOWFS_NODE_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node {
	struct node *next; /* in its bucket */
	/* answers to the kernel; forget takes them back */
	uint64_t lookups;
	char path[]; /* below the source, "." for the source itself */
};

struct node *node_of(fuse_ino_t);
fuse_ino_t node_ino(const struct node *);

struct node *node_get(const char *path); /* one look-up more; NULL when there is no memory */
void node_absent(const char *path);      /* the kernel got "no such name" */
void node_forget(struct node *, uint64_t count);

/* dir/name, or name below the source itself.  0, or ENAMETOOLONG.  buf has PATH_MAX bytes. */
int path_join(char *buf, const char *dir, const char *name);

/* A pattern like those of fnmatch(3) against the path that users see: it begins with '/', and '*'
 * matches '/' too. */
bool path_matches(const char *pattern, const char *path);

/* All nodes that match, absent ones too, kept until they are released.  0 or -ENOMEM. */
int nodes_matching(const char *pattern, struct node ***list, size_t *count);
void nodes_release(struct node **list, size_t count);

/* The node of the directory it is in, and its name there; 0 when the kernel no longer knows that
 * directory. */
fuse_ino_t node_parent(const struct node *, const char **name);

#endif
