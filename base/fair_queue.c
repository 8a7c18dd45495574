/* base/fair_queue.c -- see fair_queue.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/must.h"
#include "base/fair_queue.h"

#define TABLE_FIRST   16u
#define LENGTHS_FIRST 16u

enum { WAITED_FOR, PUT_AWAY, KINDS };

struct row {
	struct row *chain;                        /* next in the same slot of table */
	struct row *shorter_next, **shorter_prev; /* in by_length */
	struct list turn;                         /* in by_running, while it has waiting jobs */
	struct list items[KINDS];                 /* oldest first */
	unsigned length, running;                 /* items that requests wait for; items that run */
	uint32_t client;
};

int
fair_queue_init(struct fair_queue *r)
{
	unsigned i;

	memset(r, 0, sizeof(*r));
	r->table = calloc(TABLE_FIRST, sizeof(struct row *));
	r->by_length = calloc(LENGTHS_FIRST, sizeof(struct row *));
	if (r->table == NULL || r->by_length == NULL) {
		fair_queue_fini(r);
		return (-ENOMEM);
	}
	r->mask = TABLE_FIRST - 1;
	fair_queue_limit(r, 0);
	r->lengths = LENGTHS_FIRST;
	list_init(&r->order);
	for (i = 0; i <= ROW_RUNNING; i++)
		list_init(&r->by_running[i]);
	return (0);
}

void
fair_queue_limit(struct fair_queue *r, unsigned n)
{
	r->may = n != 0 && n <= ROW_RUNNING ? (1u << n) - 1 : UINT32_MAX;
}

void
fair_queue_fini(struct fair_queue *r)
{
	free(r->table);
	free(r->by_length);
	r->table = r->by_length = NULL;
}

/* ---------------------------------------------------------------- the table of rows */

static struct row **
row_place(struct row **table, unsigned mask, uint32_t client)
{
	struct row **p = &table[(client * 0x9e3779b1u >> 7) & mask];

	while (*p != NULL && (*p)->client != client)
		p = &(*p)->chain;
	return (p);
}

/* One slot per row.  Without memory for a larger table the chains get longer. */
static void
table_grow(struct fair_queue *r)
{
	unsigned i, mask = 2 * r->mask + 1;
	struct row **table, *row;

	table = r->nrows > r->mask ? calloc(mask + 1, sizeof(struct row *)) : NULL;
	if (table == NULL)
		return;
	for (i = 0; i <= r->mask; i++) {
		while ((row = r->table[i]) != NULL) {
			r->table[i] = row->chain;
			row->chain = NULL;
			*row_place(table, mask, row->client) = row;
		}
	}
	free(r->table);
	r->table = table;
	r->mask = mask;
}

static struct row *
row_get(struct fair_queue *r, uint32_t client)
{
	struct row **place = row_place(r->table, r->mask, client), *row = *place;
	unsigned i;

	if (row != NULL)
		return (row);
	row = calloc(1, sizeof(*row));
	if (row == NULL)
		return (NULL);
	row->client = client;
	list_init(&row->turn);
	for (i = 0; i < KINDS; i++)
		list_init(&row->items[i]);
	*place = row;
	r->nrows++;
	table_grow(r);
	return (row);
}

static bool
row_waits(const struct row *row)
{
	return (!list_empty(&row->items[WAITED_FOR]) || !list_empty(&row->items[PUT_AWAY]));
}

static void
row_free_if_empty(struct fair_queue *r, struct row *row)
{
	struct row **place;

	if (row->running != 0 || row_waits(row))
		return;
	place = row_place(r->table, r->mask, row->client);
	*place = row->chain;
	r->nrows--;
	free(row);
}

/* ---------------------------------------------------------------- rows by load */

/* Puts the row after those with as many running items. */
static void
turn_set(struct fair_queue *r, struct row *row)
{
	unsigned n = row->running < ROW_RUNNING ? row->running : ROW_RUNNING, i;

	list_del(&row->turn);
	if (row_waits(row))
		list_add_tail(&r->by_running[n], &row->turn);
	/* the row has left a neighbouring list: one item more or less runs now */
	for (i = n > 0 ? n - 1 : 0; i <= n + 1 && i <= ROW_RUNNING; i++) {
		r->ready &= ~(1u << i);
		r->ready |= (uint32_t)!list_empty(&r->by_running[i]) << i;
	}
}

static bool
lengths_reach(struct fair_queue *r, unsigned length)
{
	struct row **v;
	unsigned i;

	if (length < r->lengths)
		return (true);
	v = calloc(2 * r->lengths, sizeof(struct row *));
	if (v == NULL)
		return (false);
	memcpy(v, r->by_length, r->lengths * sizeof(struct row *));
	for (i = 0; i < r->lengths; i++) {
		if (v[i] != NULL)
			v[i]->shorter_prev = &v[i];
	}
	free(r->by_length);
	r->by_length = v;
	r->lengths *= 2;
	return (true);
}

static void
length_set(struct fair_queue *r, struct row *row, unsigned length)
{
	struct row **head = &r->by_length[length];

	if (row->length != 0) {
		*row->shorter_prev = row->shorter_next;
		if (row->shorter_next != NULL)
			row->shorter_next->shorter_prev = row->shorter_prev;
	}
	row->length = length;
	if (length != 0) {
		row->shorter_next = *head;
		row->shorter_prev = head;
		if (*head != NULL)
			(*head)->shorter_prev = &row->shorter_next;
		*head = row;
	}
	if (length > r->longest)
		r->longest = length;
	while (r->longest != 0 && r->by_length[r->longest] == NULL)
		r->longest--; /* the row that has left is shorter by one item */
}

/* ---------------------------------------------------------------- items */

static unsigned
kind_of(const struct fair_queue_item *i)
{
	return (i->put_away ? PUT_AWAY : WAITED_FOR);
}

int
fair_queue_push(struct fair_queue *r, struct fair_queue_item *i, bool first)
{
	struct row *row = row_get(r, i->client);
	bool waited_for = !i->put_away;

	if (row == NULL)
		return (-ENOMEM);
	if (waited_for && !lengths_reach(r, row->length + 1)) {
		row_free_if_empty(r, row);
		return (-ENOMEM);
	}
	i->row = row;
	if (first)
		list_add_head(&row->items[kind_of(i)], &i->link);
	else
		list_add_tail(&row->items[kind_of(i)], &i->link);
	list_add_tail(&r->order, &i->order);
	r->waiting++;
	if (waited_for) {
		r->waited_for++;
		length_set(r, row, row->length + 1);
	}
	if (!list_linked(&row->turn))
		turn_set(r, row);
	return (0);
}

static struct fair_queue_item *
older(struct row *row)
{
	struct fair_queue_item *a =
	    list_entry(row->items[WAITED_FOR].next, struct fair_queue_item, link);
	struct fair_queue_item *b =
	    list_entry(row->items[PUT_AWAY].next, struct fair_queue_item, link);

	if (list_empty(&row->items[PUT_AWAY]))
		return (a);
	return (list_empty(&row->items[WAITED_FOR]) || b->since_ns < a->since_ns ? b : a);
}

struct fair_queue_item *
fair_queue_next(const struct fair_queue *r)
{
	const struct list *first;

	if ((r->ready & r->may) == 0)
		return (NULL);
	first = &r->by_running[__builtin_ctz(r->ready)];
	return (older(list_entry(first->next, struct row, turn)));
}

static void
item_leaves(struct fair_queue *r, struct fair_queue_item *i)
{
	list_del(&i->link);
	list_del(&i->order);
	r->waiting--;
	if (i->put_away)
		return;
	r->waited_for--;
	length_set(r, i->row, i->row->length - 1);
}

void
fair_queue_pull(struct fair_queue *r, struct fair_queue_item *i)
{
	struct row *row = i->row;

	item_leaves(r, i);
	i->row = NULL;
	if (!row_waits(row))
		turn_set(r, row);
	row_free_if_empty(r, row);
}

unsigned
fair_queue_running(const struct fair_queue_item *i)
{
	return (i->row->running);
}

unsigned
fair_queue_queued(const struct fair_queue_item *i)
{
	return (i->row->length);
}

void
fair_queue_take(struct fair_queue *r, struct fair_queue_item *i)
{
	item_leaves(r, i);
	i->row->running++;
	turn_set(r, i->row);
}

void
fair_queue_ran(struct fair_queue *r, struct fair_queue_item *i)
{
	struct row *row = i->row;

	i->row = NULL;
	row->running--;
	turn_set(r, row);
	row_free_if_empty(r, row);
}

struct fair_queue_item *
fair_queue_newest_of_longest(const struct fair_queue *r)
{
	if (r->longest == 0)
		return (NULL);
	return (list_entry(r->by_length[r->longest]->items[WAITED_FOR].prev, struct fair_queue_item,
	    link));
}

struct fair_queue_item *
fair_queue_oldest(const struct fair_queue *r)
{
	return (list_empty(&r->order) ? NULL
				      : list_entry(r->order.next, struct fair_queue_item, order));
}

struct fair_queue_item *
fair_queue_victim(const struct fair_queue *r, uint32_t client)
{
	const struct row *own = *row_place(r->table, r->mask, client);

	if ((own != NULL ? own->length : 0) + 1 >= r->longest)
		return (NULL);
	return (fair_queue_newest_of_longest(r));
}

void
fair_queue_move(struct fair_queue *r, struct fair_queue_item *i, uint32_t client)
{
	const struct row *to = *row_place(r->table, r->mask, client);
	uint32_t from = i->client;

	if (client == from || (to != NULL ? to->length : 0) + 1 >= i->row->length)
		return;
	fair_queue_pull(r, i);
	i->client = client;
	if (fair_queue_push(r, i, false) == 0)
		return;
	i->client = from;
	must(fair_queue_push(r, i, false) ==
	     0); /* its row has other items, and had space for this one */
}
