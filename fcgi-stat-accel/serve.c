#include "fcgi-stat-accel/serve.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fcgi-stat-accel/record.h"

#define INPUT_MAX   (64 * 1024)		/* one receive; also bounds what one reply can grow to */
#define EVENTS_MAX  256
#define ACCEPT_MAX  64			/* in a row; then others have their turn */
#define REST_MAX    1024		/* as long as the backlog is */
#define DRAIN_MS    1500		/* "ends within two seconds" */
#define PAUSE_MS    100			/* no descriptors: look again after this */

/* Each is a queue ordered by the time of entry, so deadlines cost a look at its head.  A state is
 * entered with nothing armed. */
#define CONN_STATES(S)						\
	S(quiet,  0,	 "kept, nothing asked")			\
	S(read,	  10000, "the rest of a request is missing")	\
	S(answer, 0,	 "a thread has it")			\
	S(write,  10000, "the peer does not take its answer")	\
	S(linger, 1000,	 "answered; the peer closes first")

enum state {
#define S(name, limit, doc) ST_##name,
	CONN_STATES(S)
#undef S
	STATES
};

static const int limit_ms[STATES] = {
#define S(name, limit, doc) limit,
	CONN_STATES(S)
#undef S
};

struct conn {
	TAILQ_ENTRY(conn) link;
	int	      fd;
	enum state    state;
	bool	      last;		/* close after what is in out */
	int64_t	      since;		/* ms: when the state was entered */
	struct record record;
	GString	     *out;		/* NULL when there is nothing to send */
	size_t	      sent;
	GBytes	     *rest;		/* received behind the request that is being answered */
	struct job    job;
};

TAILQ_HEAD(queue, conn);

struct serve {
	const struct serve_conf *conf;
	struct listener **listener;
	struct work	 *work;
	int		  epoll;
	int64_t		  now;		/* ms, CLOCK_MONOTONIC */
	struct queue	  in[STATES], gone;
	unsigned	  conns;
	bool		  accepting, draining;
	int64_t		  resume_at, drain_end;
	uint8_t		  input[INPUT_MAX];
};

/* What an event is about, when it is not a connection. */
static char on_listener, on_work, on_signal;

static void conn_receive(struct serve *, struct conn *);
static void conn_feed(struct serve *, struct conn *, const uint8_t *, size_t);

static int64_t
clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
}

static int
watch(struct serve *s, int op, int fd, uint32_t events, void *what)
{
	struct epoll_event ev = { .events = events, .data.ptr = what };

	return (epoll_ctl(s->epoll, op, fd, &ev));
}

/* ---------------------------------------------------------------- a connection */

static void
conn_enter(struct serve *s, struct conn *c, enum state state)
{
	TAILQ_REMOVE(&s->in[c->state], c, link);
	TAILQ_INSERT_TAIL(&s->in[state], c, link);
	c->state = state;
	c->since = s->now;
}

/* Once: until it fires and somebody asks again, the kernel says nothing of this connection. */
static void
conn_arm(struct serve *s, struct conn *c, uint32_t events)
{
	watch(s, EPOLL_CTL_MOD, c->fd, events | EPOLLONESHOT, c);
}

/* Freed after the batch of events, which may still name it. */
static void
conn_close(struct serve *s, struct conn *c)
{
	TAILQ_REMOVE(&s->in[c->state], c, link);
	TAILQ_INSERT_TAIL(&s->gone, c, link);
	close(c->fd);
	c->fd = -1;
	s->conns--;
}

static void
conn_free(struct conn *c)
{
	record_free(&c->record);
	if (c->out != NULL)
		g_string_free(c->out, TRUE);
	g_clear_pointer(&c->rest, g_bytes_unref);
	g_free(c);
}

static void
conn_new(struct serve *s, int fd)
{
	struct conn *c = g_new0(struct conn, 1);

	c->fd = fd;
	c->state = ST_quiet;
	c->since = s->now;
	record_init(&c->record, s->conf->threads);
	TAILQ_INSERT_TAIL(&s->in[ST_quiet], c, link);
	s->conns++;
	if (watch(s, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT, c) < 0)
		conn_close(s, c);
}

/* More is needed: from a peer that owes the rest of a request, or may be silent for as long as
 * it likes. */
static void
conn_wait(struct serve *s, struct conn *c)
{
	bool idle = record_idle(&c->record);

	if (idle && s->draining) {
		conn_close(s, c);
		return;
	}
	if (idle || c->state != ST_read)	/* dripping does not move the deadline */
		conn_enter(s, c, idle ? ST_quiet : ST_read);
	conn_arm(s, c, EPOLLIN);
}

/* The peer may still be sending a body.  Closing with unread bytes would be a reset, which
 * overtakes our answer. */
static void
conn_linger(struct serve *s, struct conn *c)
{
	shutdown(c->fd, SHUT_WR);
	conn_enter(s, c, ST_linger);
	conn_arm(s, c, EPOLLIN);
}

static void
conn_discard(struct serve *s, struct conn *c)
{
	ssize_t n = recv(c->fd, s->input, sizeof(s->input), 0);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		conn_arm(s, c, EPOLLIN);
	else
		conn_close(s, c);
}

/* All is sent: what came in behind the request is next, then the socket. */
static void
conn_next(struct serve *s, struct conn *c)
{
	GBytes *rest = c->rest;
	const uint8_t *p;
	size_t n;

	g_string_free(c->out, TRUE);
	c->out = NULL;
	c->sent = 0;
	if (c->last) {
		conn_linger(s, c);
		return;
	}
	if (rest == NULL) {
		conn_wait(s, c);
		return;
	}
	c->rest = NULL;
	p = g_bytes_get_data(rest, &n);
	conn_feed(s, c, p, n);
	g_bytes_unref(rest);
}

static void
conn_send(struct serve *s, struct conn *c)
{
	ssize_t n = send(c->fd, c->out->str + c->sent, c->out->len - c->sent, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		conn_close(s, c);
		return;
	}
	c->sent += MAX(n, 0);
	if (c->sent == c->out->len) {
		conn_next(s, c);
		return;
	}
	if (c->state != ST_write || n > 0)	/* progress moves the deadline */
		conn_enter(s, c, ST_write);
	conn_arm(s, c, EPOLLOUT);
}

static void
conn_submit(struct serve *s, struct conn *c)
{
	c->last = !c->record.keep || s->draining;
	c->job.bytes = record_take(&c->record);
	conn_enter(s, c, ST_answer);
	work_submit(s->work, &c->job);
}

static void
conn_answered(struct serve *s, struct conn *c)
{
	GString *answer = c->job.bytes;

	c->job.bytes = NULL;
	c->last |= s->draining;
	if (answer->len == 0) {
		g_string_free(answer, TRUE);
		conn_close(s, c);
		return;
	}
	if (c->out == NULL)
		c->out = answer;
	else {
		g_string_append_len(c->out, answer->str, answer->len);
		g_string_free(answer, TRUE);
	}
	conn_send(s, c);
}

static void
conn_keep_rest(struct conn *c, const uint8_t *p, size_t n)
{
	if (n > 0)
		c->rest = g_bytes_new(p, n);
}

/* Replies that need no file wait in out until a request behind them is answered, or the bytes
 * end. */
static void
conn_feed(struct serve *s, struct conn *c, const uint8_t *p, size_t n)
{
	enum record_result result;
	size_t used;

	if (c->out == NULL)
		c->out = g_string_new(NULL);
	result = record_feed(&c->record, p, n, &used, c->out);
	switch (result) {
	case RECORD_REQUEST:
		conn_keep_rest(c, p + used, n - used);
		conn_submit(s, c);
		return;
	case RECORD_BAD:
		conn_close(s, c);
		return;
	case RECORD_CLOSE:
		c->last = true;
		break;
	case RECORD_MORE:
		break;
	}
	if (c->out->len > 0)
		conn_send(s, c);
	else
		conn_next(s, c);
}

/* Once per event: who floods us has its next turn after all the others. */
static void
conn_receive(struct serve *s, struct conn *c)
{
	ssize_t n = recv(c->fd, s->input, sizeof(s->input), 0);

	if (n > 0)
		conn_feed(s, c, s->input, n);
	else if (n < 0 && (errno == EAGAIN || errno == EINTR))
		conn_wait(s, c);
	else
		conn_close(s, c);
}

static void
conn_event(struct serve *s, struct conn *c)
{
	switch (c->state) {
	case ST_quiet:
	case ST_read:
		conn_receive(s, c);
		break;
	case ST_write:
		conn_send(s, c);
		break;
	case ST_linger:
		conn_discard(s, c);
		break;
	case ST_answer:
	case STATES:
		break;
	}
}

/* ---------------------------------------------------------------- new connections */

static void
accept_pause(struct serve *s)
{
	if (!s->accepting)
		return;
	watch(s, EPOLL_CTL_DEL, listen_fd(*s->listener), 0, NULL);
	s->accepting = false;
}

/* EPOLLEXCLUSIVE: spawn-fcgi -F gives one socket to several processes; one of them wakes. */
static void
accept_resume(struct serve *s)
{
	if (s->accepting || *s->listener == NULL)
		return;
	s->accepting = watch(s, EPOLL_CTL_ADD, listen_fd(*s->listener), EPOLLIN | EPOLLEXCLUSIVE,
	    &on_listener) == 0;
	s->resume_at = 0;
}

/* A web server opens a kept connection again when it needs it; a new one has a request to ask. */
static bool
make_room(struct serve *s)
{
	struct conn *c = TAILQ_FIRST(&s->in[ST_quiet]);

	if (c == NULL)
		return (false);
	conn_close(s, c);
	return (true);
}

static void
accept_later(struct serve *s)
{
	accept_pause(s);
	s->resume_at = s->now + PAUSE_MS;
}

/* False when it is enough for now. */
static bool
accept_one(struct serve *s)
{
	int fd;

	if (s->conns >= s->conf->max_conns && !make_room(s)) {
		accept_later(s);
		return (false);
	}
	fd = listen_accept(*s->listener);
	if (fd >= 0)
		conn_new(s, fd);
	else if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
		if (!make_room(s))
			accept_later(s);
		return (false);
	}
	return (fd != -EAGAIN);
}

static void
accept_some(struct serve *s)
{
	for (int i = 0; i < ACCEPT_MAX && s->accepting && accept_one(s); i++)
		;
}

/* ---------------------------------------------------------------- the end */

/* Who connected before the signal is still served: with the listener, those nobody accepted are
 * reset. */
static void
accept_rest(struct serve *s)
{
	for (int i = 0; i < REST_MAX && s->accepting && accept_one(s); i++)
		;
}

/* A kept connection may hold a request that came just before the signal: one last look at each. */
static void
drain_quiet(struct serve *s)
{
	struct conn *c;

	while ((c = TAILQ_FIRST(&s->in[ST_quiet])) != NULL)
		conn_receive(s, c);	/* none stays: see conn_wait() */
}

static void
drain(struct serve *s)
{
	s->draining = true;
	s->drain_end = s->now + DRAIN_MS;
	accept_rest(s);
	accept_pause(s);
	s->resume_at = 0;
	listen_stop(s->listener);
	drain_quiet(s);
}

static void
take_signal(struct serve *s)
{
	struct signalfd_siginfo info;

	if (read(s->conf->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (s->draining)
		_exit(128 + (int)info.ssi_signo);	/* asked twice: at once */
	drain(s);
}

static bool
finished(const struct serve *s)
{
	return (s->draining && (s->conns == 0 || s->now >= s->drain_end));
}

/* ---------------------------------------------------------------- the loop */

static void
take_answers(struct serve *s)
{
	struct job *j, *next;

	for (j = work_done(s->work); j != NULL; j = next) {
		next = j->next;
		conn_answered(s, (struct conn *)((char *)j - offsetof(struct conn, job)));
	}
}

static void
expire(struct serve *s)
{
	struct conn *c;

	for (int i = 0; i < STATES; i++)
		while (limit_ms[i] > 0 && (c = TAILQ_FIRST(&s->in[i])) != NULL &&
		    s->now - c->since >= limit_ms[i])
			conn_close(s, c);
	if (s->resume_at != 0 && s->now >= s->resume_at)
		accept_resume(s);
}

static void
free_gone(struct serve *s)
{
	struct conn *c;

	while ((c = TAILQ_FIRST(&s->gone)) != NULL) {
		TAILQ_REMOVE(&s->gone, c, link);
		conn_free(c);
	}
}

/* ms until something is due, -1 when nothing is. */
static int
next_due(const struct serve *s)
{
	int64_t due = INT64_MAX;
	struct conn *c;

	for (int i = 0; i < STATES; i++)
		if (limit_ms[i] > 0 && (c = TAILQ_FIRST(&s->in[i])) != NULL)
			due = MIN(due, c->since + limit_ms[i]);
	if (s->resume_at != 0)
		due = MIN(due, s->resume_at);
	if (s->draining)
		due = MIN(due, s->drain_end);
	return (due == INT64_MAX ? -1 : (int)MAX(due - s->now, 0));
}

static void
take_event(struct serve *s, void *what)
{
	if (what == &on_listener)
		accept_some(s);
	else if (what == &on_work)
		take_answers(s);
	else if (what == &on_signal)
		take_signal(s);
	else if (((struct conn *)what)->fd >= 0)	/* not closed earlier in this batch */
		conn_event(s, what);
}

static void
turn(struct serve *s)
{
	struct epoll_event ev[EVENTS_MAX];
	int n = epoll_wait(s->epoll, ev, EVENTS_MAX, next_due(s));

	s->now = clock_ms();
	for (int i = 0; i < n; i++)
		take_event(s, ev[i].data.ptr);
	expire(s);
	free_gone(s);
}

/* Connections whose job is with a thread are left to the end of the process. */
static int
close_all(struct serve *s)
{
	struct conn *c;

	for (int i = 0; i < STATES; i++)
		while (i != ST_answer && (c = TAILQ_FIRST(&s->in[i])) != NULL)
			conn_close(s, c);
	free_gone(s);
	close(s->epoll);
	return (s->conns == 0 ? 0 : -EBUSY);
}

static int
serve_open(struct serve *s)
{
	for (int i = 0; i < STATES; i++)
		TAILQ_INIT(&s->in[i]);
	TAILQ_INIT(&s->gone);
	s->now = clock_ms();
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0 || watch(s, EPOLL_CTL_ADD, work_fd(s->work), EPOLLIN, &on_work) < 0 ||
	    watch(s, EPOLL_CTL_ADD, s->conf->signal_fd, EPOLLIN, &on_signal) < 0)
		return (-errno);
	accept_resume(s);
	return (s->accepting ? 0 : -errno);
}

int
serve_run(const struct serve_conf *conf, struct listener **listener, struct work *work)
{
	struct serve *s = g_new0(struct serve, 1);
	int err;

	s->conf = conf;
	s->listener = listener;
	s->work = work;
	err = serve_open(s);
	while (err == 0 && !finished(s))
		turn(s);
	if (err == 0)
		err = close_all(s);
	if (err != -EBUSY)		/* else a thread writes to a job in there */
		g_free(s);
	return (err);
}
