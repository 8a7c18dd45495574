/* server/handler/proxy_control.c -- what an application asks for in control headers: allowed and
 * done, or dropped and logged.
 *
 *   a row of wire/codec/controls.def --> allowed by its setting? --> ANSWER: the first one is
 * returned
 *                                                              HINT:   done here
 */
#include "base/arena.h"
#include "base/log.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/request/request.h"
#include "server/handler/counters.h"
#include "wire/http1/headers.h"

#define DROPPED_LINES 2u /* a second */

void
proxy_dropped(const struct relay *rl, struct text name, const char *why)
{
	struct request *r = rl->r;

	count(r->worker->counts.handler, control_dropped);
	log_limited(DROPPED_LINES, LOG_WARN, conn_id(r), "control.dropped",
	    LF_TEXT("url", r->http.target), LF_STR("backend", exchange_backend(rl->ex)),
	    LF_TEXT("header", name), LF_STR("why", why), conn_client(r));
}

/* Why the application may not send this control header.  NULL: it may. */
static const char *
forbidden(const struct relay *rl, enum control c)
{
	const struct conf *conf = rl->r->conf;

	if (rl->program && controls[c].allowed != CONTROL_BY_ALWAYS)
		return (controls[c].allowed != CONTROL_BY_SENDFILE
			    ? "a program of cgi.assign cannot ask for it"
			: conf->cgi_x_sendfile ? NULL
					       : "cgi.x-sendfile is disabled");
	switch (controls[c].allowed) {
	case CONTROL_BY_ALWAYS: return (NULL);
	case CONTROL_BY_SENDFILE:
		return (conf->proxy_x_sendfile ? NULL : "proxy-core.allow-x-sendfile is disabled");
	case CONTROL_BY_TEMPDIR:
		if (!conf->proxy_x_sendfile)
			return ("proxy-core.allow-x-sendfile is disabled");
		return (
		    conf->proxy_x_tempdir.n != 0 ? NULL : "proxy-core.x-sendfile-tempdir is empty");
	case CONTROL_BY_REPROXY:
		return (conf->proxy_x_reproxy ? NULL : "proxy-core.allow-x-reproxy is disabled");
	case CONTROL_BY_REWRITE: return ("proxy-core.allow-x-rewrite is disabled");
	}
	return (NULL);
}

/* ---- hints */

/* The lower of two rates applies; 0 is not a rate. */
static void
limit_rate(struct request *r, struct text value, uint64_t unit)
{
	uint64_t n = 0;

	(void)text_u64(value, &n);
	n = n > UINT32_MAX / unit ? UINT32_MAX : n * unit;
	if (n != 0 && (r->sender.limit == 0 || n < r->sender.limit))
		r->sender.limit = (uint32_t)n;
}

static void
expires(struct relay *rl, struct text value)
{
	rl->expires_set = true;
	rl->expires_is_date = value.p[0] == '@';
	if (rl->expires_is_date)
		text_take(&value, 1);
	(void)text_u64(value, &rl->expires);
}

/* Does what a hint asks for.  NULL, or why it has no effect. */
static const char *
hint(struct relay *rl, enum control c, struct text value)
{
	struct request *r = rl->r;

	if (c == CONTROL_ACCEL_BUFFERING)
		rl->unkept = text_ieq(value, TEXT("no"));
	else if (c == CONTROL_ACCEL_LIMIT_RATE)
		limit_rate(r, value, 1);
	else if (c == CONTROL_KBYTES_PER_SECOND)
		limit_rate(r, value, 1024);
	else if (c == CONTROL_ACCEL_EXPIRES)
		expires(rl, value);
	else if (c == CONTROL_ACCEL_CHARSET)
		rl->extra.charset = arena_text(&r->arena, value);
	else
		return ("it has no effect here");
	return (NULL);
}

/* ---- answers */

/* NULL, or why the control header is dropped. */
static const char *
ask(struct relay *rl, const struct proxy_reply *p, enum control c, enum control *answer)
{
	const char *why = forbidden(rl, c);

	if (rl->fetched && controls[c].asks != CONTROL_HINT)
		return ("X-Reproxy-URL has fetched the reply already");
	if (why != NULL)
		return (why);
	if (controls[c].asks == CONTROL_HINT) {
		why = control_fault(controls[c].value, p->control[c]);
		return (why != NULL ? why : hint(rl, c, p->control[c]));
	}
	if (controls[c].asks == CONTROL_ROUTE)
		return ("a reply that X-Reproxy-URL fetched does not move the request");
	if (!status_has_body(p->status))
		return ("a reply with this status has no body");
	if (controls[c].value == CONTROL_URL && rl->r->in.streams && rl->r->in.left != 0)
		return ("the request body is still on its way");
	if (*answer != CONTROLS)
		return ("another header names the answer");
	*answer = c;
	return (NULL);
}

enum control
proxy_control(struct relay *rl, const struct proxy_reply *p)
{
	enum control c, answer = CONTROLS;
	const char *why;

	if (p->unknown_control.p != NULL)
		proxy_dropped(rl, p->unknown_control, "the name is not known");
	for (c = 0; c < CONTROLS; c++) {
		if (p->control[c].p == NULL)
			continue;
		why = ask(rl, p, c, &answer);
		if (why != NULL)
			proxy_dropped(rl, controls[c].name, why);
	}
	return (answer);
}

void
proxy_control_send(struct relay *rl, const struct proxy_reply *p, enum control answer)
{
	if (controls[answer].allowed == CONTROL_BY_TEMPDIR)
		proxy_send_temp(rl, p, answer);
	else if (controls[answer].value == CONTROL_URL)
		proxy_fetch(rl, p, answer);
	else if (controls[answer].value == CONTROL_PIECES)
		proxy_send_pieces(rl, p, answer);
	else
		proxy_send_file(rl, p, answer);
}
