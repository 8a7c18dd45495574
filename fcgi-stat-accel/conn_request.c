#include "fcgi-stat-accel/conn_impl.h"

#include <errno.h>

#include "base/client_addr.h"
#include "base/log.h"
#include "io/memory/pressure.h"

/* The answer is due, or is not needed any more. */
static void
stop_waiting(struct conn *c)
{
	g_string_free(c->turn->request, TRUE);
	c->turn->request = NULL;
}

/* The reader has its variables, all->reply its answer.  False: the connection must be closed. */
static bool
send_reply(struct conn *c)
{
	struct conns *all = c->all;

	record_answered(&c->record);
	c->last |= !c->record.keep || all->draining;
	return (request_answer(all->reader, all->reply, all->out));
}

/* The web server passes one of these names in place of a path. */
static struct text
name_for_advice(const struct conns *all, char **params)
{
	static const char *const names[] = { "WARM_PATH", "SCRIPT_FILENAME", "REQUEST_URI" };
	const char *value = NULL;

	if (all->path->len > 0)
		return ((struct text){ all->path->str, all->path->len });
	for (size_t i = 0; i < G_N_ELEMENTS(names) && value == NULL; i++)
		value = accel_param(params, names[i]);
	return (text_of(value));
}

static void
advise(struct conns *all, char **params, const struct warm_wait *w)
{
	const struct warm_found *found = &w->found;
	const struct advice_answer a = {
		.path = name_for_advice(all, params),
		.unnamed = all->path->str[0] != '/',
		.cached = w->cached,
		.fresh = found->err == 0 && !found->remembered && w->want.n != 0,
		.err = found->err,
		.waited_ns = found->stat_ns + found->read_ns,
		.awake = found->awake,
	};

	advice_answered(all->advice, &a, io_now(all->io));
}

static void
add_open_error(struct conn *c)
{
	if (c->turn->open_err == 0)
		return;
	accel_add_errno(c->all->reply, c->turn->open_err);
	count(&c->all->counters->events, opens_failed);
}

static bool
answer(struct conn *c, char **params, const struct warm_wait *w, uint64_t began_ns)
{
	struct conns *all = c->all;
	const struct timing_request timing = {
		.conn = c->id,
		.number = c->requests,
		.path = all->path->str,
		.found = &w->found,
		.reply = all->reply,
		.total_ns = io_now(all->io) - began_ns,
	};

	g_string_truncate(all->reply, 0);
	accel_reply(all->accel, params, all->path->str, &w->found, all->counters, all->reply);
	add_open_error(c);
	histogram_add(&all->counters->total, timing.total_ns);
	all->counters->answered_ns = io_now(all->io);
	timing_note(all->timing, &timing);
	advise(all, params, w);
	return (send_reply(c));
}

/* True: the server may take a shorter name, now in all->path, for the file.  False: all->path is
 * the name that was looked up. */
static bool
is_longer(struct conn *c, char **params, const struct warm_wait *w)
{
	struct conns *all = c->all;
	struct path_info *info = &c->turn->info;
	struct range_set want;
	bool longer;

	/* the same path as the first time */
	accel_path(all->accel, params, all->path, &want);
	longer = accel_is_auth(all->accel, params) && !w->cached && !conn_wants_fd(c, params) &&
		 path_info_next(info, all->path, &w->found);
	if (info->at != 0)
		g_string_truncate(all->path, info->at);
	return (longer);
}

/* Looks the file of the request up.  False: the request waits for the answer. */
static bool
look_up(struct conn *c, char **params, struct warm_wait *w)
{
	do {
		if (!warm_file(c->all->warm, c->all->path->str, w))
			return (false);
	} while (is_longer(c, params, w));
	return (true);
}

/* The request has been read again. */
static void
answer_again(struct conn *c, char **params)
{
	stop_waiting(c);
	g_string_truncate(c->all->out, 0);
	if (params != NULL && answer(c, params, &c->turn->wait, c->turn->began_ns)) {
		conn_put(c);
		conn_go_on(c);
	} else
		conn_drop(c);
}

/* Reads the request again: a waiting request keeps its bytes and no state of libfcgi. */
static void
file_found(struct warm_wait *w)
{
	struct turn *t = container_of(w, struct turn, wait);
	struct conn *c = t->conn;
	char **params = request_read(c->all->reader, t->request);

	if (params != NULL &&
	    ((is_longer(c, params, w) && !look_up(c, params, w)) || conn_open_file(c, params)))
		request_drop(c->all->reader);
	else
		answer_again(c, params);
}

void
conn_answer_waiting(struct conn *c)
{
	struct conns *all = c->all;
	char **params = request_read(all->reader, c->turn->request);
	struct range_set want;

	if (params != NULL)
		accel_path(all->accel, params, all->path, &want);
	answer_again(c, params);
}

static void
wait_for_file(struct conn *c, GString *request)
{
	pressure_ask(); /* the file comes from a disk, so memory may be short */
	request_drop(c->all->reader);
	c->turn->request = request;
	conn_move(c, &c->all->busy);
}

/* Clients that share a connection have rows of their own: the cold files of one do not delay the
 * others. */
static uint32_t
client_of(const struct conn *c, char **params)
{
	const char *written = accel_param(params, "REMOTE_ADDR");
	struct client_addr address;

	if (written == NULL)
		return (c->id);
	address = client_addr_written(written);
	return (
	    address.host != 0 ? client_addr_key(address) : (uint32_t)text_hash(text_of(written)));
}

/* The variables of the request are too long to be read, so the request has no path. */
static int
refuse_too_long(struct conn *c)
{
	g_string_truncate(c->all->path, 0);
	log_limited(1, LOG_WARN, NULL, "request.too-long", LF_U64("connection", c->id),
	    LF_U64("variables-max", RECORD_PARAMS_MAX),
	    LF_STR("then", "the answer is 431; an authorizer goes on"));
	return (-E2BIG);
}

static void
note_unknown_cache(char **params)
{
	log_limited(1, LOG_WARN, NULL, "cache.unknown",
	    LF_STR("WARM_CACHE", accel_param(params, "WARM_CACHE")),
	    LF_STR("expected", "a name or path of --nginx-cache"),
	    LF_STR("then", "nothing is made warm; the server goes on"));
}

/* The answer is in all->out, or *waits is set.  False: the connection must be closed. */
static bool
answer_now(struct conn *c, char **params, bool *waits)
{
	struct conns *all = c->all;
	struct warm_wait *w = &conn_turn(c)->wait;

	g_string_truncate(all->reply, 0);
	if (status_answer(all->status, params, all->reply))
		return (send_reply(c));
	*w = (struct warm_wait){ .wait.client = client_of(c, params), .done = file_found };
	w->found.err = c->record.too_long ? refuse_too_long(c)
					  : accel_path(all->accel, params, all->path, &w->want);
	w->cached = accel_is_cached(all->accel, params);
	if (w->found.err == -ENODEV)
		note_unknown_cache(params);
	c->turn->info = (struct path_info){ 0 };
	c->turn->open_err = 0;
	c->turn->began_ns = io_now(all->io);
	*waits = w->found.err == 0 && (!look_up(c, params, w) || conn_open_file(c, params));
	return (*waits || answer(c, params, w, c->turn->began_ns));
}

bool
conn_take_request(struct conn *c)
{
	GString *request = record_take(&c->record);
	char **params = request_read(c->all->reader, request);
	bool waits = false, good;

	count(&c->all->counters->events, requests);
	c->requests++;
	good = params != NULL && answer_now(c, params, &waits);
	if (waits)
		wait_for_file(c, request);
	else
		g_string_free(request, TRUE);
	return (good);
}

static void
stop_looking(struct conn *c)
{
	warm_cancel(&c->turn->wait);
	warm_open_cancel(&c->turn->opening);
}

void
conn_forget_request(struct conn *c)
{
	stop_looking(c);
	stop_waiting(c);
}

void
conn_abort_request(struct conn *c)
{
	count(&c->all->counters->events, aborted);
	if (conn_waits(c))
		conn_forget_request(c);
	c->last |= !c->record.keep;
}

unsigned
conns_give_up(struct conns *all)
{
	struct conn *c;
	unsigned n = 0;

	list_each(c, &all->busy, link) {
		if (!conn_waits(c))
			continue;
		stop_looking(c);
		c->turn->wait.found = (struct warm_found){ .err = -ETIMEDOUT };
		file_found(&c->turn->wait);
		n++;
	}
	return (n);
}
