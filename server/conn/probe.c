/* server/conn/probe.c -- looks whether the path of a request exists, for $PHYSICAL conditions.
 *
 *   /dir/index.php/a/b   is not found, because index.php is not a directory: the longest part
 *   `------------'       that is a file is searched.  The rest is PATH_INFO.
 *
 * The search halves the path: a directory is too short, and what is below a file is too long.  A
 * path of 4096 bytes takes at most 24 look-ups, and hot names come from memory.
 */
#include <errno.h>

#include "files/hold/hold.h"
#include "io/body.h"
#include "server/conn/impl.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "server/route/choose.h"

/* The name of the file ends between these lengths: up to LOW it is a directory, up to HIGH it is
 * more than a file. */
struct probe {
	size_t low, high;
};
static REQUEST_SLOT(struct probe, mine);

static const struct conn_state *look(struct conn *, size_t len);

static const struct conn_state *
decided(struct conn *c, bool exists)
{
	const char *why;
	int status = exists ? route_existing(c->r, &c->handler, &why) : 0;

	return (status != 0 ? conn_refuse(c, status, why) : conn_routed(c));
}

/* The place of a slash between low and high, near the middle; 0: none. */
static size_t
slash_between(struct text path, size_t low, size_t high)
{
	size_t middle = low + (high - low) / 2, i;

	for (i = middle > low ? middle : low + 1; i < high; i++)
		if (path.p[i] == '/')
			return (i);
	for (i = middle; i > low; i--)
		if (path.p[i] == '/')
			return (i);
	return (0);
}

static const struct conn_state *
looked(struct conn *c, struct file_entry *e)
{
	struct request *r = c->r;
	struct probe *m = request_slot(r, mine);
	size_t below = r->place.below.n, len;
	bool is_dir = e->is_dir, whole = m->high == 0;
	int err = e->err;

	file_entry_put(e);
	len = below != 0 ? r->lookup.n - below : r->lookup.n + 1; /* with the first slash */
	if (err == 0 && !is_dir)
		r->script_len = len;
	if (err == 0 && (!is_dir || whole))
		return (decided(c, true));
	if (err == 0)
		m->low = len;
	else if (err == -ENOTDIR || err == -ENAMETOOLONG)
		m->high = len;
	else
		return (decided(c, false));
	len = slash_between(r->place.path, m->low, m->high);
	return (len != 0 ? look(c, len) : decided(c, false));
}

static void
found(struct lookup_wait *w, struct lookup *l)
{
	struct conn *c = container_of(w, struct request, wait)->conn;
	const struct conn_state *next = looked(c, file_entry_of(l));

	if (next != WAIT)
		conn_go(c, next);
}

/* Looks up the first len bytes of the place. */
static const struct conn_state *
look(struct conn *c, size_t len)
{
	struct request *r = c->r;
	struct file_entry *e;

	r->lookup = place_name(r, &r->place, (struct text){ r->place.path.p, len });
	if (r->lookup.p == NULL)
		return (conn_refuse(c, 500, "no memory"));
	r->steps++;
	r->peeks = !body_empty(&r->body);
	r->wait.done = found;
	r->wait.client = r->sender.client;
	e = file_lookup(c->w->base.files, r->place.scope, r->lookup, r->peeks ? NULL : &r->wait);
	if (e != NULL)
		return (looked(c, e));
	if (r->peeks)
		return (conn_defer(c));
	if (!conn_settle(c))
		conn_stop(c);
	else
		conn_watch(c);
	return (WAIT);
}

const struct conn_state *
conn_probe(struct conn *c)
{
	struct request *r = c->r;
	size_t len = r->place.path.n;

	*request_slot(r, mine) = (struct probe){ 0 };
	if (len > 1 && r->place.path.p[len - 1] == '/')
		len--;
	return (look(c, len));
}
