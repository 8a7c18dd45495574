/* nginx/probe.c -- is a name in memory, and what will be sent of it?  No call here waits for a
 * disk. */
#include "nginx/stat_accel.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGES_MAX 16 /* of a long file: evenly spread, with the first and the last */

static enum accel_kind
kind_of_error(int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
	case ELOOP:
	case EACCES: return (ACCEL_ABSENT);
	default: return (ACCEL_COLD); /* EAGAIN: it must be looked up; ENOSYS before Linux 5.12 */
	}
}

/* FUSE and others do not know RWF_NOWAIT: the bytes are there if they have just been read. */
static bool
page_is_hot(int fd, off_t at, bool read)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	return (preadv2(fd, &iov, 1, at, RWF_NOWAIT) >= 0 || (read && errno == EOPNOTSUPP));
}

static off_t
page_of(off_t at)
{
	return (at / (off_t)ngx_pagesize);
}

static bool
range_is_hot(int fd, struct accel_range range, off_t size, bool read)
{
	off_t step, last;

	if (range.from < 0)
		range.from = ngx_max(size + range.from, 0);
	range.to = ngx_min(range.to, size);
	if (range.from >= range.to)
		return (true);
	last = range.to - 1;
	step = ngx_max((last - range.from) / (PAGES_MAX - 1), (off_t)ngx_pagesize);
	for (off_t at = range.from; page_of(at) < page_of(last); at += step)
		if (!page_is_hot(fd, at, read))
			return (false);
	return (page_is_hot(fd, last, read));
}

static enum accel_kind
kind_of(int fd, const struct accel_name *name, bool read)
{
	struct statx st;

	/* fstat(2) may ask another program or machine */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &st) != 0)
		return (ACCEL_COLD);
	if (S_ISDIR(st.stx_mode))
		return (name->list ? ACCEL_COLD : ACCEL_DIR);
	if (!S_ISREG(st.stx_mode) || range_is_hot(fd, name->range, (off_t)st.stx_size, read) ||
	    (errno == EOPNOTSUPP &&
		accel_mount_is_memory(makedev(st.stx_dev_major, st.stx_dev_minor))))
		return (ACCEL_FILE);
	return (ACCEL_COLD);
}

const ngx_cached_open_file_t *
accel_opened(const ngx_open_file_cache_t *cache, const ngx_str_t *path)
{
	uint32_t key = ngx_crc32_long(path->data, path->len);
	const ngx_rbtree_node_t *node = cache->rbtree.root;
	const ngx_cached_open_file_t *f;
	ngx_int_t order;

	while (node != cache->rbtree.sentinel) {
		f = (const ngx_cached_open_file_t *)node;
		order =
		    key != node->key ? (key < node->key ? -1 : 1) : ngx_strcmp(path->data, f->name);
		if (order == 0)
			return (f);
		node = order < 0 ? node->left : node->right;
	}
	return (NULL);
}

/* What nginx has in its open_file_cache it does not look up, so only the bytes are looked at: of a
 * small file with one system call in place of four. */
enum accel_kind
accel_probe_opened(ngx_http_request_t *r, const struct accel_name *name)
{
	const ngx_http_core_loc_conf_t *clcf =
	    ngx_http_get_module_loc_conf(r, ngx_http_core_module);
	const ngx_cached_open_file_t *f;

	if (clcf->open_file_cache == NULL)
		return (ACCEL_COLD);
	f = accel_opened(clcf->open_file_cache, &name->path);
	if (f == NULL || f->event != NULL || ngx_time() - f->created >= clcf->open_file_cache_valid)
		return (ACCEL_COLD);
	if (f->err != 0)
		return (ACCEL_ABSENT);
	if (f->is_dir)
		return (name->list ? ACCEL_COLD : ACCEL_DIR);
	if (f->fd == NGX_INVALID_FILE || !range_is_hot(f->fd, name->range, f->size, false))
		return (ACCEL_COLD);
	return (ACCEL_FILE);
}

enum accel_kind
accel_probe(const struct accel_name *name, bool read)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
		.resolve = RESOLVE_CACHED,
	};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, name->path.data, &how, sizeof(how));
	enum accel_kind kind;

	if (fd < 0)
		return (kind_of_error(errno));
	kind = kind_of(fd, name, read);
	close(fd);
	return (kind);
}
