/* server/module/deflate_file.c -- compressed forms of files; see deflate.h. */
#include "server/module/deflate.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "files/hold/hold.h"
#include "io/code/file.h"
#include "io/file.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/module/module.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/module/counters.h"
#include "server/worker/base.h"

#define MAKE_MS 60000u /* a compression that takes longer is given up: its disk hangs */

#define SIBLING (-2) /* in place of the level of a coder */

enum { FORM_MAKING, FORM_READY, FORM_NONE };

struct making;

REQUEST_SLOT(struct deflate_wait, deflate_wait);
static WORKER_SLOT(struct variants, all_variants);

struct variant {
	struct file_more more; /* first: of the first variant of an entry */
	struct variant *next;
	struct file_entry *entry; /* NULL: gone */
	struct variants *all;
	struct list link; /* in all->used */
	struct coder_conf conf;
	struct reply_form form;
	struct buf memory; /* its bytes */
	char *head;
	uint32_t refs; /* the entry, and replies on their way */
	uint8_t state;
	struct making *making;
	struct file_entry *sibling; /* that has the bytes; counted; NULL: none */
};

struct making { /* while a thread works on it */
	struct variant *v;
	struct file_entry *entry; /* counted */
	struct code_file *job;
	struct io_op op, patience;
	struct list link, waiters; /* requests */
	bool working, timed;       /* op, patience are in flight */
	bool impatient;            /* requests do not wait any more */
};

/* ---- life of a variant */

static void
variant_put(struct variant *v)
{
	must(v->refs > 0);
	if (--v->refs != 0)
		return;
	io_file_put(v->form.file);
	file_entry_put(v->sibling);
	buf_free(&v->memory);
	free(v->head);
	free(v);
}

static void
form_put(void *v)
{
	variant_put(v);
}

static void *
form_keep(struct reply_form *form)
{
	struct variant *v = container_of(form, struct variant, form);

	v->refs++;
	return (v);
}

/* Gives back its part of the bounds. */
static void
uncount(struct variant *v)
{
	if (!list_linked(&v->link))
		return;
	list_del(&v->link);
	v->all->bytes -= v->memory.n;
	v->all->nfds -= v->form.file != NULL;
}

/* The entry is freed, with all its variants. */
static void
variants_free(struct file_more *more)
{
	struct variant *v = container_of(more, struct variant, more), *next;

	for (; v != NULL; v = next) {
		next = v->next;
		must(v->making == NULL);
		v->entry = NULL;
		uncount(v);
		variant_put(v);
	}
}

static struct variant *
first_of(const struct file_entry *e)
{
	return (e->more != NULL ? container_of(e->more, struct variant, more) : NULL);
}

/* Takes the variant from its entry. */
static void
variant_drop(struct variant *v)
{
	struct variant *first = first_of(v->entry), **at = &first;

	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	v->entry->more = first != NULL ? &first->more : NULL;
	v->entry = NULL;
	uncount(v);
	variant_put(v);
}

static bool
same_conf(const struct coder_conf *a, const struct coder_conf *b)
{
	return (memcmp(a, b, sizeof(*a)) == 0);
}

static struct variant *
variant_find(const struct file_entry *e, const struct coder_conf *conf)
{
	struct variant *v;

	for (v = first_of(e); v != NULL; v = v->next)
		if (same_conf(&v->conf, conf))
			return (v);
	return (NULL);
}

static struct variant *
variant_new(struct variants *all, struct file_entry *e, const struct coder_conf *conf)
{
	struct variant *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return (NULL);
	v->more.free = variants_free;
	v->next = first_of(e);
	e->more = &v->more;
	v->entry = e;
	v->all = all;
	v->conf = *conf;
	v->form = (struct reply_form){ .coding = conf->coding,
		.tags = e,
		.keep = form_keep,
		.put = form_put };
	v->refs = 1;
	list_init(&v->link);
	buf_init(&v->memory, 0);
	return (v);
}

/* ---- bounds */

static void
keep_bounds(struct variants *all)
{
	while (all->bytes > DEFLATE_BYTES || all->nfds > DEFLATE_FDS)
		variant_drop(list_entry(all->used.next, struct variant, link));
}

static void
touch(struct variant *v)
{
	list_del(&v->link);
	list_add_tail(&v->all->used, &v->link);
}

/* ---- the end of a compression */

static bool
prepare_head(struct variant *v)
{
	char head[FILE_HEAD_MAX];

	v->form.head.n = reply_prepare_form(v->entry, &v->form, head);
	v->head = malloc(v->form.head.n + 1);
	if (v->head == NULL)
		return (false);
	memcpy(v->head, head, v->form.head.n);
	v->form.head.p = v->head;
	return (true);
}

static bool
take_result(struct variant *v, struct code_file *c)
{
	v->form.size = c->size;
	if (c->fd_out >= 0) {
		v->form.file = io_file_new(v->all->w->io, c->fd_out, c->size);
		c->fd_out = -1;
		if (v->form.file == NULL)
			return (false);
	} else {
		v->memory = c->out;
		buf_init(&c->out, 0);
		v->form.bytes = v->memory.p;
	}
	return (prepare_head(v));
}

static void
count_result(struct variants *all, const struct code_file *c)
{
	struct module_counters *n = all->w->counts.module;

	if (c->err != 0)
		count(n, deflate_none);
	else if (c->was_cached)
		count(n, deflate_from_cache);
	else
		count(n, deflate_files);
}

static void
ready(struct variant *v)
{
	v->state = FORM_READY;
	v->all->bytes += v->memory.n;
	v->all->nfds += v->form.file != NULL;
	list_add_tail(&v->all->used, &v->link);
}

/* The file is sent without compression from now on, or only until the next request. */
static void
settle(struct making *m, int64_t res)
{
	struct variant *v = m->v;
	struct code_file *c = m->job;

	v->making = NULL;
	if (res != 0) {
		count(v->all->w->counts.module, deflate_refused);
		variant_drop(v);
		return;
	}
	count_result(v->all, c);
	if (c->err == -EFBIG) {
		v->state = FORM_NONE;
	} else if (c->err != 0 || !take_result(v, c)) {
		variant_drop(v);
	} else {
		ready(v);
	}
}

/* Answers the requests that wait, with the form or without. */
static void
answer_all(struct making *m, struct variant *v)
{
	struct deflate_wait *wait;
	struct request *r;
	struct file_entry *e;
	struct list *l;

	if (v != NULL)
		v->refs++;
	while ((l = list_pop(&m->waiters)) != NULL) {
		wait = list_entry(l, struct deflate_wait, link);
		r = wait->r;
		e = wait->entry;
		wait->entry = NULL;
		if (v != NULL)
			reply_file_as(r, e, &v->form, r->extra);
		else
			reply_file_as(r, e, NULL, r->extra);
		file_entry_put(e);
		conn_replied(r);
	}
	if (v != NULL)
		variant_put(v);
}

static void
making_end(struct making *m)
{
	if (m->working || m->timed)
		return;
	list_del(&m->link);
	free(m);
}

static void
made(struct io_op *op)
{
	struct making *m = container_of(op, struct making, op);
	struct variant *v = m->v;
	struct variants *all = v->all;

	m->working = false;
	all->nmaking--;
	v->refs++;
	settle(m, op->res);
	answer_all(m, v->state == FORM_READY ? v : NULL);
	variant_put(v);
	keep_bounds(all);
	if (m->timed)
		op_cancel(all->w->io, &m->patience);
	io_work_put(&m->job->work);
	file_entry_put(m->entry);
	making_end(m);
}

static void
patience_over(struct io_op *op)
{
	struct making *m = container_of(op, struct making, patience);

	m->timed = false;
	if (m->working) {
		m->impatient = true;
		if (!list_empty(&m->waiters))
			count(m->v->all->w->counts.module, deflate_late);
		answer_all(m, NULL);
	}
	making_end(m);
}

/* ---- its beginning */

static bool
give_bytes(struct code_file *c, const struct file_entry *e)
{
	if (e->file != NULL) {
		c->fd = e->file->fd;
		return (true);
	}
	c->bytes = malloc(e->size);
	if (c->bytes != NULL)
		memcpy(c->bytes, e->bytes, e->size);
	return (c->bytes != NULL);
}

/* The job that compresses the file; any thread may run it.  NULL: no memory. */
static struct code_file *
job_of(const struct request *r, const struct file_entry *e, const struct coder_conf *conf)
{
	struct code_file *c = code_file_new();

	if (c == NULL)
		return (NULL);
	if (!give_bytes(c, e)) {
		io_work_put(&c->work);
		return (NULL);
	}
	c->conf = *conf;
	c->stx = e->stx;
	/* Contents that may still change without new times get no name in the cache. */
	c->cache = e->unsettled == 0 ? code_cache_ref(r->site->deflate.cache) : NULL;
	c->keep = c->cache != NULL ? DEFLATE_KEEP : DEFLATE_KEEP_ALONE;
	return (c);
}

static void
making_start(struct making *m, struct variants *all, uint32_t client)
{
	struct io *io = all->w->io;

	list_init(&m->waiters);
	list_add_tail(&all->making, &m->link);
	all->nmaking++;
	m->working = m->timed = true;
	op_init(&m->patience, IO_TIMER, patience_over);
	m->patience.deadline_ms = DEFLATE_PATIENCE_MS;
	op_submit(io, &m->patience);
	op_init(&m->op, IO_WORK, made);
	m->op.deadline_ms = MAKE_MS;
	m->op.client = client;
	m->op.work.work = &m->job->work;
	m->op.work.file = m->entry->file;
	op_submit(io, &m->op);
}

/* Those of a worker that has compressed nothing yet are zero. */
static struct variants *
variants_of(struct worker_base *w)
{
	struct variants *all = worker_slot(w, all_variants);

	if (all->w == NULL) {
		all->w = w;
		list_init(&all->used);
		list_init(&all->making);
	}
	return (all);
}

/* Starts to compress the file; returns the variant that will have the bytes.  NULL: too much is
 * being compressed, or no memory. */
static struct variant *
make(struct request *r, struct file_entry *e, const struct coder_conf *conf)
{
	struct variants *all = variants_of(r->worker);
	struct code_file *job;
	struct making *m;
	struct variant *v;

	if (all->nmaking >= DEFLATE_MAKING || deflate_is_busy(r)) {
		count(r->worker->counts.module, deflate_refused);
		return (NULL);
	}
	m = calloc(1, sizeof(*m));
	job = m != NULL ? job_of(r, e, conf) : NULL;
	v = job != NULL ? variant_new(all, e, conf) : NULL;
	if (v == NULL) {
		if (job != NULL)
			io_work_put(&job->work);
		free(m);
		return (NULL);
	}
	v->making = m;
	m->v = v;
	m->job = job;
	m->entry = file_entry_ref(e);
	making_start(m, all, r->sender.client);
	return (v);
}

/* ---- a sibling as a form */

static struct variant *
variant_of_sibling(struct request *r, struct file_entry *e, struct file_entry *s,
    const struct coder_conf *conf)
{
	struct variant *v = variant_new(variants_of(r->worker), e, conf);

	if (v == NULL)
		return (NULL);
	v->sibling = file_entry_ref(s);
	v->form.tags = s;
	v->form.size = s->size;
	v->form.bytes = s->bytes;
	v->form.file = s->file != NULL ? io_file_ref(s->file) : NULL;
	if (!prepare_head(v)) {
		variant_drop(v);
		return (NULL);
	}
	ready(v);
	return (v);
}

struct reply_form *
deflate_form_of_sibling(struct request *r, struct file_entry *e, struct file_entry *s,
    enum coding c)
{
	const struct coder_conf conf = { .coding = (uint8_t)c, .level = SIBLING };
	struct variant *v = variant_find(e, &conf);

	if (v != NULL && v->sibling != s) {
		variant_drop(v);
		v = NULL;
	}
	if (v == NULL)
		v = variant_of_sibling(r, e, s, &conf);
	if (v == NULL)
		return (NULL);
	touch(v);
	return (&v->form);
}

/* ---- a request */

/* Which coding; CODING_IDENTITY: none.  Parts are parts of the file itself. */
static enum coding
pick(const struct request *r)
{
	const struct deflate *d = &r->site->deflate;
	struct accept_encoding a;

	deflate_accepts(r, &a);
	if (r->http.known[HH_RANGE].p != NULL && r->conf->range_requests &&
	    accept_encoding_takes(&a, CODING_IDENTITY))
		return (CODING_IDENTITY);
	return (accept_encoding_pick(&a, d->order, d->n));
}

static enum formed
send_form(struct request *r, struct file_entry *e, struct variant *v)
{
	touch(v);
	reply_file_as(r, e, &v->form, r->extra);
	file_entry_put(e);
	return (FORMED_SENT);
}

/* The form is not ready: 304 and 412 need no bytes of it. */
static bool
is_decided(struct request *r, struct file_entry *e, enum coding c)
{
	struct reply_form form = { .coding = c, .tags = e };

	return (reply_file_decided(r, e, &form, r->extra));
}

static enum formed
wait_for(struct request *r, struct file_entry *e, struct making *m)
{
	struct deflate_wait *wait = request_slot(r, deflate_wait);

	wait->r = r;
	wait->entry = e;
	r->cold = true;
	list_add_tail(&m->waiters, &wait->link);
	return (FORMED_LATER);
}

enum formed
deflate_file(struct request *r, struct file_entry *e)
{
	const struct deflate *d = &r->site->deflate;
	const struct reply_extra *x = r->extra;
	struct variant *v;
	enum coding c;

	if (e->size == 0 || (x != NULL && reply_own_status(x->status)))
		return (FORMED_NOT);
	c = pick(r);
	if (c == CODING_IDENTITY)
		return (FORMED_NOT);
	v = variant_find(e, &d->conf[c]);
	if (v != NULL && v->state == FORM_READY && x == NULL)
		return (send_form(r, e, v));
	if ((v != NULL && v->state == FORM_NONE) ||
	    !reply_varies_fits(&r->site->style.varies, reply_type(&r->site->style, e, x),
		(int64_t)e->size))
		return (FORMED_NOT);
	if (v != NULL && v->state == FORM_READY)
		return (send_form(r, e, v));
	if (is_decided(r, e, c)) {
		file_entry_put(e);
		return (FORMED_SENT);
	}
	if (r->peeks)
		return (FORMED_NOT_NOW);
	if (v == NULL)
		v = make(r, e, &d->conf[c]);
	return (v == NULL || v->making->impatient ? FORMED_NOT : wait_for(r, e, v->making));
}

static void
stop(struct request *r)
{
	struct deflate_wait *wait = request_slot(r, deflate_wait);

	if (wait->entry == NULL)
		return;
	list_del(&wait->link);
	file_entry_put(wait->entry);
	wait->entry = NULL;
}

/* ---- the worker */

/* Runs the loop until no op is in flight. */
static void
stop_all(struct worker_base *w)
{
	struct variants *all = variants_of(w);
	struct making *m;

	while (!list_empty(&all->making)) {
		list_each(m, &all->making, link) {
			__atomic_store_n(&m->job->gone, true, __ATOMIC_RELAXED);
			if (m->working)
				op_cancel(all->w->io, &m->op);
			if (m->timed)
				op_cancel(all->w->io, &m->patience);
		}
		io_run(all->w->io);
	}
}

static bool
is_used(const struct conf *c)
{
	return (c->deflate_types.n != 0 || c->precompressed.n != 0);
}

const struct module module_deflate = {
	.name = "deflate",
	.is_used = is_used,
	.site_begin = deflate_of,
	.form = deflate_sibling,
	.stop = stop,
	.worker_stop = stop_all,
};
