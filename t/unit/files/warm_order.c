/* t/unit/files/warm_order.c -- many long files at once: which one is read next.
 *
 * The disk of these tests is a queue: disk_serve() ends the oldest window. */

#include "t/unit/files/warm_sim.h"

#define WINDOW ((uint64_t)IO_WINDOW)
#define MOST   8u  /* windows of a device on their way, as long as all take the same time */
#define TURN   64u /* windows */
#define FILES  24u

static char *real;
static int real_fd;

static struct {
	struct asker a;
	int fd;
	guint begun; /* windows that the disk served */
} file[FILES];
static guint nfiles;

static void
read_up(uint64_t before, uint64_t soon, uint64_t behind)
{
	conf.how = WARM_READ;
	conf.before = before;
	conf.soon = soon;
	conf.behind = behind;
	conf.deadline_ms = 0;
	conf.remember_ms = 0;
	nfiles = 0;
	up();
}

/* Asks for a file of this many windows, on this device, and opens it. */
static guint
arrive_on(uint32_t device, uint32_t client, uint64_t windows)
{
	guint n = nfiles++;
	char path[16];
	struct asker *a = &file[n].a;
	struct io_op *op;

	g_snprintf(path, sizeof(path), "/%u", n);
	file[n].begun = 0;
	file[n].fd = dup(real_fd);
	*a = (struct asker){ .w = { .done = asker_done, .want = { 1, { { 0, UINT64_MAX } } } } };
	a->w.wait.client = client;
	g_assert_false(warm_file(wm, path, &a->w));
	op = opening(path + 1);
	g_assert_nonnull(op);
	sim_open(io, op, file[n].fd, windows * WINDOW, 1, S_IFREG | 0644);
	op->open.stx->stx_dev_minor = device;
	sim_run(io);
	return (n);
}

static guint
arrive(uint32_t client, uint64_t windows)
{
	return (arrive_on(1, client, windows));
}

static struct io_op *
nth_window(guint n)
{
	struct io_op *op;

	for (guint i = 0; (op = sim_nth(io, i)) != NULL; i++)
		if (sim_kind(op) == SIM_WARM && n-- == 0)
			return (op);
	return (NULL);
}

static guint
file_of(const struct io_op *op)
{
	for (guint n = 0; n < nfiles; n++)
		if (file[n].fd == op->file.file->fd)
			return (n);
	g_assert_not_reached();
}

/* Windows of a file on their way. */
static guint
flying(guint n)
{
	struct io_op *op;
	guint f = 0;

	for (guint i = 0; (op = nth_window(i)) != NULL; i++)
		f += file_of(op) == n;
	return (f);
}

static void
serve(struct io_op *op)
{
	file[file_of(op)].begun++;
	sim_finish(io, op, op->file.len);
	sim_run(io);
}

static bool
disk_serve(void)
{
	struct io_op *op = nth_window(0);

	if (op != NULL)
		serve(op);
	return (op != NULL);
}

static void
disk_serve_all(void)
{
	while (disk_serve())
		;
}

/* ---------------------------------------------------------------- laws */

READ_TEST("/order/one-after-the-other", WARM_ALL, 0, 0)
{
	for (guint i = 0; i < 4; i++)
		arrive(1, 20);
	g_assert_cmpuint(flying(0), ==, MOST);
	for (guint served = 0; served < 80; served++) {
		g_assert_cmpuint(sim_count(io, SIM_WARM), ==, MIN(MOST, 80 - served));
		g_assert_true(disk_serve());
		for (guint i = 1; i < 4;
		     i++) /* no window of a file before the last one of an older file */
			g_assert_true(file[i].begun + flying(i) == 0 ||
				      file[i - 1].begun + flying(i - 1) == 20);
	}
	for (guint i = 0; i < 4; i++) {
		g_assert_cmpuint(file[i].a.done, ==, 1);
		g_assert_cmpint(file[i].a.w.found.err, ==, 0);
	}
	g_assert_cmpuint(file[0].a.turn, <, file[1].a.turn);
	g_assert_cmpuint(file[2].a.turn, <, file[3].a.turn);
}

/* A file that arrived earlier and needs no more windows never ends later, and each file ends. */
TEST("/order/earlier-and-shorter")
{
	guint size[FILES], end[FILES] = { 0 };

	for (guint round = 0; round < 20; round++) {
		read_up(WARM_ALL, 0, 0);
		for (guint i = 0; i < FILES; i++) {
			size[i] = (guint)g_test_rand_int_range(1, 60);
			arrive(7, size[i]);
			for (gint n = g_test_rand_int_range(0, 20); n > 0; n--)
				disk_serve();
		}
		disk_serve_all();
		for (guint i = 0; i < FILES; i++) {
			g_assert_cmpuint(file[i].a.done, ==, 1);
			g_assert_cmpuint(file[i].begun, ==, size[i]);
			end[i] = file[i].a.turn;
			for (guint k = 0; k < i; k++)
				g_assert_true(size[k] > size[i] || end[k] < end[i]);
		}
		down();
	}
}

/* Clients take turns: the only file of one does not wait for the many of another. */
READ_TEST("/order/clients-take-turns", WARM_ALL, 0, 0)
{
	guint last;

	for (guint i = 0; i < 10; i++)
		arrive(1, 20);
	last = arrive(2, 20);
	while (file[last].a.done == 0)
		g_assert_true(disk_serve());
	g_assert_cmpuint(file[0].a.done, ==, 1);
	g_assert_cmpuint(file[2].a.done, ==, 0);
	disk_serve_all();
}

/* Files of 30 turns take turns: none waits for all of another. */
READ_TEST("/order/a-turn-ends", WARM_ALL, 0, 0)
{
	for (guint i = 0; i < 3; i++)
		arrive(1, 30 * TURN);
	for (guint n = 0; n < 3 * TURN + MOST; n++)
		disk_serve();
	for (guint i = 0; i < 3; i++)
		g_assert_cmpuint(file[i].begun, >=, TURN - MOST);
	disk_serve_all();
	for (guint i = 0; i < 3; i++)
		g_assert_cmpuint(file[i].a.done, ==, 1);
}

READ_TEST("/order/brief-files-overtake", WARM_ALL, 0, 0)
{
	guint brief;

	for (guint i = 0; i < 5; i++)
		arrive(1, 60);
	brief = arrive(1, 4);
	for (guint n = 0; n < MOST + 4; n++)
		disk_serve();
	g_assert_cmpuint(file[brief].a.done, ==, 1);
	g_assert_cmpuint(file[0].a.done, ==, 0);
	disk_serve_all();
}

/* Brief files come faster than the disk: at least one window in nine is another file's. */
READ_TEST("/order/brief-files-starve-no-other", WARM_ALL, 0, 0)
{
	guint served = 0;

	arrive(1, 30);
	while (file[0].a.done == 0) {
		while (sim_count(io, IO_OPEN) == 0 && nfiles < FILES)
			arrive(2, 4);
		for (guint i = 1; i < nfiles; i++) { /* the place of one that ended is free */
			if (file[i].a.done != 0 && i == nfiles - 1)
				nfiles--;
		}
		g_assert_true(disk_serve());
		g_assert_cmpuint(++served, <=, 9 * 30 + 2 * MOST);
	}
	disk_serve_all();
}

/* ---------------------------------------------------------------- how many windows */

/* The disk took this long for the oldest window. */
static void
serve_in(uint64_t ms)
{
	struct io_op *op = nth_window(0);

	op->at.start = io_now(io);
	op->at.end = op->at.start + ms * NS_PER_MS;
	serve(op);
}

/* Up to MOST_MAX windows while they take no longer; fewer when they wait for each other. */
READ_TEST("/order/windows-follow-the-disk", WARM_ALL, 0, 0)
{
	for (guint i = 0; i < 20; i++)
		arrive(1, 60);
	for (guint n = 0; n < 600; n++)
		serve_in(8);
	g_assert_cmpuint(sim_count(io, SIM_WARM), >, 2 * MOST);
	g_assert_cmpuint(sim_count(io, SIM_WARM), <=, 32);
	for (guint n = 0; n < 540; n++)
		serve_in(40);
	g_assert_cmpuint(sim_count(io, SIM_WARM), <=, MOST + 1);
	disk_serve_all();
}

/* ---------------------------------------------------------------- early ends */

READ_TEST("/order/cancelled-files-make-room", WARM_ALL, 0, 0)
{
	for (guint i = 0; i < 3; i++)
		arrive(1, 40);
	warm_cancel(&file[1].a.w); /* it waits */
	sim_run(io);
	g_assert_cmpuint(sim_closed(io, file[1].fd), ==, 1);
	warm_cancel(&file[0].a.w); /* its windows are on their way */
	sim_run(io);
	for (guint n = 0; n < MOST; n++)
		disk_serve();
	g_assert_cmpuint(sim_closed(io, file[0].fd), ==, 1);
	g_assert_cmpuint(flying(2), ==, MOST);
	disk_serve_all();
	g_assert_cmpuint(file[2].a.done, ==, 1);
	g_assert_cmpuint(file[0].a.done + file[1].a.done, ==, 0);
}

/* A waiting file gets its answer at the deadline, and is read after the others. */
READ_TEST("/order/deadline-while-waiting", WARM_ALL, 0, 0)
{
	conf.deadline_ms = 1000;
	arrive(1, 40);
	sim_advance_ms(io, 400);
	arrive(1, 40);
	sim_advance_ms(io, 601);
	g_assert_cmpint(file[0].a.w.found.err, ==, -ETIMEDOUT);
	g_assert_cmpuint(file[1].a.done, ==, 0);
	sim_advance_ms(io, 400);
	g_assert_cmpint(file[1].a.w.found.err, ==, -ETIMEDOUT);
	disk_serve_all();
	g_assert_cmpuint(file[0].begun, ==, 40);
	g_assert_cmpuint(file[1].begun, ==, 40);
}

/* All windows of a file hang: the next file waits a second, not for ever. */
READ_TEST("/order/a-hung-file-stops-no-other", WARM_ALL, 0, 0)
{
	struct io_op *op;
	guint i;

	arrive(1, 40);
	arrive(1, 10);
	g_assert_cmpuint(flying(0), ==, MOST);
	sim_advance_ms(io, 400);
	g_assert_cmpuint(flying(1), ==, 0);
	sim_advance_ms(io, 600);
	sim_advance_ms(io, 600);
	g_assert_cmpuint(flying(1), ==, MOST);
	while (file[1].a.done == 0) {
		for (i = 0; (op = nth_window(i)) != NULL && file_of(op) == 0;)
			i++;
		g_assert_nonnull(op);
		serve(op);
	}
	disk_serve_all();
	g_assert_cmpuint(file[0].a.done, ==, 1);
}

READ_TEST("/order/devices-do-not-wait-for-each-other", WARM_ALL, 0, 0)
{
	arrive_on(1, 1, 40);
	arrive_on(2, 1, 40);
	g_assert_cmpuint(flying(0), ==, MOST);
	g_assert_cmpuint(flying(1), ==, MOST);
	disk_serve_all();
}

/* More devices than there are places for: each is read. */
READ_TEST("/order/many-devices", WARM_ALL, 0, 0)
{
	for (uint32_t d = 1; d < 200; d++) {
		nfiles = d % FILES;
		arrive_on(d, 1, 10);
		disk_serve_all();
		g_assert_cmpuint(file[d % FILES].a.done, ==, 1);
	}
}

/* ---------------------------------------------------------------- answers before the bytes */

READ_TEST("/order/answer-at-the-turn", 0, 40 * WINDOW, WARM_ALL)
{
	arrive(1, 50);
	g_assert_cmpuint(file[0].a.done, ==, 1); /* its turn, and no byte is needed */
	g_assert_cmpuint(flying(0), ==, MOST);
	g_assert_false(nth_window(0)->spare);
	arrive(1, 50);
	g_assert_cmpuint(file[1].a.done, ==, 0);
	while (file[1].a.done == 0)
		g_assert_true(disk_serve());
	g_assert_cmpuint(file[0].begun + flying(0), ==, 40);
	while (file[0].begun < 40)
		disk_serve();
	g_assert_cmpuint(file[0].begun + flying(0), ==, 40); /* the rest is after the others */
	while (file[1].begun < 40)
		disk_serve();
	g_assert_true(nth_window(0)->spare);
	disk_serve_all();
	g_assert_cmpuint(counters.bytes_behind, ==, 100 * WINDOW);
	g_assert_cmpuint(sim_closed(io, file[0].fd), ==, 1);
	g_assert_cmpuint(sim_closed(io, file[1].fd), ==, 1);
}

/* The loop ends in each state: nothing is left open. */
TEST("/order/end-at-any-time")
{
	for (guint n = 0; n < 100; n += 3) {
		read_up(0, 20 * WINDOW, WARM_ALL);
		for (guint i = 0; i < 4; i++)
			arrive(i, 30);
		for (guint i = 0; i < n; i++)
			disk_serve();
		for (guint i = 0; i < 4; i++)
			if (file[i].a.done == 0)
				warm_cancel(&file[i].a.w);
		down();
	}
}

int
main(int argc, char **argv)
{
	int result;

	g_test_init(&argc, &argv, NULL);
	conf = (struct warm_conf){ .how = WARM_OPEN, .remember_ms = 0, .deadline_ms = 1000 };
	real_fd = g_file_open_tmp("warm-XXXXXX", &real, NULL);
	g_assert_cmpint(real_fd, >=, 0);
	g_assert_cmpint(ftruncate(real_fd, 100 * WINDOW * TURN), ==, 0);
	result = tests_run();
	close(real_fd);
	g_unlink(real);
	g_free(real);
	return (result);
}
