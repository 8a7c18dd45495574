/* nginx/peer.c -- questions go to fcgi-stat-accel over kept connections, one at a time on each.
 *
 *     up ----- no answer for a second, and none to GET_VALUES for another one;
 *      ^       refused; closed; bytes that are not FastCGI ------------------> down
 *      '---- GET_VALUES is answered; asked once a second <--------------------'
 *
 * While it is down nothing is asked, and nginx serves as without the module.  Each change is logged
 * once.  What it answers is not believed: the name is looked at again, as before the question. */
#include "nginx/stat_accel.h"

#define LINKS_MAX  256u
#define SILENT_MS  1000u
#define AGAIN_MS   1000u
#define IN_SIZE    4096u
#define HEAD_MAX   512u   /* of an answer; more is skipped */
#define PATH_LIMIT 60000u /* what a record has room for, beside the other parameters */

enum { FCGI_BEGIN = 1, FCGI_END = 3, FCGI_PARAMS, FCGI_STDIN, FCGI_STDOUT, FCGI_STDERR };
enum { FCGI_GET_VALUES = 9, FCGI_GET_VALUES_RESULT = 10, FCGI_HEAD = 8 };

/* One connection. */
struct link {
	ngx_queue_t at; /* in idle or busy of the peer */
	struct accel_peer *peer;
	ngx_connection_t *c;
	struct accel_question *q; /* NULL: none */
	bool used;                /* it has answered before */
	bool ended;               /* the answer to q has been read */
	/* bytes to send */
	u_char *out;
	size_t out_len, out_sent;
	/* the record that is read */
	u_char record[FCGI_HEAD];
	size_t record_len, left; /* left: of its content and padding */
	size_t content;          /* left: of its content */
	u_char head[HEAD_MAX];
	size_t head_len;
};

static void read_event(ngx_event_t *ev);
static void write_event(ngx_event_t *ev);

/* ---------------------------------------------------------------- a FastCGI request */

static u_char *
put_record(u_char *p, unsigned type, unsigned id, size_t content)
{
	*p++ = 1;
	*p++ = (u_char)type;
	*p++ = 0;
	*p++ = (u_char)id;
	*p++ = (u_char)(content >> 8);
	*p++ = (u_char)content;
	*p++ = 0;
	*p++ = 0;
	return (p);
}

static u_char *
put_length(u_char *p, size_t n)
{
	if (n < 128) {
		*p++ = (u_char)n;
		return (p);
	}
	*p++ = (u_char)(n >> 24 | 0x80);
	*p++ = (u_char)(n >> 16);
	*p++ = (u_char)(n >> 8);
	*p++ = (u_char)n;
	return (p);
}

static u_char *
put_param(u_char *p, const char *name, const ngx_str_t *value)
{
	size_t n = ngx_strlen(name);

	p = put_length(p, n);
	p = put_length(p, value->len);
	p = ngx_cpymem(p, name, n);
	return (ngx_cpymem(p, value->data, value->len));
}

static ngx_str_t
range_header(const struct accel_range *range, u_char *to)
{
	u_char *p;

	if (range->from < 0)
		p = ngx_sprintf(to, "bytes=%O", range->from);
	else if (range->to == NGX_MAX_OFF_T_VALUE)
		p = ngx_sprintf(to, "bytes=%O-", range->from);
	else
		p = ngx_sprintf(to, "bytes=%O-%O", range->from, range->to - 1);
	return ((ngx_str_t){ (size_t)(p - to), to });
}

/* False: no memory. */
static bool
put_request(struct link *l, const struct accel_question *q)
{
	static const ngx_str_t get = ngx_string("GET"), head = ngx_string("HEAD");
	u_char range[64], *p, *params;
	const struct accel_range *r = &q->name.range;
	bool nothing = r->to == 0;
	ngx_str_t value;

	l->out = ngx_alloc(q->name.path.len + q->client.len + 512, l->c->log);
	if (l->out == NULL)
		return (false);
	p = put_record(l->out, FCGI_BEGIN, 1, 8);
	p = ngx_cpymem(p, "\0\1\1\0\0\0\0\0", 8); /* a responder; the connection is kept */
	params = p + FCGI_HEAD;
	p = put_param(params, "REQUEST_METHOD", nothing ? &head : &get);
	p = put_param(p, "WARM_PATH", &q->name.path);
	p = put_param(p, "REMOTE_ADDR", &q->client);
	if ((r->partial || r->to != NGX_MAX_OFF_T_VALUE) && !nothing) {
		value = range_header(r, range);
		p = put_param(p, "HTTP_RANGE", &value);
	}
	put_record(params - FCGI_HEAD, FCGI_PARAMS, 1, (size_t)(p - params));
	p = put_record(p, FCGI_PARAMS, 1, 0);
	p = put_record(p, FCGI_STDIN, 1, 0);
	l->out_len = (size_t)(p - l->out);
	l->out_sent = 0;
	return (true);
}

static bool
put_get_values(struct link *l)
{
	static const ngx_str_t none = ngx_null_string;
	static const char name[] = "FCGI_MPXS_CONNS";
	u_char *p;

	if (l->out != NULL)
		return (true); /* it still has something to send */
	l->out = ngx_alloc(64, l->c->log);
	if (l->out == NULL)
		return (false);
	p = put_record(l->out, FCGI_GET_VALUES, 0, sizeof(name) - 1 + 2);
	p = put_param(p, name, &none);
	l->out_len = (size_t)(p - l->out);
	l->out_sent = 0;
	return (true);
}

/* ---------------------------------------------------------------- up and down */

static void
link_free(struct link *l)
{
	ngx_queue_remove(&l->at);
	l->peer->links--;
	if (l->c != NULL)
		ngx_close_connection(l->c);
	ngx_free(l->out);
	ngx_free(l);
}

static void
fail(struct accel_question *q)
{
	q->kind = ACCEL_FAILED;
	accel_question_done(q);
}

static void
go_down(struct accel_peer *p, const char *why)
{
	struct link *l;
	struct accel_question *q;

	if (!p->down)
		ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
		    "stat_accel: \"%V\" %s; files are served without it until it answers", &p->name,
		    why);
	p->down = true;
	if (p->watch.timer_set)
		ngx_del_timer(&p->watch);
	ngx_add_timer(&p->watch, AGAIN_MS);
	while (!ngx_queue_empty(&p->idle))
		link_free(ngx_queue_data(ngx_queue_head(&p->idle), struct link, at));
	while (!ngx_queue_empty(&p->busy)) {
		l = ngx_queue_data(ngx_queue_head(&p->busy), struct link, at);
		q = l->q;
		link_free(l);
		if (q != NULL)
			fail(q);
	}
	while (!ngx_queue_empty(&p->waiting)) {
		q = ngx_queue_data(ngx_queue_head(&p->waiting), struct accel_question, at);
		ngx_queue_remove(&q->at);
		fail(q);
	}
}

static void
heard(struct accel_peer *p)
{
	p->heard = ngx_current_msec;
	p->asked_values = false;
	if (!p->down)
		return;
	p->down = false;
	if (p->watch.timer_set)
		ngx_del_timer(&p->watch);
	ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0, "stat_accel: \"%V\" answers again",
	    &p->name);
}

/* ---------------------------------------------------------------- sending */

/* False: the connection is lost. */
static bool
send_out(struct link *l)
{
	ssize_t n;

	while (l->out != NULL && l->out_sent < l->out_len) {
		n = l->c->send(l->c, l->out + l->out_sent, l->out_len - l->out_sent);
		if (n == NGX_AGAIN)
			return (ngx_handle_write_event(l->c->write, 0) == NGX_OK);
		if (n < 0)
			return (false);
		l->out_sent += (size_t)n;
	}
	ngx_free(l->out);
	l->out = NULL;
	return (true);
}

static struct link *
link_new(struct accel_peer *p)
{
	ngx_log_t *log = ngx_cycle->log;
	static ngx_log_t quiet;
	ngx_peer_connection_t pc;
	struct link *l = ngx_calloc(sizeof(*l), log);
	ngx_int_t rc;

	if (l == NULL)
		return (NULL);
	quiet = *log;
	quiet.log_level = NGX_LOG_EMERG; /* go_down() says it, once */
	pc = (ngx_peer_connection_t){
		.sockaddr = p->sockaddr,
		.socklen = p->socklen,
		.name = &p->name,
		.get = ngx_event_get_peer,
		.log = &quiet,
	};
	rc = ngx_event_connect_peer(&pc);
	if (rc != NGX_OK && rc != NGX_AGAIN) {
		if (pc.connection != NULL)
			ngx_close_connection(pc.connection);
		ngx_free(l);
		return (NULL);
	}
	l->peer = p;
	l->c = pc.connection;
	l->c->data = l;
	l->c->log = ngx_cycle->log;
	l->c->read->log = l->c->write->log = l->c->log;
	l->c->log_error = NGX_ERROR_INFO;
	l->c->read->handler = read_event;
	l->c->write->handler = write_event;
	p->links++;
	ngx_queue_insert_tail(&p->busy, &l->at);
	return (l);
}

static void
watch_from_now(struct accel_peer *p)
{
	if (!p->watch.timer_set) {
		p->heard = ngx_current_msec;
		ngx_add_timer(&p->watch, SILENT_MS);
	}
}

/* NGX_ERROR: the connection is gone. */
static ngx_int_t
ask_on(struct link *l, struct accel_question *q)
{
	l->q = q;
	l->head_len = 0;
	if (!put_request(l, q) || !send_out(l)) {
		link_free(l);
		return (NGX_ERROR);
	}
	watch_from_now(l->peer);
	return (NGX_OK);
}

static struct link *
idle_link(struct accel_peer *p)
{
	struct link *l;

	if (ngx_queue_empty(&p->idle))
		return (NULL);
	l = ngx_queue_data(ngx_queue_head(&p->idle), struct link, at);
	ngx_queue_remove(&l->at);
	ngx_queue_insert_tail(&p->busy, &l->at);
	l->c->idle = 0;
	return (l);
}

/* An idle connection may have been closed by the other side: the next one is tried. */
ngx_int_t
accel_peer_ask(struct accel_peer *p, struct accel_question *q)
{
	struct link *l;

	if (p->down || q->name.path.len > PATH_LIMIT)
		return (NGX_ERROR);
	while ((l = idle_link(p)) != NULL)
		if (ask_on(l, q) == NGX_OK)
			return (NGX_OK);
	if (p->links < LINKS_MAX) {
		l = link_new(p);
		if (l != NULL && ask_on(l, q) == NGX_OK)
			return (NGX_OK);
		if (p->links == 0) {
			go_down(p, "cannot be connected to");
			return (NGX_ERROR);
		}
	}
	ngx_queue_insert_tail(&p->waiting, &q->at);
	return (NGX_OK);
}

static void
next_waiting(struct accel_peer *p)
{
	struct accel_question *q;

	if (p->down || ngx_queue_empty(&p->waiting))
		return;
	q = ngx_queue_data(ngx_queue_head(&p->waiting), struct accel_question, at);
	ngx_queue_remove(&q->at);
	if (accel_peer_ask(p, q) != NGX_OK)
		fail(q);
}

/* ---------------------------------------------------------------- an answer */

/* The connection is free for the next question before those who waited go on. */
static void
answered(struct link *l)
{
	struct accel_question *q = l->q;
	struct accel_peer *p = l->peer;
	bool late = l->head_len >= 11 && ngx_strncmp(l->head, "Status: 503", 11) == 0;

	l->q = NULL;
	l->ended = false;
	l->used = true;
	l->c->idle = 1;
	ngx_queue_remove(&l->at);
	ngx_queue_insert_head(&p->idle, &l->at);
	if (ngx_queue_empty(&p->busy) && p->watch.timer_set)
		ngx_del_timer(&p->watch);
	next_waiting(p);
	q->kind = late ? ACCEL_LATE : accel_probe(&q->name, true);
	q->hot = q->kind != ACCEL_COLD && !late;
	if (q->kind == ACCEL_COLD)
		q->kind = ACCEL_FAILED;
	accel_question_done(q);
}

static void
take_content(struct link *l, const u_char *p, size_t n)
{
	size_t room = HEAD_MAX - l->head_len;

	if (l->record[1] != FCGI_STDOUT)
		return;
	n = ngx_min(n, room);
	ngx_memcpy(l->head + l->head_len, p, n);
	l->head_len += n;
}

static bool
record_is_expected(const struct link *l)
{
	unsigned type = l->record[1], id = (unsigned)l->record[2] << 8 | l->record[3];

	if (l->record[0] != 1)
		return (false);
	if (type == FCGI_GET_VALUES_RESULT)
		return (id == 0);
	return (l->q != NULL && !l->ended && id == 1 &&
		(type == FCGI_STDOUT || type == FCGI_STDERR || type == FCGI_END));
}

/* NGX_OK: all is used; NGX_DONE: the link has changed hands; NGX_ERROR: not FastCGI.  After an
 * answer may come what GET_VALUES asked for. */
static ngx_int_t
feed(struct link *l, const u_char *p, size_t n)
{
	size_t part;

	while (n > 0) {
		if (l->record_len < FCGI_HEAD) {
			l->record[l->record_len++] = *p++;
			n--;
			if (l->record_len < FCGI_HEAD)
				continue;
			if (!record_is_expected(l))
				return (NGX_ERROR);
			l->content = (size_t)l->record[4] << 8 | l->record[5];
			l->left = l->content + l->record[6];
		} else {
			part = ngx_min(n, l->left);
			if (l->content > 0)
				take_content(l, p, ngx_min(part, l->content));
			l->content -= ngx_min(part, l->content);
			l->left -= part;
			p += part;
			n -= part;
		}
		if (l->left > 0)
			continue;
		l->record_len = 0;
		if (l->record[1] == FCGI_GET_VALUES_RESULT || l->record[1] == FCGI_END)
			heard(l->peer);
		if (l->record[1] == FCGI_GET_VALUES_RESULT && l->q == NULL) {
			l->c->idle = 1;
			ngx_queue_remove(&l->at);
			ngx_queue_insert_head(&l->peer->idle, &l->at);
		}
		if (l->record[1] == FCGI_END)
			l->ended = true;
	}
	if (!l->ended)
		return (NGX_OK);
	if (l->out != NULL)
		return (NGX_ERROR); /* it was not asked to the end */
	answered(l);
	return (NGX_DONE);
}

/* A kept connection that ends before the first byte of an answer: the accelerator was replaced, and
 * the question is asked again. */
static void
lost(struct link *l)
{
	struct accel_question *q = l->q;
	struct accel_peer *p = l->peer;
	bool again = l->used && l->head_len == 0;

	link_free(l);
	if (q == NULL)
		return;
	if (again && accel_peer_ask(p, q) == NGX_OK)
		return;
	if (!again)
		go_down(p, "has closed a connection without an answer");
	fail(q);
}

static void
read_event(ngx_event_t *ev)
{
	ngx_connection_t *c = ev->data;
	struct link *l = c->data;
	u_char in[IN_SIZE];
	ssize_t n;
	ngx_int_t rc;

	if (c->close) { /* the worker ends */
		link_free(l);
		return;
	}
	for (;;) {
		n = c->recv(c, in, sizeof(in));
		if (n == NGX_AGAIN) {
			if (ngx_handle_read_event(c->read, 0) != NGX_OK)
				lost(l);
			return;
		}
		if (n <= 0) {
			lost(l);
			return;
		}
		rc = feed(l, in, (size_t)n);
		if (rc == NGX_ERROR) {
			go_down(l->peer, "has sent bytes that are not an answer in FastCGI");
			return;
		}
		if (rc == NGX_DONE)
			return;
	}
}

static void
write_event(ngx_event_t *ev)
{
	ngx_connection_t *c = ev->data;
	struct link *l = c->data;

	if (!send_out(l))
		lost(l);
}

/* ---------------------------------------------------------------- is it alive? */

static void
ask_values(struct accel_peer *p)
{
	struct link *l;

	l = ngx_queue_empty(&p->busy) ? link_new(p)
				      : ngx_queue_data(ngx_queue_head(&p->busy), struct link, at);
	if (l != NULL && (!put_get_values(l) || !send_out(l)))
		lost(l);
}

static void
watch(ngx_event_t *ev)
{
	struct accel_peer *p = ev->data;

	if (p->down) {
		go_down(p, NULL);
		ask_values(p);
		return;
	}
	if (ngx_current_msec - p->heard < SILENT_MS)
		p->asked_values = false;
	else if (p->asked_values) {
		go_down(p, "does not answer");
		return;
	} else {
		p->asked_values = true;
		ask_values(p);
	}
	ngx_add_timer(&p->watch, SILENT_MS);
}

void
accel_peer_init(struct accel_peer *p)
{
	ngx_queue_init(&p->idle);
	ngx_queue_init(&p->busy);
	ngx_queue_init(&p->waiting);
	p->watch.handler = watch;
	p->watch.data = p;
	p->watch.log = ngx_cycle->log;
	p->watch.cancelable = 1;
}

/* What is asked then is of no use any more. */
void
accel_peer_end(struct accel_peer *p)
{
	while (!ngx_queue_empty(&p->idle))
		link_free(ngx_queue_data(ngx_queue_head(&p->idle), struct link, at));
	while (!ngx_queue_empty(&p->busy))
		link_free(ngx_queue_data(ngx_queue_head(&p->busy), struct link, at));
}
