/* server/handler/proxy_temp.c -- X-LIGHTTPD-send-tempfile: a file is sent and removed.
 *
 *   name --proxy_name()--> IO_OPEN with removes --> descriptor of a file without a name --> client
 *
 * The name is removed before the first byte is sent, so no crash and no client that leaves can
 * keep it.  Status and headers are the application's.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "files/root.h"
#include "io/body.h"
#include "io/file.h"
#include "proxy-core/exchange.h"
#include "server/config/check/mime.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/request/request.h"
#include "server/handler/counters.h"
#include "wire/http1/http1.h"

struct proxy_temp {
	struct io_op op;
	struct statx stx;
	struct relay *rl; /* NULL: the client is gone */
	struct text name; /* in the arena of the request */
};

static void
failed(const struct proxy_temp *t, int err)
{
	log_limited(10, LOG_WARN, conn_id(t->rl->r), "sendfile.failed",
	    LF_TEXT("url", t->rl->r->http.target), LF_TEXT("path", t->name), LF_ERR("error", err),
	    LF_STR("do", "check the application: a temporary file is a regular file that the "
			 "server may read and remove"),
	    conn_client(t->rl->r));
}

/* Takes fd.  The status for the client; 0: the reply is in r->body. */
static int
send_opened(struct proxy_temp *t, int fd)
{
	struct relay *rl = t->rl;
	struct request *r = rl->r;
	struct io_file *file = io_file_new(r->worker->io, fd, t->stx.stx_size);

	if (file == NULL)
		return (500);
	if (r->conf->cut_changed)
		io_file_watch(file, &t->stx);
	reply_stream_head(r, rl->extra.status, rl->extra.lines, (int64_t)file->size, false);
	if (r->http.verb != HTTP_HEAD && file->size != 0) {
		r->body_bytes = file->size;
		if (!body_file(&r->body, file, 0, file->size))
			conn_close_after(r); /* shorter than promised */
	}
	io_file_put(file);
	return (0);
}

static void
opened(struct io_op *op)
{
	struct proxy_temp *t = container_of(op, struct proxy_temp, op);
	struct relay *rl = t->rl;
	int status;

	if (rl == NULL) {
		if (op->res >= 0)
			io_close_later(op->io, (int)op->res);
		free(t);
		return;
	}
	rl->temp = NULL;
	if (op->res >= 0) {
		count(rl->r->worker->counts.handler, tempfiles_removed);
		status = send_opened(t, (int)op->res);
	} else {
		failed(t, (int)op->res);
		status = http1_status_of_errno((int)op->res);
	}
	free(t);
	if (status != 0)
		proxy_answer_error(rl, status);
	else
		proxy_answer(rl, HANDLED_REPLY);
}

static void
open_it(struct proxy_temp *t, const struct proxy_named *to)
{
	struct request *r = t->rl->r;

	op_init(&t->op, IO_OPEN, opened);
	t->op.removes = 1;
	t->op.client = r->sender.client;
	t->op.deadline_ms = (uint32_t)(1000 * config_global(r->worker->conf.config)->open_timeout);
	t->op.open.root = to->root->fd;
	t->op.open.path = to->rest.p;
	t->op.open.stx = &t->stx;
	op_submit(r->worker->io, &t->op);
}

void
proxy_send_temp(struct relay *rl, const struct proxy_reply *p, enum control c)
{
	struct request *r = rl->r;
	struct proxy_temp *t = calloc(1, sizeof(*t));
	struct proxy_named to;
	int status;

	count(r->worker->counts.handler, sendfile_headers);
	status = t != NULL ? proxy_name(rl, c, p->control[c], &to) : 500;
	if (status == 0) {
		rl->type = mime_type(r->site->style.mime, to.rest);
		rl->extra.status = p->status;
		rl->extra.lines = proxy_lines(rl, p, NULL);
		status = rl->extra.lines.p == NULL ? 502 : 0;
	}
	exchange_forget(&rl->ex, true);
	if (status != 0) {
		free(t);
		proxy_answer_error(rl, status);
		return;
	}
	t->rl = rl;
	t->name = to.rest;
	rl->temp = t;
	open_it(t, &to);
	proxy_answer(rl, HANDLED_LATER);
}

/* The client is gone.  The file is still removed. */
void
proxy_temp_stop(struct relay *rl)
{
	if (rl->temp == NULL)
		return;
	rl->temp->rl = NULL;
	op_cancel(rl->r->worker->io, &rl->temp->op);
	rl->temp = NULL;
}
