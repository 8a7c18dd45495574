#include "fcgi-stat-accel/serve.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "fcgi-stat-accel/conn.h"
#include "fcgi-stat-accel/log.h"
#include "io/notify.h"

#define DRAIN_MS 1500u			/* "ends within two seconds" */
#define LEAVE_MS 300u			/* of that, for answers that say: try again */
#define PAUSE_MS 100u			/* no descriptors: look again after this */
#define LOOK_MS	 1u			/* between two looks at what has come; not 0: that would be the same round */
#define STILL	 2u			/* looks in a row that saw nothing: all that came before the signal is here */

struct serve {
	const struct serve_conf *conf;
	struct conns	 all;
	struct text	*names;
	struct listener **listener;

	struct io_sock	 door;		/* the listening socket */
	union io_addr	 peer;
	struct io_op	 accept;
	struct io_op	 pause;		/* timer: accepting goes on */

	struct io_sock	 signals;
	struct io_op	 signal;

	struct io_op	 look, end;	/* timers while draining */
	uint64_t	 events;	/* at the last look */
	unsigned	 still;
	unsigned	 given_up;
	bool		 accepting, pausing, listening, leaving;
	unsigned	 ops;		/* of ours in flight */
};

static void accept_next(struct serve *);

static void
submit(struct serve *s, struct io_op *op)
{
	s->ops++;
	op_submit(s->conf->io, op);
}

static void
start_timer(struct serve *s, struct io_op *op, unsigned ms, void (*done)(struct io_op *))
{
	op_init(op, IO_TIMER, done);
	op->deadline_ms = ms;
	submit(s, op);
}

/* ---------------------------------------------------------------- new connections */

static void
pause_ended(struct io_op *op)
{
	struct serve *s = container_of(op, struct serve, pause);

	s->ops--;
	s->pausing = false;
	accept_next(s);
}

static void
accept_later(struct serve *s)
{
	s->pausing = true;
	start_timer(s, &s->pause, PAUSE_MS, pause_ended);
}

/* A web server opens a kept connection again when it needs it; a new one has a request to ask.  When its descriptor is
 * free, see conn_gone(). */
static void
make_room(struct serve *s)
{
	if (conns_make_room(&s->all))
		STATS_COUNT(s->conf->stats, crowded_out);
	else
		accept_later(s);
}

static void
take_conn(struct serve *s, int fd)
{
	bool welcome = listener_welcome(*s->listener, fd, &s->peer);

	if (welcome)
		STATS_COUNT(s->conf->stats, accepted);
	else
		STATS_COUNT(s->conf->stats, refused);
	conn_open(&s->all, fd, welcome);
}

static void
accepted(struct io_op *op)
{
	struct serve *s = container_of(op, struct serve, accept);

	s->ops--;
	s->accepting = false;
	if (op->res >= 0)
		take_conn(s, (int)op->res);
	if (!s->listening)
		listener_stop(s->listener);
	else if (op->res >= 0)
		accept_next(s);
	else if (op->res == -EMFILE || op->res == -ENFILE || op->res == -ENOBUFS || op->res == -ENOMEM)
		make_room(s);
	else
		accept_later(s);
}

static void
accept_next(struct serve *s)
{
	if (!s->listening || s->accepting || s->pausing)
		return;
	if (s->conf->stats->conns >= s->conf->max_conns) {
		make_room(s);
		return;
	}
	s->accepting = true;
	submit(s, &s->accept);
}

static void
conn_gone(struct conns *all)
{
	accept_next(container_of(all, struct serve, all));
}

static void
stop_listening(struct serve *s)
{
	if (!s->listening)
		return;
	s->listening = false;
	if (s->accepting)
		op_cancel(s->conf->io, &s->accept);
	else
		listener_stop(s->listener);
	if (s->pausing)
		op_cancel(s->conf->io, &s->pause);
}

/* ---------------------------------------------------------------- the end */

/* Who connected before the signal is still served, and a kept connection may hold a request that came just before it.  So
 * nothing is closed before the kernel has nothing more to tell: with the listener, those nobody accepted are reset. */
static void
looked(struct io_op *op)
{
	struct serve *s = container_of(op, struct serve, look);

	s->ops--;
	s->still = s->events == s->all.events ? s->still + 1 : 0;
	s->events = s->all.events;
	if (s->still < STILL && !s->leaving)
		start_timer(s, &s->look, LOOK_MS, looked);
	else {
		stop_listening(s);
		conns_leave(&s->all);
	}
}

/* Time is up. */
static void
left(struct io_op *op)
{
	struct serve *s = container_of(op, struct serve, end);

	s->ops--;
	if (op->res == -ECANCELED)
		return;
	stop_listening(s);
	conns_close(&s->all);
}

static void
give_up(struct io_op *op)
{
	struct serve *s = container_of(op, struct serve, end);

	s->ops--;
	if (op->res == -ECANCELED)
		return;
	s->leaving = true;
	s->given_up = conns_give_up(&s->all);
	start_timer(s, &s->end, LEAVE_MS, left);
}

static void
drain(struct serve *s)
{
	notify_manager("STOPPING=1");
	s->all.draining = true;
	s->events = s->all.events;
	start_timer(s, &s->look, LOOK_MS, looked);
	start_timer(s, &s->end, DRAIN_MS - LEAVE_MS, give_up);
}

static void
take_signal(struct serve *s, int number)
{
	if (number == SIGHUP)
		accel_log_reopen();
	else if (number == SIGUSR2)
		status_log(s->conf->status);
	else if (s->all.draining)
		_exit(128 + number);		/* asked twice: at once */
	else
		drain(s);
}

static void
signalled(struct io_op *op)
{
	struct serve *s = container_of(op, struct serve, signal);

	s->ops--;
	for (int64_t i = 0; i < op->res; i++)
		take_signal(s, op->recv.buf[i]);
	if (op->res > 0)
		submit(s, op);
}

/* ---------------------------------------------------------------- the loop */

static void
name_variables(struct serve *s)
{
	const char **names = accel_variables(s->conf->accel);
	size_t n = g_strv_length((char **)names);

	s->names = g_new(struct text, n);
	for (size_t i = 0; i < n; i++)
		s->names[i] = text_of(names[i]);
	g_free(names);
	s->all.record = (struct record_conf){
		.names = s->names, .n_names = n,
		.max_conns = s->conf->max_conns,
		.max_reqs = s->conf->max_conns,	/* one on each: a request holds nothing that runs out earlier */
	};
}

static int
serve_open(struct serve *s)
{
	s->all.io = s->conf->io;
	s->all.warm = s->conf->warm;
	s->all.stats = s->conf->stats;
	s->all.accel = s->conf->accel;
	s->all.status = s->conf->status;
	s->all.timing = s->conf->timing;
	s->all.gone = conn_gone;
	name_variables(s);
	conns_init(&s->all);
	return (request_reader_new(&s->all.reader));
}

static void
serve_begin(struct serve *s)
{
	s->conf->stats->conns_max = s->conf->max_conns;
	io_sock_init(&s->signals, s->conf->signal_fd);
	op_init(&s->signal, IO_RECV, signalled);
	s->signal.sock = &s->signals;
	submit(s, &s->signal);
	io_sock_init(&s->door, listener_fd(*s->listener));
	op_init(&s->accept, IO_ACCEPT, accepted);
	s->accept.sock = &s->door;
	s->accept.accept.peer = &s->peer;
	s->listening = true;
	accept_next(s);
}

static bool
finished(const struct serve *s)
{
	return (s->all.draining && !s->listening && s->conf->stats->conns == 0);
}

/* What is left are timers, and the signals. */
static void
serve_end(struct serve *s)
{
	s->leaving = true;
	op_cancel(s->conf->io, &s->end);
	op_cancel(s->conf->io, &s->signal);
	while (s->ops > 0)
		io_run(s->conf->io);
}

static void
serve_close(struct serve *s)
{
	request_reader_free(&s->all.reader);
	conns_free(&s->all);
	g_free(s->names);
}

int
serve_run(const struct serve_conf *conf, struct listener **listener)
{
	struct serve s = { .conf = conf, .listener = listener };
	int err = serve_open(&s);

	if (err == 0) {
		serve_begin(&s);
		while (!finished(&s))
			io_run(conf->io);
		serve_end(&s);
		err = s.given_up > 0 ? -EBUSY : 0;
	}
	serve_close(&s);
	return (err);
}
