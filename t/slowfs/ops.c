#include "ops.h"
#include "job.h"
#include "node.h"
#include "slowfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FOREVER 86400.0 /* seconds for which the kernel may keep an answer */

static bool refuse_direct;

/* ---------------------------------------------------------------- what a disk is needed for */

static void
lookup_answer(struct job *j)
{
	struct fuse_entry_param e = { .attr_timeout = FOREVER, .entry_timeout = FOREVER };
	struct node *n;
	char path[PATH_MAX];
	int err;

	if ((err = path_join(path, j->node->path, j->name)) != 0) {
		fuse_reply_err(j->req, err);
		return;
	}
	if (fstatat(source_fd, path, &e.attr, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT) {
			fuse_reply_err(j->req, errno);
			return;
		}
		node_absent(path);
		fuse_reply_entry(j->req, &e); /* ino 0: the absence may be kept too */
		return;
	}
	if ((n = node_get(path)) == NULL) {
		fuse_reply_err(j->req, ENOMEM);
		return;
	}
	e.ino = (uintptr_t)n;
	if (fuse_reply_entry(j->req, &e) == -ENOENT)
		/* the caller was killed and will not give it back */
		node_forget(n, 1);
}

static void
op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct job *j;

	if ((j = job_new(req, parent, LOOKUP, opt.lookup_ms, lookup_answer, name)) != NULL)
		job_submit(j);
}

static void
open_answer(struct job *j)
{
	int fd;

	fd = openat(source_fd, j->node->path, (j->fi.flags & O_ACCMODE) | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		fuse_reply_err(j->req, errno);
		return;
	}
	j->fi.fh = (uint64_t)fd;
	j->fi.keep_cache = !opt.drop_at_open;
	if (fuse_reply_open(j->req, &j->fi) == -ENOENT)
		close(fd);
}

/* The inode came with the look-up, so that no disk is needed for what costs nothing. */
static void
submit_unless_free(struct job *j)
{
	if (j->ms > 0)
		job_submit(j);
	else
		job_submit_free(j);
}

static void
op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct job *j;

	/* The kernel then asks no more, and opens by itself. */
	if (opt.no_open) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	if ((fi->flags & O_ACCMODE) != O_RDONLY && opt.write_ms < 0) {
		fuse_reply_err(req, EROFS);
		return;
	}
	if ((fi->flags & O_DIRECT) && __atomic_load_n(&refuse_direct, __ATOMIC_RELAXED)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	if ((j = job_new(req, ino, OPEN, opt.open_ms, open_answer, "")) == NULL)
		return;
	j->fi = *fi;
	submit_unless_free(j);
}

static void
getattr_answer(struct job *j)
{
	struct stat st;

	if (fstatat(source_fd, j->node->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fuse_reply_err(j->req, errno);
	else
		fuse_reply_attr(j->req, &st, FOREVER);
}

static void
op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct job *j;

	if ((j = job_new(req, ino, GETATTR, opt.getattr_ms, getattr_answer, "")) != NULL)
		submit_unless_free(j);
}

/* -1 and errno, as pread(2) */
static ssize_t
read_named(const struct job *j, char *buf)
{
	int fd = openat(source_fd, j->node->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), saved;
	ssize_t n;

	if (fd < 0)
		return (-1);
	n = pread(fd, buf, j->size, j->off);
	saved = errno;
	close(fd);
	errno = saved;
	return (n);
}

static void
read_answer(struct job *j)
{
	char *buf;
	ssize_t n;

	if ((buf = malloc(j->size)) == NULL) {
		fuse_reply_err(j->req, ENOMEM);
		return;
	}
	n = opt.no_open ? read_named(j, buf) : pread((int)j->fi.fh, buf, j->size, j->off);
	if (n < 0)
		fuse_reply_err(j->req, errno);
	else
		fuse_reply_buf(j->req, buf, (size_t)n);
	free(buf);
}

static void
op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct job *j;

	if ((j = job_new(req, ino, READ, opt.read_ms, read_answer, "")) == NULL)
		return;
	j->fi = *fi;
	j->size = size;
	j->off = off;
	job_submit(j);
}

static void
write_answer(struct job *j)
{
	ssize_t n = pwrite((int)j->fi.fh, j->data, j->size, j->off);

	if (n < 0)
		fuse_reply_err(j->req, errno);
	else
		fuse_reply_write(j->req, (size_t)n);
}

/* The kernel's buffer is gone when this returns. */
static void
op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
    struct fuse_file_info *fi)
{
	struct job *j;
	void *data;

	if ((data = malloc(size + 1)) == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if ((j = job_new(req, ino, WRITE, opt.write_ms, write_answer, "")) == NULL) {
		free(data);
		return;
	}
	memcpy(data, buf, size);
	j->data = data;
	j->fi = *fi;
	j->size = size;
	j->off = off;
	job_submit(j);
}

/* ---------------------------------------------------------------- what is answered at once */

static void
op_init(void *userdata, struct fuse_conn_info *conn)
{
	if (conn->capable & FUSE_CAP_PARALLEL_DIROPS)
		conn->want |= FUSE_CAP_PARALLEL_DIROPS;
	if (conn->capable & FUSE_CAP_ASYNC_READ)
		conn->want |= FUSE_CAP_ASYNC_READ;
	/* With it a direct read is split into requests that are served in parallel, and op_submit()
	 * returns. */
	conn->want &= ~FUSE_CAP_ASYNC_DIO;
	if (!opt.no_async_dio)
		conn->want |= conn->capable & FUSE_CAP_ASYNC_DIO;
	/* A listing must not warm the names in it. */
	conn->want &=
	    ~(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_AUTO_INVAL_DATA);
	conn->max_read = READ_MAX;
	conn->max_readahead = READ_MAX;
	conn->max_write = READ_MAX;
	/* The kernel's own default of 12 would be a second, hidden number of spindles. */
	conn->max_background = 4 * SPINDLES_MAX;
	conn->congestion_threshold = 4 * SPINDLES_MAX;
}

static void
op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	node_forget(node_of(ino), count);
	fuse_reply_none(req);
}

static void
op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *list)
{
	size_t i;

	for (i = 0; i < count; i++)
		node_forget(node_of(list[i].ino), list[i].nlookup);
	fuse_reply_none(req);
}

static void
op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	char buf[PATH_MAX];
	ssize_t n;

	n = readlinkat(source_fd, node_of(ino)->path, buf, sizeof(buf) - 1);
	if (n < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	buf[n] = '\0';
	fuse_reply_readlink(req, buf);
}

static void
flush_answer(struct job *j)
{
	fuse_reply_err(j->req, 0);
}

static void
op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct job *j;

	if (!opt.flush) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	if ((j = job_new(req, ino, FLUSH, 0, flush_answer, "")) != NULL)
		job_submit_free(j);
}

static void
op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	close((int)fi->fh);
	fuse_reply_err(req, 0);
}

static void
op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	DIR *dir;
	int fd;

	fd = openat(source_fd, node_of(ino)->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL) {
		fuse_reply_err(req, errno);
		if (fd >= 0)
			close(fd);
		return;
	}
	fi->fh = (uintptr_t)dir;
	if (fuse_reply_open(req, fi) == -ENOENT)
		closedir(dir);
}

static void
op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	DIR *dir = (DIR *)(uintptr_t)fi->fh;
	struct dirent *de;
	struct stat st;
	size_t used = 0, n;
	char *buf;

	if ((buf = malloc(size)) == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	seekdir(dir, off);
	while ((de = readdir(dir)) != NULL) {
		memset(&st, 0, sizeof(st));
		st.st_ino = de->d_ino;
		st.st_mode = (mode_t)de->d_type << 12;
		n = fuse_add_direntry(req, buf + used, size - used, de->d_name, &st, telldir(dir));
		if (n > size - used)
			break;
		used += n;
	}
	fuse_reply_buf(req, buf, used);
	free(buf);
}

static void
op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	closedir((DIR *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

static void
op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st;

	if (fstatvfs(source_fd, &st) < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_statfs(req, &st);
}

const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.readlink = op_readlink,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.flush = op_flush,
	.release = op_release,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.releasedir = op_releasedir,
	.statfs = op_statfs,
};

void
ops_refuse_direct(bool on)
{
	__atomic_store_n(&refuse_direct, on, __ATOMIC_RELAXED);
}
