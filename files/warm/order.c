/* files/warm/order.c -- whose window is read next: see read.h */

#include "files/warm/read.h"

#include <stdlib.h>
#include "base/clock.h"

#define TURN     (16ull << 20) /* bytes of a file until another one has its turn */
#define BRIEF    (1ull << 20)  /* a file that needs at most this many bytes waits for no turn */
#define FILES    64            /* descriptors kept open after their answers */
#define DEVICES  64
#define PAUSE_MS 20
#define STUCK_MS 1000
#define STUCK    64u /* stuck windows that other windows replace */
#define WATCH_MS 500

#define BRIEF_RUN 8 /* windows of brief files in a row, if other files wait */

/* Windows on their way: enough that no spindle is idle, and no more, because all other requests
 * wait behind them.  The number grows while windows take hardly longer than the shortest one. */
#define MOST_LEAST ((guint)WINDOWS)
#define MOST_MAX   32u

static struct warm_read *
read_of(struct fair_queue_item *i)
{
	return (container_of(i, struct warm_read, row));
}

/* ---------------------------------------------------------------- devices */

static bool
device_is_idle(const struct warm_device *d)
{
	return (!d->going && d->flying == 0 && d->rows.waiting == 0 && list_empty(&d->brief) &&
		list_empty(&d->turn) && list_empty(&d->behind));
}

static void
device_name(struct warm_device *d, uint64_t dev)
{
	d->dev = dev;
	d->most = MOST_LEAST;
	d->samples = 0;
	d->least = d->mean = 0;
}

static struct warm_device *
device_new(struct warm *wm, uint64_t dev)
{
	struct warm_device *d = g_new0(struct warm_device, 1);

	must(fair_queue_init(&d->rows) == 0);
	d->warm = wm;
	list_init(&d->brief);
	list_init(&d->turn);
	list_init(&d->behind);
	list_init(&d->flight);
	list_add_tail(&wm->order.devices, &d->link);
	wm->order.ndevices++;
	device_name(d, dev);
	return (d);
}

/* With DEVICES of them, a new one takes the place of an idle one; if none is idle, two share a
 * place. */
struct warm_device *
order_device(struct warm *wm, uint64_t dev)
{
	struct warm_device *d, *idle = NULL;

	list_each(d, &wm->order.devices, link) {
		if (d->dev == dev)
			return (d);
		if (idle == NULL && device_is_idle(d))
			idle = d;
	}
	if (wm->order.ndevices < DEVICES)
		return (device_new(wm, dev));
	if (idle == NULL)
		return (list_entry(wm->order.devices.next, struct warm_device, link));
	device_name(idle, dev);
	return (idle);
}

void
order_init(struct warm_order *o)
{
	list_init(&o->devices);
}

void
order_fini(struct warm_order *o)
{
	struct list *l;

	while ((l = list_pop(&o->devices)) != NULL) {
		struct warm_device *d = list_entry(l, struct warm_device, link);

		fair_queue_fini(&d->rows);
		g_free(d);
	}
}

/* ---------------------------------------------------------------- places */

static void
row_push(struct warm_read *rd)
{
	rd->row.since_ns = io_now(rd->warm->io);
	rd->row.client = rd->client;
	rd->row.put_away = false;
	must(fair_queue_push(&rd->device->rows, &rd->row, false) == 0);
	rd->place = READ_WAITS;
}

/* Its bytes have just been read by a look-up, which had its turn: most are in memory. */
static bool
is_second(const struct warm_read *rd)
{
	return (rd->owner != NULL && rd->owner->gives);
}

void
order_add(struct warm_read *rd)
{
	struct warm_device *d = rd->device;

	if (rd->soon - rd->at > BRIEF && !is_second(rd)) {
		row_push(rd);
	} else {
		rd->place = READ_BRIEF;
		list_add_tail(&rd->device->brief, &rd->link);
		read_turn(rd);
	}
	order_go(d);
}

void
order_leave(struct warm_read *rd)
{
	struct warm_device *d = rd->device;

	if (rd->place == READ_WAITS)
		fair_queue_pull(&d->rows, &rd->row);
	else if (rd->place == READ_TURN)
		fair_queue_ran(&d->rows, &rd->row);
	else if (rd->place == READ_BEHIND)
		d->warm->order.nbehind--;
	list_del(&rd->link);
	rd->place = READ_NOWHERE;
}

bool
order_behind(struct warm_read *rd)
{
	struct warm_order *o = &rd->warm->order;

	if (o->nbehind >= FILES)
		return (false);
	o->nbehind++;
	rd->place = READ_BEHIND;
	rd->turn_end = warm_sum(rd->at, TURN);
	list_add_tail(&rd->device->behind, &rd->link);
	return (true);
}

void
order_turn(struct warm_read *rd)
{
	struct warm_device *d = rd->device;

	if (rd->at < rd->turn_end || rd->at >= rd->end)
		return;
	if (rd->place == READ_TURN && d->rows.waiting != 0) {
		order_leave(rd);
		row_push(rd);
	} else if (rd->place == READ_BEHIND) {
		list_del(&rd->link);
		list_add_tail(&d->behind, &rd->link);
		rd->turn_end = warm_sum(rd->at, TURN);
	}
}

static void
turn_begin(struct warm_device *d, struct warm_read *rd)
{
	fair_queue_take(&d->rows, &rd->row);
	rd->place = READ_TURN;
	rd->turn_end = warm_sum(rd->at, TURN);
	list_add_tail(&d->turn, &rd->link);
	read_turn(rd);
}

/* ---------------------------------------------------------------- how many windows */

static guint
windows_allowed(const struct warm_device *d)
{
	uint64_t now = io_now(d->warm->io);
	const struct window *w;
	guint stuck = 0;

	list_each(w, &d->flight, link) {
		if (stuck == STUCK || now - w->begun_ns < STUCK_MS * NS_PER_MS)
			break;
		stuck++;
	}
	return (d->most + stuck);
}

static void
note_time(struct warm_device *d, uint64_t ns)
{
	d->mean = d->mean == 0 ? ns : d->mean + ns / 8 - d->mean / 8;
	d->least = d->least == 0 ? ns : MIN(d->least, ns);
	if (++d->samples < d->most)
		return;
	d->samples = 0;
	if (d->mean < d->least + d->least / 2 && d->flying + 1 >= d->most)
		d->most = MIN(d->most + 1, MOST_MAX);
	else if (d->mean > 2 * d->least)
		d->most = MAX(d->most - 1, MOST_LEAST);
}

void
order_began(struct window *w)
{
	struct warm_device *d = w->read->device;

	w->begun_ns = io_now(d->warm->io);
	list_add_tail(&d->flight, &w->link);
	d->flying++;
	d->warm->order.flying++;
}

void
order_ended(struct window *w)
{
	struct warm_device *d = w->read->device;
	const struct io_stamps *at = &w->op.at;

	list_del(&w->link);
	d->flying--;
	d->warm->order.flying--;
	if (w->op.res == IO_WINDOW && at->end > at->start)
		note_time(d, at->end - at->start);
}

/* ---------------------------------------------------------------- whose window */

static struct warm_read *
first_ready(struct list *files)
{
	struct warm_read *rd;

	list_each(rd, files, link)
		if (read_ready(rd))
			return (rd);
	return (NULL);
}

static struct warm_read *
next_brief(struct warm_device *d)
{
	struct warm_read *rd = first_ready(&d->brief);

	d->nbrief += rd != NULL;
	return (rd);
}

static struct warm_read *
next_in_turn(struct warm_device *d)
{
	struct fair_queue_item *waits;
	struct warm_read *rd;

	while ((rd = first_ready(&d->turn)) == NULL && (waits = fair_queue_next(&d->rows)) != NULL)
		turn_begin(d, read_of(waits));
	if (rd != NULL)
		d->nbrief = 0;
	return (rd);
}

static struct warm_read *
next_read(struct warm_device *d)
{
	struct warm_read *rd = d->nbrief < BRIEF_RUN ? next_brief(d) : NULL;

	if (rd == NULL)
		rd = next_in_turn(d);
	if (rd == NULL)
		rd = next_brief(d);
	if (rd == NULL && !d->warm->order.paused)
		rd = first_ready(&d->behind);
	return (rd);
}

/* A timer has ended, or was cancelled with the order. */
static void
go_all(struct warm_order *o, const struct io_op *timer)
{
	struct warm_device *d;

	if (timer->res != -ECANCELED)
		list_each(d, &o->devices, link)
			order_go(d);
}

static void
watch_done(struct io_op *op)
{
	struct warm_order *o = container_of(op, struct warm_order, watch);

	o->watching = false;
	go_all(o, op);
}

/* All windows are on their way.  If they hang, no other event lets the next file go on. */
static void
watch(struct warm *wm)
{
	struct warm_order *o = &wm->order;

	if (o->watching)
		return;
	o->watching = true;
	op_init(&o->watch, IO_TIMER, watch_done);
	o->watch.deadline_ms = WATCH_MS;
	op_submit(wm->io, &o->watch);
}

void
order_go(struct warm_device *d)
{
	struct warm_read *rd;

	if (d->going) /* called by an answer; the loop below goes on */
		return;
	d->going = true;
	while (d->flying < windows_allowed(d) && (rd = next_read(d)) != NULL)
		read_window(rd);
	d->going = false;
	if (d->flying == 0)
		d->least = 0; /* the next window shows how long an idle device needs */
	if (d->flying >= windows_allowed(d))
		watch(d->warm);
}

static void
pause_done(struct io_op *op)
{
	struct warm_order *o = container_of(op, struct warm_order, pause);

	o->paused = false;
	go_all(o, op);
}

void
order_pause(struct warm *wm)
{
	struct warm_order *o = &wm->order;

	if (o->paused)
		return;
	o->paused = true;
	op_init(&o->pause, IO_TIMER, pause_done);
	o->pause.deadline_ms = PAUSE_MS;
	op_submit(wm->io, &o->pause);
}

/* ---------------------------------------------------------------- the end */

static void
cancel_answered(struct warm *wm, struct list *files)
{
	struct warm_read *rd;

	list_each(rd, files, link) {
		if (rd->owner == NULL && rd->flying == 0)
			read_drop(rd);
		else if (rd->owner == NULL)
			read_stop(rd, op_cancel);
	}
}

/* An answered file may also wait in its row for its next turn. */
static void
cancel_rows(struct warm_device *d)
{
	struct fair_queue_item *i;

	while ((i = fair_queue_next(&d->rows)) != NULL && read_of(i)->owner == NULL) {
		struct warm_read *rd = read_of(i);

		fair_queue_take(&d->rows, i);
		rd->place = READ_TURN;
		list_add_tail(&d->turn, &rd->link);
	}
}

bool
order_busy(const struct warm_order *o)
{
	return (o->flying != 0 || o->paused || o->watching);
}

void
order_cancel(struct warm *wm)
{
	struct warm_order *o = &wm->order;
	struct warm_device *d;

	list_each(d, &o->devices, link) {
		cancel_rows(d);
		cancel_answered(wm, &d->brief);
		cancel_answered(wm, &d->turn);
		cancel_answered(wm, &d->behind);
	}
	if (o->paused)
		op_cancel(wm->io, &o->pause);
	if (o->watching)
		op_cancel(wm->io, &o->watch);
}
