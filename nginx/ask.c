/* nginx/ask.c -- questions that are out.  Requests that miss the same name wait for the same
 * question.
 *
 * When all who waited have left, the accelerator is asked to give up.  A thread that opens a file
 * cannot be called back: its question lasts until it is answered. */
#include "nginx/stat_accel.h"

#define QUESTIONS_MAX 4096u
#define OF_CLIENT_MAX (QUESTIONS_MAX / 2)
#define BUCKETS       256u
#define SLOW_MS       50u

static ngx_queue_t buckets[BUCKETS];
static ngx_uint_t out, out_of[ACCEL_CLIENTS];
static ngx_queue_t by_age;
static ngx_queue_t ended; /* whose waiters are to go on */
static ngx_event_t deliver_event;

static void deliver(ngx_event_t *ev);

static ngx_queue_t *
bucket_of(uint64_t key)
{
	return (&buckets[key % BUCKETS]);
}

void
accel_ask_init(void)
{
	for (ngx_uint_t i = 0; i < BUCKETS; i++) {
		ngx_queue_init(&buckets[i]);
	}
	ngx_queue_init(&by_age);
	ngx_queue_init(&ended);
	deliver_event.handler = deliver;
	deliver_event.log = ngx_cycle->log;
}

static bool
covers(const struct accel_question *q, const struct accel_conf *conf, const struct accel_name *name,
    uint64_t key)
{
	return (q->key == key && q->refuse == (conf->late != 0) && q->peer == conf->peer &&
		q->name.range.from == name->range.from && q->name.range.to == name->range.to &&
		q->name.list == name->list && q->name.open == name->open);
}

static struct accel_question *
find(const struct accel_conf *conf, const struct accel_name *name, uint64_t key)
{
	ngx_queue_t *b = bucket_of(key), *i;

	for (i = ngx_queue_head(b); i != ngx_queue_sentinel(b); i = ngx_queue_next(i)) {
		struct accel_question *q = ngx_queue_data(i, struct accel_question, link);

		if (covers(q, conf, name, key))
			return (q);
	}
	return (NULL);
}

/* Clients take turns by address; those of one IPv6 network of 64 bits are one. */
static uint32_t
client_key(const struct sockaddr *a)
{
#if (NGX_HAVE_INET6)
	if (a->sa_family == AF_INET6)
		return (ngx_crc32_short(((struct sockaddr_in6 *)a)->sin6_addr.s6_addr, 8));
#endif
	if (a->sa_family != AF_INET)
		return (0);
	return (ngx_crc32_short((u_char *)&((struct sockaddr_in *)a)->sin_addr, 4));
}

static bool
are_too_many(const ngx_connection_t *c)
{
	return (out >= QUESTIONS_MAX ||
		out_of[client_key(c->sockaddr) % ACCEL_CLIENTS] >= OF_CLIENT_MAX);
}

static struct accel_question *
question_new(const struct accel_conf *conf, const struct accel_name *name,
    const ngx_connection_t *c, uint64_t key)
{
	const ngx_str_t *client = &c->addr_text;
	struct accel_question *q;

	q = ngx_calloc(sizeof(*q) + name->path.len + 1 + client->len, ngx_cycle->log);
	if (q == NULL)
		return (NULL);
	q->key = key;
	q->warm = conf->warm;
	q->peer = conf->peer;
	q->pool = conf->pool;
	q->refuse = conf->late != 0;
	q->fd = -1;
	q->since = ngx_current_msec;
	q->mount = accel_mount_id(&name->path);
	q->client_key = client_key(c->sockaddr);
	q->name = *name;
	q->name.path.data = (u_char *)(q + 1);
	ngx_memcpy(q->name.path.data, name->path.data, name->path.len);
	q->client = (ngx_str_t){ client->len, q->name.path.data + name->path.len + 1 };
	ngx_memcpy(q->client.data, client->data, client->len);
	ngx_queue_init(&q->waiters);
	ngx_queue_insert_tail(bucket_of(key), &q->link);
	ngx_queue_insert_tail(&by_age, &q->age);
	out_of[q->client_key % ACCEL_CLIENTS]++;
	accel_row->out = ++out;
	return (q);
}

static void
question_free(struct accel_question *q)
{
	ngx_queue_remove(&q->link);
	ngx_queue_remove(&q->age);
	out_of[q->client_key % ACCEL_CLIENTS]--;
	accel_row->out = --out;
	if (q->fd >= 0)
		accel_threads_close(q->pool, q->fd);
	ngx_free(q);
}

/* A listing needs all names of a directory: no accelerator gives them.  A descriptor comes over a
 * unix socket alone. */
static bool
is_for_peer(const struct accel_conf *conf, const struct accel_name *name)
{
	return (conf->peer != NULL && !name->list && (!name->open || accel_peer_gives(conf->peer)));
}

static ngx_int_t
post(const struct accel_conf *conf, struct accel_question *q)
{
	bool peer = is_for_peer(conf, &q->name);

	if (peer && accel_peer_ask(conf->peer, q) == NGX_OK) {
		accel_count(ACCEL_COUNT_asked_peer);
		return (NGX_OK);
	}
	if ((peer && !q->name.open) || accel_threads_ask(conf->pool, q) != NGX_OK)
		return (NGX_ERROR);
	accel_count(ACCEL_COUNT_asked_threads);
	return (NGX_OK);
}

/* NULL: nobody could be asked. */
static struct accel_question *
ask_first(const struct accel_ctx *ctx, const struct accel_conf *conf, const struct accel_name *name,
    uint64_t key)
{
	struct accel_question *q = question_new(conf, name, ctx->r->connection, key);

	if (q != NULL && post(conf, q) == NGX_OK)
		return (q);
	if (q != NULL)
		question_free(q);
	accel_count(ACCEL_COUNT_refused);
	return (NULL);
}

ngx_int_t
accel_ask(struct accel_ctx *ctx, struct accel_conf *conf, const struct accel_name *name,
    uint64_t key)
{
	struct accel_question *q = find(conf, name, key);

	if (q != NULL) {
		accel_count(ACCEL_COUNT_joined);
	} else if (are_too_many(ctx->r->connection)) {
		accel_count(ACCEL_COUNT_refused);
		return (NGX_BUSY);
	} else {
		q = ask_first(ctx, conf, name, key);
	}
	if (q == NULL)
		return (NGX_ERROR);
	ctx->question = q;
	ngx_queue_insert_tail(&q->waiters, &ctx->link);
	return (NGX_OK);
}

/* Nobody joins a question that is called back. */
static void
call_back(struct accel_question *q)
{
	ngx_queue_remove(&q->link);
	ngx_queue_init(&q->link);
	q->called_back = true;
	if (accel_peer_abort(q)) {
		accel_count(ACCEL_COUNT_called_back);
		question_free(q);
	}
}

static void
leave(struct accel_ctx *ctx)
{
	ngx_queue_remove(&ctx->link);
	ctx->question = NULL;
}

void
accel_ask_leave(struct accel_ctx *ctx)
{
	struct accel_question *q = ctx->question;

	if (q == NULL)
		return;
	leave(ctx);
	if (ngx_queue_empty(&q->waiters) && (q->waits || q->asked_on != NULL))
		call_back(q);
}

/* Those who wait go on later, from the event loop: they may ask for other names, and end any other
 * request that waits, while the caller is still at its connections.  Nobody joins any more: who
 * asks again asks anew. */
void
accel_question_end(struct accel_question *q, enum accel_kind kind)
{
	accel_count(q->called_back         ? ACCEL_COUNT_called_back
		    : kind == ACCEL_LATE   ? ACCEL_COUNT_answers_late
		    : kind == ACCEL_FAILED ? ACCEL_COUNT_answers_failed
					   : ACCEL_COUNT_answers);
	q->kind = kind;
	ngx_queue_remove(&q->link);
	ngx_queue_insert_tail(&ended, &q->link);
	ngx_post_event(&deliver_event, &ngx_posted_events);
}

static void
deliver(ngx_event_t *ev)
{
	struct accel_question *q;
	struct accel_ctx *ctx;

	(void)ev;
	while (!ngx_queue_empty(&ended)) {
		q = ngx_queue_data(ngx_queue_head(&ended), struct accel_question, link);
		/* one may end another, so each is taken from the head */
		while (!ngx_queue_empty(&q->waiters)) {
			ctx = ngx_queue_data(ngx_queue_head(&q->waiters), struct accel_ctx, link);
			leave(ctx);
			accel_answered(ctx, q);
		}
		question_free(q);
	}
}

bool
accel_ask_is_slow(const ngx_str_t *path)
{
	const struct accel_question *q;
	ngx_queue_t *i = ngx_queue_head(&by_age);
	uint32_t mount = 0;

	for (; i != ngx_queue_sentinel(&by_age); i = ngx_queue_next(i)) {
		q = ngx_queue_data(i, struct accel_question, age);
		if (ngx_current_msec - q->since <= SLOW_MS)
			break;
		if (mount == 0)
			mount = accel_mount_id(path);
		if (q->mount == mount)
			return (true);
	}
	return (false);
}
