/* server/handler/static.c -- GET and HEAD of files below the document root. */
#include <errno.h>
#include <limits.h>

#include "base/log.h"
#include "files/hold/hold.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/handler.h"
#include "server/request/fault.h"
#include "server/module/module.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "server/worker/base.h"
#include "wire/http1/http1.h"

/* tried.n: all names were tried, the directory itself is looked up */
#define NO_INDEX UINT_MAX

struct tried {
	unsigned n;        /* index files so far; NO_INDEX */
	struct text index; /* path of the URL that the running look-up tries; in the arena */
};
static REQUEST_SLOT(struct tried, mine);

static enum handled static_answer(struct request *, struct file_entry *);
static enum handled refuse(struct request *, int status);

static bool
is_for_files(const struct request *r)
{
	return (r->http.verb == HTTP_GET || r->http.verb == HTTP_HEAD || r->refused.status != 0);
}

/* The request body may still be unread. */
static enum handled
refuse_method(struct request *r)
{
	if (r->http.verb != HTTP_OPTIONS && modules_refused(r, 405))
		return (HANDLED_AGAIN);
	if (r->in.left != 0)
		conn_close_after(r);
	reply_methods(r);
	return (HANDLED_REPLY);
}

static void
waited(struct lookup_wait *w, struct lookup *l)
{
	struct request *r = container_of(w, struct request, wait);
	struct file_entry *e = file_entry_of(l);

	r->cold = true;
	r->open = e->open;
	switch (static_answer(r, e)) {
	case HANDLED_REPLY: conn_replied(r); break;
	case HANDLED_AGAIN: conn_route_again(r); break;
	case HANDLED_LATER:
	case HANDLED_NOT_NOW: break;
	}
}

/* True if a reply without the first bytes of the file is possible: an answer from memory, or a
 * range. */
static bool
wants_all(const struct request *r)
{
	const struct http_request *h = &r->http;

	return (h->verb == HTTP_GET && h->known[HH_IF_NONE_MATCH].p == NULL &&
		h->known[HH_IF_MODIFIED_SINCE].p == NULL && h->known[HH_RANGE].p == NULL);
}

static enum handled
look(struct request *r, struct text path)
{
	struct file_entry *e;

	r->steps++;
	r->lookup = path;
	r->wait.done = waited;
	r->wait.client = r->sender.client;
	r->wait.data = wants_all(r);
	e = file_lookup(r->worker->files, r->scope, path, r->peeks ? NULL : &r->wait);
	if (e == NULL)
		return (r->peeks ? HANDLED_NOT_NOW : HANDLED_LATER);
	return (static_answer(r, e));
}

static enum handled
look_at(struct request *r, const struct place *at, struct text path)
{
	struct text name = place_name(r, at, path);

	if (name.p == NULL)
		return (refuse(r, 500));
	r->scope = at->scope;
	return (look(r, name));
}

/* No index file exists; the directory itself decides between 403 and 404. */
static enum handled
look_at_dir(struct request *r)
{
	struct text path = r->place.path;

	if (!is_for_files(r))
		return (refuse_method(r));
	request_slot(r, mine)->n = NO_INDEX;
	if (path.n > 1)
		path.n--;
	return (look_at(r, &r->place, path));
}

/* "/name" has the place of that URL. */
static enum handled
try_name_of_root(struct request *r, struct text name)
{
	struct tried *m = request_slot(r, mine);
	struct place at;
	int status;

	while (name.n != 0 && name.p[0] == '/')
		name.p++, name.n--;
	m->index = arena_join(&r->arena, TEXT("/"), name);
	status = m->index.p != NULL ? route_place(r, m->index, &at) : 500;
	return (status != 0 ? refuse(r, status) : look_at(r, &at, at.path));
}

/* Looks up the next name of index-file.names below the requested directory. */
static enum handled
try_index(struct request *r)
{
	struct tried *m = request_slot(r, mine);
	struct text name, path = r->place.path;

	if (m->n >= r->conf->index_names.n)
		return (look_at_dir(r));
	name = r->conf->index_names.v[m->n++];
	if (name.n != 0 && name.p[0] == '/')
		return (try_name_of_root(r, name));
	m->index = arena_join(&r->arena, request_path(r), name);
	if (path.p == r->path && path.n == r->path_len)
		path = m->index;
	else
		path = arena_join(&r->arena, path, name);
	if (m->index.p == NULL || path.p == NULL)
		return (refuse(r, 500));
	return (look_at(r, &r->place, path));
}

/* The name that was found decides who answers: it may be a script. */
static enum handled
answer_index(struct request *r)
{
	const struct route_change to = { .path = request_slot(r, mine)->index };

	if (!route_again(r, &to))
		return (refuse(r, 500));
	r->by_index = true;
	return (HANDLED_AGAIN);
}

static enum handled
answer_dir(struct request *r)
{
	struct text path = request_path(r);

	if (r->extra != NULL)
		return (refuse(r, 403));
	if (path.p[path.n - 1] == '/')
		return (try_index(r));
	path = arena_join(&r->arena, path, TEXT("/"));
	if (path.p == NULL)
		return (refuse(r, 500));
	reply_redirect(r, 301, path, r->http.query);
	return (HANDLED_REPLY);
}

/* Every file of the site is a program, unless an application names it. */
static bool
is_run(const struct request *r)
{
	const struct module *m = r->site->modules.runs;

	return (m != NULL && r->extra == NULL && m->runs(r->conf, r->lookup, false));
}

static enum handled
refuse(struct request *r, int status)
{
	if (r->extra != NULL && r->refused.status == 0)
		log_limited(10, LOG_WARN, conn_id(r), "sendfile.failed",
		    LF_TEXT("url", r->http.target), LF_TEXT("path", r->lookup),
		    LF_U64("status", status),
		    LF_STR("do", "check the application: the file is missing, not a regular file, "
				 "or not below a root; % in its name is written %25"),
		    conn_client(r));
	if (modules_refused(r, status))
		return (HANDLED_AGAIN);
	if (r->in.left != 0)
		conn_close_after(r);
	reply_error(r, status);
	return (HANDLED_REPLY);
}

/* Without conditions and modules this handler answers for every name. */
static bool
is_index(const struct request *r)
{
	const struct tried *m = request_slot(r, mine);

	return (m->n != 0 && m->n != NO_INDEX && route_asks_index(r));
}

/* Takes e. */
static enum handled
send_file(struct request *r, struct file_entry *e)
{
	const struct module *m = r->site->modules.form;

	if (m != NULL)
		switch (m->form(r, e)) {
		case FORMED_SENT: return (HANDLED_REPLY);
		case FORMED_LATER: return (HANDLED_LATER);
		case FORMED_NOT_NOW: file_entry_put(e); return (HANDLED_NOT_NOW);
		case FORMED_NOT: break;
		}
	reply_file(r, e, r->extra);
	return (HANDLED_REPLY);
}

static enum handled
list_dir(struct request *r, struct file_entry *dir)
{
	enum handled done = r->site->modules.directory->directory(r, dir);

	file_entry_put(dir);
	return (done);
}

/* Takes e: hands it to send_file() or puts it back. */
static enum handled
static_answer(struct request *r, struct file_entry *e)
{
	struct tried *m = request_slot(r, mine);
	int err = e->err;
	bool is_dir = e->is_dir;

	if (err == 0 && !is_dir && is_index(r)) {
		file_entry_put(e);
		return (answer_index(r));
	}
	if (err == 0 && !is_dir && m->n != NO_INDEX && is_for_files(r) &&
	    !reply_excludes(r, r->lookup) && !reply_excludes_link(r, e) && !is_run(r))
		return (send_file(r, e));
	if (m->n == NO_INDEX && err == 0 && is_dir && r->site->modules.directory != NULL &&
	    r->extra == NULL)
		return (list_dir(r, e));
	if (err != 0)
		fault_note(r, e);
	file_entry_put(e);
	if (err == 0 && !is_dir && !is_for_files(r))
		return (refuse_method(r));
	if (m->n == NO_INDEX && err == 0)
		return (refuse(r, is_dir ? 403 : 404));
	if (m->n != NO_INDEX && m->n != 0 && (err == -ENOENT || err == -ENOTDIR))
		return (try_index(r));
	if (err != 0)
		return (refuse(r, http1_status_of_errno(err)));
	if (is_dir && m->n == 0)
		return (answer_dir(r));
	return (refuse(r, 403));
}

enum handled
static_send(struct request *r, struct file_scope *scope, struct text lookup,
    const struct reply_extra *x)
{
	r->scope = scope;
	r->extra = x;
	request_slot(r, mine)->n = 0;
	return (look(r, lookup));
}

void
static_stop(struct request *r)
{
	file_lookup_cancel(&r->wait);
	modules_request_stop(r);
}

static enum handled
static_start(struct request *r)
{
	bool is_dir = r->path[r->path_len - 1] == '/', is_star = text_eq(r->http.target, TEXT("*"));

	if (!is_for_files(r) &&
	    ((r->site->modules.refused == NULL && (!is_dir || !route_asks_index(r))) || is_star))
		return (refuse_method(r));
	r->extra = r->carried;
	request_slot(r, mine)->n = 0;
	return (is_dir ? try_index(r) : look_at(r, &r->place, r->place.path));
}

const struct handler handler_static = {
	.name = "static",
	.start = static_start,
	.stop = static_stop,
};

/* Only the name of the index file tells whether an application wants the request body. */
const struct handler handler_index = {
	.name = "index",
	.before_body = true,
	.start = static_start,
	.stop = static_stop,
};
