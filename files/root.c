/* files/root.c -- see root.h */
#include "files/root.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io.h"

/* Takes the string; "/" becomes "". */
static struct text
without_slashes(char *dir)
{
	struct text t;

	for (t = text_of(dir); t.n > 0 && dir[t.n - 1] == '/'; t.n--)
		dir[t.n - 1] = '\0';
	return (t);
}

/* ---------------------------------------------------------------- descriptors */

/* Thousands of blocks may name the same directory, and each generation does.  A bind mount of it is
 * another one: it may have other mounts below. */
struct shared {
	uint64_t mount, ino;
	uint32_t major, minor;
	int fd;
	unsigned refs;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *by_inode; /* struct shared */
static GHashTable *by_fd;    /* the same */

static guint
inode_hash(gconstpointer shared)
{
	const struct shared *s = shared;

	return ((guint)s->ino ^ (guint)s->mount << 20 ^ s->minor << 10);
}

static gboolean
inode_same(gconstpointer a, gconstpointer b)
{
	const struct shared *s = a, *t = b;

	return (s->ino == t->ino && s->mount == t->mount && s->major == t->major &&
		s->minor == t->minor);
}

/* key->fd is open, so no other directory has its number. */
static struct shared *
share_locked(const struct shared *key)
{
	struct shared *s;

	if (by_inode == NULL) {
		by_inode = g_hash_table_new(inode_hash, inode_same);
		by_fd = g_hash_table_new(NULL, NULL);
	}
	s = g_hash_table_lookup(by_inode, key);
	if (s == NULL) {
		s = g_memdup2(key, sizeof(*key));
		g_hash_table_add(by_inode, s);
		g_hash_table_insert(by_fd, GINT_TO_POINTER(s->fd), s);
	}
	s->refs++;
	return (s);
}

static int
fd_get(const char *dir, int *fdp)
{
	struct statx st;
	struct shared key;
	int fd, err = io_root_open(dir, &fd);

	if (err != 0)
		return (err);
	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &st) != 0) {
		err = -errno;
		close(fd);
		return (err);
	}
	/* Linux 5.7 and older do not name the mount: no descriptor is shared there */
	key = (struct shared){ .mount = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : ~(uint64_t)fd,
		.ino = st.stx_ino,
		.major = st.stx_dev_major,
		.minor = st.stx_dev_minor,
		.fd = fd };
	pthread_mutex_lock(&lock);
	*fdp = share_locked(&key)->fd;
	pthread_mutex_unlock(&lock);
	if (*fdp != fd)
		close(fd);
	return (0);
}

static void
fd_put(int fd)
{
	struct shared *s;

	pthread_mutex_lock(&lock);
	s = g_hash_table_lookup(by_fd, GINT_TO_POINTER(fd));
	if (--s->refs != 0) {
		pthread_mutex_unlock(&lock);
		return;
	}
	g_hash_table_remove(by_inode, s);
	g_hash_table_remove(by_fd, GINT_TO_POINTER(fd));
	pthread_mutex_unlock(&lock);
	g_free(s);
	io_close_fd(fd);
}

/* ---------------------------------------------------------------- names */

int
root_open(const char *dir, struct root *r)
{
	int err = fd_get(dir, &r->fd);
	char *name, *real;

	if (err != 0)
		return (err);
	name = strdup(dir);
	real = realpath(dir, NULL);
	if (real == NULL)
		real = strdup(dir);
	if (name == NULL || real == NULL) {
		fd_put(r->fd);
		free(name);
		free(real);
		return (-ENOMEM);
	}
	r->name = without_slashes(name);
	r->real = without_slashes(real);
	return (0);
}

void
root_close(struct root *r)
{
	fd_put(r->fd);
	free((char *)r->name.p);
	free((char *)r->real.p);
}

static bool
tail_after(struct text dir, struct text path, struct text *tail)
{
	if (path.n <= dir.n || path.p[dir.n] != '/' || !text_starts(path, dir))
		return (false);
	*tail = (struct text){ path.p + dir.n, path.n - dir.n };
	while (tail->n != 0 && tail->p[0] == '/')
		tail->p++, tail->n--;
	return (true);
}

bool
root_tail(const struct root *r, struct text path, struct text *tail)
{
	return (tail_after(r->name, path, tail) || tail_after(r->real, path, tail));
}
