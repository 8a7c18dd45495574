/* server/process/spawn.c -- the applications of proxy-core.spawn: a lifeline to the keeper of each.
 *
 * An application runs while a generation names it.  A reload that does not change its line keeps
 * it.  A changed one has the address of the old one, so the old one ends first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "server/config/check/spawn.h"
#include "server/process/impl.h"

struct wanted {
	struct process *ps;
	const char *line; /* the program to find, as its line; NULL: start all */
	bool found;
	int err;
};

static struct text
address_of(const char *line)
{
	return ((struct text){ line, strcspn(line, "\t") });
}

static void
drop(struct process *ps, size_t i)
{
	close(ps->apps[i].fd);
	free(ps->apps[i].line);
	ps->apps[i] = ps->apps[--ps->napps];
}

/* ---------------------------------------------------------------- starting */

static void
log_failed(const char *line, int err, const char *why)
{
	log_event(LOG_ERROR, NULL, "application.failed", LF_TEXT("address", address_of(line)),
	    why[0] != '\0' ? LF_STR("error", why) : LF_ERR("error", err),
	    LF_STR("do", err == -EADDRINUSE
			     ? "another program listens there: stop it or change the address"
			     : "see bin-path of fastcgi.server, or proxy-core.spawn"));
}

static int
start(struct process *ps, const char *line)
{
	char why[HELPER_WHY_MAX] = "";
	size_t i;
	char *kept;
	int fd;

	for (i = 0; i < ps->napps; i++)
		if (strcmp(ps->apps[i].line, line) == 0)
			return (0);
	for (i = ps->napps; i-- > 0;)
		if (text_eq(address_of(ps->apps[i].line), address_of(line))) {
			/* the old server of an upgrade may hold it, too */
			(void)helper_send(ps->apps[i].fd, "end", 3, -1);
			drop(ps, i);
		}
	if (ps->napps == SPAWN_MAX)
		return (-E2BIG);
	kept = strdup(line);
	fd = kept == NULL ? -ENOMEM : helper_spawn_start(ps->helper, line, why);
	if (fd < 0) {
		free(kept);
		if (fd != -ECANCELED)
			log_failed(line, fd, why);
		return (fd);
	}
	ps->apps[ps->napps].fd = fd;
	ps->apps[ps->napps].line = kept;
	ps->napps++;
	return (0);
}

static bool
each(const struct conf *c, void *arg)
{
	struct wanted *w = arg;
	char line[SPAWN_LINE_MAX];
	size_t i;

	for (i = 0; i < c->proxy_spawn.n && w->err == 0; i++) {
		if (spawn_line(&c->proxy_spawn.v[i], line) != NULL)
			continue; /* such a configuration does not load */
		if (w->line == NULL)
			w->err = start(w->ps, line);
		else
			w->found |= strcmp(line, w->line) == 0;
	}
	return (w->err == 0);
}

int
process_spawn(struct process *ps, const struct config *config)
{
	struct wanted w = { .ps = ps };

	(void)config_each(config, each, &w);
	return (w.err);
}

void
process_spawn_drop(struct process *ps)
{
	struct wanted w;
	const struct generation *g;
	size_t i;

	for (i = ps->napps; i-- > 0;) {
		w = (struct wanted){ .ps = ps, .line = ps->apps[i].line };
		list_each(g, &ps->generations, link)
			(void)config_each(g->config, each, &w);
		if (!w.found)
			drop(ps, i);
	}
}

/* ---------------------------------------------------------------- what keepers say */

size_t
process_spawn_poll(const struct process *ps, struct pollfd *p)
{
	size_t i;

	for (i = 0; i < ps->napps; i++)
		p[i] = (struct pollfd){ .fd = ps->apps[i].fd, .events = POLLIN };
	return (ps->napps);
}

/* "status TAB 1 TAB 1000" */
static void
log_said(const char *line, struct text said)
{
	struct text what = TEXT_NONE, number = TEXT_NONE, pause = TEXT_NONE;
	uint64_t n = 0, ms = 0;

	(void)text_next(&said, '\t', &what);
	(void)text_next(&said, '\t', &number);
	(void)text_next(&said, '\t', &pause);
	if (text_u64(number, &n) != 0 || text_u64(pause, &ms) != 0)
		return;
	if (text_eq(what, TEXT("started")))
		log_event(LOG_INFO, NULL, "application.started",
		    LF_TEXT("address", address_of(line)), LF_U64("pid", n));
	else
		log_limited(10, LOG_WARN, NULL, "application.ended",
		    LF_TEXT("address", address_of(line)),
		    LF_U64(text_eq(what, TEXT("signal"))   ? "signal"
			   : text_eq(what, TEXT("failed")) ? "errno"
							   : "status",
			n),
		    LF_U64("again_ms", ms),
		    LF_STR("do", "see what it says on standard error; 127: it could not be run"));
}

static void
take(struct process *ps, size_t i)
{
	char bytes[HELPER_WHY_MAX];
	ssize_t n = recv(ps->apps[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0) {
		log_said(ps->apps[i].line, (struct text){ bytes, (size_t)n });
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	log_event(LOG_ERROR, NULL, "application.lost",
	    LF_TEXT("address", address_of(ps->apps[i].line)),
	    LF_STR("why", "the process that keeps it has ended"),
	    LF_STR("do", "send USR1, which starts it again"));
	drop(ps, i);
}

void
process_spawn_take(struct process *ps, const struct pollfd *p, size_t n)
{
	size_t i;

	for (i = n; i-- > 0;)
		if (i < ps->napps && p[i].revents != 0 && ps->apps[i].fd == p[i].fd)
			take(ps, i);
}
