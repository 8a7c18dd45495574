/* t/unit/io/loop_read.c -- reads of each file backend, and the names of the backends. */
#include "t/unit/io/in_dir.h"

extern const struct file_backend file_gthread_aio;

static char *kept;

static void
keep_done(struct io_op *op)
{
	kept = op->res > 0 ? io_keep(op) : NULL;
	waiter_done(op);
}

static void
read_with(const struct file_backend *b)
{
	g_autofree char *file = file_make(dir, "r", 300000);
	struct io_file *f;
	struct waiter w;
	int i;

	loop_up(b, 1, 8);
	f = io_file_new(io, open(file, O_RDONLY | O_CLOEXEC), 300000);
	wait_init(&w, IO_READ, NULL);
	w.op.done = keep_done;
	w.op.file.file = f;
	w.op.file.off = 50001;
	w.op.file.len = IO_WINDOW;
	g_assert_cmpint(wait_op(&w), ==, 300000 - 50001);
	for (i = 0; i < w.res; i++)
		g_assert_true(kept[i] == pattern(50001 + (uint64_t)i));
	io_give_back(io, kept);
	w.op.file.off = 300000;
	g_assert_cmpint(wait_op(&w), ==, 0);
	io_file_put(f);
	f = io_file_new(io, open(dir, O_RDONLY | O_CLOEXEC), 1);
	w.op.file.file = f;
	g_assert_cmpint(wait_op(&w), ==, -EISDIR);
	io_file_put(f);
	loop_down();
}

TEST("/read/each backend returns the bytes of the range")
{
	int i;

	for (i = 0; file_backends[i] != NULL; i++)
		read_with(file_backends[i]);
}

LOOP_TEST("/read/a cancelled queued read drops its reference", &file_gthread_aio, 1, 8)
{
	g_autofree char *file = file_make(dir, "r", 3000);
	struct io_file *f;
	struct waiter w;

	f = io_file_new(io, open(file, O_RDONLY | O_CLOEXEC), 3000);
	gate_enter(LANE_READ);
	wait_init(&w, IO_READ, NULL);
	w.op.file.file = f;
	w.op.file.len = 3000;
	wait_submit(&w);
	g_assert_cmpuint(f->refs, ==, 2); /* the engine's own */
	op_cancel(io, &w.op);
	g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	g_assert_cmpuint(f->refs, ==, 1);
	gate_leave();
	io_file_put(f);
}

TEST("/backend/each old name finds a backend")
{
	const char *note;

	g_assert_cmpstr(file_backend_by_name("gthread-aio", &note)->name, ==, "gthread-aio");
	g_assert_null(note);
	g_assert_cmpstr(file_backend_by_name("write", &note)->name, ==, "writev");
	g_assert_nonnull(note);
	g_assert_cmpstr(file_backend_by_name("gthread-sendfile", &note)->name, ==,
	    "gthread-sendfile");
	g_assert_cmpstr(file_backend_by_name("linux-aio", &note)->name, ==, "linux-aio-sendfile");
	g_assert_null(file_backend_by_name("win32-send", &note));
	g_assert_cmpstr(file_backends[0]->name, ==, "adaptive");
	g_assert_cmpstr(file_backend_by_name("gthread-aio", &note)->tag, ==,
	    "network_gthread_aio.c.78:");
}
