/* nginx/turns.c -- questions that wait for a connection to the accelerator.
 *
 * One client with many questions gets in nobody's way: the clients take turns.  Each question of a
 * client is one turn after the one before it, and the lowest turn goes first:
 *
 *     a1 a2 a3 a4 a5 ...   and then b asks:   a1 b1 a2 a3 a4 a5 ...
 *
 * One mount that hangs takes no connection from the others: at most MOUNT_MAX are out for it. */
#include "nginx/stat_accel.h"

#define MOUNT_MAX 256u

static uint16_t *
busy_of(struct accel_peer *p, const struct accel_question *q)
{
	return (&p->busy_of[q->mount % ACCEL_MOUNTS]);
}

bool
accel_may_be_asked(struct accel_peer *p, const struct accel_question *q)
{
	return (*busy_of(p, q) < MOUNT_MAX);
}

void
accel_turn_begins(struct accel_peer *p, const struct accel_question *q)
{
	++*busy_of(p, q);
}

void
accel_turn_ends(struct accel_peer *p, const struct accel_question *q)
{
	--*busy_of(p, q);
}

static struct accel_question *
question_at(ngx_queue_t *i)
{
	return (ngx_queue_data(i, struct accel_question, at));
}

void
accel_wait_for_turn(struct accel_peer *p, struct accel_question *q)
{
	uint32_t *turn = &p->turn_of[q->client_key % ACCEL_CLIENTS];
	ngx_queue_t *i = ngx_queue_last(&p->waiting);

	if ((int32_t)(*turn - p->turn) < 0)
		*turn = p->turn;
	q->turn = ++*turn;
	while (
	    i != ngx_queue_sentinel(&p->waiting) && (int32_t)(question_at(i)->turn - q->turn) > 0)
		i = ngx_queue_prev(i);
	ngx_queue_insert_after(i, &q->at);
	q->waits = true;
}

void
accel_wait_no_more(struct accel_question *q)
{
	ngx_queue_remove(&q->at);
	q->waits = false;
}

struct accel_question *
accel_next_turn(struct accel_peer *p)
{
	struct accel_question *q;
	ngx_queue_t *i = ngx_queue_head(&p->waiting);

	for (; i != ngx_queue_sentinel(&p->waiting); i = ngx_queue_next(i)) {
		q = question_at(i);
		if (!accel_may_be_asked(p, q))
			continue;
		p->turn = q->turn;
		accel_wait_no_more(q);
		return (q);
	}
	return (NULL);
}
