/* server/module/deflate_sibling.c -- static-file.precompressed: FILE.br, FILE.zst, FILE.gz beside
 * FILE.
 *
 *   each coding that the client takes: FILE.xx is there, and not older --> a form of FILE
 *                                            `--> the next one; after the last: deflate_file()
 */
#include "base/arena.h"
#include "base/must.h"
#include "files/hold/hold.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/module/deflate.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/module/counters.h"
#include "server/worker/base.h"

static struct text
ending(enum coding c)
{
	return (c == CODING_BROTLI ? TEXT(".br") : c == CODING_ZSTD ? TEXT(".zst") : TEXT(".gz"));
}

static bool
is_older(const struct statx *a, const struct statx *b)
{
	return (a->stx_mtime.tv_sec < b->stx_mtime.tv_sec ||
		(a->stx_mtime.tv_sec == b->stx_mtime.tv_sec &&
		    a->stx_mtime.tv_nsec < b->stx_mtime.tv_nsec));
}

static bool
is_usable(const struct file_entry *s, const struct file_entry *e)
{
	return (s->err == 0 && !s->is_dir && s->size != 0 && !is_older(&s->stx, &e->stx));
}

static void waited(struct lookup_wait *, struct lookup *);

static enum formed
send_sibling(struct request *r, struct file_entry *e, struct file_entry *s, enum coding c)
{
	struct reply_form *form = deflate_form_of_sibling(r, e, s, c);

	if (form == NULL)
		return (FORMED_NOT);
	count(r->worker->counts.module, deflate_siblings);
	reply_file_as(r, e, form, r->extra);
	file_entry_put(e);
	return (FORMED_SENT);
}

/* Takes s, an answer for this coding.  FORMED_NOT: it is not a sibling to send. */
static enum formed
judge(struct request *r, struct file_entry *e, struct file_entry *s, enum coding c)
{
	bool may = is_usable(s, e) && !reply_excludes_link(r, s);
	enum formed d = may ? send_sibling(r, e, s, c) : FORMED_NOT;

	file_entry_put(s);
	return (d);
}

/* The coding of the sibling to try; CODING_IDENTITY: there is none to try. */
static enum coding
tried(const struct request *r, const struct accept_encoding *a)
{
	return (accept_encoding_pick(a,
	    &r->site->deflate.siblings[request_slot(r, deflate_wait)->sibling], 1));
}

/* From the sibling request_slot(r, deflate_wait)->sibling on. */
static enum formed
try_all(struct request *r, struct file_entry *e)
{
	const struct deflate *d = &r->site->deflate;
	struct accept_encoding a;
	enum formed got;
	struct file_entry *s;
	struct text name;

	deflate_accepts(r, &a);
	for (; request_slot(r, deflate_wait)->sibling < d->nsiblings;
	     request_slot(r, deflate_wait)->sibling++) {
		enum coding c = tried(r, &a);

		if (c == CODING_IDENTITY ||
		    (name = arena_join(&r->arena, e->lk.path, ending(c))).p == NULL)
			continue;
		r->wait.done = waited;
		r->wait.client = r->sender.client;
		r->wait.data = true;
		s = file_lookup(r->worker->files, e->lk.scope, name, r->peeks ? NULL : &r->wait);
		if (s == NULL && r->peeks)
			return (FORMED_NOT_NOW);
		if (s == NULL) {
			request_slot(r, deflate_wait)->entry = e;
			r->steps++;
			list_init(
			    /* the entry is in no list: one look-up */
			    &request_slot(r, deflate_wait)->link);
			return (FORMED_LATER);
		}
		got = judge(r, e, s, c);
		if (got != FORMED_NOT)
			return (got);
	}
	return (deflate_file(r, e));
}

static void
waited(struct lookup_wait *w, struct lookup *l)
{
	struct request *r = container_of(w, struct request, wait);
	struct file_entry *e = request_slot(r, deflate_wait)->entry;
	enum coding c = r->site->deflate.siblings[request_slot(r, deflate_wait)->sibling++];
	enum formed got;

	request_slot(r, deflate_wait)->entry = NULL;
	r->cold = true;
	got = judge(r, e, file_entry_of(l), c);
	if (got == FORMED_NOT)
		got = try_all(r, e);
	if (got == FORMED_LATER)
		return;
	if (got == FORMED_NOT)
		reply_file(r, e, r->extra);
	conn_replied(r);
}

/* Parts are parts of the file itself. */
static bool
wants_part(const struct request *r)
{
	return (r->http.known[HH_RANGE].p != NULL && r->conf->range_requests);
}

enum formed
deflate_sibling(struct request *r, struct file_entry *e)
{
	if (r->site->deflate.nsiblings == 0 || wants_part(r) ||
	    (r->extra != NULL && reply_own_status(r->extra->status)))
		return (deflate_file(r, e));
	request_slot(r, deflate_wait)->sibling = 0;
	return (try_all(r, e));
}
