/* accel-pool/remove.c -- removes the files of a pool, and nothing else.
 *
 * A file with another size or beginning than the pool's is not of accel-pool and stays, with the
 * directories that lead to it.  The marker goes last, so an interrupted run can be repeated.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "accel-pool/each.h"
#include "accel-pool/open.h"
#include "accel-pool/options.h"
#include "accel-pool/part.h"
#include "base/counter.h"
#include "walk/report.h"

static int
remove_file(struct each_worker *w, const struct each_file *f)
{
	char part[PART_MAX];
	struct stat st;

	part_name(f->name, part);
	unlinkat(f->dir_fd, part, 0);
	if (fstatat(f->dir_fd, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return (errno == ENOENT ? 0 : -errno);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != f->size || !each_is_ours(f)) {
		count(&w->counters, others);
		return (0);
	}
	if (unlinkat(f->dir_fd, f->name, 0) < 0)
		return (errno == ENOENT ? 0 : -errno);
	count(&w->counters, files);
	count_add(&w->counters, bytes, f->size);
	return (0);
}

/* Directories that are not empty stay. */
static uint64_t
remove_dirs(int root, const struct spec *s)
{
	char size[SPEC_TEXT_MAX], name[16];
	uint64_t removed = 0;
	int fd;

	spec_put_dir(s, size);
	fd = openat(root, size, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return (0);
	for (uint32_t i = 0; i < s->dirs; i++) {
		snprintf(name, sizeof(name), "%04" G_GUINT32_FORMAT, i);
		removed += unlinkat(fd, name, AT_REMOVEDIR) == 0;
	}
	close(fd);
	return (removed + (unlinkat(root, size, AT_REMOVEDIR) == 0));
}

static int
finish(struct each *e, const struct pool_conf *conf, int dir)
{
	struct walk_counters *n = &e->result.counters;

	for (unsigned i = 0; i < e->pool->n; i++)
		n->directories += remove_dirs(dir, &e->pool->specs[i]);
	if (n->others == 0) {
		unlinkat(dir, MARKER_NEW, 0);
		if (unlinkat(dir, MARKER, 0) < 0) {
			walk_message("%s: %s", MARKER, g_strerror(errno));
			n->errors++;
		}
		if (e->pool->made_dir)
			rmdir(conf->words[0]);
	} else
		walk_message("files that differ from those that accel-pool made are kept, and so "
			     "is the pool's marker");
	each_summary(e, false);
	return (n->others > 0 || n->errors > 0 ? 1 : 0);
}

static int
remove_all(const struct pool_conf *conf, int dir, const struct marker *pool)
{
	struct each e = { .root = dir,
		.pool = pool,
		.threads = conf->walk.threads,
		.quiet = conf->walk.quiet,
		.json = conf->walk.json,
		.verbose = conf->walk.verbose,
		.file = remove_file };
	int err = each_run(&e);

	if (err == 0)
		return (finish(&e, conf, dir));
	walk_message("%s: %s", e.failed, g_strerror(-err));
	each_summary(&e, true);
	return (EX_IOERR);
}

int
pool_remove(struct pool_conf *conf)
{
	struct marker pool;
	int dir, code = pool_dir_open(conf->words[0], true, &dir, &pool);

	if (code != 0)
		return (code);
	code = remove_all(conf, dir, &pool);
	close(dir);
	return (code);
}
