/* server/module/dirlisting.c -- dir-listing.*: the page of a directory without an index file.
 *
 *   directory() of module.h  --------+-- page in memory, directory unchanged --> reply
 *                                     +-- being made: joins the others ----+
 *                                     '-- io/dir_list.h, in a thread ------+--> reply, later
 *
 * Bounds   LISTINGS_MAX pages and LISTINGS_BYTES of each worker; the one unused for longest goes.
 * Thread   the worker's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/match.h"
#include "base/must.h"
#include "files/hold/hold.h"
#include "io/body.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/handler.h"
#include "server/module/dirlisting_page.h"
#include "server/module/dirlisting_rules.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/worker/base.h"
#include "server/request/fault.h"
#include "wire/http1/validate.h"

#define LISTINGS_MAX   64u
#define LISTINGS_BYTES (8u << 20)
#define HTML_MAX       (32u << 20)

/* What the thread needs: copies, because it may outlive the configuration. */
struct page_work {
	struct dir_list list;
	struct dirlisting_look look;
	struct dir_names *exclude; /* counted; NULL: none */
	bool dotfiles;
	char *hidden[DIR_TEXTS]; /* names that are not listed */
	struct buf denied; /* endings of names that url.access-deny refuses, each with a NUL */
	struct buf texts;  /* bytes that look points to */
	struct buf html;
};

struct listing {
	struct list link;        /* in the worker's list, the most recently used first */
	const struct site *site; /* NULL: no longer in the list */
	struct worker_base *worker;
	struct file_scope *scope;
	char *key; /* URL, look-up, order */
	size_t nkey;
	uint32_t refs;
	struct list waiters;
	struct io_op op;
	struct page_work *work;
	bool ready;
	int err;
	struct text html;
	char etag[32];
	uint64_t made_ns;
};

struct listing_wait {
	struct list link;
	struct request *r;
	struct listing *of; /* the page that it waits for; NULL: none */
};
static REQUEST_SLOT(struct listing_wait, mine);

static WORKER_SLOT(struct list, listings); /* zero: none yet */

/* ---------------------------------------------------------------- in a thread */

static bool
is_denied(const struct page_work *w, struct text name)
{
	struct text rest = buf_as_text(&w->denied), end;

	while (rest.n != 0 && text_next(&rest, '\0', &end))
		if (end.n != 0 && name.n >= end.n &&
		    text_ieq((struct text){ name.p + name.n - end.n, end.n }, end))
			return (true);
	return (false);
}

static bool
wants(const struct dir_list *l, struct text name)
{
	const struct page_work *w = container_of(l, struct page_work, list);
	size_t i;

	if (!w->dotfiles && name.p[0] == '.')
		return (false);
	for (i = 0; i < DIR_TEXTS; i++)
		if (w->hidden[i] != NULL && text_eq(name, text_of(w->hidden[i])))
			return (false);
	return (!is_denied(w, name) && (w->exclude == NULL || !dir_names_has(w->exclude, name)));
}

static void
made(struct dir_list *l)
{
	struct page_work *w = container_of(l, struct page_work, list);

	dirlisting_page(&w->html, l, &w->look);
}

static void
release(struct dir_list *l)
{
	struct page_work *w = container_of(l, struct page_work, list);
	size_t i;

	dir_names_put(w->exclude);
	for (i = 0; i < DIR_TEXTS; i++)
		free(w->hidden[i]);
	buf_free(&w->denied);
	buf_free(&w->texts);
	buf_free(&w->html);
	free(w);
}

/* ---------------------------------------------------------------- what is asked for */

struct wish {
	enum dirlisting_sort sort;
	bool down;
};

/* "sort=size&order=desc"; "C=S;O=D" of lighttpd and Apache means the same. */
static struct wish
wish_of(struct text query)
{
	struct wish w = { 0 };
	struct text word, key;

	while (
	    query.n != 0 && text_next(&query, memchr(query.p, ';', query.n) ? ';' : '&', &word)) {
		if (!text_next(&word, '=', &key) || word.n == 0)
			continue;
		if (text_eq(key, TEXT("sort")) || text_eq(key, TEXT("C")))
			w.sort = word.p[0] == 's' || word.p[0] == 'S'   ? DIR_BY_SIZE
				 : word.p[0] == 't' || word.p[0] == 'M' ? DIR_BY_TIME
									: DIR_BY_NAME;
		else if (text_eq(key, TEXT("order")) || text_eq(key, TEXT("O")))
			w.down = word.p[0] == 'd' || word.p[0] == 'D';
	}
	return (w);
}

static void
put_key(struct buf *key, const struct request *r, struct wish w)
{
	buf_text(key, request_path(r));
	buf_add(key, "", 1);
	buf_text(key, r->lookup);
	buf_printf(key, "%c%d%d", '\0', w.sort, w.down);
}

/* ---------------------------------------------------------------- the table */

static void
listing_put(void *listing)
{
	struct listing *l = listing;

	if (--l->refs != 0)
		return;
	if (l->work != NULL)
		io_work_put(&l->work->list.work);
	file_scope_put(l->scope);
	free(l->key);
	free(l);
}

static void
unlist(struct listing *l)
{
	if (l->site == NULL)
		return;
	l->site = NULL;
	list_del(&l->link);
	listing_put(l);
}

static struct list *
listings_of(struct worker_base *w)
{
	struct list *all = worker_slot(w, listings);

	if (all->next == NULL)
		list_init(all);
	return (all);
}

static void
keep_bounds(struct worker_base *w)
{
	uint64_t bytes = 0;
	struct listing *l;
	unsigned n = 0;

	list_each(l, listings_of(w), link) {
		bytes += l->html.n;
		if (++n > LISTINGS_MAX || (bytes > LISTINGS_BYTES && n > 1))
			unlist(l);
	}
}

static void
forget(const struct site *site)
{
	struct listing *l;

	list_each(l, listings_of(site->worker), link)
		if (l->site == site)
			unlist(l);
}

static struct listing *
find(struct request *r, struct text key)
{
	struct listing *l;

	list_each(l, listings_of(r->worker), link)
		if (l->site == r->site && l->scope == r->scope &&
		    text_eq((struct text){ l->key, l->nkey }, key))
			return (l);
	return (NULL);
}

static bool
same_time(const struct statx_timestamp *a, const struct statx_timestamp *b)
{
	return (a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec);
}

/* The directory is as it was, and the facts of its files are not too old. */
static bool
is_fresh(const struct request *r, const struct listing *l, const struct file_entry *dir)
{
	const struct statx *then = &l->work->list.stx;
	uint64_t age = clock_between(l->made_ns, io_now(r->worker->io));

	return (age <= dirlisting_max_age(r->site) * NS_PER_S &&
		same_time(&then->stx_mtime, &dir->stx.stx_mtime) &&
		same_time(&then->stx_ctime, &dir->stx.stx_ctime));
}

/* ---------------------------------------------------------------- replies */

static void
send_html(struct request *r, struct listing *l)
{
	const struct validators v = { .etag = text_of(l->etag) };
	int status = conditions_check(&r->http, &v), n;
	char lines[512];

	if (status == 412) {
		reply_error(r, 412);
		return;
	}
	n = snprintf(lines, sizeof(lines),
	    "Content-Type: text/html; charset=%.100s\r\nETag: %s\r\n", r->conf->dir_encoding,
	    l->etag);
	if (status == 304) {
		reply_stream_head(r, 304, (struct text){ lines, (size_t)n }, -1, false);
		return;
	}
	reply_stream_head(r, 200, (struct text){ lines, (size_t)n }, (int64_t)l->html.n, false);
	if (r->http.verb == HTTP_HEAD)
		return;
	r->body_bytes = l->html.n;
	l->refs++;
	if (!body_lend(&r->body, l->html, listing_put, l)) {
		l->refs--;
		conn_close_after(r);
	}
}

static void
send_listing(struct request *r, struct listing *l)
{
	if (l->err == 0)
		send_html(r, l);
	else if (l->err == -ETIMEDOUT || l->err == -EAGAIN)
		reply_error(r, 503);
	else
		reply_error(r, l->err == -ENOMEM ? 500 : http1_status_of_errno(l->err));
}

static void
log_failed(struct request *r, int err)
{
	if (http1_status_of_errno(err) >= 500)
		fault_is(r, err);
	if (err != 0 && err != -ENOENT)
		log_limited(1, LOG_WARN, conn_id(r), "dirlisting.failed", conn_client(r),
		    LF_TEXT("path", request_path(r)), LF_ERR("error", err));
}

static void
loaded(struct io_op *op)
{
	struct listing *l = container_of(op, struct listing, op);
	struct listing_wait *wait;
	struct request *r;

	l->ready = true;
	l->err = op->res != 0 ? (int)op->res : l->work->list.err;
	if (l->err == 0 && l->work->html.failed)
		l->err = -ENOMEM;
	if (l->err == 0) {
		l->html = buf_as_text(&l->work->html);
		snprintf(l->etag, sizeof(l->etag), "W/\"%016llx\"",
		    (unsigned long long)text_hash(l->html));
		l->made_ns = io_now(l->worker->io);
	} else
		unlist(l);
	while (!list_empty(&l->waiters)) {
		wait = list_entry(list_pop(&l->waiters), struct listing_wait, link);
		wait->of = NULL;
		r = wait->r;
		r->cold = true;
		log_failed(r, l->err);
		send_listing(r, l);
		conn_replied(r);
	}
	if (l->site != NULL)
		keep_bounds(l->worker);
	listing_put(l);
}

/* ---------------------------------------------------------------- making one */

static struct text
keep_text(struct buf *texts, const char *s)
{
	struct text t = { NULL, s != NULL ? strlen(s) : 0 };

	buf_add(texts, s, t.n);
	return (t);
}

/* The buffer may have moved while it grew. */
static void
place_texts(struct page_work *w)
{
	struct text *in_order[] = { &w->look.url, &w->look.encoding, &w->look.css, &w->look.js,
		&w->look.footer };
	const char *p = w->texts.p;
	size_t i;

	for (i = 0; i < NELEM(in_order); i++) {
		in_order[i]->p = p;
		p += in_order[i]->n;
	}
}

static void
look_fill(struct page_work *w, const struct request *r, struct wish wish)
{
	const struct conf *c = r->conf;

	buf_init(&w->texts, 0);
	w->look = (struct dirlisting_look){
		.layout = c->dir_layout,
		.sorted = c->dir_sort,
		.encode = { c->dir_encode_header, c->dir_encode_readme },
		.sort = wish.sort,
		.down = wish.down,
	};
	w->look.url = request_path(r);
	buf_text(&w->texts, w->look.url);
	w->look.encoding = keep_text(&w->texts, c->dir_encoding);
	w->look.css = keep_text(&w->texts, c->dir_css);
	w->look.js = keep_text(&w->texts, c->dir_js);
	w->look.footer = keep_text(&w->texts, c->dir_footer);
	place_texts(w);
}

/* The job that reads the directory for the page.  NULL: no memory or descriptor. */
static struct page_work *
work_new(struct request *r, struct wish wish)
{
	const struct conf *c = r->conf;
	const char *header = dirlisting_file(r->site->rules[RULES_dir_header]),
		   *readme = dirlisting_file(r->site->rules[RULES_dir_readme]);
	struct page_work *w = calloc(1, sizeof(*w));
	size_t i;
	bool ok;

	if (w == NULL)
		return (NULL);
	ok = dir_list_init(&w->list, r->scope->root, r->lookup, r->scope->resolve);
	w->list.most = c->dir_most;
	w->list.unsorted = !c->dir_sort;
	w->list.wants = wants;
	w->list.made = made;
	w->list.release = release;
	buf_init(&w->html, HTML_MAX);
	look_fill(w, r, wish);
	w->dotfiles = !c->dir_hide_dotfiles;
	buf_init(&w->denied, 0);
	for (i = 0; i < c->access_deny.n; i++)
		buf_add(&w->denied, c->access_deny.v[i].p, c->access_deny.v[i].n + 1);
	w->exclude = dir_names_get(r->site->rules[RULES_dir_exclude]);
	if (header != NULL)
		w->list.text[0] = strdup(header);
	if (readme != NULL)
		w->list.text[1] = strdup(readme);
	if (c->dir_hide_header)
		w->hidden[0] = strdup(header != NULL ? header : "HEADER.txt");
	if (c->dir_hide_readme)
		w->hidden[1] = strdup(readme != NULL ? readme : "README.txt");
	if (ok && !w->texts.failed && !w->denied.failed)
		return (w);
	io_work_put(&w->list.work);
	return (NULL);
}

static struct listing *
listing_new(struct request *r, struct wish wish, struct text key)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return (NULL);
	l->key = malloc(key.n + 1);
	l->work = l->key != NULL ? work_new(r, wish) : NULL;
	if (l->work == NULL) {
		free(l->key);
		free(l);
		return (NULL);
	}
	memcpy(l->key, key.p, key.n);
	l->nkey = key.n;
	l->site = r->site;
	l->worker = r->worker;
	l->scope = file_scope_ref(r->scope);
	l->refs = 2; /* of the list, of the op */
	list_init(&l->waiters);
	list_add_head(listings_of(r->worker), &l->link);
	op_init(&l->op, IO_WORK, loaded);
	l->op.work.work = &l->work->list.work;
	l->op.work.looks = true;
	l->op.work.root = r->scope->root;
	l->op.client = r->sender.client;
	l->op.deadline_ms = (uint32_t)(1000 * r->conf->open_timeout);
	op_submit(r->worker->io, &l->op);
	return (l);
}

static enum handled
join(struct request *r, struct listing *l)
{
	struct listing_wait *wait = request_slot(r, mine);

	if (!list_empty(&l->waiters))
		io_join(r->worker->io, &l->op, r->sender.client);
	wait->r = r;
	wait->of = l;
	list_add_tail(&l->waiters, &wait->link);
	return (HANDLED_LATER);
}

static enum handled
list_directory(struct request *r, const struct file_entry *dir)
{
	struct wish wish = wish_of(r->http.query);
	struct listing *l;
	struct buf key;

	buf_init(&key, 0);
	put_key(&key, r, wish);
	l = key.failed ? NULL : find(r, buf_as_text(&key));
	if (l != NULL && l->ready && !is_fresh(r, l, dir)) {
		unlist(l);
		l = NULL;
	}
	if (l == NULL && !r->peeks && !key.failed)
		l = listing_new(r, wish, buf_as_text(&key));
	buf_free(&key);
	if (l != NULL && l->ready) {
		send_listing(r, l);
		return (HANDLED_REPLY);
	}
	if (r->peeks)
		return (HANDLED_NOT_NOW);
	if (l != NULL)
		return (join(r, l));
	reply_error(r, 500);
	return (HANDLED_REPLY);
}

static void
stop(struct request *r)
{
	struct listing_wait *wait = request_slot(r, mine);
	struct listing *l = wait->of;

	if (l == NULL)
		return;
	wait->of = NULL;
	list_del(&wait->link);
	if (!list_empty(&l->waiters) || l->ready)
		return;
	unlist(l);
	__atomic_store_n(&l->work->list.gone, true, __ATOMIC_RELAXED);
	op_cancel(l->worker->io, &l->op);
}

static bool
is_used(const struct conf *c)
{
	return (c->dir_listing);
}

const struct module module_dirlisting = {
	.name = "dirlisting",
	.is_used = is_used,
	.directory = list_directory,
	.stop = stop,
	.site_end = forget,
};
