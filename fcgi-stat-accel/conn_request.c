#include "fcgi-stat-accel/conn_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/client_addr.h"
#include "base/log.h"

/* Its answer is due, or nobody wants it any more. */
static void
stop_waiting(struct conn *c)
{
	g_string_free(c->turn->request, TRUE);
	c->turn->request = NULL;
}

static void
note_timing(const struct conn *c, const struct warm_found *found, uint64_t total_ns)
{
	char id[32];
	const struct timing_request r = {
		.id = id, .path = c->all->path->str, .found = found, .reply = c->all->reply, .total_ns = total_ns,
	};

	if (c->all->timing == TIMING_OFF)
		return;
	snprintf(id, sizeof(id), "c%u.%u", c->id, c->requests);
	timing_note(c->all->timing, &r);
}

/* Its variables lie with the reader, its answer in all->reply.  False: the connection cannot go on. */
static bool
send_reply(struct conn *c)
{
	struct conns *all = c->all;

	record_answered(&c->record);
	c->last |= !c->record.keep || all->draining;
	return (request_answer(all->reader, all->reply, all->out));
}

static bool
answer(struct conn *c, char **params, const struct warm_found *found, uint64_t began_ns)
{
	struct conns *all = c->all;
	uint64_t total_ns = io_now(all->io) - began_ns;

	g_string_truncate(all->reply, 0);
	accel_reply(all->accel, params, all->path->str, found, all->stats, all->reply);
	histogram_add(&all->stats->total, total_ns);
	note_timing(c, found, total_ns);
	return (send_reply(c));
}

/* Read once more: a request that waits keeps its bytes and nothing of libfcgi. */
static void
file_found(struct warm_wait *w)
{
	struct turn *t = container_of(w, struct turn, wait);
	struct conn *c = t->conn;
	struct conns *all = c->all;
	char **params = request_read(all->reader, t->request);
	struct range_set want;

	stop_waiting(c);
	g_string_truncate(all->out, 0);
	if (params != NULL)
		accel_path(all->accel, params, all->path, &want);	/* as the first time */
	if (params != NULL && answer(c, params, &w->found, t->began_ns)) {
		conn_put(c);
		conn_go_on(c);
	} else
		conn_close(c);
}

static void
wait_for_file(struct conn *c, GString *request)
{
	request_drop(c->all->reader);
	c->turn->request = request;
	c->turn->began_ns = io_now(c->all->io);
	conn_move(c, &c->all->busy);
}

/* Who shares connections with others shares none of their turns: one's cold files do not hold up another's. */
static uint32_t
client_of(const struct conn *c, char **params)
{
	const char *written = accel_param(params, "REMOTE_ADDR");
	struct client_addr address;

	if (written == NULL)
		return (c->id);
	address = client_addr_written(written);
	return (address.host != 0 ? client_addr_key(address) : (uint32_t)text_hash(text_of(written)));
}

/* None of its variables is known, so it has no path. */
static int
refuse_too_long(struct conn *c)
{
	g_string_truncate(c->all->path, 0);
	log_limited(1, LOG_WARN, NULL, "request.too-long", LF_U64("connection", c->id), LF_U64("variables-max", RECORD_PARAMS_MAX),
	    LF_STR("then", "the answer is 431; an authorizer goes on"));
	return (-E2BIG);
}

/* In all->out, or *waits is set.  False: the connection cannot go on. */
static bool
answer_now(struct conn *c, char **params, bool *waits)
{
	struct conns *all = c->all;
	struct warm_wait *w = &conn_turn(c)->wait;

	g_string_truncate(all->reply, 0);
	if (status_answer(all->status, params, all->reply))
		return (send_reply(c));
	*w = (struct warm_wait){ .done = file_found, .client = client_of(c, params) };
	w->found.err = c->record.too_long ? refuse_too_long(c) : accel_path(all->accel, params, all->path, &w->want);
	*waits = w->found.err == 0 && !warm_file(all->warm, all->path->str, w);
	return (*waits || answer(c, params, &w->found, io_now(all->io)));
}

bool
conn_take_request(struct conn *c)
{
	GString *request = record_take(&c->record);
	char **params = request_read(c->all->reader, request);
	bool waits = false, good;

	STATS_COUNT(c->all->stats, requests);
	c->requests++;
	good = params != NULL && answer_now(c, params, &waits);
	if (waits)
		wait_for_file(c, request);
	else
		g_string_free(request, TRUE);
	return (good);
}

void
conn_forget_request(struct conn *c)
{
	warm_cancel(&c->turn->wait);
	stop_waiting(c);
}

void
conn_abort_request(struct conn *c)
{
	STATS_COUNT(c->all->stats, aborted);
	if (conn_waits(c))
		conn_forget_request(c);
	c->last |= !c->record.keep;
}

unsigned
conns_give_up(struct conns *all)
{
	struct list *l, *next;
	struct conn *c;
	unsigned n = 0;

	list_foreach_safe (l, next, &all->busy) {
		c = list_entry(l, struct conn, link);
		if (!conn_waits(c))
			continue;
		warm_cancel(&c->turn->wait);
		c->turn->wait.found = (struct warm_found){ .err = -ETIMEDOUT };
		file_found(&c->turn->wait);
		n++;
	}
	return (n);
}
