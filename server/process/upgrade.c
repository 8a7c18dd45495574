/* server/process/upgrade.c -- a binary upgrade: both its sides.
 *
 *   USR2 --> old server --request, items--> helper --> supervisor --exec--> new server
 *            serves on                                 reads the configuration, takes the items,
 *                                                      accepts connections
 *            retires <------pid-------------- says so
 *
 * The items are the listening sockets, the lifelines of applications, which so go on without a
 * restart, and the keys of session tickets.  Both processes hold them until the old one ends.  If
 * the new server fails, nothing has changed.
 *
 * A retired server accepts nothing.  It carries its connections until they end, at most for
 * server.graceful-shutdown-timeout if that is set.  Idle ones get one more reply, with
 * "Connection: close", or end at server.max-keep-alive-idle.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/start/notify.h"
#include "io/tls/tls.h"
#include "server/conn/handover.h"
#include "server/process/impl.h"
#include "server/helper/starter.h"

#define HANDED_MS 500 /* the supervisor ends at once */

/* ---------------------------------------------------------------- the old server hands over */

static int
put(int to, enum helper_kind kind, const char *name, int fd)
{
	char bytes[HELPER_NAME_MAX + 1];
	size_t n = helper_request_make(kind, name, bytes);
	int err = n == 0 ? -ENAMETOOLONG : helper_send(to, bytes, n, fd);

	explicit_bzero(bytes, sizeof(bytes)); /* perhaps keys */
	return (err);
}

/* A socket has room for some 90 messages.  The last one of each has the socket of the next ones. */
#define ITEMS_EACH 64u

struct items {
	int to;
	bool is_next; /* not the first socket */
	unsigned n;
	int err;
};

static void
next_socket(struct items *items)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		items->err = -errno;
		return;
	}
	items->err = put(items->to, HELPER_LOAD, "", pair[1]);
	close(pair[1]);
	if (items->is_next)
		close(items->to);
	*items = (struct items){ .to = pair[0], .is_next = true, .err = items->err };
}

static void
put_item(struct items *items, enum helper_kind kind, const char *name, int fd)
{
	if (items->err == 0 && items->n == ITEMS_EACH)
		next_socket(items);
	items->n++;
	if (items->err == 0)
		items->err = put(items->to, kind, name, fd);
}

static void
put_tickets(struct items *items)
{
	char text[TLS_TICKETS_TEXT];

	if (tls_tickets_save(text))
		put_item(items, HELPER_TICKETS, text, -1);
	explicit_bzero(text, sizeof(text));
}

static int
put_items(const struct process *ps, int to)
{
	enum helper_kind kind = ps->inherited ? HELPER_ACTIVATED : HELPER_LISTEN;
	struct items items = { .to = to };
	size_t i;

	for (i = 0; i < ps->listeners.n; i++)
		put_item(&items, kind, ps->listeners.v[i].name, ps->listeners.v[i].fd);
	if (ps->control.fd >= 0)
		put_item(&items, HELPER_CONTROL, ps->control.name, ps->control.fd);
	for (i = 0; i < ps->napps; i++)
		put_item(&items, HELPER_SPAWN, ps->apps[i].line, ps->apps[i].fd);
	put_tickets(&items);
	put_item(&items, HELPER_LOAD, "", -1);
	if (items.is_next)
		close(items.to);
	return (items.err);
}

static int
ask(struct process *ps)
{
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return (-errno);
	err = put_items(ps, pair[0]);
	if (err == 0)
		err = helper_upgrade_start(ps->helper, pair[1]);
	else
		close(pair[1]);
	if (err == 0)
		ps->upgrade.fd = pair[0];
	else
		close(pair[0]);
	return (err);
}

static void
fail(struct process *ps, int status, struct text why)
{
	process_say(LOG_ERROR, "upgrade.failed", why);
	log_event(LOG_ERROR, NULL, "upgrade.undone",
	    LF_STR("then", "this process serves on, with its program and configuration"));
	shared_set(ps->counters_list.upgrades_failed, ps->counters_list.upgrades_failed + 1);
	ps->upgrade.failed = true;
	if (status == EX_CONFIG) /* a reload or a restart would fail, too */
		shared_set(ps->counters_list.reload_refused, true);
	process_report(ps, "READY=1"); /* the manager reads this line for people only */
	process_control_done(ps, CONTROL_UPGRADE, status, why);
	if (ps->reload_again)
		process_reload(ps);
}

static const char *
reason_against(const struct process *ps)
{
	if (ps->upgrade.retired)
		return ("a newer process serves: send USR2 to that one");
	if (ps->draining)
		return ("the server is stopping");
	if (ps->leave.at_ns != 0)
		return ("the server drains: accel-server ctl undrain ends that");
	if (ps->upgrade.fd >= 0)
		return ("an upgrade is running");
	if (getpid() == 1)
		return ("process 1 cannot be replaced: when it ends, its container ends; start a "
			"new container");
	return (NULL);
}

void
process_upgrade(struct process *ps)
{
	const char *why = reason_against(ps);
	int err;

	if (why != NULL) {
		log_event(LOG_ERROR, NULL, "upgrade.refused", LF_STR("why", why));
		process_control_refuse(ps, CONTROL_UPGRADE, why);
		return;
	}
	if (ps->load.fd >= 0) {
		ps->upgrade.wanted = true; /* after the reload */
		return;
	}
	ps->upgrade.wanted = ps->upgrade.failed = ps->upgrade.stopped = false;
	ps->upgrade.heard = 0;
	ps->control.turn[CONTROL_UPGRADE]++;
	buf_init(&ps->upgrade.cause, 2 * HELPER_CAUSE_MAX);
	log_event(LOG_INFO, NULL, "upgrade.started", LF_STR("file", ps->opt->file));
	err = ask(ps);
	if (err != 0)
		fail(ps, EX_OSERR,
		    text_of(err == -EPIPE ? HELPER_LOST " upgrade again" : strerror(-err)));
}

/* ---------------------------------------------------------------- the outcome */

/* The last message of this process: the manager listens to the new server from now on.  WATCHDOG=1
 * starts the time for its first report anew. */
static void
tell_manager(struct process *ps, pid_t pid)
{
	char state[64];

	snprintf(state, sizeof(state), "WATCHDOG=1\nMAINPID=%d", (int)pid);
	notify_manager(state);
	process_watch_no_more(ps);
}

/* A reload that was requested meanwhile is not done: the new process may have read the file before
 * its last change. */
static void
tell_who_waits(struct process *ps, pid_t pid)
{
	struct buf *said = &ps->upgrade.cause;

	buf_printf(said, "process %d serves now; process %d ends with its last connection\n",
	    (int)pid, (int)getpid());
	process_control_done(ps, CONTROL_UPGRADE, 0, buf_as_text(said));
	if (!ps->reload_again)
		return;
	process_control_refuse(ps, CONTROL_RELOAD, "an upgrade took place: reload again");
	log_event(LOG_WARN, NULL, "reload.dropped", LF_STR("why", "an upgrade took place"),
	    LF_STR("do", "send USR1 to the new process"), LF_U64("pid", pid));
}

/* The pid file is the new server's by now. */
static void
retire(struct process *ps, pid_t pid)
{
	struct generation *g;

	log_event(LOG_INFO, NULL, "upgraded", LF_U64("pid", pid),
	    LF_STR("then", "this process ends with its last connection"));
	tell_manager(ps, pid);
	ps->upgrade.retired = ps->draining = true;
	free(ps->pidfile);
	ps->pidfile = NULL;
	process_control_retire(ps);
	handover_retire(ps->handover);
	list_each(g, &ps->generations, link)
		process_drain(ps, g);
	tell_who_waits(ps, pid);
}

/* A new server that was killed may have taken the pid file. */
void
process_pidfile_back(struct process *ps)
{
	int err = ps->pidfile != NULL ? helper_pidfile(ps->helper, ps->pidfile) : 0;

	ps->upgrade.pidfile_owed = err != 0;
	if (err != 0)
		log_event(LOG_WARN, NULL, "pidfile.failed", LF_STR("path", ps->pidfile),
		    LF_ERR("error", err),
		    LF_STR("then", "it may have the number of the process that failed"),
		    LF_STR("do", process_open_help(err)));
}

/* A stop is for the server, whether the old process or the new one is the server.  The new one can
 * no longer take over; if it has taken over, the supervisor ends it. */
void
process_upgrade_stop(struct process *ps)
{
	if (ps->upgrade.fd < 0 || ps->upgrade.stopped)
		return;
	ps->upgrade.stopped = true;
	(void)shutdown(ps->upgrade.fd, SHUT_RDWR);
}

static void
end(struct process *ps)
{
	struct upgrade *u = &ps->upgrade;
	int status = u->stopped ? EX_TEMPFAIL : u->status;

	close(u->fd);
	u->fd = -1;
	if (u->pid == 0 || status != 0)
		process_pidfile_back(ps);
	if (u->stopped)
		fail(ps, status, TEXT("the server is stopping"));
	else if (u->pid == 0)
		fail(ps, EX_OSERR, TEXT(HELPER_LOST " upgrade again"));
	else if (status == 0)
		retire(ps, u->pid);
	else
		fail(ps, status < 128 ? status : EX_SOFTWARE, buf_as_text(&u->cause));
	u->pid = 0;
	buf_free(&u->cause);
}

/* The first answer is the new server's: it is ready.  The second one is the supervisor's: the new
 * server was ready. */
static void
take_answer(struct upgrade *u, const char *bytes, size_t n)
{
	struct helper_upgraded answer;

	if (helper_upgraded_parse(bytes, n, &answer) != 0)
		return;
	u->pid = answer.pid;
	u->status = answer.status;
	buf_text(&u->cause, answer.cause);
}

/* The last confirmation hands over.  A signal that came before it is for this process, which is
 * still the server; one that comes after it finds a retired one, as soon as the supervisor has
 * ended. */
static void
confirm(struct process *ps)
{
	struct upgrade *u = &ps->upgrade;
	struct pollfd p = { .fd = u->fd, .events = POLLIN };

	process_take_signal(ps);
	u->heard++;
	if (helper_send(u->fd, &u->heard, 1, -1) == 0 && u->heard == 2)
		(void)poll(&p, 1, HANDED_MS);
}

/* The end of file comes when the supervisor has ended: then the new server is a child of the
 * service manager, which can watch it.  A new server that did not become ready has given the pid
 * file back, or has ended. */
void
process_upgrade_more(struct process *ps)
{
	char bytes[2 * sizeof(int32_t) + HELPER_CAUSE_MAX];
	ssize_t n;
	int fd;

	if (ps->upgrade.fd < 0)
		return;
	/* a new server that failed has left items unread, which resets the socket, but its answer
	 * follows */
	while (
	    (n = helper_recv(ps->upgrade.fd, bytes, sizeof(bytes), &fd)) > 0 || n == -ECONNRESET) {
		if (fd >= 0)
			close(fd);
		if (n <= 0)
			continue;
		take_answer(&ps->upgrade, bytes, (size_t)n);
		confirm(ps);
	}
	if (n != -EAGAIN && n != -EINTR)
		end(ps);
}

/* ---------------------------------------------------------------- the retired server */

static bool
all_stopped_accepting(const struct process *ps)
{
	const struct generation *g;
	unsigned i;

	list_each(g, &ps->generations, link)
		for (i = 0; i < g->nworkers; i++)
			if (g->workers[i] != NULL && !worker_accepts_no_more(g->workers[i]))
				return (false);
	return (true);
}

/* The number stays taken, so that no connection gets it while a worker knows it as a listener. */
static void
let_go(int fd)
{
	int none = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (none < 0)
		return;
	(void)dup3(none, fd, O_CLOEXEC);
	close(none);
}

/* A client of an address that the new server has dropped, or of a new server that has ended, is
 * refused; it does not wait in the queue of a socket from which nobody accepts. */
void
process_retired_check(struct process *ps)
{
	const struct generation *g;
	size_t i;

	if (!ps->upgrade.retired || ps->upgrade.let_go || !all_stopped_accepting(ps))
		return;
	ps->upgrade.let_go = true;
	list_each(g, &ps->generations, link)
		for (i = 0; i < g->listeners.n; i++)
			let_go(g->listeners.v[i].fd);
}

/* ---------------------------------------------------------------- the new server takes over */

static int
take_listener(struct process *ps, const struct helper_request *item, int fd)
{
	struct listener *l = &ps->listeners.v[ps->listeners.n];
	int err = fd >= 0 ? listen_adopt(fd) : -EPROTO;

	if (err == 0 &&
	    (ps->listeners.n == CFG_LISTENS_MAX || strlen(item->name) >= sizeof(l->name)))
		err = -E2BIG;
	if (err != 0)
		return (err);
	ps->listeners.n++;
	l->fd = fd;
	strcpy(l->name, item->name);
	ps->inherited = item->kind == HELPER_ACTIVATED;
	return (0);
}

static int
take_application(struct process *ps, const struct helper_request *item, int fd)
{
	struct application *a = &ps->apps[ps->napps];

	if (fd < 0 || ps->napps == SPAWN_MAX)
		return (-EPROTO);
	a->line = strdup(item->name);
	if (a->line == NULL)
		return (-ENOMEM);
	a->fd = fd;
	ps->napps++;
	return (0);
}

/* Takes over the control socket.  Its name is later compared with the one of the configuration. */
static int
take_control(struct process *ps, const struct helper_request *item, int fd)
{
	if (fd < 0 || ps->control.fd >= 0 || listen_adopt(fd) != 0)
		return (-EPROTO);
	ps->control.fd = fd;
	ps->control.name = g_intern_string(item->name); /* as control_name() does */
	return (0);
}

/* Without them clients shake hands anew. */
static int
take_tickets(const struct helper_request *item, int fd)
{
	if (fd >= 0)
		return (-EPROTO);
	if (!tls_tickets_load(item->name, clock_mono_ns()))
		log_event(LOG_WARN, NULL, "upgrade.tickets",
		    LF_STR("what", "the old server has keys of another form"),
		    LF_STR("then", "clients of TLS do not resume their sessions"));
	return (0);
}

/* 1: the last one; then *next is the socket of further ones, or -1 */
static int
take_item(struct process *ps, int from, int *next)
{
	char bytes[HELPER_NAME_MAX + 1];
	struct helper_request item;
	int fd, err;
	ssize_t n = helper_recv(from, bytes, sizeof(bytes), &fd);

	if (n <= 0)
		return (n == 0 ? -EPIPE : (int)n);
	err = helper_request_parse(bytes, (size_t)n, &item);
	if (err == 0 && item.kind == HELPER_LOAD) {
		*next = fd;
		return (1);
	}
	if (err == 0 && (item.kind == HELPER_LISTEN || item.kind == HELPER_ACTIVATED))
		err = take_listener(ps, &item, fd);
	else if (err == 0 && item.kind == HELPER_CONTROL)
		err = take_control(ps, &item, fd);
	else if (err == 0 && item.kind == HELPER_SPAWN)
		err = take_application(ps, &item, fd);
	else if (err == 0 && item.kind == HELPER_TICKETS)
		err = take_tickets(&item, fd);
	else
		err = -EPROTO;
	explicit_bzero(bytes, sizeof(bytes));
	explicit_bzero(&item, sizeof(item));
	if (err != 0 && fd >= 0)
		close(fd);
	return (err);
}

/* Also confirms to the old server itself, because the supervisor may die between the two.  False:
 * the old server has ended. */
bool
process_take_place(void)
{
	const int32_t head[2] = { 0, (int32_t)getpid() };

	return (helper_send(starter_socket(), head, sizeof(head), -1) == 0);
}

/* All items were sent before the request for this process. */
int
process_take_over(struct process *ps)
{
	int from = starter_socket(), next = -1, err;

	for (;;) {
		while ((err = take_item(ps, from, &next)) == 0)
			;
		if (from != starter_socket())
			close(from);
		if (err == 1 && next < 0)
			return (0);
		if (err != 1)
			break;
		from = next;
	}
	log_event(LOG_ERROR, NULL, "upgrade.items", LF_ERR("error", err),
	    LF_STR("what", "the sockets of the old server did not come"));
	return (err);
}
