/* t/unit/files/warm_sim.h -- a client that asks for files on a loop where nothing happens
 * until the test says so. */
#ifndef WARM_SIM_H
#define WARM_SIM_H

#include "t/unit/files/warm_test.h"

#include <string.h>
#include "io/loop/sim.h"

#define FD 4711 /* no real one */

/* Nothing is known here, so each request needs a thread. */
int
statx(int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict stx)
{
	long err = syscall(SYS_statx, at, path, flags, mask, stx);

	stx->stx_mask &= ~STATX_MNT_ID;
	return ((int)err);
}

static void G_GNUC_UNUSED
up(void)
{
	io = sim_new();
	warm_up();
}

static void
down(void)
{
	warm_free(&wm);
	g_assert_false(io_busy(io));
	io_free(io);
	conf = (struct warm_conf){ .how = WARM_OPEN, .remember_ms = 1000, .deadline_ms = 1000 };
}

static struct io_op *
opening(const char *tail)
{
	struct io_op *op;

	for (guint i = 0; (op = sim_nth(io, i)) != NULL; i++) {
		if (op->kind == IO_OPEN && strcmp(op->open.path, tail) == 0)
			return (op);
	}
	return (NULL);
}

static void G_GNUC_UNUSED
finish(const char *tail, int64_t res)
{
	struct io_op *op = opening(tail);

	g_assert_nonnull(op);
	if (res < 0)
		sim_finish(io, op, res);
	else
		sim_open(io, op, (int)res, 100, 1, S_IFREG | 0644);
	sim_run(io);
}

/* READ_TEST("/path", parts) { ... }: files are read; the program has read_up(parts). */
#define READ_TEST(path, ...) TEST_IN(path, read_up(__VA_ARGS__), down())

#endif
