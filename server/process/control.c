/* server/process/control.c -- the control socket: what accel-server ctl asks of this process.
 *
 *   ctl --"reload\n"--> server    one request for each connection
 *   ctl <---greeting--- server    at once: "accel-server/VERSION PID\n"
 *   ctl <----answer---- server    when the outcome is known: "exit STATUS\n", text, end
 *
 * The helper makes the socket with mode 0600 and the rights of the starter, so nobody else can
 * connect; SO_PEERCRED is asked besides.  The main thread serves it in its poll(2).  It never waits
 * for a client: an answer is smaller than the buffer of a socket.
 *
 * Bounds   CONTROL_CLIENTS at a time; further ones wait in the queue of the socket.  A client that
 *          sends no request within CONTROL_ASK_MS is dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "server/config/control_name.h"
#include "server/process/impl.h"

#define CONTROL_ASK_MS 3000u

/* ---------------------------------------------------------------- the socket */

static void
forget(struct control_socket *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->name = NULL;
}

/* Signals work without it, so a failure stops nothing. */
void
process_control_open(struct process *ps, const struct config *config)
{
	const char *name = control_name(config_global(config));
	struct control_socket *c = &ps->control;
	char why[HELPER_WHY_MAX] = "";
	int fd;

	if (name != NULL && c->name != NULL && strcmp(name, c->name) == 0)
		return;
	forget(c);
	if (name == NULL || ps->helper == NULL)
		return;
	fd = helper_control(ps->helper, name, why);
	if (fd >= 0) {
		c->fd = fd;
		c->name = name;
	} else if (fd != -ECANCELED)
		log_event(LOG_WARN, NULL, "control.failed", LF_STR("address", name),
		    why[0] != '\0' ? LF_STR("error", why) : LF_ERR("error", fd),
		    LF_STR("then", "accel-server ctl can only send signals"),
		    LF_STR("do", "see server.control-socket"));
}

void
process_control_retire(struct process *ps)
{
	forget(&ps->control);
}

/* ---------------------------------------------------------------- answers */

static void
drop(struct process *ps, size_t i)
{
	struct control_socket *c = &ps->control;

	close(c->v[i].fd);
	c->v[i] = c->v[--c->n];
}

/* An answer that does not fit is cut: the status comes first. */
static void
tell(const struct control_client *cc, int status, struct text said)
{
	struct buf b;

	buf_init(&b, 0);
	buf_printf(&b, "exit %d\n", status);
	buf_text(&b, said);
	if (said.n != 0 && said.p[said.n - 1] != '\n')
		buf_char(&b, '\n');
	(void)send(cc->fd, b.p, b.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_free(&b);
}

static void
answer(struct process *ps, enum control_wish wish, bool begun, int status, struct text said)
{
	struct control_socket *c = &ps->control;
	size_t i;

	for (i = c->n; i-- > 0;) {
		if (c->v[i].wish != wish || (c->v[i].turn <= c->turn[wish]) != begun)
			continue;
		tell(&c->v[i], status, said);
		drop(ps, i);
	}
}

void
process_control_done(struct process *ps, enum control_wish wish, int status, struct text said)
{
	answer(ps, wish, true, status, said);
}

void
process_control_refuse(struct process *ps, enum control_wish wish, const char *why)
{
	answer(ps, wish, false, EX_TEMPFAIL, text_of(why));
}

/* The clients of drain, quit and stop wait for the end of file, which comes with the end of the
 * process. */
void
process_control_stops(struct process *ps)
{
	struct control_client *cc;
	size_t i;

	for (i = 0; i < ps->control.n; i++) {
		cc = &ps->control.v[i];
		if (cc->told || (cc->wish != CONTROL_DRAIN && cc->wish != CONTROL_QUIT &&
				    cc->wish != CONTROL_STOP))
			continue;
		cc->told = true;
		tell(cc, 0, TEXT(""));
	}
}

bool
process_control_waits(const struct process *ps, enum control_wish wish)
{
	const struct control_socket *c = &ps->control;
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->v[i].wish == wish)
			return (true);
	return (false);
}

/* ---------------------------------------------------------------- requests */

#define DRAIN_S     15u /* without a number and server.drain-delay */
#define DRAIN_MAX_S 3600u

static const char *const words[CONTROL_WISHES] = {
	[CONTROL_RELOAD] = "reload",
	[CONTROL_UPGRADE] = "upgrade",
	[CONTROL_REOPEN] = "reopen",
	[CONTROL_DRAIN] = "drain",
	[CONTROL_UNDRAIN] = "undrain",
	[CONTROL_STOP] = "stop",
	[CONTROL_QUIT] = "quit",
	[CONTROL_STATUS] = "status",
	[CONTROL_STATUS_JSON] = "status --json",
};

/* "drain 30" has a number. */
static enum control_wish
wish_of(struct text line, uint64_t *number)
{
	static const struct text drain = TEXT("drain ");
	enum control_wish wish;

	*number = UINT64_MAX;
	if (text_starts(line, drain) &&
	    text_u64((struct text){ line.p + drain.n, line.n - drain.n }, number) == 0 &&
	    *number <= DRAIN_MAX_S)
		return (CONTROL_DRAIN);
	for (wish = CONTROL_NOTHING + 1; wish < CONTROL_WISHES; wish++)
		if (text_eq(line, text_of(words[wish])))
			return (wish);
	return (CONTROL_NOTHING);
}

/* Status 75: a loop stands still. */
static void
answer_status(struct process *ps, enum control_wish wish)
{
	int status = process_alive_still(ps, NULL) == 0 ? 0 : EX_TEMPFAIL;
	struct buf b;

	if (!process_control_waits(ps, wish))
		return;
	buf_init(&b, 0);
	process_status(ps, wish == CONTROL_STATUS_JSON, &b);
	ps->control.turn[wish]++;
	answer(ps, wish, true, status, buf_as_text(&b));
	buf_free(&b);
}

void
process_control_status(struct process *ps)
{
	answer_status(ps, CONTROL_STATUS);
	answer_status(ps, CONTROL_STATUS_JSON);
}

static void
begin_drain(struct process *ps, uint64_t seconds)
{
	const struct conf *conf = config_global(process_newest(ps)->config);

	if (ps->draining || ps->leave.at_ns != 0) {
		process_control_refuse(ps, CONTROL_DRAIN,
		    ps->upgrade.retired ? "a newer process serves"
		    : ps->draining      ? "the server is stopping"
					: "it drains; ctl undrain ends that");
		return;
	}
	if (seconds > DRAIN_MAX_S)
		seconds = conf->drain_delay != 0 ? conf->drain_delay : DRAIN_S;
	ps->control.turn[CONTROL_DRAIN]++;
	process_drain_first(ps, seconds, "ctl drain");
}

static void
begin_undrain(struct process *ps)
{
	if (!process_undrain(ps)) {
		process_control_refuse(ps, CONTROL_UNDRAIN,
		    ps->draining ? "too late: it has begun to stop" : "it does not drain");
		return;
	}
	ps->control.turn[CONTROL_UNDRAIN]++;
	process_control_done(ps, CONTROL_UNDRAIN, 0, TEXT(""));
}

static void
begin_wish(struct process *ps, size_t i)
{
	struct control_client *cc = &ps->control.v[i];
	enum control_wish wish = cc->wish;

	cc->turn = ps->control.turn[wish] + 1;
	switch (wish) {
	case CONTROL_RELOAD: process_reload(ps); break;
	case CONTROL_UPGRADE: process_upgrade(ps); break;
	case CONTROL_STOP: process_stop(ps, "ctl", true); break;
	case CONTROL_QUIT:
		ps->control.turn[CONTROL_QUIT]++;
		process_quit(ps, "ctl");
		break;
	case CONTROL_REOPEN: ps->reopen = true; break;
	case CONTROL_DRAIN: begin_drain(ps, cc->number); break;
	case CONTROL_UNDRAIN: begin_undrain(ps); break;
	case CONTROL_STATUS:
	case CONTROL_STATUS_JSON: process_alive_ask(ps); break;
	default:
		tell(cc, EX_USAGE, TEXT("this version of the server does not know the request"));
		drop(ps, i);
	}
}

static void
take_request(struct process *ps, size_t i)
{
	struct control_client *cc = &ps->control.v[i];
	ssize_t n = recv(cc->fd, cc->line + cc->n, sizeof(cc->line) - cc->n, MSG_DONTWAIT);
	const char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || cc->until_ns == 0) {
		drop(ps, i); /* the client left, or sent more before its answer */
		return;
	}
	cc->n += (size_t)n;
	end = memchr(cc->line, '\n', cc->n);
	if (end == NULL && cc->n < sizeof(cc->line))
		return;
	cc->until_ns = 0;
	cc->wish = end != NULL
		       ? wish_of((struct text){ cc->line, (size_t)(end - cc->line) }, &cc->number)
		       : CONTROL_NOTHING;
	begin_wish(ps, i);
}

static bool
is_allowed(const struct process *ps, int fd)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	return (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
		(who.uid == 0 || who.uid == ps->starter));
}

static void
greet(struct process *ps)
{
	struct control_socket *c = &ps->control;
	int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct buf b;

	if (fd < 0)
		return;
	if (!is_allowed(ps, fd)) {
		close(fd);
		return;
	}
	buf_init(&b, 0);
	buf_printf(&b, "accel-server/%s %d\n", STAT_ACCEL_VERSION, (int)getpid());
	(void)send(fd, b.p, b.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_free(&b);
	c->v[c->n++] = (struct control_client){ .fd = fd,
		.until_ns = clock_mono_ns() + CONTROL_ASK_MS * NS_PER_MS };
}

/* ---------------------------------------------------------------- poll(2) */

size_t
process_control_poll(const struct process *ps, struct pollfd *p, int *timeout_ms)
{
	const struct control_socket *c = &ps->control;
	uint64_t now = clock_mono_ns(), left;
	size_t i;

	p[0] = (struct pollfd){ .fd = c->n < CONTROL_CLIENTS ? c->fd : -1, .events = POLLIN };
	for (i = 0; i < c->n; i++) {
		p[1 + i] = (struct pollfd){ .fd = c->v[i].fd, .events = POLLIN };
		if (c->v[i].until_ns == 0)
			continue;
		left = c->v[i].until_ns > now ? (c->v[i].until_ns - now) / NS_PER_MS + 1 : 0;
		if (*timeout_ms < 0 || left < (uint64_t)*timeout_ms)
			*timeout_ms = (int)left;
	}
	return (1 + c->n);
}

/* From the last to the first: drop() moves the last one, and the answer to one may drop others. */
void
process_control_take(struct process *ps, const struct pollfd *p, size_t n)
{
	struct control_socket *c = &ps->control;
	size_t i;

	for (i = n; i-- > 1;) {
		if (i > c->n || c->v[i - 1].fd != p[i].fd)
			continue;
		if (p[i].revents != 0)
			take_request(ps, i - 1);
		else if (c->v[i - 1].until_ns != 0 && clock_mono_ns() >= c->v[i - 1].until_ns)
			drop(ps, i - 1);
	}
	if (p[0].revents != 0 && c->fd >= 0 && c->n < CONTROL_CLIENTS)
		greet(ps);
}
