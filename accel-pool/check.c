/* accel-pool/check.c -- compares the files of a pool with what they must be.
 *
 * Each file must have the size that the pool's marker says, and the bytes that follow from its
 * name.  A file that is missing is an error, too, except with a list.  Other names in the directory
 * are left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "accel-pool/open.h"
#include "accel-pool/options.h"
#include "base/counter.h"
#include "base/pattern.h"
#include "walk/progress.h"
#include "walk/report.h"
#include "walk/run.h"
#include "walk/walker.h"

struct check {
	struct marker pool;
	bool listed;
	uint64_t seen, wrong, missing, other; /* files; atomic */
};

static void
report(struct walker *w, const struct walk_batch *b, const char *name, const char *why)
{
	struct check *c = w->shared->conf->own;

	__atomic_add_fetch(&c->wrong, 1, __ATOMIC_RELAXED);
	count(&w->counters, errors);
	walk_report_failure(b->dir, name, why);
}

/* The whole file, or up to its first wrong byte. */
static int
check_bytes(struct walker *w, const struct walk_batch *b, const char *name, int fd,
    struct text path)
{
	const uint64_t key = pattern_key(path.p, path.n);
	char why[64];
	uint64_t at = 0;
	ssize_t n;
	size_t good;

	while ((n = walker_read(w, b, name, fd, w->chunk, at)) > 0) {
		good = pattern_check(key, at, w->buf, (size_t)n);
		if (good < (size_t)n) {
			g_snprintf(why, sizeof(why), "the first wrong byte is at offset %" PRIu64,
			    at + good);
			report(w, b, name, why);
			return (0);
		}
		at += (uint64_t)n;
	}
	return ((int)n);
}

static int
check_open(struct walker *w, const struct walk_batch *b, const char *name, int fd, struct text path,
    uint64_t size)
{
	struct stat st;
	char why[96];

	if (fstat(fd, &st) < 0)
		return (-errno);
	if ((uint64_t)st.st_size == size)
		return (check_bytes(w, b, name, fd, path));
	g_snprintf(why, sizeof(why), "has %" PRIu64 " bytes instead of %" PRIu64,
	    (uint64_t)st.st_size, size);
	report(w, b, name, why);
	return (0);
}

static int
check_path(struct walker *w, const struct walk_batch *b, const char *name, bool follow,
    struct text path)
{
	struct check *c = w->shared->conf->own;
	struct spec_place place;
	const struct spec *s = marker_find(&c->pool, path, &place);
	int fd, err;

	if (s == NULL) {
		__atomic_add_fetch(&c->other, 1, __ATOMIC_RELAXED);
		if (c->listed)
			report(w, b, name, "is not of this pool");
		return (0);
	}
	__atomic_add_fetch(&c->seen, 1, __ATOMIC_RELAXED);
	fd = walker_open(w, b, name, follow);
	if (fd < 0)
		return (fd);
	err = check_open(w, b, name, fd, path, spec_size(s, place, c->pool.seed));
	close(fd);
	return (err);
}

static int
visit(struct walker *w, const struct walk_batch *b, const char *name, bool follow)
{
	struct buf path;
	int err;

	buf_init(&path, 0);
	walk_dir_path_below(b->dir, name, &path);
	err = check_path(w, b, name, follow, (struct text){ path.p, path.n - 1 }); /* its NUL */
	buf_free(&path);
	return (err);
}

/* ---------------------------------------------------------------- report */

static uint64_t
missing(const struct check *c)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < c->pool.n; i++)
		all += spec_count(&c->pool.specs[i]);
	return (c->listed || all < c->seen ? 0 : all - c->seen);
}

static void
summary(const struct walk_conf *conf, const struct walk_progress *p, bool interrupted, GString *s)
{
	struct check *c = conf->own;
	char seconds[G_ASCII_DTOSTR_BUF_SIZE];

	c->missing = interrupted ? 0 : missing(c);
	if (conf->json) {
		g_string_append_printf(s,
		    "{\"files\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"wrong\":%" PRIu64
		    ",\"missing\":%" PRIu64 ",\"errors\":%" PRIu64
		    ",\"seconds\":%s,\"interrupted\":%s}\n",
		    c->seen, p->counters.bytes, c->wrong, c->missing, p->counters.errors,
		    g_ascii_formatd(seconds, sizeof(seconds), "%.6f", p->seconds),
		    interrupted ? "true" : "false");
		return;
	}
	g_string_append_printf(s, "%s%" PRIu64 " files, ", interrupted ? "interrupted: " : "",
	    c->seen);
	walk_bytes(s, (double)p->counters.bytes);
	g_string_append(s, " checked, ");
	walk_bytes(s, (double)p->counters.bytes / MAX(p->seconds, 1e-6));
	g_string_append_printf(s,
	    "/s; %" PRIu64 " wrong, %" PRIu64 " missing; %" PRIu64 " errors\n", c->wrong,
	    c->missing, p->counters.errors);
}

int
pool_check(struct pool_conf *conf)
{
	const char *name = conf->words != NULL ? conf->words[0] : conf->walk.below;
	struct check c = { .listed = conf->words == NULL };
	int dir, code = pool_dir_open(name, false, &dir, &c.pool);

	if (code != 0)
		return (code);
	close(dir);
	conf->walk.how = WARM_READ; /* its buffer */
	conf->walk.before = WARM_ALL;
	conf->walk.visit = visit;
	conf->walk.summary = summary;
	conf->walk.own = &c;
	code = walk_run(&conf->walk);
	return (code == 0 && c.missing > 0 ? 1 : code);
}
