/* fcgi-stat-accel/conn_give.c -- the descriptor that a client asks for, or why there is none.
 *
 *   look-up --> the file is warm, or a directory --> opened for the client --> sent with its answer
 *       |                                               `--> Warm-Errno
 *       |--> has failed just now, as open(2) of the client would ---> Warm-Errno
 *       `--> late, or refused by a rule of this program ---> neither: the client asks elsewhere
 *
 * It is opened after the look-up, even if that was spared: equal look-ups share their answer, and
 * a file system of another machine or process is asked at each open(2). */
#include "fcgi-stat-accel/conn_impl.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "fcgi-stat-accel/peer.h"

static void
tell(struct conns *all)
{
	if (all->told)
		return;
	all->told = true;
	log_event(LOG_WARN, NULL, "descriptor.refused",
	    LF_STR("why",
		"a client asks for descriptors (WARM_OPEN), and has not connected to a unix "
		"socket as the user of this program"),
	    LF_U64("user", geteuid()), LF_STR("then", "it is answered without"),
	    LF_STR("do", "run this program as the user of the web server's workers (--user), with "
			 "--listen unix:PATH"));
}

bool
conn_wants_fd(struct conn *c, char **params)
{
	if (!accel_wants_fd(params))
		return (false);
	if (!c->peer_known) {
		c->own_user = peer_is_own_user(c->sock.fd);
		c->own_groups = c->own_user && peer_has_own_groups(c->sock.fd);
		c->peer_known = true;
	}
	if (!c->own_user)
		tell(c->all);
	return (c->own_user);
}

/* The client may open the path: its file is warm, or it is a directory. */
static bool
is_ready(const struct warm_found *f)
{
	return (
	    f->err == 0 || f->err == -EISDIR || (f->index != NULL && lookup_is_permanent(f->err)));
}

/* With -EIO a read may have failed, after an open(2) that did not. */
static bool
has_failed_to_open(const struct warm_found *f)
{
	return (!is_ready(f) && !f->remembered && f->err != -EIO && accel_is_of_file(f->err));
}

/* The client would get this error from open(2), too. */
static bool
is_of_client(const struct conn *c, int err)
{
	return (accel_is_of_file(err) && (err != -EACCES || c->own_groups));
}

static void
opened(void *arg, int res)
{
	struct turn *t = arg;
	struct conn *c = t->conn;
	struct warm_found *f = &t->wait.found;

	t->opening = NULL;
	if (res >= 0) {
		t->fd = res;
		c->all->counters->fds++;
	}
	if (!is_ready(f)) /* the name is back since it was remembered as missing */
		conn_drop_fd(c, &t->fd);
	if (res < 0)
		f->err = res;
	if (is_of_client(c, res))
		t->open_err = res;
	conn_answer_waiting(c);
}

bool
conn_open_file(struct conn *c, char **params)
{
	struct turn *t = c->turn;
	const struct warm_found *f = &t->wait.found;
	const struct warm_opening how = {
		.client = t->wait.wait.client,
		.since_ns = t->began_ns,
		.want = t->wait.want,
		.done = opened,
		.arg = t,
	};

	if (!conn_wants_fd(c, params))
		return (false);
	if (has_failed_to_open(f))
		t->open_err = is_of_client(c, f->err) ? f->err : 0;
	else if (is_ready(f) || accel_is_of_file(f->err))
		t->opening = warm_open(c->all->warm, c->all->path->str, &how);
	return (t->opening != NULL);
}
