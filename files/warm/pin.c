/* files/warm/pin.c -- files that were answered stay in memory until the web server has probably
 * sent them (io/disk/pin.h).
 *
 *   cold   the thread that reads a window pins it.  Its answer gives it a new time.
 *   hot    answered by the loop, which must not wait.  A thread opens and pins the file after the
 *          answer.
 *
 * An earlier answer is given again while the file is pinned; else the loop looks for its bytes.
 *
 * A file leaves memory because others are read.  So each cold file gives credit for a few hot ones.
 * If all files are in memory, none is pinned, and earlier answers hold.
 */

#include "files/warm/impl.h"

#include <errno.h>
#include "io/disk/pin.h"

#define CREDIT     4u  /* hot files to pin, for each cold file */
#define CREDIT_MAX 64u /* ... saved up */
#define LOOK_MS    1000u

struct warm_pin {
	struct warm_file file;
	struct range_set want;
	bool busy;
};

/* ---------------------------------------------------------------- hot files */

static void
pinned(struct warm_file *f)
{
	struct warm_pin *p = container_of(f, struct warm_pin, file);

	g_free((char *)(uintptr_t)f->path);
	p->busy = false;
	pin_watch(f->warm);
}

static struct warm_pin *
free_place(struct warm_pins *pins)
{
	for (guint i = 0; i < pins->n; i++)
		if (!pins->place[i].busy)
			return (&pins->place[i]);
	return (NULL);
}

void
pin_answered(struct warm *wm, const struct statx *stx, const char *path,
    const struct range_set *want, uint32_t client)
{
	struct warm_pins *pins = &wm->pins;
	struct warm_pin *p;

	if (!io_pins_on() || want->n == 0 || io_pin_again(stx) || path == NULL ||
	    pins->credit == 0 || wm->conf->how != WARM_READ || stx->stx_size == 0)
		return;
	p = free_place(pins);
	if (p == NULL)
		return;
	pins->credit--;
	*p = (struct warm_pin){ .want = *want, .busy = true };
	p->file = (struct warm_file){ .warm = wm,
		.want = &p->want,
		.client = client,
		.pins = true,
		.path = g_strdup(path),
		.done = pinned };
	if (!file_open(&p->file))
		pinned(&p->file);
}

/* Measured with 48 MB for 100 MB of files: a third of the answers were earlier ones, and bytes left
 * memory within that second.  nginx slept for these bytes more than half of the time. */
bool
pin_holds(const struct warm_entry *e)
{
	struct range_set want;

	(void)key_read(e, &want);
	return (!io_pins_on() || e->found.err != 0 || want.n == 0 || io_pin_again(&e->found.stx) ||
		e->warm->pins.credit == 0);
}

void
pin_cold(struct warm *wm)
{
	wm->pins.credit = MIN(wm->pins.credit + CREDIT, CREDIT_MAX);
}

/* ---------------------------------------------------------------- the end of their time */

static void
unpin_run(struct io_work *w)
{
	io_pins_expire();
}

static void
unpin_free(struct io_work *w)
{
}

static void look_later(struct warm *);

static void
unpinned(struct io_op *op)
{
	struct warm *wm = container_of(op, struct warm, pins.look);
	struct io_pins_status s;

	wm->pins.looking = false;
	io_pins_status(&s);
	if (s.windows != 0 && op->res != -ECANCELED)
		look_later(wm);
}

static void
look(struct io_op *op)
{
	/* never freed: a thread may have it when the loop has ended */
	static struct io_work unpin = { .run = unpin_run, .free = unpin_free, .refs = 1 };
	struct warm *wm = container_of(op, struct warm, pins.look);

	wm->pins.looking = false;
	if (op->res == -ECANCELED)
		return;
	wm->pins.looking = true;
	op_init(op, IO_WORK, unpinned);
	op->work.work = &unpin;
	op_submit(wm->io, op);
}

static void
look_later(struct warm *wm)
{
	struct warm_pins *pins = &wm->pins;

	if (pins->looking)
		return;
	pins->looking = true;
	op_init(&pins->look, IO_TIMER, look);
	pins->look.deadline_ms = LOOK_MS;
	op_submit(wm->io, &pins->look);
}

void
pin_watch(struct warm *wm)
{
	if (io_pins_on())
		look_later(wm);
}

/* ---------------------------------------------------------------- begin and end */

void
pins_init(struct warm_pins *pins)
{
	pins->n = io_pins_on() ? WARM_PINS : 0;
	pins->place = g_new0(struct warm_pin, pins->n);
}

bool
pins_busy(const struct warm_pins *pins)
{
	for (guint i = 0; i < pins->n; i++)
		if (pins->place[i].busy)
			return (true);
	return (pins->looking);
}

void
pins_cancel(struct warm *wm)
{
	struct warm_pins *pins = &wm->pins;

	for (guint i = 0; i < pins->n; i++)
		if (pins->place[i].busy)
			file_stop(&pins->place[i].file, op_cancel, false);
	if (pins->looking)
		op_cancel(wm->io, &pins->look);
}

void
pins_fini(struct warm_pins *pins)
{
	g_free(pins->place);
}
