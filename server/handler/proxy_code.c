/* server/handler/proxy_code.c -- the reply of an application in a content coding.
 *
 *   application --proxy_code_take()--> waiting --> IO_WORK, one at a time --> chunks for the client
 *
 * Each piece is flushed when no more bytes wait, so that the client can show what the application
 * has sent.  The head waits for the first piece and leaves with it.
 *
 * Bounds   CODE_STREAMS replies at a time in the process; the next ones are sent as they are.  An
 *          application pauses while WAITING_MAX bytes wait.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/code/stream.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/module/deflate.h"
#include "server/request/request.h"
#include "server/module/counters.h"
#include "wire/http1/http1.h"

#define CODE_STREAMS 256u
#define WAITING_MAX  (128u << 10)
#define AGAIN_MS     10u  /* a full queue is tried again */
#define AGAIN_MAX    500u /* times */

struct proxy_code {
	struct relay *rl; /* NULL: the client is gone */
	struct code_stream *stream;
	struct io_op op;
	struct buf waiting;
	bool busy;  /* op is in flight */
	bool begun; /* bytes have come out */
	bool ended; /* no more bytes come in */
	unsigned tries;
};

static unsigned nstreams; /* atomic: of all workers */

/* ---- which reply */

static struct text
field(const struct proxy_reply *p, struct text name)
{
	size_t i;

	for (i = 0; i < p->nheaders; i++)
		if (text_ieq(p->headers[i].name, name))
			return (p->headers[i].value);
	return (TEXT_NONE);
}

static bool
has_field(const struct proxy_reply *p, struct text name)
{
	return (field(p, name).p != NULL);
}

static bool
forbids(const struct proxy_reply *p)
{
	struct text value, word;
	size_t i;

	for (i = 0; i < p->nheaders; i++) {
		value = p->headers[i].value;
		if (!text_ieq(p->headers[i].name, TEXT("cache-control")))
			continue;
		while (text_next(&value, ',', &word))
			if (text_ieq(text_trim(word), TEXT("no-transform")))
				return (true);
	}
	return (false);
}

static bool
status_fits(int status)
{
	return (status >= 200 && status != 204 && status != 205 && status != 206 && status != 304);
}

/* The reply depends on Accept-Encoding.  A 304 without a type may stand for a reply that does. */
static bool
fits(const struct relay *rl, const struct proxy_reply *p)
{
	const struct request *r = rl->r;
	struct text type = field(p, TEXT("content-type"));

	if (r->site->deflate.n == 0)
		return (false);
	if (p->status == 304 && type.n == 0)
		return (!has_field(p, TEXT("content-encoding")));
	if ((!status_fits(p->status) && p->status != 304) || type.n == 0)
		return (false);
	return (reply_varies_fits(&r->site->style.varies, type, p->content_length) &&
		!has_field(p, TEXT("content-encoding")) && !has_field(p, TEXT("content-range")) &&
		!forbids(p));
}

static bool
take_place(struct request *r)
{
	if (__atomic_add_fetch(&nstreams, 1, __ATOMIC_RELAXED) <= CODE_STREAMS &&
	    !deflate_is_busy(r))
		return (true);
	__atomic_sub_fetch(&nstreams, 1, __ATOMIC_RELAXED);
	count(r->worker->counts.module, deflate_refused);
	return (false);
}

static struct proxy_code *
code_new(struct relay *rl, enum coding c)
{
	struct proxy_code *k = calloc(1, sizeof(*k));

	if (k == NULL)
		return (NULL);
	k->stream = code_stream_new(&rl->r->site->deflate.conf[c]);
	if (k->stream == NULL) {
		free(k);
		return (NULL);
	}
	k->rl = rl;
	buf_init(&k->waiting, 0);
	op_init(&k->op, IO_WORK, NULL);
	return (k);
}

void
proxy_code_begin(struct relay *rl, const struct proxy_reply *p)
{
	struct request *r = rl->r;
	struct accept_encoding a;
	enum coding c;

	rl->varies = fits(rl, p);
	if (!rl->varies || !p->has_body || r->http.verb == HTTP_HEAD)
		return;
	deflate_accepts(r, &a);
	c = accept_encoding_pick(&a, r->site->deflate.order, r->site->deflate.n);
	if (c == CODING_IDENTITY || !take_place(r))
		return;
	rl->code = code_new(rl, c);
	if (rl->code == NULL) {
		__atomic_sub_fetch(&nstreams, 1, __ATOMIC_RELAXED);
		return;
	}
	rl->coding = coding_name(c);
	count(r->worker->counts.module, deflate_streams);
}

/* ---- its pieces */

static void
code_free(struct proxy_code *k)
{
	__atomic_sub_fetch(&nstreams, 1, __ATOMIC_RELAXED);
	io_work_put(&k->stream->work);
	buf_free(&k->waiting);
	free(k);
}

static void coded(struct io_op *);

static void
submit(struct proxy_code *k, enum io_kind kind)
{
	struct request *r = k->rl->r;

	k->busy = true;
	k->op.kind = kind;
	k->op.done = coded;
	k->op.client = r->sender.client;
	k->op.deadline_ms = kind == IO_TIMER ? AGAIN_MS : 0;
	if (kind == IO_WORK) {
		k->op.work.work = &k->stream->work;
		k->op.work.file = NULL;
	}
	op_submit(r->worker->io, &k->op);
}

/* Gives the waiting bytes to the thread. */
static void
go_on(struct proxy_code *k)
{
	struct code_stream *s = k->stream;
	struct buf swap = s->in;

	if (k->busy || s->how == CODE_END || (k->waiting.n == 0 && !k->ended))
		return;
	s->in = k->waiting;
	k->waiting = swap;
	k->waiting.n = 0;
	s->how = k->ended ? CODE_END : CODE_FLUSH;
	submit(k, IO_WORK);
}

static void
fail(struct proxy_code *k)
{
	struct relay *rl = k->rl;

	log_limited(1, LOG_ERROR, conn_id(rl->r), "deflate.failed", conn_client(rl->r),
	    LF_STR("why", "there is no memory or no thread for a compression"),
	    LF_STR("then", "cut the client's connection"));
	conn_end(rl->r);
}

static void
give(struct proxy_code *k)
{
	struct relay *rl = k->rl;
	struct code_stream *s = k->stream;
	bool over = s->how == CODE_END;

	k->begun = true;
	k->tries = 0;
	if (s->err != 0 || !proxy_code_to_client(rl, buf_as_text(&s->out), over)) {
		fail(k);
		return;
	}
	s->out.n = 0;
	if (over)
		proxy_code_stop(rl);
	else
		go_on(k);
	proxy_send_more(rl);
}

/* A piece is compressed, or was refused, or the pause after a refusal is over. */
static void
coded(struct io_op *op)
{
	struct proxy_code *k = container_of(op, struct proxy_code, op);

	k->busy = false;
	if (k->rl == NULL)
		code_free(k);
	else if (op->kind == IO_TIMER)
		submit(k, IO_WORK);
	else if (op->res == 0)
		give(k);
	else if (k->tries++ < AGAIN_MAX)
		submit(k, IO_TIMER);
	else
		fail(k);
}

bool
proxy_code_take(struct relay *rl, struct text t)
{
	buf_text(&rl->code->waiting, t);
	return (!rl->code->waiting.failed);
}

bool
proxy_code_is_full(const struct relay *rl)
{
	return (rl->code != NULL && rl->code->waiting.n >= WAITING_MAX);
}

bool
proxy_code_holds(const struct relay *rl)
{
	return (
	    rl->code != NULL && !rl->code->begun && (rl->code->busy || rl->code->waiting.n != 0));
}

void
proxy_code_flush(struct relay *rl, bool end)
{
	if (rl->code == NULL)
		return;
	rl->code->ended = rl->code->ended || end;
	go_on(rl->code);
}

void
proxy_code_stop(struct relay *rl)
{
	struct proxy_code *k = rl->code;

	rl->code = NULL;
	if (k == NULL)
		return;
	k->rl = NULL;
	if (k->busy)
		op_cancel(rl->r->worker->io, &k->op);
	else
		code_free(k);
}

/* ---- its head */

bool
proxy_code_drops(const struct relay *rl, struct text name)
{
	return (rl->coding.n != 0 &&
		(text_ieq(name, TEXT("accept-ranges")) || text_ieq(name, TEXT("content-md5")) ||
		    text_ieq(name, TEXT("digest")) || text_ieq(name, TEXT("content-digest")) ||
		    text_ieq(name, TEXT("repr-digest"))));
}

/* The bytes differ from those that the application's ETag describes. */
bool
proxy_code_weakens(const struct relay *rl, struct text name, struct text value)
{
	return (
	    rl->coding.n != 0 && text_ieq(name, TEXT("etag")) && value.n != 0 && value.p[0] == '"');
}

void
proxy_code_lines(const struct relay *rl, struct buf *out)
{
	if (rl->coding.n != 0) {
		buf_str(out, "Content-Encoding: ");
		buf_text(out, rl->coding);
		buf_str(out, "\r\n");
	}
	if (rl->varies)
		buf_str(out, "Vary: Accept-Encoding\r\n");
}
