#include "node.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 65536

static struct node root = { .lookups = 1, .path = "." };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *buckets[BUCKETS];

struct node *
node_of(fuse_ino_t ino)
{
	return (ino == FUSE_ROOT_ID ? &root : (struct node *)(uintptr_t)ino);
}

fuse_ino_t
node_ino(const struct node *n)
{
	return (n == &root ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)n);
}

static struct node **
bucket_of(const char *path, size_t len)
{
	uint32_t h = 2166136261u;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (unsigned char)path[i]) * 16777619u;
	return (&buckets[h % BUCKETS]);
}

/* The caller holds the lock. */
static struct node *
find(const char *path, size_t len)
{
	struct node *n;

	for (n = *bucket_of(path, len); n != NULL; n = n->next) {
		if (strncmp(n->path, path, len) == 0 && n->path[len] == '\0')
			break;
	}
	return (n);
}

static struct node *
find_or_make(const char *path)
{
	size_t len = strlen(path);
	struct node **bucket, *n;

	if ((n = find(path, len)) != NULL)
		return (n);
	if ((n = calloc(1, sizeof(*n) + len + 1)) == NULL)
		return (NULL);
	memcpy(n->path, path, len + 1);
	bucket = bucket_of(path, len);
	n->next = *bucket;
	*bucket = n;
	return (n);
}

struct node *
node_get(const char *path)
{
	struct node *n;

	pthread_mutex_lock(&lock);
	if ((n = find_or_make(path)) != NULL)
		n->lookups++;
	pthread_mutex_unlock(&lock);
	return (n);
}

/* The kernel keeps an absence without a look-up to give back, so it stays here until it is
 * forgotten on purpose.  Without memory it cannot be, which is not a reason to fail the request. */
void
node_absent(const char *path)
{
	pthread_mutex_lock(&lock);
	(void)find_or_make(path);
	pthread_mutex_unlock(&lock);
}

void
node_forget(struct node *n, uint64_t count)
{
	struct node **np;

	if (n == &root)
		return;
	pthread_mutex_lock(&lock);
	n->lookups -= count;
	if (n->lookups == 0) {
		for (np = bucket_of(n->path, strlen(n->path)); *np != n; np = &(*np)->next)
			;
		*np = n->next;
		free(n);
	}
	pthread_mutex_unlock(&lock);
}

int
path_join(char *buf, const char *dir, const char *name)
{
	int n;

	if (strcmp(dir, ".") == 0)
		n = snprintf(buf, PATH_MAX, "%s", name);
	else
		n = snprintf(buf, PATH_MAX, "%s/%s", dir, name);
	return (n < PATH_MAX ? 0 : ENAMETOOLONG);
}

bool
path_matches(const char *pattern, const char *path)
{
	char seen[PATH_MAX + 1];

	snprintf(seen, sizeof(seen), "/%s", strcmp(path, ".") == 0 ? "" : path);
	return (fnmatch(pattern, seen, 0) == 0);
}

static bool
append(struct node ***list, size_t *count, size_t *room, struct node *n)
{
	struct node **more;

	if (*count == *room) {
		if ((more = realloc(*list, (2 * *room + 16) * sizeof(struct node *))) == NULL)
			return (false);
		*list = more;
		*room = 2 * *room + 16;
	}
	n->lookups++;
	(*list)[(*count)++] = n;
	return (true);
}

int
nodes_matching(const char *pattern, struct node ***listp, size_t *count)
{
	struct node **list = NULL, *n;
	size_t room = 0, i;
	bool ok = true;

	*count = 0;
	pthread_mutex_lock(&lock);
	if (path_matches(pattern, root.path))
		ok = append(&list, count, &room, &root);
	for (i = 0; i < BUCKETS && ok; i++) {
		for (n = buckets[i]; n != NULL && ok; n = n->next) {
			if (path_matches(pattern, n->path))
				ok = append(&list, count, &room, n);
		}
	}
	pthread_mutex_unlock(&lock);
	*listp = list;
	if (ok)
		return (0);
	nodes_release(list, *count);
	return (-ENOMEM);
}

void
nodes_release(struct node **list, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		node_forget(list[i], 1);
	free(list);
}

fuse_ino_t
node_parent(const struct node *n, const char **name)
{
	const char *slash = strrchr(n->path, '/');
	fuse_ino_t ino;
	struct node *dir;

	if (n == &root)
		return (0);
	if (slash == NULL) {
		*name = n->path;
		return (FUSE_ROOT_ID);
	}
	*name = slash + 1;
	pthread_mutex_lock(&lock);
	dir = find(n->path, (size_t)(slash - n->path));
	ino = dir != NULL ? node_ino(dir) : 0;
	pthread_mutex_unlock(&lock);
	return (ino);
}
