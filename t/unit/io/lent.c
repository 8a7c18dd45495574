/* t/unit/io/lent.c -- a receive buffer with several owners: bytes stay, nothing is kept beyond the
 * bound of the loop. */

#include "io/engine.h"
#include "io/lent.h"
#include "io/loop/sim.h"
#include "t/unit/test.h"

static struct io_lent *kept;
static struct text bytes;

static void
keep(struct io_op *op)
{
	bytes = (struct text){ op->buf, (size_t)op->res };
	kept = io_lent_keep(op);
}

static void
receive(struct io *io, struct io_sock *s)
{
	struct io_op op;

	op_init(&op, IO_RECV, keep);
	op.sock = s;
	op_submit(io, &op);
	sim_recv(io, &op, TEXT("hello"));
	sim_run(io);
}

TEST("/lent/owners")
{
	struct io *io = sim_new();
	struct io_lent *other;
	struct io_sock s;

	io_sock_init(&s, 5);
	receive(io, &s);
	g_assert_nonnull(kept);
	g_assert_cmpuint(io->held, ==, io->window);
	other = io_lent_ref(kept);
	io_lent_drop(kept);
	g_assert_true(text_eq(bytes, TEXT("hello")));
	io_lent_drop(other);
	g_assert_cmpuint(io->held, ==, 0);
	io->held = IO_HELD_MAX + 1;
	receive(io, &s);
	g_assert_null(kept);
	io->held = 0;
	io_free(io);
}
