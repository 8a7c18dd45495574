/* proxy-core/exchange_log.c -- one line for each try at a backend that failed.
 *
 *   ev=exchange.failed id=c17.3 backend=unix:/run/a.sock stage=head url=/x why="..."
 *   error="Connection reset by peer" tries=1 ms=12 then="reply 502"
 *
 * The line names the next step: another backend, a fresh socket, an error reply, or the cut of the
 * client's connection.  All failures share one bound, LINES_PER_SECOND.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/exchange_impl.h"

const char *
exchange_state(const struct exchange *x)
{
	static const char *const names[] = { [x_wait] = "wait",
		[x_head] = "head",
		[x_body] = "body",
		[x_tunnel] = "tunnel",
		[x_drain] = "drain",
		[x_ended] = "ended" };

	return (names[x->state]);
}

static const char *
stage_of(const struct exchange *x)
{
	switch (x->state) {
	case x_tunnel: return ("tunnel");
	case x_wait: return (x->pool != NULL ? "connect" : "wait");
	case x_head: return (x->asked_ns == 0 || x->send_failed ? "send" : "head");
	default: return ("body");
	}
}

struct exchange_failure
exchange_failure(const struct exchange *x, int err, const char *why)
{
	return ((struct exchange_failure){ stage_of(x), why, err });
}

static void
log_failure(const struct exchange *x, enum log_level level, const struct exchange_failure *f,
    const char *then)
{
	uint64_t age = io_now(x->u->io) - x->times.start;

	if (x->req == NULL)
		return; /* the caller forgot it */
	log_limited(LINES_PER_SECOND, level, x->req->id, "exchange.failed",
	    LF_STR("backend", exchange_backend(x)), LF_STR("stage", f->stage),
	    LF_TEXT("client", x->req->remote_addr), LF_TEXT("url", x->req->target),
	    LF_STR("why", f->why), LF_ERR("error", f->err), LF_U64("tries", x->tries),
	    LF_U64("ms", age / NS_PER_MS), LF_STR("then", then));
}

void
exchange_log_next(const struct exchange *x, const struct exchange_failure *f)
{
	log_failure(x, LOG_WARN, f, "next backend");
}

void
exchange_log_repeat(const struct exchange *x, const struct exchange_failure *f)
{
	log_failure(x, LOG_INFO, f, "fresh socket");
}

void
exchange_log_reply(const struct exchange *x, const struct exchange_failure *f, int status)
{
	char then[32];

	if (x->rival != NULL || x->first != NULL)
		snprintf(then, sizeof(then), "the other try goes on");
	else
		snprintf(then, sizeof(then), "reply %d", status);
	log_failure(x, LOG_WARN, f, then);
}

void
exchange_log_cut(const struct exchange *x, const struct exchange_failure *f)
{
	log_failure(x, LOG_WARN, f, "cut the client's connection");
}
