/* server/helper/process.c -- the helper process: checks requests and forks a child for each.  See
 * helper.h.  guard.c forks it.
 *
 * It makes no call that can hang: it serves the next request while a directory of logs or a
 * resolver hangs.
 */
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/helper/cgi.h"
#include "server/helper/impl.h"
#include "server/helper/kept.h"

/* The server comes before the helper's children, except programs of CGI.  With a reload every 0.7 s
 * on one busy core, a load takes about ten times as long as alone. */
#define HELPER_NICE 10
/* One waits for changes.  Those of earlier configurations end at once, unless a disk hangs. */
#define RENEW_MAX 8u

/* Signals for the server; the helper ignores them. */
static const int ignored[] = { SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE };

struct child {
	pid_t pid; /* also its process group */
	enum helper_kind kind;
	int reply;          /* for an error if the child dies without an answer */
	int names;          /* from the child; -1: none */
	GPtrArray *pending; /* names of a list that is incomplete */
	uint64_t until_ns;
	bool late; /* killed */
};

struct helper_state {
	struct helper_of of;
	struct helper_kept *kept; /* the guardian has the same */
	int signals;
	struct child v[HELPER_CHILDREN_MAX];
	size_t n;
	pid_t runner[CGI_RUNNING_MAX]; /* of programs */
	size_t nrunners;
	/* another helper takes the requests; running work of this one goes on */
	bool retired;
	uint64_t unguarded_ns; /* the next try to fork a guardian; 0: none was necessary */
};

/* ---------------------------------------------------------------- names */

static void
names_adopt(struct helper_state *h, struct child *c)
{
	guint i;

	for (i = 0; i < c->pending->len; i++)
		helper_keep(h->kept, g_ptr_array_index(c->pending, i));
	g_ptr_array_set_size(c->pending, 0);
}

static void
names_take(struct helper_state *h, struct child *c)
{
	struct helper_name n;
	/* one byte more, so that a message that is too long is noticed */
	char bytes[sizeof(n) + 1];
	ssize_t len;

	while (c->names >= 0 && (len = recv(c->names, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		if (helper_name_parse(bytes, (size_t)len, &n) != 0)
			continue;
		if (n.kind == HELPER_LOAD) {
			names_adopt(h, c);
			helper_keep(h->kept, &n);
		} else if (c->pending->len < HELPER_NAMES_MAX) /* the child sends no more */
			g_ptr_array_add(c->pending, helper_name_copy(&n));
	}
}

static void
names_take_all(struct helper_state *h)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		names_take(h, &h->v[i]);
}

/* ---------------------------------------------------------------- children */

/* In the child: default signals, and SIGKILL when the helper dies. */
static void
child_begin(const struct helper_state *h, pid_t helper)
{
	sigset_t none;
	size_t i;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != helper)
		_exit(1);
	for (i = 0; i < G_N_ELEMENTS(ignored); i++)
		signal(ignored[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close(h->of.pair);
	close(h->signals);
	if (h->of.cgi >= 0)
		close(h->of.cgi);
	close(h->of.keys);
	close(h->of.feed[1]);
}

static void
child_close_others(const struct helper_state *h)
{
	size_t i;

	for (i = 0; i < h->n; i++) {
		close(h->v[i].reply);
		if (h->v[i].names >= 0)
			close(h->v[i].names);
	}
}

static void
child_run(const struct helper_state *h, pid_t helper, const struct helper_request *r, int reply,
    int names)
{
	child_begin(h, helper);
	child_close_others(h);
	if (r->kind != HELPER_LOAD)
		close(h->of.keep);
	if (r->kind != HELPER_LOAD && r->kind != HELPER_RENEW)
		close(h->of.feed[0]);
	if (r->kind == HELPER_UPGRADE)
		_exit(helper_work_upgrade(reply, h->kept->load_ms));
	(void)setpriority(PRIO_PROCESS, 0, HELPER_NICE);
	if (r->kind == HELPER_LOAD)
		_exit(helper_work_load(&h->of, reply, names));
	if (r->kind == HELPER_RENEW)
		_exit(helper_work_renew(&h->of, h->kept, r->name, reply));
	if (r->kind == HELPER_RESOLVE)
		_exit(helper_work_resolve(r->name, reply));
	_exit(
	    helper_work_open(r, helper_kept_find(h->kept, r->kind, r->name), h->of.server, reply));
}

/* The answer of a failed open. */
static void
refuse(int reply, int32_t err)
{
	(void)helper_send(reply, &err, sizeof(err), -1);
}

/* The answer of a failed load; it replaces the rest of its record. */
static void
refuse_load(int reply, const char *why)
{
	char item[256];

	(void)helper_send(reply, item, sources_put_failure(item, sizeof(item), why), -1);
}

static uint64_t
time_for(const struct helper_state *h, enum helper_kind kind)
{
	switch (kind) {
	case HELPER_LOAD: return (h->kept->load_ms);
	case HELPER_UPGRADE:
		return (h->kept->load_ms + 2 * HELPER_UPGRADE_MS); /* it watches itself */
	case HELPER_RENEW: return (HELPER_RENEW_MS);
	default: return (HELPER_ANSWER_MS);
	}
}

/* Takes reply. */
static void
child_start(struct helper_state *h, const struct helper_request *r, int reply)
{
	bool load = r->kind == HELPER_LOAD;
	pid_t helper = getpid();
	int names[2] = { -1, -1 };
	struct child *c;
	pid_t pid;

	if (h->n == HELPER_CHILDREN_MAX ||
	    (load && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, names) != 0) ||
	    (pid = fork()) < 0) {
		if (load)
			refuse_load(reply, "the helper process has too much to do");
		else
			refuse(reply, -EAGAIN);
		if (names[0] >= 0) {
			close(names[0]);
			close(names[1]);
		}
		close(reply);
		return;
	}
	if (pid == 0)
		child_run(h, helper, r, reply, names[1]);
	setpgid(pid, pid); /* parent and child both call it; the first one has an effect */
	if (names[1] >= 0)
		close(names[1]);
	c = &h->v[h->n++];
	*c = (struct child){ .pid = pid,
		.kind = r->kind,
		.reply = reply,
		.names = names[0],
		.pending = g_ptr_array_new_with_free_func(g_free),
		.until_ns = clock_mono_ns() + time_for(h, r->kind) * NS_PER_MS };
}

/* The child died or was late: answers in its place. */
static void
last_word(const struct helper_state *h, const struct child *c, int status)
{
	char why[128];

	if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2))
		return;
	if (c->kind == HELPER_RENEW)
		return; /* the server asks again */
	if (c->kind != HELPER_LOAD) {
		refuse(c->reply, c->late ? -ETIMEDOUT : -EIO);
		return;
	}
	if (c->late)
		snprintf(why, sizeof(why), "it took longer than %u s (server.reload-timeout)",
		    h->kept->load_ms / 1000);
	else if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "its reader was ended by signal %d%s", WTERMSIG(status),
		    WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGTRAP ? " (no memory?)"
									       : "");
	else
		snprintf(why, sizeof(why), "its reader ended with status %d", WEXITSTATUS(status));
	refuse_load(c->reply, why);
}

static void
child_end(struct helper_state *h, size_t i, int status)
{
	struct child *c = &h->v[i];

	names_take(h, c);
	last_word(h, c, status);
	close(c->reply);
	if (c->names >= 0)
		close(c->names);
	g_ptr_array_free(c->pending, TRUE);
	h->v[i] = h->v[--h->n];
}

/* ---------------------------------------------------------------- programs of CGI */

/* As many runners as the newest configuration allows; 0: it has none. */
static size_t
runners_max(const struct helper_state *h)
{
	const struct helper_name *n;
	guint i;

	for (i = h->kept->names->len; i-- > 0;) {
		n = g_ptr_array_index(h->kept->names, i);
		if (n->kind == HELPER_CGI_USER)
			return (MIN((size_t)MAX(n->backlog, 0), CGI_RUNNING_MAX));
	}
	return (0);
}

/* The address of the socket is not a secret: only the server may connect. */
static bool
is_server(const struct helper_state *h, int sock)
{
	struct ucred who = { .pid = 0 };
	socklen_t n = sizeof(who);

	return (
	    getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.pid == h->of.server);
}

static void
runner_start(struct helper_state *h)
{
	struct cgi_allowed allowed = { h->kept->names, h->of.server };
	pid_t helper = getpid(), pid;
	int sock = accept4(h->of.cgi, NULL, NULL, SOCK_CLOEXEC);

	if (sock < 0)
		return;
	if (is_server(h, sock) && (pid = fork()) >= 0) {
		if (pid == 0) {
			child_begin(h, helper);
			child_close_others(h);
			close(h->of.keep);
			close(h->of.feed[0]);
			cgi_run(&allowed, sock, helper);
		}
		h->runner[h->nrunners++] = pid;
	}
	close(sock);
}

static void
runners_reap(struct helper_state *h)
{
	size_t i;

	for (i = h->nrunners; i-- > 0;)
		if (waitpid(h->runner[i], NULL, WNOHANG) != 0)
			h->runner[i] = h->runner[--h->nrunners];
}

static void
reap(struct helper_state *h)
{
	struct signalfd_siginfo si;
	int status;
	size_t i;

	while (read(h->signals, &si, sizeof(si)) > 0)
		;
	for (i = h->n; i-- > 0;)
		if (waitpid(h->v[i].pid, &status, WNOHANG) == h->v[i].pid)
			child_end(h, i, status);
	runners_reap(h);
}

static void
child_kill(struct child *c)
{
	c->late = true;
	c->until_ns = UINT64_MAX;
	if (c->kind == HELPER_UPGRADE) { /* the child ends the new server, unless that is ready */
		kill(c->pid, SIGTERM);
		return;
	}
	kill(-c->pid, SIGKILL);
	kill(c->pid, SIGKILL);
}

/* Kills late children; returns the time until the next deadline, for poll(2). */
static int
kill_late(struct helper_state *h)
{
	uint64_t now = clock_mono_ns(), next = UINT64_MAX;
	size_t i;

	for (i = 0; i < h->n; i++) {
		if (h->v[i].until_ns <= now)
			child_kill(&h->v[i]);
		next = MIN(next, h->v[i].until_ns);
	}
	return (next == UINT64_MAX ? -1 : (int)((next - now) / NS_PER_MS) + 1);
}

/* ---------------------------------------------------------------- requests */

static size_t
number_of(const struct helper_state *h, enum helper_kind kind)
{
	size_t i, n = 0;

	for (i = 0; i < h->n; i++)
		n += h->v[i].kind == kind;
	return (n);
}

static bool
is_named(const struct helper_state *h, const struct helper_request *r)
{
	enum helper_kind kind = r->kind == HELPER_REMOVE_PIDFILE ? HELPER_PIDFILE : r->kind;

	if (kind == HELPER_UPGRADE)
		return (number_of(h, kind) == 0);
	if (kind == HELPER_RENEW)
		return (number_of(h, kind) < RENEW_MAX);
	return (kind == HELPER_LOAD || helper_kept_find(h->kept, kind, r->name) != NULL);
}

/* Before it is written: its content decides at the end. */
static void
keep_pidfile(struct helper_state *h, const struct helper_request *r)
{
	struct helper_name n = { .kind = HELPER_REMOVE_PIDFILE };

	if (r->kind != HELPER_PIDFILE)
		return;
	memcpy(n.name, r->name, sizeof(n.name));
	helper_keep(h->kept, &n);
	(void)helper_send(h->of.keep, &n, sizeof(n), -1);
}

/* False: the server has ended. */
static bool
take_request(struct helper_state *h)
{
	struct helper_request r;
	char bytes[HELPER_NAME_MAX + 1];
	int reply;
	ssize_t n = helper_recv(h->of.pair, bytes, sizeof(bytes), &reply);

	if (n == 0 || (n < 0 && n != -EINVAL && n != -EMSGSIZE && n != -EAGAIN && n != -EINTR))
		return (false);
	if (reply < 0)
		return (true); /* no descriptor to answer to */
	names_take_all(h);
	if (n < 0 || helper_request_parse(bytes, (size_t)n, &r) != 0)
		refuse(reply, -EINVAL);
	else if (!is_named(h, &r))
		refuse(reply, -EPERM);
	else {
		keep_pidfile(h, &r);
		child_start(h, &r, reply);
		return (true);
	}
	close(reply);
	return (true);
}

int
helper_signals_open(void)
{
	sigset_t set;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static _Noreturn void
end(struct helper_state *h)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		child_kill(&h->v[i]);
	for (i = 0; i < h->nrunners; i++)
		kill(h->runner[i], SIGTERM); /* they end their programs */
	_exit(0);
}

/* ---------------------------------------------------------------- without a guardian */

#define GUARD_AGAIN_MS 1000u /* without memory for one */

/* The names that a load has read are known at its end. */
static bool
loads(const struct helper_state *h)
{
	return (number_of(h, HELPER_LOAD) != 0);
}

/* The next helper is asked for the next change. */
static void
end_renewals(struct helper_state *h)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		if (h->v[i].kind == HELPER_RENEW)
			child_kill(&h->v[i]);
}

/* The guardian has died: the next one forks a helper of its own.  This helper ends when its running
 * work is done.  Nothing fails. */
static void
retire(struct helper_state *h)
{
	pid_t pid = fork();

	if (pid == 0) {
		close(h->signals);
		child_close_others(h);
		helper_guard_again(&h->of, h->kept);
	}
	h->retired = pid > 0;
	if (h->retired)
		end_renewals(h);
	h->unguarded_ns = clock_mono_ns() + GUARD_AGAIN_MS * NS_PER_MS;
}

/* What to poll for the death of the guardian; *timeout_ms gets no longer. */
static int
guardian_fd(const struct helper_state *h, int *timeout_ms)
{
	uint64_t now = clock_mono_ns();

	if (h->retired || loads(h))
		return (-1);
	if (h->unguarded_ns <= now)
		return (h->of.keep);
	if (*timeout_ms < 0 || *timeout_ms > (int)GUARD_AGAIN_MS)
		*timeout_ms = (int)GUARD_AGAIN_MS;
	return (-1);
}

_Noreturn void
helper_process(const struct helper_of *of, struct helper_kept *kept)
{
	static struct helper_state h;
	struct pollfd p[4 + HELPER_CHILDREN_MAX];
	size_t i, n;
	int timeout_ms;

	h = (struct helper_state){ .of = *of, .kept = kept, .signals = helper_signals_open() };
	prctl(PR_SET_NAME, "accel-helper");
	while (!h.retired || h.n + h.nrunners != 0) {
		timeout_ms = kill_late(&h);
		/* a retired helper sees the end of the server only */
		p[0] = (struct pollfd){ .fd = h.of.pair, .events = h.retired ? 0 : POLLIN };
		p[1] = (struct pollfd){ .fd = h.signals, .events = POLLIN };
		p[2] = (struct pollfd){ .fd = !h.retired && h.nrunners < runners_max(&h) ? h.of.cgi
											 : -1,
			.events = POLLIN };
		p[3] = (struct pollfd){ .fd = guardian_fd(&h, &timeout_ms) };
		n = h.n;
		for (i = 0; i < n; i++)
			p[4 + i] = (struct pollfd){ .fd = h.v[i].late ? -1 : h.v[i].names,
				.events = POLLIN };
		if (poll(p, 4 + n, timeout_ms) < 0 && errno != EINTR)
			end(&h);
		names_take_all(&h);
		if (p[1].revents != 0)
			reap(&h);
		if (p[2].revents != 0)
			runner_start(&h);
		if (p[0].revents != 0 && (h.retired || !take_request(&h)))
			end(&h);
		if (p[3].revents != 0 && !loads(&h))
			retire(&h);
	}
	end(&h);
}
