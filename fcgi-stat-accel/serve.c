#include "fcgi-stat-accel/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "fcgi-stat-accel/log.h"
#include "io/start/notify.h"
#include "io/rest.h"

#define DRAIN_MS 1500u /* the program ends within two seconds */
#define LEAVE_MS 300u  /* part of DRAIN_MS, for "try again" answers */
#define PAUSE_MS 100u  /* without descriptors: accept again after this time */
/* between two checks for events; 0 would be the same round */
#define LOOK_MS 1u
/* A client that looked up the path of the socket before another process took it has connected by
 * then. */
#define LISTEN_MS 20u
/* checks in a row without an event: everything sent before the signal has been received */
#define STILL       2u
#define BEAT_MAX_MS (3600 * 1000u)
/* user memory of a connection, measured with 9,000: 339 bytes */
#define CONN_MEMORY 339u

struct serve {
	const struct serve_conf *conf;
	struct conns all;
	struct text *names;
	struct listener **listener;

	struct io_sock door; /* the listening socket */
	union io_addr peer;
	struct io_op accept;
	struct io_op pause; /* timer: resumes accepting */

	struct io_sock signals;
	struct io_op signal;

	struct io_op beat;      /* timer: the loop goes round */
	struct io_op look, end; /* timers while draining */
	uint64_t drain_ns;      /* since when; 0: not draining */
	uint64_t events;        /* at the last check */
	unsigned still;
	unsigned given_up;
	struct rest rest;
	bool accepting, pausing, listening, leaving;
	unsigned beat_ms; /* 0: nobody watches */
	unsigned ops;     /* own ops in flight */
};

static void accept_next(struct serve *);

static void
submit(struct serve *s, struct io_op *op)
{
	s->ops++;
	op_submit(s->all.io, op);
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

/* A web server reopens a kept connection when it needs it, and a new connection has a request.
 * conn_gone() goes on when the descriptor is free. */
static void
make_room(struct serve *s)
{
	if (conns_make_room(&s->all))
		count(&s->all.counters->events, crowded_out);
	else
		accept_later(s);
}

static void
take_conn(struct serve *s, int fd)
{
	bool welcome = listener_welcome(*s->listener, fd, &s->peer);

	if (welcome)
		count(&s->all.counters->events, accepted);
	else
		count(&s->all.counters->events, refused);
	advice_connected(s->all.advice, welcome, io_now(s->all.io));
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
	else if (op->res == -EMFILE || op->res == -ENFILE || op->res == -ENOBUFS ||
		 op->res == -ENOMEM)
		make_room(s);
	else
		accept_later(s);
}

static void
accept_next(struct serve *s)
{
	if (!s->listening || s->accepting || s->pausing)
		return;
	if (s->all.counters->conns >= s->conf->max_conns) {
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
		op_cancel(s->all.io, &s->accept);
	else
		listener_stop(s->listener);
	if (s->pausing)
		op_cancel(s->all.io, &s->pause);
}

/* ---------------------------------------------------------------- the end */

/* Closing the listener resets the connections that were not accepted. */
static bool
has_waiting_clients(const struct serve *s)
{
	struct pollfd p = { .fd = listener_fd(*s->listener), .events = POLLIN };

	return (poll(&p, 1, 0) > 0);
}

/* Clients that connected before the signal are served: first the queue of the listener is emptied,
 * even while another process accepts from the same socket.  A kept connection may hold a request
 * from just before the signal, so none is closed while the kernel still reports events.  Busy
 * clients do not make this longer, because each answer is the last one of its connection. */
static void
looked(struct io_op *op)
{
	struct serve *s = container_of(op, struct serve, look);
	bool settled = io_now(s->all.io) - s->drain_ns >= LISTEN_MS * NS_PER_MS;

	s->ops--;
	s->still = s->events == s->all.events && !s->listening && !s->accepting ? s->still + 1 : 0;
	s->events = s->all.events;
	if (s->leaving || (s->listening && settled && !has_waiting_clients(s)))
		stop_listening(s);
	if ((s->still < STILL || !conns_leave(&s->all)) && !s->leaving)
		start_timer(s, &s->look, LOOK_MS, looked);
	else
		conns_close_quiet(&s->all);
}

/* The time is up. */
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
drain(struct serve *s, unsigned ms)
{
	notify_manager("STOPPING=1");
	s->all.draining = true;
	s->drain_ns = io_now(s->all.io);
	s->events = s->all.events;
	start_timer(s, &s->look, LOOK_MS, looked);
	start_timer(s, &s->end, ms, give_up);
}

static void
take_signal(struct serve *s, int number)
{
	if (number == SIGHUP)
		accel_log_reopen();
	else if (number == SIGUSR2)
		status_log(s->all.status);
	else if (s->all.draining)
		_exit(128 + number); /* a second signal: exit at once */
	else
		drain(s, number == SIGUSR1 ? s->conf->patience_ms : DRAIN_MS - LEAVE_MS);
}

static void
signalled(struct io_op *op)
{
	struct serve *s = container_of(op, struct serve, signal);

	s->ops--;
	for (int64_t i = 0; i < op->res; i++)
		take_signal(s, op->buf[i]);
	if (op->res > 0)
		submit(s, op);
}

/* ---------------------------------------------------------------- the loop */

static void
beat(struct io_op *op)
{
	struct serve *s = container_of(op, struct serve, beat);
	char state[80];

	s->ops--;
	if (op->res == -ECANCELED)
		return;
	snprintf(state, sizeof(state), "WATCHDOG=1\nSTATUS=%s%u connections",
	    s->all.draining ? "stopping: " : "", s->all.counters->conns);
	notify_manager(state);
	start_timer(s, &s->beat, s->beat_ms, beat);
}

/* Half of the time that the service manager waits for a report. */
static void
start_beat(struct serve *s)
{
	s->beat_ms = (unsigned)MIN(notify_watchdog_ns() / 2 / NS_PER_MS, BEAT_MAX_MS);
	if (s->beat_ms > 0)
		start_timer(s, &s->beat, s->beat_ms, beat);
}

static void
name_variables(struct serve *s)
{
	const char **names = accel_variables(s->all.accel);
	size_t n = g_strv_length((char **)names);

	s->names = g_new(struct text, n);
	for (size_t i = 0; i < n; i++)
		s->names[i] = text_of(names[i]);
	g_free(names);
	s->all.record = (struct record_conf){
		.names = s->names,
		.n_names = n,
		.max_conns = s->conf->max_conns,
		/* one for each connection: a request needs no other limited resource */
		.max_reqs = s->conf->max_conns,
	};
}

static int
serve_open(struct serve *s)
{
	s->all.gone = conn_gone;
	rest_init(&s->rest, s->all.io, NULL);
	name_variables(s);
	conns_init(&s->all);
	return (request_reader_new(&s->all.reader));
}

static void
serve_begin(struct serve *s)
{
	s->all.counters->conns_max = s->conf->max_conns;
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
	start_beat(s);
}

static bool
finished(const struct serve *s)
{
	return (s->all.draining && !s->listening && !s->accepting && s->all.counters->conns == 0);
}

/* Only timers and signals are left. */
static void
serve_end(struct serve *s)
{
	s->leaving = true;
	op_cancel(s->all.io, &s->end);
	if (s->beat_ms > 0)
		op_cancel(s->all.io, &s->beat);
	op_cancel(s->all.io, &s->signal);
	while (s->ops > 0 || rest_stop(&s->rest))
		io_run(s->all.io);
}

static void
serve_close(struct serve *s)
{
	request_reader_free(&s->all.reader);
	conns_free(&s->all);
	g_free(s->names);
}

static void
note_use(struct serve *s)
{
	rest_note(&s->rest, s->all.events,
	    warm_memory(s->all.warm) + (uint64_t)s->all.counters->conns * CONN_MEMORY);
}

int
serve_run(const struct serve_conf *conf, struct listener **listener)
{
	struct serve s = { .conf = conf, .all = conf->conns, .listener = listener };
	int err = serve_open(&s);

	if (err == 0) {
		serve_begin(&s);
		while (!finished(&s)) {
			io_run(s.all.io);
			note_use(&s);
		}
		serve_end(&s);
		err = s.given_up > 0 ? -EBUSY : 0;
	}
	serve_close(&s);
	return (err);
}
