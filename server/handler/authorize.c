/* server/handler/authorize.c -- asks an application whether the request may go on.
 *
 *   request --> authorizer --200, and a complete reply--> routed again, with its grant
 *                   |---------any other reply-----------> to the client (proxy_reply.c)
 *                   '---------no reply, a broken one----> 502, 503, 504
 *
 * The answer is asked for before the request body is read, before a file is looked up, and once
 * for each list of authorizers, however often the request is routed again.  So an index file or the
 * target of X-Accel-Redirect needs no second question.
 */
#include "base/arena.h"
#include "base/log.h"
#include "proxy-core/conf.h"
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/request/request.h"
#include "server/request/told.h"

#define DROPPED_MAX       (64u << 10) /* bytes of the body of a reply that grants */
#define VARIABLE_NAME_MAX 256u
#define OWN_VARIABLES_MAX 32u /* of an authorizer */

struct auth_question {
	struct relay rl; /* first: the sinks share their argument */
	bool granted;
	size_t dropped;
};

/* ---- variables */

/* NAME of a field Variable-NAME; .p NULL: another field. */
static struct text
variable_name(struct text field)
{
	static const struct text prefix = TEXT("Variable-");

	if (!text_istarts(field, prefix))
		return (TEXT_NONE);
	return ((struct text){ field.p + prefix.n, field.n - prefix.n });
}

static void
log_variable(struct request *r, struct text name, const char *why)
{
	log_limited(10, LOG_WARN, conn_id(r), "authorizer.variable", LF_TEXT("name", name),
	    LF_STR("why", why), LF_STR("then", "the variable is dropped"), conn_client(r));
}

/* The variables of an earlier authorizer of this request stay.  The last value of a name counts.
 * False: no memory. */
static bool
take_variables(struct request *r, const struct proxy_reply *p)
{
	struct text name;
	size_t i, n = 0;

	for (i = 0; i < p->nheaders; i++) {
		name = variable_name(p->headers[i].name);
		if (name.p == NULL)
			continue;
		if (!text_is_plain(name, '_') || name.n > VARIABLE_NAME_MAX)
			log_variable(r, name,
			    "expected at most 256 letters, digits and underscores");
		else if (n++ == OWN_VARIABLES_MAX)
			log_variable(r, name, "an authorizer may set 32");
		else if (n <= OWN_VARIABLES_MAX &&
			 !request_variable(r, arena_text(&r->arena, name),
			     arena_text(&r->arena, p->headers[i].value), VARIABLE_REPLACE))
			return (false);
	}
	return (true);
}

/* ---- the reply */

static void
drop_controls(struct relay *rl, struct proxy_reply *p)
{
	size_t i;

	for (i = 0; i < CONTROLS; i++) {
		if (p->control[i].p == NULL)
			continue;
		proxy_dropped(rl, controls[i].name,
		    "an authorizer sends no files and no requests elsewhere");
		p->control[i] = TEXT_NONE;
	}
}

/* The client gets none of the variables.  False: no memory. */
static bool
drop_variables(struct request *r, struct proxy_reply *p)
{
	struct proxy_field *v = arena_get(&r->arena, (p->nheaders + 1) * sizeof(*v));
	size_t i, n = 0;

	if (v == NULL)
		return (false);
	for (i = 0; i < p->nheaders; i++)
		if (variable_name(p->headers[i].name).p == NULL)
			v[n++] = p->headers[i];
	p->headers = v;
	p->nheaders = n;
	return (true);
}

/* The role AUTHORIZER of FastCGI has one status that grants. */
static bool
grants(const struct request *r, int status)
{
	bool is_fastcgi = strcmp(r->conf->authorizer_protocol, "fastcgi") == 0;

	return (status == 200 || (!is_fastcgi && status > 200 && status < 300));
}

/* The request is answered here, so nobody reads its body. */
static void
end_here(struct request *r)
{
	if (r->in.left != 0)
		conn_close_after(r);
}

static void
refuse(struct auth_question *q, int status)
{
	end_here(q->rl.r);
	q->rl.has_head = true;
	exchange_forget(&q->rl.ex, false);
	proxy_answer_error(&q->rl, status);
}

static void
on_head(void *arg, const struct proxy_reply *p)
{
	struct auth_question *q = arg;
	struct proxy_reply reply = *p;

	drop_controls(&q->rl, &reply);
	if (grants(q->rl.r, p->status)) {
		if (take_variables(q->rl.r, p))
			q->granted = true; /* on_end() goes on */
		else
			refuse(q, 500);
		return;
	}
	end_here(q->rl.r);
	if (drop_variables(q->rl.r, &reply))
		proxy_sink.on_head(&q->rl, &reply);
	else
		refuse(q, 500);
}

static void
on_body(void *arg, struct text t)
{
	struct auth_question *q = arg;

	if (!q->granted) {
		proxy_sink.on_body(&q->rl, t);
		return;
	}
	q->dropped += t.n;
	if (q->dropped > DROPPED_MAX)
		refuse(q, 502);
}

/* A reply that breaks off does not count, whatever its status. */
static void
on_end(void *arg, int status, unsigned retry_after_s)
{
	struct auth_question *q = arg;
	struct request *r = q->rl.r;

	if (q->granted && status == 0) {
		q->rl.ex = NULL;
		relay_set(r, NULL);
		request_told(r)->granted = r->site->authorizer;
		conn_route_again(r);
		return;
	}
	if (!q->rl.has_head)
		end_here(r);
	proxy_sink.on_end(&q->rl, q->granted ? 502 : status, retry_after_s);
}

static const struct exchange_sink sink = {
	.on_head = on_head,
	.on_body = on_body,
	.on_end = on_end,
};

/* ---- the question */

static bool
fill(struct relay *rl)
{
	struct proxy_request *q = &rl->req;

	if (!proxy_fill(rl, rl->r->site->authorizer))
		return (false);
	q->authorizer = q->safe = q->idempotent = true;
	q->content_length = -1;
	q->unsized = false;
	q->upgrade = TEXT_NONE;
	return (true);
}

static enum handled
authorize_start(struct request *r)
{
	const struct exchange_conf conf = proxy_times(r->conf);
	struct auth_question *q;

	if (r->peeks)
		return (HANDLED_NOT_NOW);
	if (request_keep(r) && (q = arena_get(&r->arena, sizeof(*q))) != NULL) {
		*q = (struct auth_question){ .rl = { .r = r,
						 .ends_with_client = r->conf->proxy_abort } };
		if (fill(&q->rl) && exchange_start(r->site->authorizer, &q->rl.req, &conf, &sink,
					&q->rl, &q->rl.ex) == 0) {
			relay_set(r, &q->rl);
			return (HANDLED_LATER);
		}
	}
	end_here(r);
	reply_error(r, 500);
	return (HANDLED_REPLY);
}

const struct handler handler_authorize = {
	.name = "authorizer",
	.before_body = true,
	.start = authorize_start,
	.stop = proxy_stop,
};
