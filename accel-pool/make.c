/* accel-pool/make.c -- makes a pool, or the rest of one.
 *
 *	directory --> marker --> which files exist?  is there room for the others? --> write them
 *
 * A file is written under a temporary name and renamed, so a file with its name and size is
 * complete.  There is no fsync(2) for each file: --sync writes all of the file system once.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

#include "accel-pool/each.h"
#include "accel-pool/open.h"
#include "accel-pool/options.h"
#include "accel-pool/part.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/pattern.h"
#include "walk/report.h"

#define DEFAULT_SPEC "1000x100x100k" /* the small files of the benchmarks of 2007 */
/* Besides the bytes: at least an inode and a name in its directory for each file. */
#define FILE_COST 512u

struct make {
	const struct pool_conf *conf;
	const char *dir_name;
	struct marker pool;
	int dir;
	bool existed;
	struct each each;
};

/* ---------------------------------------------------------------- one file */

/* True: an earlier run has written the whole file. */
static bool
is_complete(const struct each_file *f)
{
	struct stat st;

	return (fstatat(f->dir_fd, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		(uint64_t)st.st_size == f->size);
}

static int
count_complete(struct each_worker *w, const struct each_file *f)
{
	if (!is_complete(f))
		return (0);
	count(&w->counters, resumed);
	count_add(&w->counters, bytes, f->size);
	return (0);
}

static int
write_all(struct each_worker *w, const struct each_file *f, int fd)
{
	const uint64_t key = pattern_key(f->path, strlen(f->path));
	uint64_t at = 0;
	ssize_t n;

	while (at < f->size) {
		size_t part = (size_t)MIN(f->size - at, EACH_BUFFER);

		pattern_fill(key, at, w->buf, part);
		n = TEMP_FAILURE_RETRY(pwrite(fd, w->buf, part, (off_t)at));
		if (n <= 0)
			return (n < 0 ? -errno : -ENOSPC);
		at += (uint64_t)n;
		count_add(&w->counters, bytes, (uint64_t)n);
	}
	return (0);
}

static int
write_file(struct each_worker *w, const struct each_file *f)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	char part[PART_MAX];
	int fd, err;

	if (is_complete(f)) {
		count(&w->counters, resumed);
		return (0);
	}
	if (faccessat(f->dir_fd, f->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 && !each_is_ours(f))
		return (-EEXIST); /* with --force */
	part_name(f->name, part);
	unlinkat(f->dir_fd, part, 0); /* of an interrupted run, or a link to a file of others */
	fd = openat(f->dir_fd, part, flags, 0644);
	if (fd < 0)
		return (-errno);
	err = write_all(w, f, fd);
	if (close(fd) < 0 && err == 0)
		err = -errno;
	if (err == 0 && renameat(f->dir_fd, part, f->dir_fd, f->name) < 0)
		err = -errno;
	if (err != 0)
		unlinkat(f->dir_fd, part, 0);
	else
		count(&w->counters, files);
	return (err);
}

/* ---------------------------------------------------------------- the directory */

static bool
has_other_names(int dir)
{
	static const char *const own[] = { ".", "..", "lost+found", MARKER_NEW, NULL };
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *de;
	bool has = false;

	while (stream != NULL && !has && (de = readdir(stream)) != NULL)
		has = !g_strv_contains(own, de->d_name);
	if (stream != NULL)
		closedir(stream);
	return (has);
}

static int
say(const struct make *m, int code, const char *why)
{
	return (pool_say(m->dir_name, code, why));
}

static int
open_dir(struct make *m)
{
	m->pool.made_dir = mkdir(m->dir_name, 0755) == 0;
	if (!m->pool.made_dir && errno != EEXIST)
		return (say(m, EX_CANTCREAT, g_strerror(errno)));
	m->dir = open(m->dir_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->dir < 0)
		return (say(m, EX_CANTCREAT, g_strerror(errno)));
	if (marker_lock(m->dir) == -EAGAIN)
		return (say(m, EX_TEMPFAIL, "another run of accel-pool changes this pool"));
	return (0);
}

/* A directory that holds other files is not touched: their names could be those of the pool. */
static int
read_marker(struct make *m)
{
	struct marker old;
	int err = marker_read(m->dir, &old);

	if (err == 0) {
		m->pool = old;
		m->existed = true;
		return (0);
	}
	if (err != -ENOENT)
		return (say(m, EX_DATAERR,
		    err == -EPROTO ? "its file " MARKER " is not one of accel-pool"
				   : g_strerror(-err)));
	if (m->conf->force || !has_other_names(m->dir))
		return (0);
	return (say(m, EX_CANTCREAT,
	    "has other files in it and is not a pool; name an empty directory, or use --force"));
}

static int
add_specs(struct make *m)
{
	static const char *const usual[] = { DEFAULT_SPEC, NULL };
	const char *const *text = m->conf->specs;
	const char *wrong;
	struct spec s;

	if (m->existed && m->conf->seed != 0 && m->conf->seed != m->pool.seed)
		return (say(m, EX_DATAERR, "has been made with another --seed"));
	if (!m->existed)
		m->pool.seed = m->conf->seed != 0 ? m->conf->seed : 1;
	if (text == NULL && m->pool.n == 0)
		text = usual;
	for (; text != NULL && *text != NULL; text++) {
		spec_parse(text_of(*text), &s); /* options.c has checked it */
		wrong = marker_add(&m->pool, &s);
		if (wrong != NULL) {
			walk_message("--spec=%s: %s", *text, wrong);
			return (EX_DATAERR);
		}
	}
	return (0);
}

/* ---------------------------------------------------------------- room */

/* What the files occupy: whole blocks, and a little for each name. */
static void
pool_needs(const struct make *m, uint64_t block, uint64_t *bytes, uint64_t *files)
{
	*bytes = *files = 0;
	for (unsigned i = 0; i < m->pool.n; i++) {
		const struct spec *s = &m->pool.specs[i];
		uint64_t n = spec_count(s);

		*files += n;
		*bytes += spec_bytes(s, m->pool.seed) + n * FILE_COST;
		*bytes += n * (s->min == s->max ? (block - s->min % block) % block : block / 2);
	}
}

static int
check_room(struct make *m)
{
	uint64_t bytes, files, room;
	struct statvfs fs;
	GString *why;

	if (fstatvfs(m->dir, &fs) < 0 || fs.f_frsize == 0)
		return (0); /* write(2) tells */
	pool_needs(m, fs.f_frsize, &bytes, &files);
	bytes -= MIN(bytes, m->each.result.counters.bytes);
	files -= MIN(files, m->each.result.counters.resumed);
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (bytes <= room && (fs.f_files == 0 || files <= fs.f_favail))
		return (0);
	why = g_string_new("needs ");
	walk_bytes(why, (double)bytes);
	g_string_append_printf(why, " and %" PRIu64 " files, the file system has room for ", files);
	walk_bytes(why, (double)room);
	g_string_append_printf(why, " and %" PRIu64 " files; use a smaller --spec, or another disk",
	    (uint64_t)fs.f_favail);
	say(m, EX_CANTCREAT, why->str);
	g_string_free(why, TRUE);
	return (EX_CANTCREAT);
}

/* ---------------------------------------------------------------- the run */

static int
failed(struct make *m, int err)
{
	const bool full = err == -ENOSPC || err == -EDQUOT;

	walk_message("%s: %s", m->each.failed, g_strerror(-err));
	if (full)
		walk_message("complete files stay: make room and run the same command again, or "
			     "remove all with accel-pool remove");
	return (full ? EX_CANTCREAT : EX_IOERR);
}

/* All of the file system, once: its journal would be written 100,000 times otherwise. */
static int
sync_pool(struct make *m)
{
	const uint64_t start = clock_mono_ns();

	if (!m->each.quiet && isatty(STDERR_FILENO))
		walk_status_line("waiting until the disk has written all");
	if (syncfs(m->dir) < 0)
		return (-errno);
	m->each.result.seconds += (double)(clock_mono_ns() - start) / NS_PER_S;
	return (0);
}

static int
write_pool(struct make *m)
{
	int err;

	m->each.quiet = m->conf->walk.quiet;
	m->each.make_dirs = true;
	m->each.file = write_file;
	err = each_run(&m->each);
	if (err == 0 && m->conf->sync) {
		g_strlcpy(m->each.failed, "sync", sizeof(m->each.failed));
		err = sync_pool(m);
	}
	each_summary(&m->each, err != 0);
	return (err != 0 ? failed(m, err) : 0);
}

static int
fill(struct make *m)
{
	const struct walk_conf *walk = &m->conf->walk;
	int err, code;

	m->each = (struct each){ .root = m->dir,
		.pool = &m->pool,
		.threads = walk->threads,
		.quiet = true,
		.json = walk->json,
		.verbose = walk->verbose,
		.file = count_complete };
	if (m->existed && (err = each_run(&m->each)) != 0)
		return (failed(m, err));
	code = check_room(m);
	if (code != 0)
		return (code);
	err = marker_write(m->dir, &m->pool);
	if (err != 0)
		return (say(m, EX_CANTCREAT, g_strerror(-err)));
	return (write_pool(m));
}

int
pool_make(struct pool_conf *conf)
{
	struct make m = { .conf = conf, .dir_name = conf->words[0], .dir = -1 };
	int code = open_dir(&m);

	signal(SIGXFSZ, SIG_IGN); /* a file that is too large is -EFBIG */
	if (code == 0)
		code = read_marker(&m);
	if (code == 0)
		code = add_specs(&m);
	if (code == 0)
		code = fill(&m);
	if (m.dir >= 0)
		close(m.dir);
	if (code != 0 && m.pool.made_dir)
		rmdir(m.dir_name); /* if nothing was written */
	return (code);
}
