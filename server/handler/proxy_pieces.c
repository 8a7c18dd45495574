/* server/handler/proxy_pieces.c -- X-Sendfile2: pieces of files, one after the other.
 *
 *   PATH RANGE, PATH RANGE --> all names judged --> looked up, one after the other --> one body
 *
 * Status and headers are the application's, Content-Range too.  An error of any piece is the
 * answer, because no byte was sent before all files are open.
 */
#include "base/arena.h"
#include "base/log.h"
#include "files/hold/hold.h"
#include "proxy-core/exchange.h"
#include "server/config/check/mime.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/request/request.h"
#include "server/handler/counters.h"
#include "wire/codec/pieces.h"
#include "wire/http1/http1.h"

struct lookup_wait;
struct lookup;

struct proxy_pieces { /* in the arena of the request */
	unsigned n, at;
	struct piece piece[PIECES_MAX];
	struct proxy_named name[PIECES_MAX];
	struct file_entry *entry[PIECES_MAX]; /* those before at; counted */
};

static void
entries_put(struct proxy_pieces *q)
{
	while (q->at != 0)
		file_entry_put(q->entry[--q->at]);
}

/* 0, or the status for the client */
static int
judge(struct request *r, const struct file_entry *e, struct piece *p)
{
	if (e->err != 0)
		return (http1_status_of_errno(e->err));
	if (e->is_dir || reply_excludes_link(r, e))
		return (403);
	if (p->to == UINT64_MAX)
		p->to = e->size;
	return (p->from > p->to || p->to > e->size ? 502 : 0);
}

static void
failed(const struct relay *rl, struct text path, int status)
{
	log_limited(10, LOG_WARN, conn_id(rl->r), "sendfile.failed",
	    LF_TEXT("url", rl->r->http.target), LF_TEXT("path", path), LF_U64("status", status),
	    LF_STR("do", "check the application: the file is missing, not a regular file, or "
			 "shorter than the piece"),
	    conn_client(rl->r));
}

static void
send_all(struct relay *rl, struct proxy_pieces *q)
{
	struct request *r = rl->r;
	uint64_t length = 0;
	unsigned i;

	for (i = 0; i < q->n; i++)
		length += q->piece[i].to - q->piece[i].from;
	reply_stream_head(r, rl->extra.status, rl->extra.lines, (int64_t)length, false);
	for (i = 0; i < q->n; i++)
		if (!reply_attach(r, q->entry[i], q->piece[i].from,
			q->piece[i].to - q->piece[i].from))
			conn_close_after(r); /* shorter than promised */
	entries_put(q);
	proxy_answer(rl, HANDLED_REPLY);
}

static bool look(struct relay *);

/* Takes e.  False: the request is answered with an error. */
static bool
found(struct relay *rl, struct file_entry *e)
{
	struct proxy_pieces *q = rl->pieces;
	struct text path = q->name[q->at].rest;
	int status = judge(rl->r, e, &q->piece[q->at]);

	q->entry[q->at++] = e;
	if (status == 0)
		return (true);
	failed(rl, path, status);
	entries_put(q);
	proxy_answer_error(rl, status);
	return (false);
}

static void
waited(struct lookup_wait *w, struct lookup *l)
{
	struct request *r = container_of(w, struct request, wait);

	r->cold = true;
	if (found(relay_of(r), file_entry_of(l)))
		look(relay_of(r));
}

/* True: waited() goes on.  False: the request is answered. */
static bool
look(struct relay *rl)
{
	struct proxy_pieces *q = rl->pieces;
	struct request *r = rl->r;
	struct file_entry *e;

	while (q->at < q->n) {
		r->wait.done = waited;
		r->wait.client = r->sender.client;
		r->wait.data = false;
		e = file_lookup(r->worker->files, q->name[q->at].scope, q->name[q->at].rest,
		    &r->wait);
		if (e == NULL)
			return (true);
		if (!found(rl, e))
			return (false);
	}
	send_all(rl, q);
	return (false);
}

/* 0, or the status for the client */
static int
prepare(struct relay *rl, const struct proxy_reply *p, enum control c)
{
	struct proxy_pieces *q = arena_get(&rl->r->arena, sizeof(*q));
	int n, status = 0;

	if (q == NULL)
		return (500);
	n = pieces_read(p->control[c], q->piece);
	if (n < 0) {
		proxy_name_refused(rl, c, p->control[c], "expected PATH RANGE[, PATH RANGE...]");
		return (502);
	}
	q->n = (unsigned)n;
	for (q->at = 0; q->at < q->n && status == 0; q->at++)
		status = proxy_name(rl, c, q->piece[q->at].path, &q->name[q->at]);
	q->at = 0;
	rl->pieces = q;
	return (status);
}

void
proxy_send_pieces(struct relay *rl, const struct proxy_reply *p, enum control c)
{
	struct request *r = rl->r;
	int status;

	count(r->worker->counts.handler, sendfile_headers);
	status = prepare(rl, p, c);
	if (status == 0) {
		rl->type = mime_type(r->site->style.mime, rl->pieces->name[0].rest);
		rl->extra.status = p->status;
		rl->extra.lines = proxy_lines(rl, p, NULL);
		status = rl->extra.lines.p == NULL ? 502 : 0;
	}
	exchange_forget(&rl->ex, true);
	if (status != 0) {
		proxy_answer_error(rl, status);
		return;
	}
	if (look(rl))
		proxy_answer(rl, HANDLED_LATER);
}

void
proxy_pieces_stop(struct relay *rl)
{
	if (rl->pieces != NULL)
		entries_put(rl->pieces);
}
