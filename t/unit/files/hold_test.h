/* t/unit/files/hold_test.h -- a cache on a simulated loop; look-ups that note their answers. */
#ifndef HOLD_TEST_H
#define HOLD_TEST_H

#include <errno.h>
#include <stdio.h>
#include "base/clock.h"
#include "io/engine.h"
#include "io/loop/sim.h"
#include "files/hold/counters.h"
#include "files/hold/hold.h"
#include "t/unit/test.h"

static struct io *io;
static struct hold_counters counters;
static struct file_cache *cache;
static unsigned opened; /* descriptors handed out: FIRST_FD and those after it */

#define FIRST_FD 500

static size_t
prepare(const struct file_entry *e, char *head)
{
	const char *tag = e->unsettled != 0 ? "ETag: W/\"1\"" : "ETag: \"1\"";

	memcpy(head, tag, strlen(tag));
	return (strlen(tag));
}

static struct file_scope scope = {
	.id = 1,
	.root = 77,
	.resolve = IO_BENEATH,
	.prepare = prepare,
};
static struct file_scope G_GNUC_UNUSED other_scope = {
	.id = 2,
	.root = 78,
	.resolve = IO_BENEATH,
	.prepare = prepare,
};

static const struct file_limits usual = {
	.entries = 100,
	.fds = 50,
	.bytes = 1 << 20,
	.max_file = 16384,
	.cache = true,
	.open_ms = 30000,
};

static void
up(const struct file_limits *limits)
{
	io = sim_new();
	counters = (struct hold_counters){ 0 };
	opened = 0;
	cache = file_cache_new(io, &counters, limits);
	g_assert_nonnull(cache);
}

static void
all_closed_once(void)
{
	unsigned i;

	for (i = 0; i < opened; i++)
		g_assert_cmpuint(sim_closed(io, FIRST_FD + (int)i), ==, 1);
}

static void
down(void)
{
	file_cache_free(cache);
	g_assert_false(io_busy(io));
	all_closed_once();
	io_free(io);
}

static struct file_limits lim G_GNUC_UNUSED;

/* LIMITS_TEST("/path", lim.entries = 3) { ... }: with the usual limits but these. */
#define LIMITS_TEST(path, ...) TEST_IN(path, (lim = usual, __VA_ARGS__, up(&lim)), down())

/* ---------------------------------------------------------------- look-ups */

struct look {
	struct lookup_wait wait;
	struct file_entry *e;
	int answers;
	bool waited;
	uint64_t asked_ns;
};

/* The promise: no answer rests on a check that began more than a second before it (or after the
 * question, if the check took longer), unless the next check began in time and is overdue. */
static void
note(struct look *l, struct file_entry *e)
{
	uint64_t now = io_now(io);

	l->e = e;
	l->answers++;
	if (e->lk.checked_ns != 0 && e->lk.checked_ns < l->asked_ns &&
	    !(e->rechecking && e->trusted))
		g_assert_cmpuint(now - e->lk.checked_ns, <, FILE_FRESH_MS * NS_PER_MS);
}

static void
look_done(struct lookup_wait *w, struct lookup *entry)
{
	struct look *l = container_of(w, struct look, wait);

	l->waited = true;
	note(l, file_entry_of(entry));
}

static void
ask_in(struct file_scope *sc, struct look *l, const char *path)
{
	char with_tail[64];
	struct file_entry *e;

	*l = (struct look){ .wait.done = look_done, .asked_ns = io_now(io) };
	snprintf(with_tail, sizeof(with_tail), "%sXXX", path); /* no NUL after it */
	e = file_lookup(cache, sc, (struct text){ with_tail, strlen(path) }, &l->wait);
	if (e != NULL)
		note(l, e);
}

static void
ask(struct look *l, const char *path)
{
	ask_in(&scope, l, path);
}

static void
put(struct look *l)
{
	g_assert_cmpint(l->answers, ==, 1);
	file_entry_put(l->e);
	l->e = NULL;
}

/* ---------------------------------------------------------------- what the file system says */

/* The thread took it when it was submitted: the earliest moment a check can have begun. */
static struct io_op *
next(int kind)
{
	struct io_op *op = sim_find(io, kind, NULL);

	g_assert_nonnull(op);
	op->at.start = op->at.submit;
	op->at.end = io_now(io);
	return (op);
}

static void
open_says(uint64_t size, int64_t mtime, mode_t mode)
{
	sim_open(io, next(IO_OPEN), FIRST_FD + (int)opened++, size, mtime, mode);
	sim_run(io);
}

static void
stat_says(uint64_t size, int64_t mtime)
{
	sim_open(io, next(SIM_STAT), -1, size, mtime, 0);
	sim_run(io);
}

static void
read_says(const char *bytes)
{
	sim_read(io, next(IO_READ), text_of(bytes));
	sim_run(io);
}

static void
fails(int kind, int err)
{
	sim_finish(io, next(kind), err);
	sim_run(io);
}

/* path is a known file of these bytes, without holder. */
static void G_GNUC_UNUSED
know(const char *path, const char *bytes)
{
	struct look l;

	ask(&l, path);
	open_says(strlen(bytes), 1000, 0);
	if (*bytes != '\0')
		read_says(bytes);
	put(&l);
}

static void G_GNUC_UNUSED
know_large(const char *path)
{
	struct look l;

	ask(&l, path);
	open_says(1 << 20, 1000, 0);
	put(&l);
}

static bool G_GNUC_UNUSED
is_known(const char *path)
{
	struct file_entry *e = file_lookup(cache, &scope, text_of(path), NULL);

	file_entry_put(e);
	return (e != NULL);
}

#endif
