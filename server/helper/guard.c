/* server/helper/guard.c -- the guardian: the parent of the helper process, which forks it again
 * when it has died.
 *
 *   server ===pair=== guardian --fork--> helper
 *             pair, socket of programs     the same two sockets
 *             names <---------------------- names
 *                              --fork--> the process with the private keys (keys.c)
 *             socket of keys, feed         the same two sockets
 *
 * It does nothing else, so there is hardly a reason for it to die.  The server's requests wait in
 * the pair until the next helper takes them, and those of workers in the queue of their socket.  A
 * helper that dies again and again is forked after a pause: none, 1 s, 2 s, ... 60 s.  Requests of
 * such a pause fail at once.
 *
 * If the guardian is killed, its helper notices and forks the next one:
 *
 *   helper --fork--> next guardian --fork--> next helper
 *   ends when its running work is done
 *
 * The end  when the server has closed its end of the pair, never because of a helper.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/helper/impl.h"
#include "server/helper/kept.h"

#define PAUSE_MS     1000u
#define PAUSE_MAX_MS 60000u /* a helper that lived for this long is forked again at once */
#define END_MS       HELPER_ANSWER_MS /* for a helper, when the server has ended */

struct guard {
	struct helper_of of;
	int signals, keep; /* keep: names from the helper */
	struct helper_kept kept;
	pid_t pid; /* of the helper; 0: none */
	uint64_t started_ns;
	uint32_t pause_ms, lost; /* lost: helpers so far */
	int status;              /* of the last helper that ended */
	/* The process with the private keys, forked when a key or a thread waits for it. */
	struct {
		pid_t pid; /* 0: none */
		uint64_t started_ns, again_ns;
		uint32_t pause_ms, lost;
		bool done; /* the server has ended */
	} keys;
};

/* ---------------------------------------------------------------- what it hears */

static void
names_take(struct guard *g)
{
	struct helper_name n;
	/* one byte more, so that a longer message has the wrong length */
	char bytes[sizeof(n) + 1];
	ssize_t len;

	while ((len = recv(g->keep, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		if (helper_name_parse(bytes, (size_t)len, &n) == 0)
			helper_keep(&g->kept, &n);
}

/* The hang-up of the pair.  Messages in it are for the helper, so none is read here. */
static bool
server_has_ended(const struct guard *g)
{
	struct pollfd p = { .fd = g->of.pair };

	return (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0);
}

static void
say_event(const struct guard *g, const struct helper_event *e)
{
	(void)helper_send(g->of.pair, e, sizeof(*e), -1);
}

static void
say(const struct guard *g, enum helper_news news)
{
	say_event(g, &(struct helper_event){ .news = news,
			 .lost = g->lost,
			 .status = g->status,
			 .pause_ms = g->pause_ms });
}

/* None after a first death or a long life; 1 s, 2 s, ... 60 s if it dies again and again. */
static uint32_t
next_pause(uint64_t started_ns, uint32_t lost, uint32_t pause_ms)
{
	bool lived = clock_mono_ns() - started_ns >= PAUSE_MAX_MS * NS_PER_MS;

	return (lived || lost == 0 ? 0 : MIN(MAX(2 * pause_ms, PAUSE_MS), PAUSE_MAX_MS));
}

/* ---------------------------------------------------------------- private keys */

static void
keys_start(struct guard *g)
{
	pid_t guardian = getpid();

	g->keys.started_ns = clock_mono_ns();
	g->keys.pid = fork();
	if (g->keys.pid == 0) {
		close(g->signals);
		close(g->keep);
		close(g->of.pair);
		close(g->of.keep);
		close(g->of.feed[0]);
		if (g->of.cgi >= 0)
			close(g->of.cgi);
		helper_keys_process(&g->of, &g->kept, guardian);
	}
	if (g->keys.pid < 0) {
		g->keys.pid = 0;
		g->keys.again_ns = g->keys.started_ns + PAUSE_MS * NS_PER_MS;
	}
}

static void
keys_reap(struct guard *g)
{
	int status;

	if (g->keys.pid == 0 || waitpid(g->keys.pid, &status, WNOHANG) != g->keys.pid)
		return;
	g->keys.pid = 0;
	if (server_has_ended(g))
		return;
	g->keys.pause_ms = next_pause(g->keys.started_ns, g->keys.lost, g->keys.pause_ms);
	g->keys.again_ns = clock_mono_ns() + g->keys.pause_ms * NS_PER_MS;
	say_event(g, &(struct helper_event){ .news = HELPER_KEYS_DIED,
			 .lost = ++g->keys.lost,
			 .status = status,
			 .pause_ms = g->keys.pause_ms });
}

/* What waits for the process that is not there; *timeout_ms (-1: none) gets no longer. */
static void
keys_poll(const struct guard *g, struct pollfd p[2], int *timeout_ms)
{
	uint64_t now = clock_mono_ns();
	bool asked = g->keys.pid == 0 && !g->keys.done;
	int ms;

	if (asked && now < g->keys.again_ns) {
		ms = (int)((g->keys.again_ns - now) / NS_PER_MS) + 1;
		if (*timeout_ms < 0 || ms < *timeout_ms)
			*timeout_ms = ms;
		asked = false;
	}
	p[0] = (struct pollfd){ .fd = asked ? g->of.keys : -1, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = asked ? g->of.feed[1] : -1, .events = POLLIN };
}

static void
keys_take(struct guard *g, const struct pollfd p[2])
{
	if (((p[0].revents | p[1].revents) & POLLIN) != 0)
		keys_start(g);
	else if (p[0].revents != 0)
		g->keys.done = true;
}

/* ---------------------------------------------------------------- a helper */

static void
start(struct guard *g)
{
	g->started_ns = clock_mono_ns();
	g->of.lost = g->lost;
	g->pid = fork();
	if (g->pid == 0) {
		close(g->signals);
		close(g->keep);
		helper_process(&g->of, &g->kept);
	}
	if (g->pid > 0)
		return;
	g->pid = 0; /* no memory: treated as a helper that died at once */
	g->status = SIGKILL;
}

/* False: the helper has ended. */
static bool
helper_lives(struct guard *g)
{
	struct signalfd_siginfo si;
	int status;

	while (read(g->signals, &si, sizeof(si)) > 0)
		;
	keys_reap(g);
	if (g->pid != 0 && waitpid(g->pid, &status, WNOHANG) == g->pid) {
		g->pid = 0;
		g->status = status;
	}
	return (g->pid != 0);
}

/* Waits until the helper has ended.  The helper sees the end of the server, too, and ends by
 * itself. */
static void
follow(struct guard *g)
{
	struct pollfd p[5] = { { .fd = g->signals, .events = POLLIN },
		{ .fd = g->keep, .events = POLLIN }, { .fd = g->of.pair } };
	int timeout_ms;

	while (helper_lives(g)) {
		timeout_ms = p[2].fd < 0 ? (int)END_MS : -1;
		keys_poll(g, &p[3], &timeout_ms);
		if (poll(p, 5, timeout_ms) == 0 && p[2].fd < 0)
			(void)kill(g->pid, SIGKILL);
		names_take(g);
		keys_take(g, &p[3]);
		if (p[2].revents != 0) {
			p[2].fd = -1;
			g->keys.done = true;
		}
	}
	names_take(g);
}

/* ---------------------------------------------------------------- without a helper */

static void
drop_request(const struct guard *g)
{
	char bytes[HELPER_NAME_MAX + 1];
	int reply;

	(void)helper_recv(g->of.pair, bytes, sizeof(bytes), &reply);
	if (reply >= 0)
		close(reply);
}

static void
drop_program(const struct guard *g)
{
	int sock = accept4(g->of.cgi, NULL, NULL, SOCK_CLOEXEC);

	if (sock >= 0)
		close(sock);
}

static void
wait_a_while(struct guard *g)
{
	struct pollfd p[5] = { { .fd = g->of.pair, .events = POLLIN },
		{ .fd = g->of.cgi, .events = POLLIN }, { .fd = g->signals, .events = POLLIN } };
	uint64_t until = clock_mono_ns() + g->pause_ms * NS_PER_MS, now;
	int timeout_ms;

	while ((now = clock_mono_ns()) < until && !server_has_ended(g)) {
		timeout_ms = (int)((until - now) / NS_PER_MS) + 1;
		keys_poll(g, &p[3], &timeout_ms);
		(void)poll(p, 5, timeout_ms);
		(void)helper_lives(g); /* it does not; the process with the keys may have ended */
		names_take(g);
		keys_take(g, &p[3]);
		if (p[0].revents != 0)
			drop_request(g);
		if (p[1].revents != 0)
			drop_program(g);
	}
}

static void
choose_pause(struct guard *g)
{
	g->pause_ms = next_pause(g->started_ns, g->lost, g->pause_ms);
	g->lost++;
}

/* ---------------------------------------------------------------- the guardian */

static void
begin(struct guard *g, const struct helper_of *of)
{
	int keep[2];

	*g = (struct guard){ .of = *of, .lost = of->lost };
	g->signals = helper_signals_open();
	prctl(PR_SET_NAME, "accel-guardian");
	if (g->signals < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keep) != 0)
		_exit(1);
	g->keep = keep[0];
	g->of.keep = keep[1];
}

static _Noreturn void
guard(struct guard *g)
{
	start(g);
	follow(g);
	while (!server_has_ended(g)) {
		choose_pause(g);
		say(g, HELPER_DIED);
		wait_a_while(g);
		start(g);
		if (g->pid != 0)
			say(g, HELPER_BACK);
		follow(g);
	}
	if (g->kept.pidfile[0] != '\0')
		(void)helper_work_remove_pidfile(g->kept.pidfile, g->of.server);
	_exit(0);
}

_Noreturn void
helper_guard(const struct helper_of *of)
{
	struct guard g;

	begin(&g, of);
	if (helper_keys_feed(g.of.feed) != 0)
		_exit(1);
	helper_kept_init(&g.kept);
	guard(&g);
}

_Noreturn void
helper_guard_again(const struct helper_of *of, const struct helper_kept *kept)
{
	struct guard g;

	close(of->keep);
	begin(&g, of);
	g.kept = *kept;
	g.lost++;
	say(&g, HELPER_GUARDED);
	guard(&g);
}
