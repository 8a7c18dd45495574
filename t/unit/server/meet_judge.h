/* t/unit/server/meet_judge.h -- the model: what a request may be answered.
 *
 *   X-Re: ID.VISIT   the reply is that of this visit of this request, with its body or its file
 *   200 without it   the file of the request, or of a page for errors
 *   another status   it follows from the request, or something of enum excuse happened to it
 *   no reply         its client left, or something happened to it or to the reply before
 */
#ifndef MEET_JUDGE_H
#define MEET_JUDGE_H

#include "t/unit/server/meet.h"
#include "t/unit/server/meet_pairs.h"

struct reply {
	int status;
	bool closes, whole, sized, chunked;
	unsigned id, visit; /* id 0: not an application's */
	struct text head;
	GString *body;
};

/* ---------------------------------------------------------------- reading */

static const char *
field(const struct reply *r, const char *name)
{
	const char *p = memmem(r->head.p, r->head.n, name, strlen(name));

	return (p != NULL ? p + strlen(name) : NULL);
}

static size_t
read_chunks(struct reply *r, struct text t, size_t at)
{
	const char *end;
	size_t n;

	while (!r->whole && (end = memmem(t.p + at, t.n - at, "\r\n", 2)) != NULL) {
		n = strtoul(t.p + at, NULL, 16);
		at = (size_t)(end - t.p) + 2;
		if (at + n + 2 > t.n) {
			g_string_append_len(r->body, t.p + at, (gssize)MIN(n, t.n - at));
			return (t.n);
		}
		g_string_append_len(r->body, t.p + at, (gssize)n);
		law(memcmp(t.p + at + n, "\r\n", 2) == 0, "a chunk does not end");
		at += n + 2;
		r->whole = n == 0;
	}
	return (at);
}

/* The bytes it takes up so far; 0: its head is not there.  body is the caller's. */
static size_t
read_reply(struct reply *r, struct text t, bool head)
{
	const char *end = t.n != 0 ? memmem(t.p, t.n, "\r\n\r\n", 4) : NULL, *p;
	char *dot;
	size_t n;

	if (end == NULL)
		return (0);
	law(t.n > 12 && memcmp(t.p, "HTTP/1.1 ", 9) == 0, "no reply begins so: %.60s", t.p);
	r->head = (struct text){ t.p, (size_t)(end - t.p) + 4 };
	r->status = atoi(t.p + 9);
	r->closes = field(r, "Connection: close\r\n") != NULL;
	p = field(r, "\r\nX-Re: ");
	if (p != NULL) { /* not sscanf(): it looks for a NUL */
		r->id = (unsigned)strtoul(p, &dot, 10);
		r->visit = (unsigned)strtoul(dot + 1, NULL, 10);
	}
	p = field(r, "\r\nContent-Length: ");
	r->sized = p != NULL;
	r->chunked = field(r, "\r\nTransfer-Encoding: chunked\r\n") != NULL;
	if (head || r->status < 200 || r->status == 204 || r->status == 304) {
		r->whole = true;
		return (r->head.n);
	}
	law(r->sized != r->chunked, "a reply needs one length: %.*s", (int)r->head.n, r->head.p);
	if (r->chunked)
		return (read_chunks(r, t, r->head.n));
	n = MIN(strtoul(p, NULL, 10), t.n - r->head.n);
	g_string_append_len(r->body, t.p + r->head.n, (gssize)n);
	r->whole = n == strtoul(p, NULL, 10);
	return (r->head.n + n);
}

/* ---------------------------------------------------------------- what may come */

/* Statuses that follow from the request and from what applications said of it. */
static bool
follows(const struct ask *a, int status)
{
	const struct visit *v;
	unsigned i, redirects = 0;
	int own = a->at == AT_NONE                       ? 404
		  : a->at == AT_REFUSED                  ? 403
		  : a->at == AT_DIR || a->at == AT_MOVED ? 301
		  : a->at == AT_PAGE || a->file != NULL  ? 200
							 : 0;

	if (status == own || (status == 405 && a->post && a->at < AT_APP))
		return (true);
	for (i = 0; i < a->nvisits; i++) {
		v = &a->visit[i];
		redirects += v->plan == PLAN_REDIRECT;
		if (v->hidden)
			continue;
		if (v->fails != 0 ? v->fails == status : v->status == status)
			return (true);
	}
	return (status == 500 && redirects > 10);
}

static bool
is_file(const struct reply *r, const char *bytes)
{
	return (bytes != NULL && strncmp(r->body->str, bytes, r->body->len) == 0 &&
		(!r->whole || r->body->len == strlen(bytes)));
}

static bool
is_page(const struct reply *r)
{
	return (r->body->len == 0 || strstr(r->body->str, "<") != NULL);
}

static bool
is_of_visit(const struct visit *v, const struct ask *a, const struct reply *r)
{
	if (v->plan == PLAN_FILE || v->plan == PLAN_PIECES || v->plan == PLAN_REDIRECT)
		return (is_file(r, v->bytes));
	return (is_body_of(a->id + r->visit + 1, r->body->str, r->body->len) &&
		(!r->whole || r->body->len == v->length));
}

static void
judge_application(const struct ask *a, const struct reply *r)
{
	const struct visit *v;

	law(r->id == a->id && r->visit < a->nvisits, "request %u gets the reply %u.%u", a->id,
	    r->id, r->visit);
	v = &a->visit[r->visit];
	law(!v->hidden, "%u gets the answer of .%u, and another backend was left", a->id,
	    v->backend);
	if (v->fails == 0 || r->status < 400)
		law(a->head || is_of_visit(v, a, r), "the body of %u.%u is another one: %.60s",
		    a->id, r->visit, r->body->str);
	law(v->plan == PLAN_PLAIN || v->plan == PLAN_BROKEN || v->plan == PLAN_DENY ||
		v->plan == PLAN_FAILS || v->fails == 0 || r->status >= 400,
	    "%u.%u is answered with %d", a->id, r->visit, r->status);
}

/* A front controller answers as it likes. */
static bool
is_page_404(const struct ask *a)
{
	return (now.handler == FOR_404 && (a->excuses != 0 || follows(a, 403) || follows(a, 404)));
}

static void
judge_own(const struct ask *a, const struct reply *r)
{
	bool ours = a->head || a->at == AT_PAGE || a->at == AT_DIR || a->at == AT_MOVED ||
		    is_file(r, a->file) || is_file(r, "BBBBBB");

	if (r->status < 400)
		law((a->at < AT_APP && ours) ||
			(is_page_404(a) && (a->head || is_file(r, "BBBBBB"))),
		    "request %u is answered with %d: %.60s", a->id, r->status, r->body->str);
	else
		law(a->head || is_page(r) || is_file(r, "BBBBBB"),
		    "the page of %u is another one: %.60s", a->id, r->body->str);
}

/* The request has one id, which its client, its applications and others see. */
static void
judge_id(const struct ask *a, const struct reply *r)
{
	const char *p = field(r, "\r\nX-Request-ID: ");

	law((p != NULL) == now.tells_id || (p == NULL && r->status == 408),
	    "the id of %u in its reply: %.*s", a->id, (int)r->head.n, r->head.p);
	law(p == NULL || a->request_id[0] == '\0' || memcmp(a->request_id, p, 32) == 0,
	    "the reply to %u has another id", a->id);
}

static void
judge(struct ask *a, const struct reply *r)
{
	judge_id(a, r);
	law(r->status < 400 || a->excuses != 0 || follows(a, r->status),
	    "request %u is answered with %d, and nothing is wrong with it", a->id, r->status);
	law(r->status >= 400 || a->excuses != 0 || follows(a, r->status) ||
		(r->status == 200 && is_page_404(a)),
	    "request %u is answered with %d, which nobody said", a->id, r->status);
	if (r->id != 0)
		judge_application(a, r);
	else
		judge_own(a, r);
	law(r->whole || a->excuses != 0, "the reply to %u is cut", a->id);
}

/* ---------------------------------------------------------------- a connection */

static void
take_interim(struct visitor *v, const struct reply *r)
{
	struct ask *a = &v->ask[v->next];

	law(r->status == 100 && a->expect && !a->continued, "%d for request %u", r->status, a->id);
	a->continued = true;
}

/* False: no whole reply is there. */
static bool
visitor_hears(struct visitor *v, bool over)
{
	struct text t = sim_sent(io, v->s);
	struct reply r = { .status = 0 };
	struct ask *a = &v->ask[v->next];
	size_t n;

	text_take(&t, v->judged);
	if (t.n == 0 || (!over && t.n < v->need))
		return (false);
	law(v->next < v->nasks, "a reply nobody asked for: %.60s", t.p);
	law(!v->shut, "bytes after the last reply: %.60s", t.p);
	r.body = g_string_new(NULL);
	n = read_reply(&r, t, a->head && v->said >= a->body);
	v->need = r.sized && !r.whole ? (size_t)t.n + 1 : 0;
	if (n != 0 && r.status < 200) {
		take_interim(v, &r);
		v->judged += n;
	} else if (n != 0 && (r.whole || over)) {
		trace("visitor %u hears %d for %u%s", v->nth, r.status, a->id,
		    r.whole ? "" : ", cut");
		trace("%.*s", (int)r.head.n, r.head.p);
		law(v->said >= a->body || (v->said > a->first && r.status == 408),
		    "a reply to %u, which was not asked yet", a->id);
		judge(a, &r);
		a->answered = r.whole;
		meet(a);
		if (a->n + 1 < v->nasks)
			a[1].began = now.step;
		v->judged += n;
		v->next++;
		v->shut = r.closes || !r.whole;
	}
	g_string_free(r.body, TRUE);
	return (n != 0 && (r.whole || r.status < 200));
}

/* Bytes after a malformed body are not a request, and a reply to HEAD may be broken off after its
 * end. */
static bool
closes_behind(const struct ask *a)
{
	return ((a->excuses & (X_MALFORMED | X_APP)) != 0);
}

/* The visitor's connection was closed: the first request without a reply needs a reason. */
static void
visitor_ends(struct visitor *v)
{
	struct ask *a;
	unsigned i;

	while (visitor_hears(v, true))
		;
	a = &v->ask[v->next];
	trace("visitor %u is closed, %u of %u answered", v->nth, v->next, v->nasks);
	if (v->next < v->nasks && !v->shut && !v->reset && v->said > a->first)
		law(a->excuses != 0 || v->said < a->last || (a->n != 0 && closes_behind(a - 1)),
		    "no answer to %u, which is whole", a->id);
	for (i = v->next; i < v->nasks; i++)
		if (v->said > v->ask[i].first)
			meet(&v->ask[i]);
	v->ended = true;
	sim_sent_clear(io, v->s);
	g_string_free(v->to_say, TRUE);
	v->to_say = NULL;
}

#endif
