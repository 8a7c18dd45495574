/* t/unit/server/meet_app.h -- applications, programs and authorizers: they must get what the client
 * sent, and their answers are random. */
#ifndef MEET_APP_H
#define MEET_APP_H

#include <arpa/inet.h>
#include "t/unit/server/meet_speak.h"

static struct app *
app_of(const struct io_sock *s)
{
	unsigned i;

	for (i = 0; i < APPS; i++)
		if (now.app[i].s == s)
			return (&now.app[i]);
	return (NULL);
}

static struct visit *
visit_of(const struct app *a)
{
	return (&a->ask->visit[a->visit]);
}

static void
app_forget(struct app *a)
{
	g_string_free(a->body, TRUE);
	g_string_free(a->to_say, TRUE);
	*a = (struct app){ .s = NULL };
}

/* Some failures of a backend do not belong to one request. */
static void
excuse_all(enum excuse x)
{
	unsigned i, k;

	for (i = 0; i < now.nvisitors; i++)
		for (k = now.visitor[i].next; k < now.visitor[i].nasks; k++)
			now.visitor[i].ask[k].excuses |= x;
}

/* ---------------------------------------------------------------- sockets */

static void
app_comes(struct io_op *op)
{
	const struct sockaddr_in *in = (const void *)op->connect.addr;
	unsigned last = ntohl(in->sin_addr.s_addr) & 0xff;
	struct app *a = app_of(op->sock);

	if (a != NULL) /* an earlier one at this address of memory */
		app_forget(a);
	a = app_of(NULL);
	law(a != NULL, "too many sockets of applications");
	sim_sent_clear(io, op->sock);
	*a = (struct app){ .s = op->sock,
		.fd = op->sock->fd,
		.speaks = language(last == 2 || last == 9 ? "fastcgi" : now.protocol),
		.backend = last,
		.authorizer = last == 2,
		.program = last == 9,
		.body = g_string_new(NULL),
		.to_say = g_string_new(NULL) };
	if (now.faults && one_in(20)) {
		trace("socket %d is refused", a->fd);
		excuse_all(X_BACKEND);
		sim_finish(io, op, -ECONNREFUSED);
		return;
	}
	trace("socket %d to .%u", a->fd, last);
	sim_finish(io, op, 0);
}

/* ---------------------------------------------------------------- what it got */

static bool
is_post(const struct app *a)
{
	const char *p;

	if (strcmp(a->speaks->name, "http") == 0)
		return (a->head.p[0] == 'P');
	if (strcmp(a->speaks->name, "ajp13") == 0)
		return (a->head.p[5] == AJP_POST || a->head.p[5] == AJP_PUT);
	p = in_head(a, "REQUEST_METHOD",
	    strcmp(a->speaks->name, "scgi") == 0    ? 1
	    : strcmp(a->speaks->name, "uwsgi") == 0 ? 2
						    : 0);
	law(p != NULL, "no method");
	return (*p == 'P');
}

static bool
may_be_a_get(const struct ask *k)
{
	unsigned i;

	if (!k->post || now.handler != NO_HANDLER)
		return (true);
	for (i = 0; i < k->nvisits; i++)
		if (k->visit[i].plan == PLAN_REDIRECT)
			return (true);
	return (false);
}

static void
plan_path(struct app *a, struct visit *v)
{
	static const struct {
		const char *path, *bytes;
		int fails;
	} files_[] = { { "/a", "AAAA", 0 }, { "/b", "BBBBBB", 0 }, { "/m", m_bytes, 0 },
		{ "/big", big_bytes, 0 }, { "/none", NULL, 404 }, { "/dir", NULL, 403 },
		{ "-not/a", NULL, 403 } },
	  pieces[] = { { "/b 1-2, %s/m 0-1", "BBmm", 0 }, { "/a 0-, %s/none 0-", NULL, 404 },
		  { "/dir 0-", NULL, 403 }, { "/none 1-", NULL, 404 }, { "/a 0-99", NULL, 502 },
		  { "-not/a 0-", NULL, 403 } },
	  urls[] = { { "/a", "AAAA", 0 }, { "/none", NULL, 404 }, { "/dir", NULL, 403 },
		  { "/a~", NULL, 403 }, { "/up/again", NULL, 0 } };
	unsigned i;

#define DRAW(from)                                                                        \
	(i = below(G_N_ELEMENTS(from)), v->path = from[i].path, v->bytes = from[i].bytes, \
	    v->fails = from[i].fails)
	if (v->plan == PLAN_FILE)
		DRAW(files_);
	else if (v->plan == PLAN_PIECES)
		DRAW(pieces);
	else
		DRAW(urls);
}

static enum plan
draw_plan(const struct app *a)
{
	unsigned n = below(100);

	if (a->ask->of->holds)
		return (PLAN_SILENT);
	if (now.faults && n < 16)
		return (n < 10 ? PLAN_BROKEN : PLAN_SILENT);
	if (now.next && !a->authorizer && !a->program && a->visit < 7 && one_in(4))
		return (PLAN_FAILS);
	if (a->authorizer)
		return (n < 85 ? PLAN_GRANT : PLAN_DENY);
	if (a->visit >= 7)
		return (PLAN_PLAIN);
	return (n < 50 ? PLAN_PLAIN : n < 67 ? PLAN_FILE : n < 84 ? PLAN_PIECES : PLAN_REDIRECT);
}

/* ---------------------------------------------------------------- proxy-core.next-upstream */

#define MOST_KEPT 65536u /* bytes of a body that is sent again */

static bool
has_failed(const struct visit *v)
{
	return (v->plan == PLAN_FAILS || v->plan == PLAN_BROKEN || v->plan == PLAN_SILENT ||
		(now.next_5xx && v->status >= 500));
}

static bool
may_go_on(const struct app *a)
{
	const struct ask *k = a->ask;

	return (!visit_of(a)->post ||
		(k->put && k->length <= MOST_KEPT && (!k->chunked || !now.streams)));
}

/* The request goes to one backend after the other, and no more often. */
static void
goes_on(const struct app *a)
{
	const struct ask *k = a->ask;
	const struct visit *v = visit_of(a), *before;
	unsigned i;

	for (i = 0; i < a->visit; i++) {
		before = &k->visit[i];
		if (!v->post || !before->post || k->length == 0 || before->authorizer)
			continue;
		law(k->put, "the POST %u comes twice", k->id);
		law(has_failed(before) || (k->excuses & X_TIME) != 0,
		    "the PUT %u.%u comes again, and did not fail", k->id, i);
		law(v->backend != before->backend, "the PUT %u comes to .%u twice", k->id,
		    v->backend);
	}
}

/* The next backend gets it, or the client an error. */
static void
plan_failure(const struct app *a)
{
	struct ask *k = a->ask;
	struct visit *v = visit_of(a);

	if (a->authorizer || a->program || !has_failed(v) || !now.next)
		return;
	k->fails++;
	if (may_go_on(a))
		k->met |= BIT(went_on);
	v->hidden = !now.faults && may_go_on(a) && k->fails < 3;
	if (now.faults)
		excuse_all(X_BACKEND); /* others may wait for a socket of it */
	if (!v->hidden)
		k->excuses |= X_APP;
}

/* ---------------------------------------------------------------- X-Request-ID */

static const char *
request_id_in(const struct app *a)
{
	static const char *const names[] = { "HTTP_X_REQUEST_ID", "X-Request-ID" };
	const char *p = NULL;
	size_t i, n = 0;

	for (i = 0; i < 2 && p == NULL; i++)
		p = in_head(a, names[i], 0);
	law(p != NULL, "request %u comes without an id", a->ask->id);
	while (n < 4 && !g_ascii_isxdigit(p[n]))
		n++;
	return (p + n);
}

static void
id_checks(const struct app *a)
{
	struct ask *k = a->ask;
	const char *p = request_id_in(a);
	size_t n = 0;
	unsigned i;

	while (n < 32 && g_ascii_isxdigit(p[n]))
		n++;
	law(n == 32, "request %u has the id %.32s", k->id, p);
	if (k->request_id[0] == '\0')
		memcpy(k->request_id, p, 32);
	law(memcmp(k->request_id, p, 32) == 0, "request %u has two ids", k->id);
	for (i = 1; i <= now.ids; i++)
		law(i == k->id || memcmp(now.by_id[i]->request_id, p, 32) != 0,
		    "%u and %u have one id", i, k->id);
}

/* ---------------------------------------------------------------- a request comes */

static void
app_begins(struct app *a)
{
	const char *p = in_head(a, "id=", 0);
	unsigned id = p != NULL ? (unsigned)strtoul(p, NULL, 10) : 0;
	struct visit *v;

	law(id != 0 && id <= now.ids, "a request of nobody: %.*s", (int)a->head.n, a->head.p);
	a->ask = now.by_id[id];
	law(a->ask->nvisits < VISITS, "request %u is asked for again and again", id);
	law(!a->ask->answered, "request %u is asked for after its answer", id);
	a->visit = a->ask->nvisits++;
	v = visit_of(a);
	*v = (struct visit){ .plan = draw_plan(a),
		.status = 200,
		.authorizer = a->authorizer,
		.backend = a->backend };
	v->post = is_post(a);
	v->head = a->ask->head;
	law(!v->post || a->ask->post, "a POST of nobody, request %u", id);
	law(v->post || may_be_a_get(a->ask), "the POST %u came as a GET", id);
	if (v->plan == PLAN_FILE || v->plan == PLAN_PIECES || v->plan == PLAN_REDIRECT)
		plan_path(a, v);
	if (v->plan == PLAN_PLAIN && one_in(12))
		v->status = one_in(2) ? 404 : one_in(2) ? 500 : 503;
	if (v->plan == PLAN_DENY)
		v->status = 403;
	v->length = v->plan == PLAN_GRANT ? 0 : below(one_in(12) ? LONGEST : 300);
	if (v->plan == PLAN_BROKEN || v->plan == PLAN_SILENT)
		a->ask->excuses |= X_APP;
	goes_on(a);
	id_checks(a);
	plan_failure(a);
	if (v->plan == PLAN_SILENT)
		excuse_all(X_TIME); /* they may wait for its socket */
	a->early = one_in(3);
	a->waits = a->early || one_in(2) ? 0 : below(12);
	trace("socket %d gets request %u.%u (%s): plan %u %s, %zu bytes, %s after %u", a->fd, id,
	    a->visit, v->post ? "POST" : "GET", v->plan, v->path != NULL ? v->path : "", v->length,
	    a->early ? "early" : "at its end", a->waits);
}

static void
body_checks(struct app *a)
{
	struct visit *v = visit_of(a);
	struct ask *k = a->ask;
	unsigned i;

	if (!v->post || v->authorizer) {
		law(a->body->len == 0, "request %u has a body of %zu bytes", k->id, a->body->len);
		return;
	}
	law(a->body->len <= k->length && is_body_of(k->id, a->body->str, a->body->len),
	    "the body of %u is another one: %zu of %zu bytes, %.40s", k->id, a->body->len,
	    k->length, a->body->str);
	if (!a->whole)
		return;
	law(!k->malformed, "the malformed body of %u came as a whole one", k->id);
	law(a->body->len == k->length, "the body of %u ends after %zu of %zu bytes", k->id,
	    a->body->len, k->length);
	v->whole = true;
	/* a handler of errors gets the request of the client, too, as long as it has no body */
	for (i = 0; i < k->nvisits; i++)
		law(&k->visit[i] == v || !k->visit[i].post || !k->visit[i].whole ||
			k->length == 0 ||
			(k->put && (has_failed(&k->visit[i]) || (k->excuses & X_TIME) != 0)),
		    "the body of %u came twice", k->id);
}

static void
app_gets(struct app *a)
{
	struct text all = sim_sent(io, a->s);
	bool had_head = a->has_head;

	if (all.n == a->seen || all.n <= a->from)
		return;
	a->seen = all.n;
	g_string_set_size(a->body, 0);
	a->whole = a->has_head = false;
	text_take(&all, a->from);
	a->speaks->read(a, all);
	if (a->has_head && !had_head)
		app_begins(a);
	if (a->has_head)
		body_checks(a);
}

/* ---------------------------------------------------------------- what it answers */

static char *
lines_of(const struct app *a, const struct visit *v)
{
	GString *s = g_string_new(NULL);

	g_string_append_printf(s, "X-Re: %u.%u\r\nContent-Type: text/plain\r\n", a->ask->id,
	    a->visit);
	if (v->plan == PLAN_FILE)
		g_string_append_printf(s, "X-Sendfile: %s%s\r\n", dir, v->path);
	if (v->plan == PLAN_REDIRECT)
		g_string_append_printf(s, "X-Accel-Redirect: %s\r\n", v->path);
	if (v->plan == PLAN_PIECES) {
		g_string_append_printf(s, "X-Sendfile2: %s", dir);
		/* the paths of the table have at most one %s */
		const char *cut = strstr(v->path, "%s");

		if (cut == NULL)
			g_string_append(s, v->path);
		else
			g_string_append_printf(s, "%.*s%s%s", (int)(cut - v->path), v->path, dir,
			    cut + 2);
		g_string_append(s, "\r\n");
	}
	return (g_string_free(s, FALSE));
}

static void
break_off(struct app *a)
{
	unsigned how = below(3);

	a->closes = true;
	excuse_all(X_BACKEND); /* others may wait for a socket of it */
	if (how != 2)
		g_string_set_size(a->to_say, a->said);
	if (how == 1)
		g_string_append(a->to_say, "HTTP/0.9 garbage\r\n\1\2\3\r\n\r\nid=");
	if (how == 2)
		g_string_set_size(a->to_say, a->said + below((unsigned)(a->to_say->len - a->said)));
}

/* Sends nothing, or a part of the head; then the end, or a reset.  Notes the requests that it asked
 * for. */
static void
fails(struct app *a)
{
	const char *head = a->to_say->str + a->said,
		   *end = memmem(head, a->to_say->len - a->said, "\r\n\r\n", 4);
	size_t n = end != NULL ? (size_t)(end - head) : MIN(a->to_say->len - a->said, 20);

	g_string_set_size(a->to_say, a->said + (one_in(2) ? 0 : below((unsigned)n)));
	a->closes = true;
	a->resets = one_in(2);
	if (!a->whole && a->resets) /* its sends fail, so bytes of the body are lost */
		a->ask->excuses |= X_APP;
	trace("socket %d fails%s", a->fd, a->resets ? ", reset" : "");
}

static void
app_answers(struct app *a)
{
	struct visit *v = visit_of(a);
	bool own = v->plan != PLAN_FILE && v->plan != PLAN_PIECES && v->plan != PLAN_REDIRECT;
	g_autoptr(GString) body = g_string_new(NULL);
	g_autofree char *lines = lines_of(a, v);

	a->answers = true;
	if (!a->whole) {
		a->ask->met |= a->ask->post ? BIT(early) : 0;
		a->ask->excuses |= v->plan == PLAN_PLAIN || v->plan == PLAN_FAILS ? 0 : X_EARLY;
	}
	add_body(body, a->ask->id + a->visit + 1, v->length);
	a->speaks->write(a, v->status, lines, (struct text){ body->str, own ? body->len : 0 },
	    v->head && !v->authorizer);
	if (v->plan == PLAN_BROKEN)
		break_off(a);
	if (v->plan == PLAN_FAILS)
		fails(a);
	trace("socket %d answers %u.%u with %zu bytes", a->fd, a->ask->id, a->visit,
	    a->to_say->len);
}

static void
app_asks_more(struct app *a)
{
	static const char more[] = { 'A', 'B', 0, 3, 6, 0x1f, (char)0xfa };

	a->asked++;
	g_string_append_len(a->to_say, more, sizeof(more));
}

/* AJP: all packets that were asked for are there, and the body is not. */
static bool
wants_more(const struct app *a)
{
	struct text in = sim_sent(io, a->s);
	size_t at, n, packets = 0;

	if (strcmp(a->speaks->name, "ajp13") != 0 || a->whole)
		return (false);
	text_take(&in, a->from);
	for (at = 0; at + 4 <= in.n; at += n) {
		n = 4u + (size_t)((guint8)in.p[at + 2] << 8 | (guint8)in.p[at + 3]);
		packets += at != 0 && at + n <= in.n;
	}
	return (packets == a->asked);
}

static void
request_over(struct app *a)
{
	a->from += a->used;
	a->has_head = a->whole = a->answers = false;
	a->asked = 0;
	a->ask = NULL;
	g_string_set_size(a->to_say, 0);
	a->said = 0;
	app_gets(a);
}

static void
app_decides(struct app *a)
{
	struct visit *v = visit_of(a);

	if (a->answers || v->plan == PLAN_SILENT)
		return;
	if (a->waits != 0) {
		a->waits--;
		a->ask->met |= BIT(late);
		return;
	}
	if (a->whole || a->early)
		app_answers(a);
	else if (wants_more(a))
		app_asks_more(a);
}

/* The application says the next part of its reply.  False: it has nothing to say. */
static bool
app_says(struct app *a, struct io_op *op)
{
	size_t n;

	app_gets(a);
	if (a->ask != NULL && a->said == a->to_say->len)
		app_decides(a);
	n = a->to_say->len - a->said;
	if (n != 0) {
		n = least(n, 1 + below(one_in(3) ? 30 : 65535));
		sim_recv(io, op, (struct text){ a->to_say->str + a->said, n });
		a->said += n;
		if (a->answers && a->said == a->to_say->len && a->whole && !a->closes)
			request_over(a);
		return (true);
	}
	if (a->closes && a->answers)
		sim_finish(io, op, a->resets ? -ECONNRESET : 0);
	return (a->closes && a->answers);
}

#endif
