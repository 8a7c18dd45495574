/* server/log/accesslog_format.c -- lines in a format of accesslog.format, as lighttpd writes them;
 * see accesslog_format.h.  Without a format, accesslog.c writes the line. */
#include "server/log/accesslog_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "io/tls/facts.h"
#include "server/config/config.h"
#include "server/request/client.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/request/told.h"
#include "server/request/id.h"
#include "server/request/request.h"
#include "server/worker/base.h"
#include "wire/codec/message.h"
#include "wire/http1/http1.h"
#include "wire/log_format.h"

struct line {
	struct request *r;
	const struct http_request *http; /* empty, if the head could not be parsed */
	struct buf *out;
	void (*escape)(struct buf *, struct text);
	bool cut;
	uint64_t end_ns, taken_ns; /* wall clock; duration.  0 if the format needs no time */
	struct text absent;        /* stands for a value that is not there */
	const struct timing *times;
};

static void
put_value(struct line *l, struct text t)
{
	if (t.p == NULL)
		buf_text(l->out, l->absent);
	else
		l->escape(l->out, t);
}

/* ---- fields of heads */

/* All fields of that name, joined as in RFC 9110, 5.3. */
static void
put_request_field(struct line *l, struct text name)
{
	const struct http_request *h = l->http;
	bool found = false;
	size_t i;

	for (i = 0; i < h->nheaders; i++) {
		if (!text_ieq(h->headers[i].name, name))
			continue;
		if (found)
			buf_str(l->out, ", ");
		found = true;
		l->escape(l->out, h->headers[i].value);
	}
	if (!found)
		put_value(l, TEXT_NONE);
}

/* The server made the head, or its parser has read it: each line has a name and a colon. */
static void
put_reply_field(struct line *l, struct text name)
{
	const struct request_told *told = request_told(l->r);
	struct text rest = told->reply_head, more = told->log_fields, field, part;
	bool found = false;

	(void)text_next(&rest, '\n', &field); /* the status line */
	while (text_next(&rest, '\n', &field) || text_next(&more, '\n', &field)) {
		field = text_trim_cr(field);
		if (!text_next(&field, ':', &part) || !text_ieq(part, name))
			continue;
		if (found)
			buf_str(l->out, ", ");
		found = true;
		l->escape(l->out, text_trim(field.p != NULL ? field : TEXT("")));
	}
	if (!found)
		put_value(l, TEXT_NONE);
}

/* A cookie that is absent is empty, as in lighttpd. */
static void
put_cookie(struct line *l, struct text name)
{
	const struct http_request *h = l->http;
	struct text list, cookie, key;
	size_t i;

	for (i = 0; i < h->nheaders; i++) {
		if (!text_ieq(h->headers[i].name, TEXT("cookie")))
			continue;
		list = h->headers[i].value;
		while (text_next(&list, ';', &cookie)) {
			cookie = text_trim(cookie);
			if (!text_next(&cookie, '=', &key) || !text_eq(key, name))
				continue;
			l->escape(l->out, cookie.p != NULL ? cookie : TEXT(""));
			return;
		}
	}
}

/* Applications get it as a variable. */
static struct text
told_fact(const struct line *l, struct text name)
{
	const struct tls_facts *f = conn_facts(l->r);
	size_t i;

	for (i = 0; f != NULL && i < f->told; i++)
		if (text_eq(f->v[i].name, name))
			return (f->v[i].value);
	return (TEXT_NONE);
}

static void
put_variable(struct line *l, struct text name)
{
	const struct request_variables *vars = request_variables(l->r);
	size_t i;

	for (i = 0; i < vars->n; i++)
		if (text_eq(vars->v[i].name, name)) {
			l->escape(l->out, vars->v[i].value);
			return;
		}
	put_value(l, told_fact(l, name));
}

/* ---- times */

/* In local time.  The worker keeps the text of the last second. */
static void
put_time(struct line *l, const struct log_piece *p)
{
	struct log_stamp *s = &l->r->worker->log_stamp;
	uint64_t ns = p->begin ? l->end_ns - l->taken_ns : l->end_ns;
	time_t second = (time_t)(ns / NS_PER_S);
	char format[sizeof(s->text)];
	struct tm tm;

	if (s->piece != p || s->second != second) {
		*s = (struct log_stamp){ .piece = p, .second = second };
		if (p->arg.n < sizeof(format) && localtime_r(&second, &tm) != NULL) {
			memcpy(format, p->arg.p, p->arg.n);
			format[p->arg.n] = '\0';
			s->n = strftime(s->text, sizeof(s->text), format, &tm);
		}
	}
	buf_text(l->out, (struct text){ s->text, s->n });
}

/* ---- pieces */

static void
put_address(struct line *l, const struct log_piece *p)
{
	char text[64];

	if (p->kind == LOG_LOCAL)
		put_value(l, conn_local(l->r, text));
	else
		put_value(l, conn_remote(l->r, text));
}

static void
put_file(struct line *l)
{
	const struct place *place = &l->r->place;

	if (place->path.p == NULL || l->r->status == 404) {
		put_value(l, TEXT_NONE);
		return;
	}
	l->escape(l->out, place->dir);
	l->escape(l->out, place->path);
}

static void
put_server(struct line *l)
{
	const struct request *r = l->r;

	put_value(l, r->conf->server_name != NULL ? text_of(r->conf->server_name) : l->http->host);
}

/* No thread was needed to look for the file or to read it. */
static bool
is_hot(const struct request *r)
{
	return (!r->cold && r->times.hot);
}

static struct text
target_of(const struct line *l)
{
	return (l->http->target.p != NULL ? l->http->target : l->r->http.line);
}

static struct text
protocol_of(const struct line *l)
{
	if (l->r->head.p == NULL)
		return (TEXT_NONE);
	return (http_version(l->http));
}

static void
put_text(struct line *l, const struct log_piece *p)
{
	const struct request *r = l->r;
	char state = l->cut ? 'X' : conn_keeps_alive(r) ? '+' : '-';

	switch (p->kind) {
	case LOG_LITERAL: buf_text(l->out, p->arg); break;
	case LOG_REMOTE:
	case LOG_LOCAL: put_address(l, p); break;
	case LOG_USER: put_value(l, r->user.n != 0 ? r->user : TEXT_NONE); break;
	case LOG_TIME: put_time(l, p); break;
	case LOG_CLOCK:
		log_format_clock(l->out, p, p->begin ? l->end_ns - l->taken_ns : l->end_ns);
		break;
	case LOG_LINE: put_value(l, r->http.line); break;
	case LOG_HEADER: put_request_field(l, p->arg); break;
	case LOG_REPLY: put_reply_field(l, p->arg); break;
	case LOG_COOKIE: put_cookie(l, p->arg); break;
	case LOG_VARIABLE: put_variable(l, p->arg); break;
	case LOG_FILE: put_file(l); break;
	case LOG_PROTOCOL: put_value(l, protocol_of(l)); break;
	case LOG_METHOD: put_value(l, l->http->method); break;
	case LOG_QUERY: l->escape(l->out, l->http->query); break;
	case LOG_PATH: put_value(l, l->http->path); break;
	case LOG_SERVER: put_server(l); break;
	case LOG_HOST: put_value(l, l->http->host); break;
	case LOG_ID: put_value(l, request_id(l->r)); break;
	case LOG_NUMBER: put_value(l, text_of(conn_number(r))); break;
	case LOG_BACKEND: put_value(l, request_told(r)->backend); break;
	case LOG_CACHE: put_value(l, is_hot(r) ? TEXT("hot") : TEXT("cold")); break;
	case LOG_TRACE: put_value(l, request_trace_id(r)); break;
	case LOG_TARGET: put_value(l, target_of(l)); break;
	case LOG_TLS: put_value(l, tls_fact(conn_facts(r), p->arg)); break;
	case LOG_STATE: buf_char(l->out, state); break;
	case LOG_EMPTY: break;
	default: put_value(l, TEXT_NONE);
	}
}

static uint64_t
number_of(const struct line *l, const struct log_piece *p)
{
	const struct request *r = l->r;

	switch (p->kind) {
	case LOG_STATUS: return ((uint64_t)r->status);
	case LOG_BYTES: return (r->body_bytes);
	case LOG_KEPT: return (conn_requests(r) - 1);
	case LOG_PORT: return (conn_local_port(r));
	case LOG_PEERPORT: return (conn_remote_port(r));
	case LOG_TAKEN: return (l->taken_ns / (NS_PER_S / p->per));
	case LOG_STAGE: return (timing_stage(l->times, p->stage) / 1000);
	case LOG_IN: return (r->head.n + r->in.received);
	default: return (request_told(r)->reply_head.n + r->body_bytes); /* LOG_OUT */
	}
}

static bool
is_number(enum log_piece_kind kind)
{
	return (kind == LOG_STATUS || kind == LOG_BYTES || kind == LOG_KEPT || kind == LOG_PORT ||
		kind == LOG_PEERPORT || kind == LOG_TAKEN || kind == LOG_IN || kind == LOG_OUT ||
		kind == LOG_STAGE);
}

static bool
in_json(const struct request *r, const struct log_format *f)
{
	return (f->json || strcmp(r->conf->accesslog_escaping, "json") == 0);
}

void
accesslog_format(struct buf *out, struct request *r, const struct log_format *f,
    const struct timing *times, bool cut)
{
	static const struct http_request none;
	struct line l = { .r = r,
		.http = r->head.p != NULL ? &r->http : &none,
		.out = out,
		.escape = in_json(r, f) ? log_format_json : log_format_escape,
		.absent = f->json ? TEXT("") : TEXT("-"),
		.times = times,
		.cut = cut };
	unsigned i;

	if (f->clock) {
		l.end_ns = clock_wall_ns();
		l.taken_ns = clock_between(r->started_ns, clock_mono_ns());
	}
	for (i = 0; i < f->n; i++) {
		if (is_number(f->v[i].kind))
			buf_u64(out, number_of(&l, &f->v[i]));
		else
			put_text(&l, &f->v[i]);
	}
	buf_char(out, '\n');
}

/* ---- accesslog.format, parsed once */

static const void *
key(const struct conf *c)
{
	return (c->accesslog_format);
}

static void *
make(const struct conf *c, char *err, size_t errsize)
{
	struct log_format *f = malloc(sizeof(*f));

	if (f == NULL)
		return (rules_no_memory(err, errsize));
	tzset(); /* reads /etc/localtime now, so that no worker has to */
	if (log_format_parse(text_of(c->accesslog_format), f, err, errsize))
		return (f);
	free(f);
	return (NULL);
}

const struct rules_kind rules_log_format = {
	.directive = "accesslog.format",
	.key = key,
	.make = make,
	.free = free,
};
