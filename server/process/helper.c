/* server/process/helper.c -- the state of the helper process, as its guardian tells it: for the
 * log, status pages and accel-server ctl.
 */
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/start/notify.h"
#include "server/process/impl.h"

static void
note(struct process *ps, bool lost)
{
	shared_set(ps->counters_list.helper_lost, lost);
	shared_set(ps->counters_list.helper_since_s, clock_wall_ns() / NS_PER_S);
}

static void
lost(struct process *ps, const struct helper_event *e)
{
	bool killed = WIFSIGNALED(e->status);

	note(ps, true);
	shared_set(ps->counters_list.helpers_lost, e->lost);
	log_event(LOG_ERROR, NULL, "helper.lost", LF_STR("by", killed ? "signal" : "exit"),
	    LF_U64("status", killed ? WTERMSIG(e->status) : WEXITSTATUS(e->status)),
	    LF_U64("lost", e->lost), LF_U64("again_in_ms", e->pause_ms),
	    LF_STR("what",
		"its requests fail: programs of CGI, a reload, an upgrade, the opening of logs"),
	    LF_STR("do", "see the log of the kernel: was memory short?"));
}

static void
came_back(struct process *ps, const struct helper_event *e)
{
	note(ps, false);
	log_event(LOG_WARN, NULL, "helper.back", LF_U64("lost", e->lost));
	if (ps->upgrade.pidfile_owed)
		process_pidfile_back(ps);
	ps->reopen = ps->reopen || process_logs_are_owed();
}

static void
guarded(struct process *ps, const struct helper_event *e)
{
	shared_set(ps->counters_list.helpers_lost, e->lost);
	log_event(LOG_ERROR, NULL, "guardian.lost", LF_U64("lost", e->lost),
	    LF_STR("then", "the helper process has started the next one; nothing failed"),
	    LF_STR("do", "see the log of the kernel: was memory short?"));
}

/* The next one reads the keys from their files, when the next handshake asks for one. */
static void
keys_lost(const struct helper_event *e)
{
	bool killed = WIFSIGNALED(e->status);
	bool unconfined = !killed && WEXITSTATUS(e->status) == HELPER_KEYS_UNCONFINED;

	log_event(LOG_ERROR, NULL, "keys.lost", LF_STR("by", killed ? "signal" : "exit"),
	    LF_U64("status", killed ? WTERMSIG(e->status) : WEXITSTATUS(e->status)),
	    LF_U64("lost", e->lost), LF_U64("again_in_ms", e->pause_ms),
	    LF_STR("what", "the process with the private keys; the next handshake starts it again"),
	    LF_STR("do",
		unconfined
		    ? "the system does not let it give up its rights (capset, Landlock, seccomp): "
		      "allow that, or set ssl.key-process = \"disable\""
		    : "see the log of the kernel: was memory short?"));
}

/* The guardian has been killed, too, before the helper could fork the next one.  No process is left
 * that has the rights to start them, except a service manager. */
static void
gone(struct process *ps)
{
	bool restarts = notify_is_heard() && !ps->draining;

	note(ps, true);
	ps->helper_gone = true;
	log_event(LOG_ERROR, NULL, "helper.ended",
	    LF_STR("then", restarts
			       ? "this process ends, so that the service manager starts it again"
			       : "serving continues; programs of CGI, reloads and HUP fail"),
	    LF_STR("do",
		restarts ? "see the log of the kernel: was memory short?" : "restart the server"));
	if (restarts) {
		ps->ended_without_helper = true;
		process_stop(ps, "the end of the helper process", false);
	}
}

bool
process_helper_take(struct process *ps)
{
	struct helper_event e;
	int n;

	while ((n = helper_event(ps->helper, &e)) > 0)
		switch (e.news) {
		case HELPER_BACK: came_back(ps, &e); break;
		case HELPER_GUARDED: guarded(ps, &e); break;
		case HELPER_KEYS_DIED: keys_lost(&e); break;
		default: lost(ps, &e);
		}
	if (n < 0)
		gone(ps);
	return (n >= 0);
}

const char *
process_helper_state(const struct process *ps)
{
	if (ps->helper_gone)
		return ("gone: restart the server");
	return (
	    shared_get(ps->counters_list.helper_lost)
		? "lost: no programs of CGI, reloads, upgrades and log rotation until it is back"
		: "runs");
}
