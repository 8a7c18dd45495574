/* accel-pool/evict.c -- accel-pool evict and accel-pool state: how much of the files is in memory,
 * and how to get it out.
 *
 *	file --> dirty?  written to the disk --> POSIX_FADV_DONTNEED --> what is left, and why
 *
 * Only pages of these files are dropped, so other programs keep what they have in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sysexits.h>
#include <unistd.h>

#include "accel-pool/cache.h"
#include "accel-pool/kept.h"
#include "accel-pool/options.h"
#include "walk/progress.h"
#include "walk/report.h"
#include "walk/run.h"
#include "walk/walker.h"

/* Atomic: all threads add. */
struct memory_sums {
	uint64_t files, bytes, before, after, dirty;
	/* files whose bytes were all in memory before; files of which a part was */
	uint64_t whole, partial;
	uint64_t unknown; /* files of which the kernel tells nothing */
	struct kept kept;
};

static void
add(uint64_t *sum, uint64_t n)
{
	__atomic_add_fetch(sum, n, __ATOMIC_RELAXED);
}

static void
add_before(struct memory_sums *m, const struct stat *st, const struct cache_facts *f)
{
	const uint64_t size = (uint64_t)st->st_size;

	add(&m->files, 1);
	add(&m->bytes, size);
	add(&m->before, f->in_memory);
	add(&m->dirty, f->dirty);
	if (f->in_memory > 0)
		add(f->in_memory >= size ? &m->whole : &m->partial, 1);
}

/* ---------------------------------------------------------------- one file */

static bool
has_no_disk(int fd)
{
	struct statfs fs;

	return (fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC ||
					     fs.f_type == HUGETLBFS_MAGIC));
}

/* Writes dirty pages without waiting for the journal, because a pool of 100,000 files would wait
 * for it 100,000 times.  Some file systems need the journal, or know no other way: the second
 * try. */
static int
drop(int fd, uint64_t size, struct cache_facts *f)
{
	const unsigned now =
	    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
	int err;

	sync_file_range(fd, 0, 0, now);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	err = cache_look(fd, size, f);
	if (err != 0 || f->in_memory == 0)
		return (err);
	fdatasync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return (cache_look(fd, size, f));
}

static void
evict_one(struct memory_sums *m, int fd, const struct stat *st, const struct cache_facts *before)
{
	struct cache_facts f;

	if (before->in_memory == 0 || drop(fd, (uint64_t)st->st_size, &f) != 0 || f.in_memory == 0)
		return;
	add(&m->after, f.in_memory);
	kept_add(&m->kept,
	    has_no_disk(fd) ? KEPT_tmpfs
	    : f.dirty > 0   ? KEPT_dirty
			    : KEPT_other,
	    st->st_dev, st->st_ino, f.in_memory);
}

static int
look(struct walker *w, int fd, bool evict)
{
	struct memory_sums *m = w->shared->conf->own;
	struct cache_facts f;
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return (-errno);
	err = cache_look(fd, (uint64_t)st.st_size, &f);
	if (err == -EPERM) {
		add(&m->unknown, 1);
		f = (struct cache_facts){ 0, 0 };
		if (evict)
			drop(fd, (uint64_t)st.st_size, &f);
	} else if (err != 0)
		return (err);
	add_before(m, &st, &f);
	if (evict)
		evict_one(m, fd, &st, &f);
	return (0);
}

static int
visit(struct walker *w, const struct walk_batch *b, const char *name, bool follow, bool evict)
{
	int fd = walker_open(w, b, name, follow), err;

	if (fd < 0)
		return (fd);
	walker_enter(w, b->dir, name, b->dir->dev);
	err = look(w, fd, evict);
	walker_leave(w);
	close(fd);
	return (err);
}

static int
visit_evict(struct walker *w, const struct walk_batch *b, const char *name, bool follow)
{
	return (visit(w, b, name, follow, true));
}

static int
visit_state(struct walker *w, const struct walk_batch *b, const char *name, bool follow)
{
	return (visit(w, b, name, follow, false));
}

/* ---------------------------------------------------------------- reports */

static const char *const kept_names[] = {
#define R(name, text) #name,
	KEPT_REASONS(R)
#undef R
};

static const char *const kept_texts[] = {
#define R(name, text) text,
	KEPT_REASONS(R)
#undef R
};

static void
put_head(const struct memory_sums *m, const struct walk_progress *p, bool interrupted, GString *s)
{
	g_string_append_printf(s, "%s%" PRIu64 " files, ", interrupted ? "interrupted: " : "",
	    m->files);
	walk_bytes(s, (double)m->bytes);
	g_string_append(s, ": ");
}

static void
put_tail(const struct memory_sums *m, const struct walk_progress *p, GString *s)
{
	if (m->unknown > 0)
		g_string_append_printf(s,
		    "; %" PRIu64 " files unknown: the kernel tells their owner only", m->unknown);
	g_string_append_printf(s, "; %" PRIu64 " errors\n", p->counters.errors);
}

static void
put_part(GString *s, uint64_t n, uint64_t of)
{
	walk_bytes(s, (double)n);
	g_string_append_printf(s, " (%u %%)", of > 0 ? (unsigned)(n * 100 / of) : 0);
}

static void
put_kept(const struct memory_sums *m, GString *s)
{
	for (unsigned i = 0; i < KEPT_N; i++) {
		const struct kept_sum *k = &m->kept.sums[i];

		if (k->files == 0)
			continue;
		g_string_append(s, "stayed: ");
		walk_bytes(s, (double)k->bytes);
		g_string_append_printf(s, " of %" PRIu64 " files, %s%s%s\n", k->files,
		    kept_texts[i], k->by[0] != '\0' ? ": " : "", k->by);
	}
}

static void
put_json(const struct memory_sums *m, const struct walk_progress *p, bool interrupted, GString *s)
{
	char seconds[G_ASCII_DTOSTR_BUF_SIZE];

	g_string_append_printf(s,
	    "\"files\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"whole\":%" PRIu64 ",\"partial\":%" PRIu64
	    ",\"dirty\":%" PRIu64 ",\"unknown\":%" PRIu64 ",\"errors\":%" PRIu64
	    ",\"seconds\":%s,\"interrupted\":%s}\n",
	    m->files, m->bytes, m->whole, m->partial, m->dirty, m->unknown, p->counters.errors,
	    g_ascii_formatd(seconds, sizeof(seconds), "%.6f", p->seconds),
	    interrupted ? "true" : "false");
}

static void
evict_json(const struct memory_sums *m, GString *s)
{
	g_string_append_printf(s,
	    "{\"in_memory_before\":%" PRIu64 ",\"in_memory_after\":%" PRIu64 ",\"stayed\":{",
	    m->before, m->after);
	for (unsigned i = 0; i < KEPT_N; i++)
		g_string_append_printf(s, "%s\"%s\":%" PRIu64, i > 0 ? "," : "", kept_names[i],
		    m->kept.sums[i].bytes);
	g_string_append(s, "},");
}

static void
evict_summary(const struct walk_conf *conf, const struct walk_progress *p, bool interrupted,
    GString *s)
{
	struct memory_sums *m = conf->own;

	if (!interrupted)
		kept_explain(&m->kept);
	if (conf->json) {
		evict_json(m, s);
		put_json(m, p, interrupted, s);
		return;
	}
	put_head(m, p, interrupted, s);
	put_part(s, m->before, m->bytes);
	g_string_append(s, " in memory before, ");
	put_part(s, m->after, m->bytes);
	g_string_append(s, " after");
	put_tail(m, p, s);
	put_kept(m, s);
}

static void
state_summary(const struct walk_conf *conf, const struct walk_progress *p, bool interrupted,
    GString *s)
{
	struct memory_sums *m = conf->own;

	if (conf->json) {
		g_string_append_printf(s, "{\"in_memory\":%" PRIu64 ",", m->before);
		put_json(m, p, interrupted, s);
		return;
	}
	put_head(m, p, interrupted, s);
	put_part(s, m->before, m->bytes);
	g_string_append_printf(s,
	    " in memory; %" PRIu64 " files whole, %" PRIu64 " in part, %" PRIu64 " not at all",
	    m->whole, m->partial, m->files - m->whole - m->partial);
	if (m->dirty > 0) {
		g_string_append(s, "; ");
		walk_bytes(s, (double)m->dirty);
		g_string_append(s, " not yet written to the disk");
	}
	put_tail(m, p, s);
}

/* ---------------------------------------------------------------- commands */

static int
run(struct pool_conf *conf,
    int (*visitor)(struct walker *, const struct walk_batch *, const char *, bool),
    void (*report)(const struct walk_conf *, const struct walk_progress *, bool, GString *))
{
	struct memory_sums sums = { .files = 0 };
	int code;

	kept_init(&sums.kept);
	conf->walk.visit = visitor;
	conf->walk.summary = report;
	conf->walk.own = &sums;
	code = walk_run(&conf->walk);
	kept_free(&sums.kept);
	return (code);
}

int
pool_evict(struct pool_conf *conf)
{
	return (run(conf, visit_evict, evict_summary));
}

int
pool_state(struct pool_conf *conf)
{
	return (run(conf, visit_state, state_summary));
}
