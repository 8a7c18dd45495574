/* server/log/debug_log.c -- see debug_log.h */
#include "server/log/debug_log.h"

#include "base/log.h"
#include "server/config/config.h"
#include "server/request/client.h"
#include "server/handler/handler.h"
#include "server/request/request.h"
#include "server/request/told.h"
#include "server/worker/base.h"
#include "wire/http1/http1.h"

bool
debug_log_is_on(const struct conf *c)
{
	return (c->log_request_header || c->log_response_header || c->log_handling ||
		c->log_condition || c->log_cond_cache || c->log_not_found || c->log_on_error);
}

/* ---- heads */

/* Fields whose values let others in. */
static struct text
shown(struct text name, struct text value)
{
	static const struct text secret[] = { TEXT("authorization"), TEXT("cookie"),
		TEXT("proxy-authorization"), TEXT("set-cookie") };

	return (text_is_one_of(name, secret, NELEM(secret)) ? TEXT("***") : value);
}

static void
request_head(struct request *r)
{
	const struct http_request *h = &r->http;
	size_t i;

	log_event(LOG_INFO, conn_id(r), "debug.request", LF_TEXT("line", h->line));
	for (i = 0; i < h->nheaders; i++)
		log_event(LOG_INFO, conn_id(r), "debug.request-header",
		    LF_TEXT("name", h->headers[i].name),
		    LF_TEXT("value", shown(h->headers[i].name, h->headers[i].value)));
}

void
debug_log_head(struct request *r)
{
	struct text rest = request_told(r)->reply_head, line, name;

	if (!r->conf->log_response_header || !text_next(&rest, '\n', &line))
		return;
	log_event(LOG_INFO, conn_id(r), "debug.response", LF_TEXT("line", text_trim_cr(line)));
	while (text_next(&rest, '\n', &line)) {
		line = text_trim_cr(line);
		if (line.n == 0 || !text_next(&line, ':', &name))
			continue;
		log_event(LOG_INFO, conn_id(r), "debug.response-header", LF_TEXT("name", name),
		    LF_TEXT("value", shown(name, text_trim(line))));
	}
}

/* ---- conditions */

static void
condition(void *arg, const char *file, uint32_t line, struct text cond, const char *state)
{
	const struct request *r = arg;

	log_event(LOG_INFO, conn_id(r), "debug.condition", LF_STR("file", file),
	    LF_U64("line", line), LF_TEXT("condition", cond), LF_STR("is", state));
}

static void
conditions(struct request *r)
{
	const struct conf_view *v = r->worker->view;

	if (!r->worker->plain && (r->conf->log_condition || r->conf->log_cond_cache))
		conf_view_tell(v, condition, r);
	if (r->conf->log_cond_cache)
		log_event(LOG_INFO, conn_id(r), "debug.condition-cache",
		    LF_U64("sets", conf_view_sets(v)));
}

/* ---- stages of a request */

void
debug_log_routed(struct request *r, const struct handler *handler)
{
	const struct conf *c = r->conf;

	if (c->log_request_header && r->reroutes == 0)
		request_head(r);
	conditions(r);
	if (c->log_handling)
		log_event(LOG_INFO, conn_id(r), "debug.handling", LF_TEXT("uri", r->http.target),
		    LF_TEXT("scheme", conn_scheme(r)), LF_TEXT("host", r->http.host),
		    LF_TEXT("path", request_path(r)), LF_TEXT("query", r->http.query),
		    LF_TEXT("root", r->place.dir), LF_TEXT("file", r->place.path),
		    LF_STR("handler", handler->name));
}

void
debug_log_replied(struct request *r)
{
	const struct conf *c = r->conf;

	if (c->log_on_error && !c->log_request_header && r->status >= 400 && r->head.p != NULL)
		request_head(r);
	if (c->log_not_found && r->status == 404)
		log_event(LOG_INFO, conn_id(r), "debug.not-found", LF_TEXT("uri", r->http.target),
		    LF_TEXT("root", r->place.dir), LF_TEXT("file", r->place.path));
	if (c->log_handling)
		log_event(LOG_INFO, conn_id(r), "debug.replied", LF_U64("status", r->status),
		    LF_U64("bytes", r->body_bytes));
}
